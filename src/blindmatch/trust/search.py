"""Quick searches, which an assessment makes by the hundred, and what each part of an assessment may use."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Solver
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.limits import complete
from blindmatch.solving.run import solve
from blindmatch.validation import IntArray

EFFORT = 60  # swaps of a quick search, times the size: enough for the optimum of nearly all problems of 15 items
MOST = 100  # items from which on the effort stays the same: an assessment of 300 items must end
_SWAPS = 10_000  # of a search of up to MOST items: what 100 names in two language models need, and 25 of any kind


@dataclass(frozen=True)
class Part:
    """What one part of an assessment may use.

    Attributes
    ----------
    rng
        Source of random numbers.
    threads
        How many to use; None for all cores.
    deadline
        When it must end, on the clock of ``time.perf_counter``.
    progress
        Called with the share that is done, from 0 to 1.
    """

    rng: np.random.Generator
    threads: int | None = 1
    deadline: float = math.inf
    progress: Callable[[float], object] = lambda share: None

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; may be infinite or negative."""
        return self.deadline - time.perf_counter()


def search(problem: QAP, part: Part) -> tuple[IntArray, float] | None:
    """A good match and its cost: the same effort for all problems of a size, so that costs can be compared.

    None if the deadline cuts it short: with less effort the cost would be higher.
    """
    n = problem.n
    return run_until_deadline(problem, Tabu(iterations=max(_SWAPS * MOST // max(n, MOST), 2 * n), streams=1), part)


def quick_search(problem: QAP, part: Part) -> tuple[IntArray, float] | None:
    """A match and its cost, more quickly; None if the deadline cuts it short."""
    return run_until_deadline(problem, Tabu(iterations=_quick_swaps(problem.n), streams=1), part)


def _quick_swaps(n: int) -> int:
    return EFFORT * min(max(n, 10), MOST)


def run_until_deadline(problem: QAP, solver: Solver, part: Part) -> tuple[IntArray, float] | None:
    """The permutation and cost that the solver finds; None if the deadline cuts it short."""
    left = part.seconds_left
    if left <= 0:
        return None
    limit = None if math.isinf(left) else left
    found = complete(solve(problem, solver, time_limit=limit, rng=part.rng, threads=part.threads))
    return None if found.status == "time_limit" else (found.permutation, found.cost)
