"""A stage of a proof from a dual matrix of the doubly nonnegative relaxation."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import scipy.linalg

from blindmatch import _core
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Pair, Stage
from blindmatch.solvers.base import Budget
from blindmatch.solvers.face import Face, Floats
from blindmatch.validation import BoolArray, FloatArray, IntArray

_LARGEST_SCALE = 2.0**1000  # denormal costs stay small: a larger one may overflow
_EXACT_UP_TO = 800  # pairs: a matrix of more is kept in float32
_SWEEPS = 12
_SWEEP_GAIN = 0.003  # of the bound's rise so far: less does not pay for another sweep
_LEAST_SHIFT = 1e-10  # of the largest entry: what the checker's Cholesky factorisation needs to run through
_FLOAT32_SHIFT = 1e-7  # the least that steps in float32 ever needed
_ATTEMPTS = 60


class PairCosts:
    """The costs of a problem as a matrix over pairs, scaled so that its norm is about n^2."""

    def __init__(self, problem: QAP) -> None:
        form = problem.normal_form
        self.n, self.factors = problem.n, form.factors
        # Only differences count: a mean of every row and every column would only make the numbers larger.
        linear = form.linear
        self.column_means = linear.mean(axis=0)
        self.linear = linear - linear.mean(axis=1, keepdims=True) - self.column_means + linear.mean()
        norm = self._norm()
        self.scale = min(problem.n**2 / norm, _LARGEST_SCALE) if norm > 0 else 1.0

    def _norm(self) -> float:
        """The norm of the costs; of numbers relative to the largest, since squares may over- or underflow."""
        sizes = [(float(np.abs(A).max()), float(np.abs(B).max())) for A, B in self.factors]
        unit = max([float(np.abs(self.linear).max()), *(a * b for a, b in sizes)])
        if unit == 0:
            return 0.0
        squares = float(((self.linear / unit) ** 2).sum())
        parts = [(A / a, B / b, a * b / unit) for (A, B), (a, b) in zip(self.factors, sizes, strict=True) if a * b > 0]
        for A, B, weight in parts:
            for other_A, other_B, other in parts:
                squares += weight * other * float((A * other_A).sum() * (B * other_B).sum())
        return unit * float(np.sqrt(max(squares, 0.0)))

    def reduced(self, fixed: Sequence[Pair], rows: IntArray, columns: IntArray) -> PairCosts:
        """The costs of the rows and columns that some fixed pairs leave, on the same scale and not centred again."""
        rest = copy(self)
        rest.n, rest.column_means = len(rows), self.column_means[columns]
        i, j = (np.array([pair[side] for pair in fixed], dtype=np.intp) for side in (0, 1))
        rest.linear = self.linear[np.ix_(rows, columns)]
        for A, B in self.factors:  # symmetric both, or antisymmetric both
            rest.linear = rest.linear + 2 * A[np.ix_(rows, i)] @ B[np.ix_(columns, j)].T
        rest.factors = tuple((A[np.ix_(rows, rows)], B[np.ix_(columns, columns)]) for A, B in self.factors)
        return rest

    def matrix(self, allowed: BoolArray) -> FloatArray:
        """(p + 1, p + 1) over 1 and the allowed pairs, scaled; the linear term is on the diagonal."""
        rows, columns = np.nonzero(allowed)
        result = np.zeros((len(rows) + 1, len(rows) + 1))
        for A, B in self.factors:
            result[1:, 1:] += A[np.ix_(rows, rows)] * B[np.ix_(columns, columns)]
        result[1:, 1:] += np.diag(self.linear[allowed])
        result *= self.scale
        return result


class StageMaker:
    """Makes stages of the duals Z that the splitting offers, for one set of allowed pairs."""

    def __init__(self, costs: PairCosts, allowed: BoolArray) -> None:
        self.costs, self.allowed = costs, allowed
        self._cost = costs.matrix(allowed)
        self._face = Face(allowed, np.float64)
        self._shift = 0.0

    def stage(self, Z: FloatArray, level: float, budget: Budget, grid: float = 0.0) -> Stage:
        """The stage of W = level - Z, shifted until it is positive semidefinite on the face, and the duals of C - W.

        `grid` rounds W to multiples of a power of two, so that a file of it is small; 0.0 keeps the digits.
        """
        W = -(Z + Z.T) / 2
        W[np.diag_indices(len(W))] += level
        W /= self.costs.scale
        size = float(np.abs(W).max())
        exact = len(W) <= _EXACT_UP_TO and not grid > 2.0**-22 * size
        dtype: type[np.floating[Any]] = np.float64 if exact or not self._in_range else np.float32
        W = np.rint(W / grid) * grid if grid > 0.0 else W.astype(dtype).astype(np.float64)
        W[np.diag_indices(len(W))] += self._missing(W, size) + 2 * np.finfo(dtype).eps * size  # stored with an error
        return self._with_duals(W.astype(dtype), budget)

    def plain_stage(self, budget: Budget) -> Stage:
        """The stage of level 1 alone: enough where the allowed pairs leave one permutation or none."""
        return self._with_duals(None, budget)

    @property
    def _in_range(self) -> bool:
        """Whether float32 keeps its digits: it does so only in the middle of its range."""
        return 2.0**-40 < self.costs.scale < 2.0**40

    def _with_duals(self, W: Floats | None, budget: Budget) -> Stage:
        left = self._cost if W is None else self._cost - self.costs.scale * W.astype(np.float64)
        duals = self._level_one(left, budget)
        unit = 1.0 / self.costs.scale
        kind: type[np.floating[Any]] = np.float32 if self._in_range else np.float64
        U, V = (np.asarray(unit * x.transpose(1, 2, 0).astype(np.float64), dtype=kind) for x in (duals.u, duals.v))
        # The dual of a column without partners may be infinite; any number will do.
        column_duals = np.where(np.isfinite(duals.column_duals), duals.column_duals, 0.0) * unit
        column_duals += self.costs.column_means
        return Stage(U, V, column_duals, ~self.allowed, W)

    def _missing(self, W: FloatArray, size: float) -> float:
        """A shift that makes W positive definite on the face: what the eigenvalues' rounding errors take."""
        G = self._face.restrict(W)
        shift = max(self._shift / 2, (_LEAST_SHIFT if len(W) <= _EXACT_UP_TO else _FLOAT32_SHIFT) * size)
        for _ in range(_ATTEMPTS):
            shifted = G.copy()
            shifted[np.diag_indices(len(G))] += shift
            if _positive(shifted):
                break
            shift *= 2
        self._shift = shift
        return shift

    def _level_one(self, left: FloatArray, budget: Budget) -> _core.Stage:
        n, allowed = self.costs.n, self.allowed
        pairs = np.zeros((n * n, n * n), dtype=np.float32)
        flat = np.flatnonzero(allowed.ravel())
        pairs[np.ix_(flat, flat)] = 2 * left[1:, 1:]
        linear = np.zeros((n, n))
        linear[allowed] = np.diag(left)[1:] + 2 * left[0, 1:]
        return _core.dense_sweeps(
            pairs,
            linear,
            np.ascontiguousarray(~allowed),
            count=_SWEEPS,
            gain=_SWEEP_GAIN,
            threads=budget.threads,
            budget=budget,
        )


def _positive(matrix: Floats) -> bool:
    try:
        scipy.linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True
