"""The doubly nonnegative relaxation by operator splitting.

Over the allowed pairs let y = (1, x), and let Y stand for yy'. The relaxation minimises <C, Y> subject to

    Y = VRV', R positive semidefinite, trace R = n + 1     (V: `Face`), and
    Y in a box: 0 <= Y <= 1, Y_00 = 1, first row = diagonal, zero where two pairs share one of row and column.

Peaceman-Rachford splitting alternates the projections P and Q onto the two sets: with s = Y + Z / beta,

    s <- s + 2 (Q(2 P(s) - s - C / beta) - P(s)),

and Z = beta (s - P(s)) is a dual matrix at every step. On the face it is level - FF', where F comes from the
eigenvectors that P drops, so C - FF' is bounded by the sweeps of level 1 (`semidefinite_stage.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from blindmatch.solvers.eigen import NUMPY, Arrays, Equations, Face, Floats
from blindmatch.solvers.semidefinite_stage import SlackDual
from blindmatch.validation import BoolArray, FloatArray, IntArray

CHANGE = 1.4  # factor by which the penalty changes after a round
_SOFTEN, HARDEN = 0.15, 0.08  # the penalty falls if the ratio of the residuals is above, and rises if it is below
_SOFTEST = 0.1  # the smallest penalty
_LEAST_WEIGHT = 1e-3  # of a pair that is fixed: its line of Y is divided by its weight
_NEVER = 1e6  # cost of two pairs that exclude each other: far above all others, so that the box sets them to zero


@dataclass(frozen=True, eq=False)
class SplittingState:
    """A point Y of the relaxation and its dual Z, both (p + 1, p + 1) over 1 and the allowed pairs, and the penalty."""

    allowed: BoolArray
    Y: Floats
    Z: Floats
    beta: float

    @property
    def nbytes(self) -> int:
        """Memory of the two matrices."""
        return self.Y.nbytes + self.Z.nbytes

    def kept(self, allowed: BoolArray) -> SplittingState:
        """The relaxation restricted to fewer pairs."""
        allowed = allowed & self.allowed
        index = np.concatenate(([0], 1 + np.flatnonzero(allowed[self.allowed])))
        square = np.ix_(index, index)
        return SplittingState(allowed, self.Y[square], self.Z[square], self.beta)

    def fixed(self, i: int, j: int) -> SplittingState:
        """The relaxation with the pair (i, j) fixed: its entry of y is 1, so its line is added to that of the 1."""
        rest = self.allowed.copy()
        rest[i, :] = rest[:, j] = False
        pair = int(np.count_nonzero(self.allowed.ravel()[: i * len(rest) + j])) + 1
        index = np.concatenate(([0], 1 + np.flatnonzero(rest[self.allowed])))
        Y, Z = (matrix[np.ix_(index, index)] for matrix in (self.Y, self.Z))
        Z[0, 1:] += self.Z[pair, index[1:]]
        Z[1:, 0] = Z[0, 1:]
        Z[0, 0] += 2 * self.Z[0, pair] + self.Z[pair, pair]
        weights = np.clip(self.Y[pair, index] / max(float(self.Y[pair, pair]), _LEAST_WEIGHT), 0, 1)
        Y[0], Y[:, 0] = weights, weights
        np.fill_diagonal(Y, weights)
        Y[0, 0] = 1
        return SplittingState(np.delete(np.delete(self.allowed, i, 0), j, 1), Y, Z, self.beta)


class Splitting:
    """The iteration.

    The costs, (p + 1, p + 1) over 1 and the allowed pairs, are scaled so that |C| is about n^2. With a large penalty
    beta the two projections soon agree; a small one is needed to reach the optimum.
    """

    def __init__(
        self,
        cost: Floats,
        allowed: BoolArray,
        beta: float,
        dtype: type[np.floating[Any]] = np.float32,
        arrays: Arrays = NUMPY,
    ) -> None:
        n = len(allowed)
        self.n, self.beta, self.dtype, self.arrays = n, beta, dtype, arrays
        self._set(cost, allowed)
        p = len(cost) - 1
        start = np.where(_excluded(allowed), 0.0, 1.0 / max(1, n * (n - 1)))
        inside = 1.0 / allowed.sum(axis=1)[np.nonzero(allowed)[0]]
        start[0, 1:] = start[1:, 0] = start[np.arange(1, p + 1), np.arange(1, p + 1)] = inside
        start[0, 0] = 1.0
        self.s: Floats = arrays.put(start, dtype)
        self.Y: Floats = arrays.put(start, dtype)
        self.projection: Floats = self.s
        self.level = 0.0
        self.residual, self.movement = np.inf, np.inf

    @classmethod
    def resumed(cls, cost: Floats, state: SplittingState) -> Splitting:
        """The iteration from a given point and dual."""
        splitting = cls(cost, state.allowed, state.beta)
        splitting.Y = splitting.arrays.put(state.Y, splitting.dtype)
        splitting.s = splitting.Y + splitting.arrays.put(state.Z / state.beta, splitting.dtype)
        return splitting

    def _set(self, cost: Floats, allowed: BoolArray) -> None:
        self.allowed = allowed
        self._equations = Equations(allowed)
        self.face = Face(self._equations, self.dtype, self.arrays)
        self._excluded = self.arrays.put(_excluded(allowed), bool)
        self._diagonal = self.arrays.put(np.arange(1, len(cost)), np.int64)
        self._cost: Floats = self.arrays.put(cost, self.dtype)
        self._scale_cost()

    def _scale_cost(self) -> None:
        self._scaled: Floats = self._cost / self.beta
        self._scaled[self._excluded] = _NEVER

    def project(self) -> None:
        """P(s). Until `advance` is called, `dual` gives the dual matrix of this step."""
        self._spectrum = values, vectors = self.arrays.whole_spectrum(self.face.restrict(self.s))
        self.level = _simplex_level(values[::-1].astype(np.float64), self.n + 1.0)
        first = int(np.searchsorted(values, self.level, side="right"))  # that is kept
        F = self.face.extend(vectors[:, first:] * self.arrays.put(np.sqrt(values[first:] - self.level), self.dtype))
        self.projection = F @ F.T

    def dual(self) -> SlackDual:
        """The dual of this step: Z = level + LD' + DL' - FF', where F has the eigenvectors that P drops."""
        values, vectors = self._spectrum
        dropped = int(np.searchsorted(values, self.level))
        weights = self.arrays.put(np.sqrt(self.beta * (self.level - values[:dropped])), self.dtype)
        F = self.arrays.get(self.face.extend(vectors[:, :dropped] * weights))
        s = self.arrays.get(self.s)
        return SlackDual(F, self.beta * self._equations.multipliers(self._equations.sums(s), self.level))

    @property
    def state(self) -> SplittingState:
        """The current point and dual in float32, after a projection. Y is nearly positive semidefinite."""
        Y, s, projection = (self.arrays.get(matrix) for matrix in (self.Y, self.s, self.projection))
        Z = self.beta * (s.astype(np.float64) - projection)
        return SplittingState(self.allowed, Y.astype(np.float32), Z.astype(np.float32), self.beta)

    def advance(self) -> None:
        """Compute Q(2 P(s) - s - C / beta), and update s."""
        t = self.projection + self.projection
        t -= self.s
        t -= self._scaled
        index, xp = self._diagonal, self.arrays.xp
        # Average first, then clip: the reverse order is not a projection.
        arrow = (2 * t[0, 1:] + t[index, index]) / 3
        t[0, 1:] = t[1:, 0] = t[index, index] = arrow
        xp.clip(t, 0, 1, out=t)
        t[0, 0] = 1
        self.movement = self.beta * float(xp.linalg.norm(t - self.Y))
        self.Y = t
        difference = t - self.projection
        self.residual = float(xp.linalg.norm(difference))
        difference *= 2
        self.s += difference

    @property
    def work(self) -> float:
        """Operations of a step, over those of a product of matrices: an eigenvalue problem takes five of them."""
        return 10 * float(self.face.dimension) ** 3

    def balance(self) -> None:
        """Adjust the penalty so that both residuals stay of similar size: it lowers one and raises the other."""
        ratio = self.movement / max(self.residual * self.n, 1e-30)
        if ratio > _SOFTEN and self.beta > _SOFTEST:
            self.soften(CHANGE)
        elif ratio < HARDEN:
            self.soften(1 / CHANGE)

    def soften(self, factor: float) -> None:
        """Divide the penalty by a factor; Y and Z do not change."""
        self.s = self.Y + (self.s - self.Y) * factor
        self.beta /= factor
        self.level *= factor  # the level belongs to Z / beta
        self._scale_cost()

    def shrink(self, allowed: BoolArray) -> None:
        """Drop the pairs that are ruled out, which makes the face and the eigenvalue problem smaller."""
        kept = allowed[self.allowed]
        index = np.concatenate(([0], 1 + np.flatnonzero(kept)))
        self.s, self.Y = self.s[index][:, index], self.Y[index][:, index]
        self._set(self.arrays.get(self._cost[index][:, index]), allowed)

    def refine(self, cost: Floats) -> None:
        """Continue in float64; `cost` is the cost matrix of the remaining pairs."""
        self.dtype = np.float64
        self.s, self.Y = (self.arrays.put(self.arrays.get(matrix), np.float64) for matrix in (self.s, self.Y))
        self._set(cost, self.allowed)

    def marginals(self) -> FloatArray:
        """(n, n): the weight of each pair."""
        result = np.zeros(self.allowed.shape)
        result[self.allowed] = self.arrays.get(self.Y[0, 1:])
        return result

    def rounded(self, allowed: BoolArray) -> IntArray:
        """The permutation of allowed pairs that is nearest to the weights; other pairs where there is none."""
        weights = np.where(allowed, self.marginals(), -1e3)
        return np.asarray(linear_sum_assignment(weights, maximize=True)[1], dtype=np.intp)


def _excluded(allowed: BoolArray) -> BoolArray:
    """(p + 1, p + 1): whether two pairs share their row or their column, but not both."""
    rows, columns = np.nonzero(allowed)
    excluded = np.zeros((len(rows) + 1, len(rows) + 1), dtype=bool)
    excluded[1:, 1:] = (rows[:, None] == rows) != (columns[:, None] == columns)
    return excluded


def _simplex_level(values: NDArray[np.float64], total: float) -> float:
    """The number c for which the positive parts of values - c sum to the total; `values` are in descending order."""
    excess = (np.cumsum(values) - total) / np.arange(1, len(values) + 1)
    return float(excess[np.flatnonzero(values > excess)[-1]])
