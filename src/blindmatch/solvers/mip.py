"""Shared code of the solvers that call a mixed-integer programming (MIP) solver."""

from __future__ import annotations

import math

import numpy as np

from blindmatch.problem.qap import QAP, FactorPair
from blindmatch.proof.rounding import TINY
from blindmatch.solvers.relaxation import assignment
from blindmatch.validation import FloatArray

# The bounds of these solvers hold up to their tolerances (1e-9 in our settings). This share of the scale is subtracted.
_MARGIN = 2e-9
_NOTHING = -5000  # the exponent of zero: below that of any number and of any product of two numbers


class CentredCost:
    """The normal form without the off-diagonal means of its symmetric factors: the same cost, smaller numbers.

    For permutations this only changes a constant, but relaxations get tighter. `linear` and `factors` are multiplied by
    a power of two that makes the largest cost of a pair about one, and exclude the constant, because the tolerances of
    these solvers are absolute.
    """

    def __init__(self, problem: QAP) -> None:
        form = problem.normal_form
        n = problem.n
        self.problem = problem
        self.constant = form.constant
        factors: list[FactorPair] = []
        off = ~np.eye(n, dtype=bool)
        for A, B in form.factors:
            a, b = (float(matrix.sum()) / max(1, n * (n - 1)) for matrix in (A, B))
            factors.append(((A - a) * off, (B - b) * off))
            self.constant += n * (n - 1) * a * b
        sizes = [tuple(_exponent(matrix) for matrix in pair) for pair in factors]
        largest = [_exponent(form.linear), *(1 + a + b for a, b in sizes if min(a, b) > _NOTHING)]
        self.exponent = -max(largest) if max(largest) > _NOTHING else 0
        self.linear = np.ldexp(form.linear, self.exponent)
        self.factors = [
            (np.ldexp(A, -a), np.ldexp(B, self.exponent + a)) for (A, B), (a, _) in zip(factors, sizes, strict=True)
        ]
        with np.errstate(over="ignore"):  # with a huge constant there is nothing left to prove
            rounding = 1e-6 * float(np.ldexp(problem.scale, self.exponent))  # if centring cancels almost everything
        self.scale = float(np.abs(self.linear).max(axis=1).sum()) + rounding
        self.scale += sum(float(np.abs(A).sum() * np.abs(B).max()) for A, B in self.factors)

    def products(self) -> FloatArray:
        """The matrix Q of all products, with rows (i, j) and columns (k, l) in row-major order: the cost is x^T Q x."""
        return np.asarray(sum(np.kron(A, B) for A, B in self.factors))

    def ranges(self, products: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each pair (i, j): its minimum cost with the others if it is used, and its maximum cost if not."""
        n = self.problem.n
        rest = [np.delete(np.arange(n), i) for i in range(n)]
        least, most = np.zeros(n * n), np.zeros(n * n)
        for i, j in np.ndindex(n, n):
            matrix = products[i * n + j].reshape(n, n)
            least[i * n + j] = _best_sum(matrix[np.ix_(rest[i], rest[j])]) if n > 1 else 0.0
            most[i * n + j] = -_best_sum(-matrix)
        return least, most

    def safe_bound(self, bound: float) -> float | None:
        """A lower bound of the problem that holds despite the tolerances; None if the solver has none yet."""
        if not math.isfinite(bound - self.scale) or abs(bound) >= 1e19:  # SCIP's infinity is 1e20
            return None
        safe = math.ldexp(bound - _MARGIN * self.scale, -self.exponent) + self.constant
        if not self.problem.vanishes:  # for products that vanish in float64
            safe -= 4 * self.problem.n**2 * len(self.problem.factors) * TINY
        # With integers the bound is rounded up to the next cost, which cannot exceed the optimum.
        return self.problem.round_up(safe)


def _best_sum(cost: FloatArray) -> float:
    return float(cost[np.arange(len(cost)), assignment(cost)].sum())


def _exponent(values: FloatArray) -> int:
    """The exponent of the power of two just above all of them; `_NOTHING` if all are zero."""
    largest = float(np.abs(values).max(initial=0.0))
    return math.frexp(largest)[1] if largest > 0 else _NOTHING
