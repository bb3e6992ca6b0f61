"""What the solvers that call a mixed-integer programming code have in common."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linear_sum_assignment

from blindmatch import _core
from blindmatch.problem import QAP, FactorPair
from blindmatch.validation import FloatArray, IntArray

# Bounds of these codes hold up to their tolerances, 1e-9 in our settings: so much of the scale is taken off, twice.
_MARGIN = 2e-9


class CentredCost:
    """The normal form with off-diagonal means taken out of its symmetric factors: the same cost, smaller numbers.

    On permutations that only moves a constant, but relaxations get tighter by it.
    """

    def __init__(self, problem: QAP) -> None:
        form = problem.normal_form
        n = problem.n
        self.problem = problem
        self.linear = form.linear
        self.constant = form.constant
        self.factors: list[FactorPair] = []
        off = ~np.eye(n, dtype=bool)
        for A, B in form.factors:
            a, b = (float(matrix.sum()) / max(1, n * (n - 1)) for matrix in (A, B))
            self.factors.append(((A - a) * off, (B - b) * off))
            self.constant += n * (n - 1) * a * b
        self.scale = float(
            np.abs(self.linear).max(axis=1).sum()
            + sum(np.abs(A).sum() * np.abs(B).max() for A, B in self.factors)
            + 1e-6 * problem.scale  # rounding, where centring cancels almost everything
        )

    def products(self) -> FloatArray:
        """The matrix Q of all products: row (i, j) and column (k, l), rows first, so that the cost is x^T Q x."""
        return np.asarray(sum(np.kron(A, B) for A, B in self.factors))

    def ranges(self, products: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each pair (i, j): the least that it can cost with the others where it is used, the most where not."""
        n = self.problem.n
        rest = [np.delete(np.arange(n), i) for i in range(n)]
        least, most = np.zeros(n * n), np.zeros(n * n)
        for i, j in np.ndindex(n, n):
            matrix = products[i * n + j].reshape(n, n)
            least[i * n + j] = _best_sum(matrix[np.ix_(rest[i], rest[j])]) if n > 1 else 0.0
            most[i * n + j] = -_best_sum(-matrix)
        return least, most

    def safe_bound(self, bound: float) -> float | None:
        """A lower bound that holds in spite of the tolerances; None where the code has none yet."""
        if not math.isfinite(bound) or abs(bound) >= 1e19:  # SCIP's infinity is 1e20
            return None
        margin = _MARGIN * self.scale
        # With integers the bound is rounded up to the next cost, which cannot pass the optimum.
        return self.problem.round_up(bound - margin)


def round_matrix(values: FloatArray) -> IntArray:
    """The permutation nearest to a matrix of nearly zeros and ones."""
    return np.asarray(linear_sum_assignment(-np.asarray(values))[1], dtype=np.intp)


def _best_sum(cost: FloatArray) -> float:
    columns, *_ = _core.solve_lap(np.ascontiguousarray(cost))
    return float(cost[np.arange(len(cost)), columns].sum())
