"""Our dual ascent: the level-1 RLT bound by Hahn-Grant sweeps, fixing and a first-order method; no branching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from blindmatch import _core
from blindmatch.certificate import Certificate, Node
from blindmatch.problem import QAP
from blindmatch.result import Status
from blindmatch.solvers.base import Budget, Capabilities, Outcome
from blindmatch.solvers.core_problem import ScaledProblem
from blindmatch.solvers.tabu import Tabu
from blindmatch.validation import at_least


@dataclass(frozen=True)
class DualAscent:
    """Tight lower bound without branching, and the match that tabu search and the ascent itself find.

    Parameters
    ----------
    relaxation
        After the sweeps stall, solve the linear program whose dual they ascend by a first-order method.
    memory_limit
        Bytes that this method may use (about 4 n^4); where it needs more, the sweeps go on alone.
    """

    relaxation: bool = True
    memory_limit: int = 4 << 30

    name: ClassVar[str] = "dual-ascent"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True, forbidden=True, max_size=600, note="ours; the tightest bound without branching"
    )

    def __post_init__(self) -> None:
        at_least(self.memory_limit, 0, "memory_limit")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Search, then ascend."""
        start = first_match(problem, budget, rng)
        scaled = ScaledProblem.of(problem)
        permutation, status, stages = _core.dual_ascent(
            scaled.core,
            scaled.granularity,
            self.memory_limit,
            self.relaxation,
            int(rng.integers(2**63)),
            budget.threads,
            start,
            scaled.budget(budget),
        )
        status = final_status(status, budget)
        node = Node(stages=scaled.stages(stages), spectral=True)
        return Outcome(permutation.astype(np.intp), status, Certificate(problem.n, (node,)))


def final_status(status: Status, budget: Budget) -> Status:
    """The core only knows that it was told to stop; the budget knows why."""
    return budget.stop_status if status in ("time_limit", "interrupted") else status


def first_match(problem: QAP, budget: Budget, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int32]]:
    """A good match to start from: a short tabu search, a fixed number of steps so that seeds repeat."""
    found = Tabu(iterations=200 * max(problem.n, 10), streams=2)(problem, budget=budget, rng=rng)
    return found.permutation.astype(np.int32)
