"""A stage of a proof from a dual matrix of the doubly nonnegative relaxation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from blindmatch import _core
from blindmatch.proof.certificate import Stage
from blindmatch.solvers.base import Budget
from blindmatch.solvers.eigen import Floats
from blindmatch.solvers.face import Face
from blindmatch.solvers.pair_costs import PairCosts
from blindmatch.validation import BoolArray, FloatArray

_EXACT_UP_TO = 800  # pairs; larger matrices are stored in float32
_SWEEPS = 12
_SWEEP_GAIN = 0.003  # the sweeps end when one adds less than this share of the rise of the bound so far
_LEAST_SHIFT = 1e-10  # share of the largest entry that the checker's Cholesky factorisation needs to succeed
_FLOAT32_SHIFT = 1e-7  # the same after steps in float32: the smallest share that was ever enough
_ATTEMPTS = 60


class StageMaker:
    """Turns duals Z of the splitting into stages, for one set of allowed pairs."""

    def __init__(self, costs: PairCosts, allowed: BoolArray) -> None:
        self.costs, self.allowed = costs, allowed
        self._cost, self._offset = costs.matrix(allowed), costs.offset(allowed)
        self._face = Face(allowed, np.float64)
        self._shift = 0.0

    def stage(self, Z: FloatArray, level: float, budget: Budget, grid: float = 0.0) -> Stage:
        """The stage of W = level - Z, shifted until it is positive semidefinite on the face, and the duals of C - W.

        Z is a dual of the centred costs, so what centring removed is added to W. With a `grid`, a power of two, W is
        rounded to its multiples, which makes files smaller.
        """
        W = self._offset - (Z + Z.T) / 2
        W[np.diag_indices(len(W))] += level
        W /= self.costs.scale
        size = float(np.abs(W).max())
        exact = len(W) <= _EXACT_UP_TO and not grid > 2.0**-22 * size
        dtype: type[np.floating[Any]] = np.float64 if exact or not self._in_range else np.float32
        W = np.rint(W / grid) * grid if grid > 0.0 else W.astype(dtype).astype(np.float64)
        W[np.diag_indices(len(W))] += (
            self._missing(W, size) + 2 * np.finfo(dtype).eps * size
        )  # for the rounding error of the stored matrix
        return self._with_duals(W.astype(dtype), budget)

    def plain_stage(self, budget: Budget) -> Stage:
        """A stage of level 1 alone: enough if the allowed pairs leave at most one permutation."""
        return self._with_duals(None, budget)

    @property
    def _in_range(self) -> bool:
        """Whether the scale is in the middle of the range of float32, where it keeps all its digits."""
        return 2.0**-40 < self.costs.scale < 2.0**40

    def _with_duals(self, W: Floats | None, budget: Budget) -> Stage:
        left = self._cost if W is None else self._cost - self.costs.scale * W.astype(np.float64)
        duals = self._level_one(left, budget)
        unit = 1.0 / self.costs.scale
        kind: type[np.floating[Any]] = np.float32 if self._in_range else np.float64
        U, V = (np.asarray(unit * x.transpose(1, 2, 0).astype(np.float64), dtype=kind) for x in (duals.u, duals.v))
        # The dual of a column without partners may be infinite; any finite number is valid.
        column_duals = np.where(np.isfinite(duals.column_duals), duals.column_duals, 0.0) * unit
        column_duals += self.costs.column_means
        return Stage(U, V, column_duals, ~self.allowed, W)

    def _missing(self, W: FloatArray, size: float) -> float:
        """A shift that makes W positive definite on the face, despite the rounding errors of its eigenvalues."""
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
