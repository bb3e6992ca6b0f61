"""FAQ: Frank-Wolfe on the relaxation to doubly stochastic matrices (Vogelstein et al. 2015), with restarts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Budget, Capabilities, Outcome, Solver
from blindmatch.solvers.relaxation import (
    Relaxation,
    assignment,
    barycentre,
    by_samples,
    by_sorted_rows,
    halfway,
    random_start,
    relaxations,
)
from blindmatch.solvers.two_opt import improve
from blindmatch.validation import FloatArray, IntArray, at_least, boolean, positive

_BATCH = 16  # restarts that share each numpy call; constant, so that the result does not depend on it
_FEW = 300  # items; with more of them, one restart comes after the other
_STEP_SECONDS = 4e-10  # of a step, over n^3, on an idle machine


@dataclass(frozen=True)
class FAQ(Solver):
    """Fast approximate QAP.

    Parameters
    ----------
    restarts
        Number of starting points: the barycentre, then random doubly stochastic matrices. With more than 300 items,
        each begins only if there is time for as long a run as before.
    max_iterations, tolerance
        A run ends after `max_iterations`, or when a step moves the matrix by less than `tolerance` times sqrt(n).
    centre_diagonals
        Run a second time from each start with the zero diagonals set to their off-diagonal means. For permutations this
        only shifts the cost, but inside the polytope it removes the pull of the diagonal. It helps a lot on distances
        and harms on other data (QAPLIB's grids). If the means are zero, one run serves for both.
    polish
        Improve the permutations by iterated pairwise exchange.
    informed
        With more than 300 items, begin with a match of random samples that is extended to all items, and with the
        assignment by sorted rows. With False here, for `centre_diagonals` and for `polish`, this is the method as
        published.
    """

    restarts: int = 100
    max_iterations: int = 30
    tolerance: float = 0.03
    centre_diagonals: bool = True
    polish: bool = True
    informed: bool = True

    name: ClassVar[str] = "faq"
    capabilities: ClassVar[Capabilities] = Capabilities(quadratic_memory=1000, note="local; best of many restarts")

    def __post_init__(self) -> None:
        at_least(self.restarts, 1, "restarts")
        at_least(self.max_iterations, 1, "max_iterations")
        positive(self.tolerance, "tolerance")
        for option in ("centre_diagonals", "polish", "informed"):
            boolean(getattr(self, option), option)

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Best of the restarts."""
        shapes = relaxations(problem.normal_form, self.centre_diagonals)
        best, best_cost = np.arange(problem.n), np.inf
        batch, longest = (_BATCH if problem.n <= _FEW else 1), 0.0
        for first in range(0, self.restarts, batch):
            begin = budget.seconds
            restarts = range(first, min(first + batch, self.restarts))
            starts = np.stack([self._start(number, problem, shapes[0], budget, rng) for number in restarts])
            seed = int(rng.integers(2**63))
            found = [p for relaxation in shapes for p in self.descend(relaxation, starts, budget)]
            if self.polish:
                found.append(improve(problem, *found, budget=budget, seed=seed, kicks=4 * problem.n))
            for permutation in found:
                cost = problem.objective(permutation)
                budget.offer(permutation, cost)
                if cost < best_cost:
                    best, best_cost = permutation, cost
            budget.spend(_STEP_SECONDS * problem.n**3 * self.max_iterations * len(restarts) * len(shapes))
            budget.report(None, best_cost, restarts.stop)
            if problem.n > _FEW:
                longest = max(longest, budget.seconds - begin)
            if restarts.stop < self.restarts and (budget.stopped or budget.remaining < longest):
                return Outcome(best, budget.stop_status)
        return Outcome(best, budget.reached or "heuristic")

    def _start(
        self, number: int, problem: QAP, relaxation: Relaxation, budget: Budget, rng: np.random.Generator
    ) -> FloatArray:
        """The starting point with this number."""
        if self.informed and problem.n > _FEW:
            if number < 2:
                match = (
                    by_sorted_rows(problem.normal_form) if number else by_samples(relaxation, self.descend, budget, rng)
                )
                budget.offer(match, problem.objective(match))
                return halfway(match)
            number -= 2
        return random_start(problem.n, rng) if number else barycentre(problem.n)

    def descend(self, relaxation: Relaxation, starts: FloatArray, budget: Budget) -> list[IntArray]:
        """Simultaneous Frank-Wolfe runs, each projected to the nearest permutation at the end."""
        P = starts.copy()
        n = P.shape[-1]
        active = np.arange(len(P))
        # No step can be cut short: one that would end too late does not begin.
        longest = 0.0 if n <= _FEW else _STEP_SECONDS * n**3 * budget.slowness
        for _ in range(self.max_iterations):
            if not len(active) or budget.stopped or budget.remaining < longest:
                break
            begin = budget.seconds
            gradient = relaxation.gradient(P[active])
            step = -P[active]
            for run, matrix in enumerate(gradient):
                step[run, np.arange(n), assignment(matrix)] += 1.0
            length = relaxation.best_steps(gradient, step)
            P[active] += length[:, None, None] * step
            moved = length * np.linalg.norm(step, axis=(1, 2))
            active = active[moved >= self.tolerance * np.sqrt(n)]
            longest = max(longest, budget.seconds - begin)
        return [assignment(-matrix) for matrix in P]
