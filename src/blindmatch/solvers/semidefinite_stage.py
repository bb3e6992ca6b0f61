"""A stage of a proof from a dual of the doubly nonnegative relaxation, and the scaled costs that both work on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from blindmatch import _core
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Pair, Stage
from blindmatch.solvers.base import Budget
from blindmatch.solvers.eigen import Floats
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
