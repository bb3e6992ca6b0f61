"""The C++ core. Permutations are int32 arrays, matrices float64; a `budget` is a `blindmatch.solvers.base.Budget`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from blindmatch.solvers.base import Budget
from blindmatch.solvers.core_problem import RescaledBudget
from blindmatch.solvers.progress import Status
from blindmatch.solvers.strengthened import Glimpse

_Matrix = NDArray[np.float64]
_Indices = NDArray[np.int32]
_Stage = tuple[NDArray[np.float32], NDArray[np.float32], _Matrix, NDArray[np.uint8]]
_ProofNode = tuple[int, tuple[int, int], list[_Stage], tuple[int, int], list[tuple[int, int, int]]]

class Problem:
    def __init__(
        self,
        factors: Sequence[tuple[_Matrix, _Matrix]],
        linear: _Matrix,
        constant: float,
        forbidden: NDArray[np.bool_] | None = None,
    ) -> None: ...
    def cost(self, permutation: _Indices) -> float: ...

class HahnGrant:
    def __init__(self, problem: Problem, factorized: bool, lap: str, evaluate_laps: bool, threads: int) -> None: ...
    def sweep(self, budget: Budget) -> bool: ...
    def offer(self, permutation: _Indices) -> None: ...
    @property
    def bound(self) -> float: ...
    @property
    def gain(self) -> float: ...
    @property
    def cost(self) -> float: ...
    @property
    def permutation(self) -> _Indices: ...
    def take_duals(self) -> tuple[_Matrix, _Matrix, _Matrix]: ...

def solve_lap(
    cost: _Matrix, method: str = ..., epsilon: float = ..., warm: _Indices | None = None
) -> tuple[_Indices, _Matrix, _Matrix, bool]: ...
def two_opt(
    problem: Problem,
    seed: int,
    restarts: int,
    threads: int,
    initial: Sequence[_Indices],
    budget: Budget,
    kicks: int = 0,
) -> tuple[_Indices, float, bool]: ...
def tabu(
    problem: Problem,
    seed: int,
    streams: int,
    iterations: int,
    threads: int,
    target: float,
    initial: Sequence[_Indices],
    budget: Budget,
) -> tuple[_Indices, float, bool]: ...
def enumerate(problem: Problem, seed: int, threads: int, budget: Budget) -> tuple[_Indices, float, bool]: ...
def dual_ascent(
    problem: Problem,
    granularity: float,
    memory_limit: int,
    relaxation: bool,
    seed: int,
    threads: int,
    initial: _Indices,
    start: tuple[NDArray[np.float32], NDArray[np.float32]] | None,
    budget: RescaledBudget,
) -> tuple[_Indices, Status, list[_Stage]]: ...
def dense_sweeps(
    pairs: NDArray[np.float32],
    linear: _Matrix,
    forbidden: NDArray[np.bool_],
    count: int,
    gain: float,
    threads: int,
    budget: Budget,
) -> tuple[NDArray[np.float32], NDArray[np.float32], _Matrix]: ...
def branch_and_bound(
    problem: Problem,
    granularity: float,
    memory_limit: int,
    proof_limit: int,
    symmetry: bool,
    checkpoint: str,
    checkpoint_interval: float,
    seed: int,
    threads: int,
    initial: _Indices,
    budget: RescaledBudget | Glimpse,
) -> tuple[_Indices, Status, float, int, list[_ProofNode], list[tuple[int, _Indices]], str]: ...
def search_subsets(
    cost: _Matrix, size: int, k: int, seed: int, restarts: int, iterations: int, threads: int, budget: Budget
) -> tuple[_Indices, bool]: ...
def exact_subsets(
    cost: _Matrix, size: int, k: int, known: _Indices, budget: Budget
) -> tuple[_Indices, float, bool]: ...
def time_sweeps(problem: Problem, count: int) -> list[float]: ...
