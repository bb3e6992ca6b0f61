"""The costs of a problem as a matrix over pairs, as the doubly nonnegative relaxation needs it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Pair
from blindmatch.validation import BoolArray, FloatArray, IntArray

_SPREAD = 4.0  # upper limit of the norm, as a multiple of the norm after centring
_NOISE = 1e-6  # lower limit of the norm, as a share of the norm before centring: less may be rounding errors
_LARGEST_SCALE = 2.0**1000  # denormal costs stay small, because a larger scale could overflow

Factors = tuple[tuple[FloatArray, FloatArray], ...]


class PairCosts:
    """Costs over pairs, scaled so that their norm is about n^2.

    The mean of a factor adds the same constant to the cost of every permutation. The splitting works on costs without
    it. Otherwise, nearly constant kernels (such as those of random vectors) would lose all their digits in float32.
    """

    def __init__(self, problem: QAP) -> None:
        form = problem.normal_form
        self.n, self.factors = problem.n, form.factors
        # Row means and column means add a constant to every permutation. Without them the numbers are smaller.
        linear = form.linear
        self.column_means = linear.mean(axis=0)
        self.linear = linear - linear.mean(axis=1, keepdims=True) - self.column_means + linear.mean()
        self.means = [(_mean(A), _mean(B)) for A, B in self.factors]
        self.centred: Factors = tuple(
            (_less(A, a), _less(B, b)) for (A, B), (a, b) in zip(self.factors, self.means, strict=True)
        )
        self.centred_linear = self.linear
        whole, rest = self._norm(self.factors), self._norm(self.centred)
        norm = max(min(max(whole, rest), _SPREAD * rest), _NOISE * whole)
        self.scale = min(problem.n**2 / norm, _LARGEST_SCALE) if norm > 0 else 1.0

    def _norm(self, factors: Factors) -> float:
        """The norm of the costs, computed relative to the largest, because squares may overflow or underflow."""
        sizes = [(float(np.abs(A).max()), float(np.abs(B).max())) for A, B in factors]
        unit = max([float(np.abs(self.linear).max()), *(a * b for a, b in sizes)])
        if unit == 0:
            return 0.0
        squares = float(((self.linear / unit) ** 2).sum())
        parts = [(A / a, B / b, a * b / unit) for (A, B), (a, b) in zip(factors, sizes, strict=True) if a * b > 0]
        for A, B, weight in parts:
            for other_A, other_B, other in parts:
                squares += weight * other * float((A * other_A).sum() * (B * other_B).sum())
        return unit * float(np.sqrt(max(squares, 0.0)))

    def reduced(self, fixed: Sequence[Pair], rows: IntArray, columns: IntArray) -> PairCosts:
        """The costs of the rows and columns that remain after fixing pairs, on the same scale and not centred again."""
        rest = copy(self)
        rest.n, rest.column_means = len(rows), self.column_means[columns]
        rest.factors, rest.linear = _reduced(self.factors, self.linear, fixed, rows, columns)
        rest.centred, rest.centred_linear = _reduced(self.centred, self.centred_linear, fixed, rows, columns)
        return rest

    def centred_matrix(self, allowed: BoolArray) -> FloatArray:
        """(p + 1, p + 1) over 1 and the allowed pairs, scaled, without the means; linear terms are on the diagonal."""
        p = int(np.count_nonzero(allowed))
        result = np.zeros((p + 1, p + 1))
        result[1:, 1:] = self.centred_rows(allowed, np.arange(p))
        return result

    def centred_rows(self, allowed: BoolArray, part: IntArray) -> FloatArray:
        """The same for a part of the pairs and all of them, without 1."""
        rows, columns = np.nonzero(allowed)
        result = np.zeros((len(part), len(rows)))
        for A, B in self.centred:
            result += A[np.ix_(rows[part], rows)] * B[np.ix_(columns[part], columns)]
        result[np.arange(len(part)), part] += self.centred_linear[rows[part], columns[part]]
        return self.scale * result

    def offset_duals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What centring removed, as duals of level 1: U[i, j, k] for (i, k), V[i, j, l] for (j, l), and of the columns.

        With B' = B - b off the diagonal, AB = A'B' + ab + aB' + bA'. The last three terms belong to rows and columns.
        """
        n = self.n
        of_rows, of_columns = np.zeros((n, n)), np.zeros((n, n))
        for (A, B), (a, b) in zip(self.centred, self.means, strict=True):
            of_rows += a * b + b * A
            of_columns += a * B
        # What fixed pairs add is a term per row and a term per column.
        fixed = (self.linear - self.centred_linear).mean(axis=0)
        return of_rows, of_columns, self.column_means + of_columns.sum(axis=1) + fixed


def _mean(matrix: FloatArray) -> float:
    """The mean of the off-diagonal entries; zero for an antisymmetric matrix. The diagonal is zero."""
    n = len(matrix)
    return float(matrix.sum()) / (n * (n - 1)) if n > 1 and np.array_equal(matrix, matrix.T) else 0.0


def _less(matrix: FloatArray, mean: float) -> FloatArray:
    result = matrix - mean
    np.fill_diagonal(result, 0.0)
    return result


def _reduced(
    factors: Factors, linear: FloatArray, fixed: Sequence[Pair], rows: IntArray, columns: IntArray
) -> tuple[Factors, FloatArray]:
    i, j = (np.array([pair[side] for pair in fixed], dtype=np.intp) for side in (0, 1))
    result = linear[np.ix_(rows, columns)]
    for A, B in factors:  # both symmetric, or both antisymmetric
        result = result + 2 * A[np.ix_(rows, i)] @ B[np.ix_(columns, j)].T
    return tuple((A[np.ix_(rows, rows)], B[np.ix_(columns, columns)]) for A, B in factors), result
