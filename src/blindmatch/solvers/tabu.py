"""Iterated robust tabu search (Taillard 1991): the strongest of the heuristics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from blindmatch import _core
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import MOST_STEPS, Budget, Capabilities, Outcome, Solver
from blindmatch.solvers.core_problem import core_problem
from blindmatch.solvers.two_opt import improve_starts
from blindmatch.validation import at_least

_SWAPS = 1000  # least number of swaps per item and stream
_SWAP_SECONDS = 1.2e-9  # of a swap, over n^2: what the work limit counts with
_MORE_SWAPS, _WORK = 20, 4e9  # up to 20 times as many, if that takes no more than a second or two


@dataclass(frozen=True)
class Tabu(Solver):
    """Iterated tabu search, in C++ on all threads.

    Parameters
    ----------
    iterations
        Swaps of each stream. "auto" is 1000 n for few and for very many items and up to 20,000 n in between, a few
        seconds at most for n up to 200. None continues until the time limit (or Ctrl-C), so the result depends on the
        clock.
    streams
        Number of independent searches. With `iterations=None`, one runs on each thread instead.
    """

    iterations: int | Literal["auto"] | None = "auto"
    streams: int = 4

    name: ClassVar[str] = "tabu"
    capabilities: ClassVar[Capabilities] = Capabilities(forbidden=True, note="local; the strongest heuristic")

    def __post_init__(self) -> None:
        if isinstance(self.iterations, str):
            if self.iterations != "auto":
                raise ValueError(f"iterations={self.iterations!r}; expected an integer of at least 1, 'auto' or None")
        elif self.iterations is not None:
            at_least(self.iterations, 1, "iterations", MOST_STEPS)
        at_least(self.streams, 1, "streams", 1 << 20)  # each of them takes memory

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Return the best of all streams. The best of the caller's starts gets a stream of its own."""
        limits, wanted = budget.limits, self.iterations
        if wanted is None and math.isinf(budget.time_limit) and limits.cost_limit is None and limits.work_limit is None:
            raise ValueError("iterations=None needs a time_limit: nothing else would end the search")
        if wanted is None and limits.work_limit is not None:
            wanted = MOST_STEPS
        n = problem.n
        if wanted == "auto":  # larger problems need more swaps per item, up to a limit on the time
            most = min(_MORE_SWAPS * n**3, _MORE_SWAPS * _SWAPS * n, int(_WORK / n**2))
            wanted = max(_SWAPS * max(n, 20), most)
        swaps = wanted or 0
        extra = improve_starts(problem, budget)[:1]
        seconds = _SWAP_SECONDS * (self.streams + len(extra)) * problem.n**2
        if swaps:
            swaps = budget.steps_left(seconds, swaps)
        found = _core.tabu(
            core_problem(problem),
            seed=int(rng.integers(2**63)),
            streams=self.streams + len(extra),
            iterations=swaps,
            threads=budget.threads,
            target=-math.inf if limits.cost_limit is None else limits.cost_limit,
            # An empty start means none: the other streams run as they would without the caller's starts.
            initial=[np.zeros(0, dtype=np.int32)] * (self.streams if extra and swaps else 0) + extra,
            budget=budget,
        )
        # Without a number of swaps, reaching the time limit is the normal end.
        best = found.permutation.astype(np.intp)
        budget.offer(best, problem.objective(best))
        budget.report(None, None, swaps)
        budget.spend(swaps * seconds if found.completed else 0.0)
        cut = budget.interrupted or budget.reached or (self.iterations is not None and not found.completed)
        return Outcome(found.permutation.astype(np.intp), budget.stop_status if cut else "heuristic")
