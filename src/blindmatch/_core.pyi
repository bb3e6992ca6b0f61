"""The C++ core. Permutations are int32 arrays, matrices float64; a `budget` is a `blindmatch.solvers.base.Budget`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from blindmatch.solvers.base import Budget

_Matrix = NDArray[np.float64]
_Indices = NDArray[np.int32]

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
    def permutation(self) -> NDArray[np.intp]: ...
    def duals(self) -> tuple[_Matrix, _Matrix, _Matrix]: ...

def solve_lap(
    cost: _Matrix, method: str = ..., epsilon: float = ..., warm: _Indices | None = None
) -> tuple[_Indices, _Matrix, _Matrix, bool]: ...
def two_opt(
    problem: Problem, seed: int, restarts: int, threads: int, initial: Sequence[_Indices], budget: Budget
) -> tuple[NDArray[np.intp], float, bool]: ...
