"""A stage of a proof from a dual of the doubly nonnegative relaxation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from blindmatch import _core
from blindmatch.proof.certificate import Stage
from blindmatch.solvers.base import Budget
from blindmatch.solvers.eigen import Floats
from blindmatch.solvers.pair_costs import PairCosts
from blindmatch.validation import BoolArray, FloatArray

_EXACT_UP_TO = 800  # pairs; larger factors are stored in float32
_SWEEPS = 12
_SWEEP_GAIN = 0.003  # the sweeps end when one adds less than this share of the rise of the bound so far
_PANEL = 4_000_000  # numbers that are computed at a time in float64


@dataclass(frozen=True, eq=False)
class SlackDual:
    """A dual of the relaxation: the slack FF', and multipliers D of the equations.

    An equation says that a row or a column of x sums up to y_0. With L, which has a column for each of them, the matrix
    LD' + DL' vanishes for every permutation, so that y'(C + LD' + DL' - FF')y is at most the cost.
    """

    F: Floats  # (p + 1, r)
    D: FloatArray  # (p + 1, 2n)


class StageMaker:
    """Turns duals of the splitting into stages, for one set of allowed pairs."""

    def __init__(self, costs: PairCosts, allowed: BoolArray) -> None:
        self.costs, self.allowed = costs, allowed

    def stage(self, dual: SlackDual, budget: Budget, loss: float = 0.0) -> Stage:
        """The stage of the factor F, and the duals of what it leaves of the costs.

        F may be rounded for about a `loss` of the bound, which makes files smaller.
        """
        root, p = math.sqrt(self.costs.scale), len(dual.F) - 1
        F = dual.F.astype(np.float64) / root
        F = F[:, np.einsum("ij,ij->j", F, F) > loss / (4 * self.costs.n)]
        norm = math.sqrt(float((F * F).sum()) / len(F))
        if loss > 0.0 < norm:  # a grid changes the entries of FF' by about its width times the norm of a row
            grid = 2.0 ** math.floor(math.log2(loss / (0.6 * p * norm)))
            F = np.rint(F / grid) * grid
        exact = (p <= _EXACT_UP_TO and loss == 0.0) or not 2.0**-80 < self.costs.scale < 2.0**80
        kept: Floats = F.astype(np.float64 if exact else np.float32)
        return self._with_duals(SlackDual(kept.astype(np.float64) * root, dual.D), kept, budget)

    def plain_stage(self, budget: Budget) -> Stage:
        """A stage of level 1 alone: enough if the allowed pairs leave at most one permutation."""
        p, n = int(self.allowed.sum()), self.costs.n
        return self._with_duals(SlackDual(np.zeros((p + 1, 0)), np.zeros((p + 1, 2 * n))), None, budget)

    def _with_duals(self, dual: SlackDual, kept: Floats | None, budget: Budget) -> Stage:
        n, unit = self.costs.n, 1.0 / self.costs.scale
        swept = self._level_one(dual, budget)
        U, V = (unit * x.transpose(1, 2, 0).astype(np.float64) for x in (swept.u, swept.v))
        # What LD' + DL' moves between pairs are duals of level 1, and what it moves in row 0 are duals of the columns.
        U[self.allowed] -= 2 * unit * dual.D[1:, :n]
        V[self.allowed] -= 2 * unit * dual.D[1:, n:]
        # The dual of a column without partners may be infinite; any finite number is valid.
        column_duals = np.where(np.isfinite(swept.column_duals), swept.column_duals, 0.0) * unit
        column_duals -= 2 * unit * dual.D[0, n:]
        of_rows, of_columns, of_leader = self.costs.offset_duals()
        U += of_rows[:, None, :]
        V += of_columns[None, :, :]
        kind: type[np.floating[Any]] = np.float64 if kept is None else kept.dtype.type
        return Stage(U.astype(kind), V.astype(kind), column_duals + of_leader, ~self.allowed, kept)

    def _level_one(self, dual: SlackDual, budget: Budget) -> _core.Stage:
        """Sweeps on the centred costs less FF' plus LD' + DL'."""
        n, allowed = self.costs.n, self.allowed
        flat = np.flatnonzero(allowed.ravel())
        rows, columns = np.nonzero(allowed)
        F, D = dual.F, dual.D
        left = np.zeros((n * n, n * n), dtype=np.float32)
        diagonal = np.empty(len(flat))
        step = max(1, _PANEL // max(1, len(flat)))
        for start in range(0, len(flat), step):
            part = slice(start, start + step)
            of_part = np.arange(len(flat))[part]
            panel = self.costs.centred_rows(allowed, of_part)
            panel -= F[1:][part] @ F[1:].T
            panel += D[1:][part][:, rows] + D[1:][part][:, n + columns]
            panel += (D[1:, rows[part]] + D[1:, n + columns[part]]).T
            diagonal[part] = panel[np.arange(len(of_part)), of_part]
            panel *= 2
            if len(flat) == n * n:
                left[part] = panel
            else:
                left[np.ix_(flat[part], flat)] = panel
        first = D[0, rows] + D[0, n + columns] - D[1:].sum(axis=1) - F[1:] @ F[0]
        linear = np.zeros((n, n))
        linear[allowed] = diagonal + 2 * first
        return _core.dense_sweeps(
            left,
            linear,
            np.ascontiguousarray(~allowed),
            count=_SWEEPS,
            gain=_SWEEP_GAIN,
            threads=budget.threads,
            budget=budget,
        )
