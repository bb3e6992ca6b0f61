# Made by tools/make_stub.py: do not edit.
"""The C++ core of blindmatch."""

from collections.abc import Sequence
import enum
from typing import Annotated

import numpy
from numpy.typing import NDArray

import blindmatch.solvers.base
import blindmatch.solvers.core_problem

class Problem:
    """An assignment problem in the normal form: see base/problem.h."""

    def __init__(
        self,
        factors: Sequence[
            tuple[
                Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
                Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
            ]
        ],
        linear: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        constant: float,
        forbidden: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
    ) -> None: ...

class LapSolution:
    """Dual variables u[i] + v[j] <= cost[i, j], tight on the assignment."""

    @property
    def columns(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """The column of each row; all -1 if not feasible."""

    @property
    def u(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...
    @property
    def v(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...
    @property
    def feasible(self) -> bool:
        """Whether an assignment avoids all infinite costs."""

def solve_lap(
    cost: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    method: str = "jonker-volgenant",
    epsilon: float = 0.0,
    warm: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None = None,
) -> LapSolution:
    """Solve a linear assignment problem."""

class HahnGrantStage:
    """Duals in float64, in the core's order: u[k, i, j] and v[l, i, j]."""

    @property
    def u(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), writable=False)]: ...
    @property
    def v(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), writable=False)]: ...
    @property
    def column_duals(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...
    @property
    def forbidden(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None, None), writable=False)]: ...

class Stage:
    """Duals in float32, in the core's order: u[k, i, j] and v[l, i, j]."""

    @property
    def u(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), writable=False)]: ...
    @property
    def v(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), writable=False)]: ...
    @property
    def column_duals(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]: ...
    @property
    def forbidden(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None, None), writable=False)]: ...
    @staticmethod
    def from_certificate(
        U: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order="C", device="cpu", writable=False)],
        V: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order="C", device="cpu", writable=False)],
    ) -> Stage:
        """
        Duals to start from, in the certificate's order: U[i, j, k] and V[i, j, l].
        """

class SkippedChild:
    """A child that a symmetry maps to its sibling."""

    @property
    def skipped(self) -> int: ...
    @property
    def sibling(self) -> int: ...
    @property
    def symmetry(self) -> int:
        """An index into the symmetries of the result."""

class ProofNode:
    """A node of the proof tree, in original indices."""

    @property
    def parent(self) -> int | None:
        """An index into the proof; None at the root."""

    @property
    def pair(self) -> tuple[int, int] | None:
        """The pair (row, column) that it fixes; None at the root."""

    @property
    def line(self) -> tuple[int, int] | None:
        """
        What its children fix: (0, row) or (1, column); None if it has no children.
        """

    @property
    def stages(self) -> list[Stage]: ...
    @property
    def skipped(self) -> list[SkippedChild]: ...

class Symmetry:
    """A permutation of the rows, or of the columns, that changes no cost."""

    @property
    def of_rows(self) -> bool: ...
    @property
    def image(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...

class HahnGrant:
    """The paper's Algorithm 2 (factorized), or 1: one sweep after the other."""

    def __init__(self, problem: Problem, *, factorized: bool, lap: str, evaluate_laps: bool, threads: int) -> None: ...
    def sweep(self, budget: blindmatch.solvers.base.Budget | blindmatch.solvers.core_problem.RescaledBudget) -> bool:
        """One pass over all subproblems; False if it was cut short."""

    def offer(
        self, permutation: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)]
    ) -> None: ...
    @property
    def bound(self) -> float: ...
    @property
    def cost(self) -> float: ...
    @property
    def permutation(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...
    def take_duals(self) -> HahnGrantStage:
        """The duals, without a copy: the ascent ends with this."""

class SearchResult:
    """What two_opt, tabu or enumerate found."""

    @property
    def permutation(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """Empty if no permutation avoids the forbidden pairs."""

    @property
    def cost(self) -> float: ...
    @property
    def completed(self) -> bool:
        """False if the budget cut the search short."""

def two_opt(
    problem: Problem,
    *,
    seed: int = 0,
    restarts: int = 1,
    kicks: int = 0,
    threads: int = 1,
    initial: Sequence[Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)]],
    budget: blindmatch.solvers.base.Budget,
) -> SearchResult:
    """Multi-start 2-swap local search."""

def tabu(
    problem: Problem,
    *,
    seed: int,
    streams: int,
    iterations: int,
    threads: int,
    target: float,
    initial: Sequence[Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)]],
    budget: blindmatch.solvers.base.Budget,
) -> SearchResult:
    """Iterated tabu search; iterations=0 means until the budget ends."""

def enumerate(problem: Problem, *, seed: int, threads: int, budget: blindmatch.solvers.base.Budget) -> SearchResult:
    """Every permutation, with pruning."""

class Target:
    """When a bound is good enough; see blindmatch.problem.optimality."""

    def __init__(
        self, *, tolerance: float, granularity: float, noise: float, gap: float = 0.0, enough: float = float("inf")
    ) -> None: ...

class DualAscentOptions:
    """What dual_ascent may use, and when it is done."""

    def __init__(
        self, *, target: Target, memory_limit: int, seed: int, threads: int, relaxation: bool = True
    ) -> None: ...

class BranchAndBoundOptions:
    """Those of the root, and the limits of the tree."""

    def __init__(
        self,
        *,
        root: DualAscentOptions,
        proof_limit: int,
        open_limit: int = 4294967296,
        node_limit: int | None = None,
        cost_limit: float = float("-inf"),
        symmetry: bool = False,
        checkpoint_interval: float = float("inf"),
    ) -> None: ...

class BoundStatus(enum.Enum):
    """Why a run ended; the caller knows which limit it was."""

    optimal = 0

    time_limit = 1

    interrupted = 2

    stalled = 3

class BoundResult:
    """What dual_ascent found."""

    @property
    def permutation(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]: ...
    @property
    def status(self) -> BoundStatus: ...
    @property
    def bound(self) -> float: ...
    @property
    def stages(self) -> list[Stage]:
        """They prove the bound."""

class TreeResult:
    """What branch_and_bound found."""

    @property
    def permutation(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...
    @property
    def status(self) -> BoundStatus: ...
    @property
    def bound(self) -> float: ...
    @property
    def nodes(self) -> int:
        """How many were bounded."""

    @property
    def full(self) -> bool:
        """Whether node_limit or cost_limit ended the run."""

    @property
    def proof(self) -> list[ProofNode]:
        """The tree, the root first; empty if it outgrew proof_limit."""

    @property
    def symmetries(self) -> list[Symmetry]:
        """Those that the proof uses."""

class SharedTree:
    """A tree whose open nodes are worked on elsewhere, piece by piece."""

    def __init__(self, problem: Problem, options: BranchAndBoundOptions, root: TreeResult) -> None:
        """What branch_and_bound left open; the result is empty afterwards."""

    def take(self, count: int) -> tuple[int, bytes]:
        """
        A piece of at most `count` open nodes: its number and its bytes, empty if none is left.
        """

    def absorb(self, number: int, piece: bytes) -> None:
        """What grow_piece made of a piece."""

    def give_back(self, number: int) -> None:
        """The piece was lost: its nodes are open again."""

    @property
    def cost(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def nodes(self) -> int:
        """How many were bounded."""

    @property
    def open(self) -> int:
        """How many wait."""

    @property
    def proof_nodes(self) -> int:
        """Nodes of the proof; 0 if it was dropped."""

    def encoded(self) -> bytes:
        """The state for a checkpoint, as if no piece were out."""

    def finish(self, status: BoundStatus) -> TreeResult:
        """The result; the tree is empty afterwards."""

def grow_piece(
    problem: Problem,
    options: BranchAndBoundOptions,
    piece: bytes,
    budget: blindmatch.solvers.core_problem.RescaledBudget,
) -> bytes:
    """
    Works on a piece of a SharedTree until the budget or node_limit ends it; returns what it is then.
    """

def dual_ascent(
    problem: Problem,
    options: DualAscentOptions,
    initial: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    start: Stage | None,
    budget: blindmatch.solvers.core_problem.RescaledBudget,
) -> BoundResult:
    """The level-1 RLT bound by sweeps and a first-order method."""

def dense_sweeps(
    pairs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    linear: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    forbidden: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    *,
    count: int,
    gain: float,
    threads: int,
    budget: blindmatch.solvers.base.Budget | blindmatch.solvers.core_problem.RescaledBudget,
) -> Stage:
    """Hahn-Grant sweeps on dense pair costs of about 1."""

def box_step(
    state: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    point: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    cost: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    slack: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    duals: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transposed: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    sums: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    weight: float,
    stride: float,
    begin: int,
) -> tuple[float, float]:
    """
    Rows of the box step of the splitting, from `begin` on; returns two squared norms.
    """

def time_sweeps(problem: Problem, count: int) -> list[float]:
    """
    For benchmarks: CPU seconds from the start of the first sweep to the end of each.
    """

def branch_and_bound(
    problem: Problem,
    options: BranchAndBoundOptions,
    initial: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    budget: blindmatch.solvers.core_problem.RescaledBudget,
    saved: bytes | None = None,
) -> TreeResult:
    """
    Branch and bound on the dual ascent; `saved` is the state that an earlier run kept.
    """

class SubsetResult:
    """The best subsets found."""

    @property
    def subsets(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None, None))]:
        """One subset a row."""

    @property
    def lower_bound(self) -> float:
        """-inf unless exact_subsets found it."""

    @property
    def completed(self) -> bool:
        """False if the budget cut the search short."""

def search_subsets(
    cost: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    *,
    size: int,
    k: int,
    seed: int,
    restarts: int,
    iterations: int,
    threads: int,
    budget: blindmatch.solvers.base.Budget | blindmatch.solvers.core_problem.RescaledBudget,
) -> SubsetResult:
    """The k best subsets by multi-start tabu search."""

def exact_subsets(
    cost: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    *,
    size: int,
    k: int,
    known: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    budget: blindmatch.solvers.base.Budget | blindmatch.solvers.core_problem.RescaledBudget,
) -> SubsetResult:
    """
    The k best subsets by branch and bound. The rows of `known` are sorted subsets to start from.
    """
