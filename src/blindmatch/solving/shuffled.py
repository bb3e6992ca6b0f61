"""The problem that a solver gets: without forced pairs, and shuffled so that the input order does not decide ties."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from blindmatch.problem.optimality import ROUNDING_TOLERANCE
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate, Pair
from blindmatch.proof.checker import fixing_error
from blindmatch.solvers.base import Budget, Outcome, Proof
from blindmatch.validation import IntArray


@dataclass(frozen=True, eq=False)
class Shuffled:
    """A shuffled problem, and how to undo the shuffling.

    `forced` are the pairs that every permutation has, `rows` and `columns` the others in the caller's order. Row i of
    `problem` is ``rows[shuffled_rows[i]]`` of the caller's problem, which has n rows. `error` is what rounding may add
    to a cost when the forced pairs are fixed.
    """

    problem: QAP
    n: int
    forced: tuple[Pair, ...]
    rows: IntArray
    columns: IntArray
    shuffled_rows: IntArray
    shuffled_columns: IntArray
    error: float

    @classmethod
    def of(cls, problem: QAP, rng: np.random.Generator) -> Shuffled:
        """Fix the forced pairs and shuffle the others."""
        forced, everything = tuple(_forced_pairs(problem)), np.arange(problem.n)
        rest, rows, columns = problem.reduced(forced) if forced else (problem, everything, everything)
        shuffled_rows, shuffled_columns = rng.permutation(rest.n), rng.permutation(rest.n)
        shuffled = rest.permuted(shuffled_rows, shuffled_columns)
        error = fixing_error(problem, len(forced))
        return cls(shuffled, problem.n, forced, rows, columns, shuffled_rows, shuffled_columns, error)

    def renumbered(self, permutation: IntArray) -> IntArray:
        """A permutation of the caller's problem as one of the shuffled problem."""
        at = np.empty(self.n, dtype=np.intp)
        at[self.columns[self.shuffled_columns]] = np.arange(self.problem.n)
        return at[permutation[self.rows[self.shuffled_rows]]]

    def restored(self, permutation: IntArray) -> IntArray:
        """A permutation of the shuffled problem as one of the caller's."""
        whole = np.empty(self.n, dtype=np.intp)
        for i, j in self.forced:
            whole[i] = j
        whole[self.rows[self.shuffled_rows]] = self.columns[self.shuffled_columns[permutation]]
        return whole

    def undone(self, outcome: Outcome, budget: Budget) -> Outcome:
        """The outcome in the caller's numbering, with the best match that the budget knows.

        What was reported during the run depends on the clock and on threads. So it replaces the solver's own match only
        if it is better by more than rounding, which happens when a run is stopped early.
        """
        best, cost = outcome.permutation, self.problem.objective(outcome.permutation)
        for found in (budget.best, budget.kept):
            if found is None or np.array_equal(found[1], best):
                continue
            other = self.problem.objective(found[1])
            if other < cost and other < cost - (0.0 if self.problem.exact else ROUNDING_TOLERANCE * self.problem.scale):
                best, cost = found[1], other
        bound, proof = outcome.lower_bound, Proof.of(outcome.certificate)
        if bound is not None:  # without a certificate: allow for what was rounded when the forced pairs were fixed
            bound -= self.error
        if proof is not None:
            proof = proof.changed(Certificate.unshuffled, self.shuffled_rows, self.shuffled_columns)
            if self.forced:
                proof = proof.changed(Certificate.lifted, self.n, self.forced, self.rows, self.columns)
        return replace(outcome, permutation=self.restored(best), certificate=proof, lower_bound=bound)


def _forced_pairs(problem: QAP) -> list[tuple[int, int]]:
    """Pairs without an alternative in their row or column, found one by one; at least one item stays free."""
    if problem.forbidden is None:
        return []
    free = ~problem.forbidden
    forced: list[tuple[int, int]] = []
    while len(forced) < problem.n - 1:
        single = np.argwhere(free & ((free.sum(1) == 1)[:, None] | (free.sum(0) == 1)[None, :]))
        if not len(single):
            break
        i, j = (int(index) for index in single[0])
        forced.append((i, j))
        free[i, :] = free[:, j] = False
    return forced
