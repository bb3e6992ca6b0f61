"""2-opt: swap two partners while that lowers the cost, from many random starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from blindmatch import _core
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import MOST_STEPS, Budget, Capabilities, Outcome, Solver
from blindmatch.solvers.core_problem import core_problem
from blindmatch.validation import IntArray, at_least

_SWAP_SECONDS = 5e-10  # of looking at a swap, over n: what the work limit counts with


@dataclass(frozen=True)
class TwoOpt(Solver):
    """Multi-start pairwise exchange, in C++ on all threads.

    Parameters
    ----------
    restarts
        Number of local searches from random permutations.
    kicks
        How often each restart perturbs its local optimum and searches again. 0 is textbook 2-opt; None means at most
        4 n times. A restart ends early if a third of its kicks in a row bring no gain.
    """

    restarts: int = 100
    kicks: int | None = None

    name: ClassVar[str] = "two-opt"
    capabilities: ClassVar[Capabilities] = Capabilities(forbidden=True, note="local; best of many restarts")

    def __post_init__(self) -> None:
        at_least(self.restarts, 1, "restarts", MOST_STEPS)
        if self.kicks is not None:
            at_least(self.kicks, 0, "kicks", 1 << 30)

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Best local optimum of all restarts."""
        form = problem.normal_form
        flat = not form.linear.any() and not any(A.any() and B.any() for A, B in form.factors)
        kicks = 0 if flat else 4 * problem.n if self.kicks is None else self.kicks
        restarts = 1 if flat else self.restarts + len(budget.starts)  # if all costs are zero, one start is enough
        seconds = _SWAP_SECONDS * (problem.n + kicks) * problem.n**3
        restarts = budget.steps_left(seconds, restarts)
        found = _core.two_opt(
            core_problem(problem),
            seed=int(rng.integers(2**63)),
            restarts=restarts,
            kicks=kicks,
            threads=budget.threads,
            initial=[] if flat else [start.astype(np.int32) for start in budget.starts],
            budget=budget,
        )
        best = found.permutation.astype(np.intp)
        budget.offer(best, problem.objective(best))
        budget.report(None, None, restarts)
        budget.spend(restarts * seconds if found.completed else 0.0)
        return Outcome(best, "heuristic" if found.completed and not budget.reached else budget.stop_status)


def improve(problem: QAP, *starts: IntArray, budget: Budget | None = None, seed: int = 0, kicks: int = 0) -> IntArray:
    """The best of the local optima that pairwise exchange finds from these starts, with that many kicks from each."""
    found = _core.two_opt(
        core_problem(problem),
        seed=seed,
        restarts=len(starts),
        kicks=kicks,
        threads=1 if budget is None else budget.threads,
        initial=[np.ascontiguousarray(start, dtype=np.int32) for start in starts],
        budget=budget or Budget(),
    )
    return found.permutation.astype(np.intp)


def improve_starts(problem: QAP, budget: Budget) -> list[NDArray[np.int32]]:
    """The local optima that pairwise exchange reaches from the caller's starts, the cheapest first."""
    found: list[tuple[float, IntArray]] = []
    for start in budget.starts:
        if budget.stopped:
            break
        best = improve(problem, start, budget=budget)
        found.append((problem.objective(best), best))
        budget.offer(best, found[-1][0])
    return [best.astype(np.int32) for _, best in sorted(found, key=lambda entry: entry[0])]
