"""What a factor adds to a set of duals, in plain numpy: the proof behind the doubly nonnegative bound.

Let y = (1, x), where x holds a 0 or 1 for each allowed pair. For any matrix F, with W = FF', the cost of a permutation
is

    y'Cy = y'(C - W)y + |F'y|^2 >= y'(C - W)y.

The duals of a stage bound what is left (`stage_check.py`: W is one more pair cost there). W is positive semidefinite
because it is a product, so there is nothing to prove of it. Only its entries have to be known, with an error bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blindmatch.proof.certificate import DualArray
from blindmatch.proof.rounding import EPS, LARGEST_FACTOR, TINY
from blindmatch.validation import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class SemidefiniteTerm:
    """A matrix W = FF' over 1 and the pairs. Its entries are computed where they are needed.

    An entry is a sum of r products, F_a1 F_b1 + ... + F_ar F_br. Each product is wrong by EPS times its size, and by
    TINY where it underflows; the sum, in any order, by (r - 1) EPS times the sum of the sizes; fused operations round
    less often. By the Cauchy-Schwarz inequality these sizes sum up to at most |F_a| |F_b| <= `largest`, the largest
    squared norm of a row of F. So no entry is wrong by more than `error` = (r + 2) EPS largest + r TINY, which leaves
    2 EPS for the higher powers of EPS (r^2 EPS < 1, because no array has 10^8 columns and as many rows).
    """

    factor: FloatArray  # (p + 1, r)
    pairs: IntArray  # (p,): the flat indices of its pairs, ascending
    largest: float  # no entry of W is larger, in absolute value
    error: float  # no computed entry is further from that of W

    @property
    def constant(self) -> float:
        """The entry of the 1, which y'Wy holds whatever the permutation."""
        return float(self.factor[0] @ self.factor[0])

    def linear(self, n: int) -> FloatArray:
        """What y'Wy holds for each pair by itself, in two operations on entries; zero for pairs that are left out."""
        result = np.zeros(n * n)
        of_pairs = self.factor[1:]
        result[self.pairs] = 2 * (of_pairs @ self.factor[0]) + (of_pairs * of_pairs).sum(axis=1)
        return result.reshape(n, n)

    def rows(self, i: IntArray, j: IntArray, n: int) -> FloatArray:
        """2 W between some allowed pairs and all others, (len(i), n, n); zero for pairs that are left out."""
        panel = 2 * (self.factor[1 + np.searchsorted(self.pairs, i * n + j)] @ self.factor[1:].T)
        if len(self.pairs) == n * n:
            return panel.reshape(len(i), n, n)
        result = np.zeros((len(i), n * n))
        result[:, self.pairs] = panel
        return result.reshape(len(i), n, n)


def semidefinite_term(factor: DualArray, forbidden: BoolArray, excluded: BoolArray) -> SemidefiniteTerm:
    """The term of a stage's factor on the pairs that are not excluded.

    The rows of `factor` belong to 1 and to the pairs that are not forbidden. Without some of its rows, FF' is without
    those rows and columns, and still a product. Raises a ValueError where a number that counts is out of range.
    """
    of_factor = np.flatnonzero(~forbidden.ravel())
    kept = np.flatnonzero(~excluded.ravel()[of_factor])
    F = factor[np.concatenate(([0], 1 + kept))].astype(np.float64)
    size = float(np.abs(F).max(initial=0.0))
    if not size <= LARGEST_FACTOR:  # NaN as well
        raise ValueError(
            f"certificate: the factor of a stage has entries up to {size:g}; expected numbers up to {LARGEST_FACTOR:g}"
        )
    r = F.shape[1]
    # Sums of positive numbers: wrong by a factor of at most 1 + (r + 2) EPS, and by r TINY.
    largest = float((F * F).sum(axis=1).max()) * (1 + 2 * (r + 4) * EPS) + (r + 2) * TINY
    return SemidefiniteTerm(F, of_factor[kept], largest, (r + 2) * EPS * largest + r * TINY)
