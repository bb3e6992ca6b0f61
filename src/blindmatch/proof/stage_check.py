"""What one set of duals proves, in plain numpy.

For any numbers U, V and any permutation p, the cost is, exactly,

    constant + sum_i leader[i, p_i] + sum_{i<k} R[i, p_i, k, p_k],
    leader[i, j]  = L_ij + A_ii B_jj + sum_{k != i} U[i, j, k] + sum_{l != j} V[i, j, l],
    R[i, j, k, l] = A_ik B_jl + A_ki B_lj - U[i, j, k] - V[i, j, l] - U[k, l, i] - V[k, l, j],

because each dual is added once and taken away once. A permutation through (i, j) uses exactly one pair of each other
row k, so its R there is at least the least R of that row. Half of it is charged to either end, which leaves a linear
assignment problem; its column duals give the bound. Rounding errors are bounded a priori and subtracted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import DualArray, Stage
from blindmatch.validation import BoolArray, FloatArray, IntArray

EPS = 2.0**-53
TINY = 2.0**-1074  # an operation whose result is below the normal range of float64 is wrong by up to this
_LARGEST = 1e300  # sums of larger numbers may overflow, and then prove nothing
_BLOCK = 300_000  # numbers: more leave the cache, and fewer have threads wait for each other
_WORTH_THREADS = 8  # blocks: for fewer of them, threads take longer to start than they save


class OutOfTimeError(Exception):
    """The time for the check is over."""


@dataclass(frozen=True)
class Effort:
    """How long a check may take, in computing time of this thread, and how many threads it may use."""

    deadline: float = math.inf
    threads: int = 1

    def check(self, seconds: float = 0.0) -> None:
        """Raise an OutOfTimeError if so many more seconds are too many."""
        if self.deadline < math.inf and time.thread_time() + seconds > self.deadline:
            raise OutOfTimeError

    def spend(self, work: Callable[[IntArray], None], blocks: Sequence[IntArray]) -> None:
        """Do the work on every block. numpy lets other threads run while it computes."""
        if self.threads == 1 or self.deadline < math.inf or len(blocks) < _WORTH_THREADS:
            for block in blocks:
                self.check()
                work(block)
            return
        pool = ThreadPoolExecutor(self.threads)
        try:
            for _ in pool.map(work, blocks):
                pass
        except RuntimeError:  # no thread is to be had
            Effort().spend(work, blocks)
        finally:
            pool.shutdown(cancel_futures=True)


def stage_bounds(problem: QAP, stage: Stage, excluded: BoolArray, effort: Effort) -> tuple[float, FloatArray]:
    """Bound of all permutations without excluded pairs, and of those that use a given pair."""
    n = problem.n
    with np.errstate(invalid="ignore", over="ignore"):
        leader = _leaders(problem, stage) + _charges(problem, stage, excluded, effort)
        leader[excluded] = math.inf
        beta = np.where(np.isfinite(stage.column_duals), stage.column_duals, 0.0)
        slack = leader - beta
        alpha = slack.min(axis=1)
        if np.isnan(alpha).any() or np.isneginf(alpha).any():
            return -math.inf, np.full((n, n), -math.inf)
        if np.isposinf(alpha).any():  # some source has no partner left: nothing is feasible
            return math.inf, np.full((n, n), math.inf)
        size = float(np.abs(alpha).sum() + np.abs(beta).sum() + abs(problem.constant))
        if not size < _LARGEST:
            return -math.inf, np.full((n, n), -math.inf)
        total = math.fsum([*alpha, *beta, problem.constant])
        bounds = total + (slack - alpha[:, None])
        finite = np.where(np.isfinite(slack), np.abs(slack), 0.0)
        # Infinite bounds (no permutation goes through the pair) stay so; a NaN could hide a pair that proves nothing.
        bounds -= 4 * EPS * (size + 4 * finite.max() + np.where(np.isfinite(bounds), np.abs(bounds), 0.0)) + TINY
        return lowered(total, size, 4), np.where(np.isnan(bounds), -math.inf, bounds)


def _leaders(problem: QAP, stage: Stage) -> FloatArray:
    """Leaders of all pairs, lowered by a bound of their rounding errors."""
    n = problem.n
    U, V = _without_diagonal(stage.U, 0), _without_diagonal(stage.V, 1)
    terms = [problem.linear, U.sum(axis=2, dtype=np.float64), V.sum(axis=2, dtype=np.float64)]
    terms += [np.outer(np.diag(A), np.diag(B)) for A, B in problem.factors]
    size = np.abs(U).sum(axis=2, dtype=np.float64) + np.abs(V).sum(axis=2, dtype=np.float64)
    size += sum(np.abs(term) for term in (terms[0], *terms[3:]))
    return np.asarray(sum(terms) - (2 * n + len(terms) + 4) * (EPS * size + TINY))


def _charges(problem: QAP, stage: Stage, excluded: BoolArray, effort: Effort) -> FloatArray:
    """For each pair (i, j): half of the least residuals in all other rows; +inf where a row has no partner left."""
    n = problem.n
    # Subtracting -inf makes +inf: excluded pairs, and pairs that would use a column twice, never are the least.
    U, V = _without_diagonal(stage.U, 0), _without_diagonal(stage.V, 1).astype(np.float64)
    by_row = np.ascontiguousarray(U.transpose(2, 0, 1), dtype=np.float64)  # U[k, l, i] at [i, k, l]
    by_column = np.ascontiguousarray(V.transpose(2, 0, 1))  # V[k, l, j] at [j, k, l]
    size = 2 * float(np.abs(by_row).max() + np.abs(by_column).max())
    size += sum(2 * float(np.abs(A).max() * np.abs(B).max()) for A, B in problem.factors)
    error = (2 * len(problem.factors) + 6) * (EPS * size + TINY) * n
    by_row[:, excluded] = -math.inf
    V[:, np.arange(n), np.arange(n)] = -math.inf
    charges = np.full((n, n), math.inf)
    pairs = np.argwhere(~excluded)

    def charge(block: IntArray) -> None:
        with np.errstate(invalid="ignore", over="ignore"):  # threads do not inherit it
            i, j = block[:, 0], block[:, 1]
            residual = -by_row[i]  # [pair, k, l]
            for A, B in problem.factors:
                residual += A[i][:, :, None] * B[j][:, None, :]
                residual += A.T[i][:, :, None] * B.T[j][:, None, :]
            residual -= by_column[j]
            residual -= V[i, j][:, None, :]
            rows = residual.min(axis=2) - U[i, j]
            rows[np.arange(len(block)), i] = 0.0
            rounding = error + n * EPS * np.abs(rows).sum(axis=1, where=np.isfinite(rows))
            charges[i, j] = 0.5 * (rows.sum(axis=1) - rounding)

    effort.spend(charge, np.array_split(pairs, max(1, len(pairs) * n * n // _BLOCK)))
    return charges


def _without_diagonal(duals: DualArray, axis: int) -> DualArray:
    """A copy in which the entries with k == i (axis 0) or l == j (axis 1) are zero."""
    copy = duals.copy()
    index = np.arange(copy.shape[0])
    if axis == 0:
        copy[index, :, index] = 0
    else:
        copy[:, index, index] = 0
    return copy


def lowered(value: float, size: float, operations: int) -> float:
    """`value` less a bound of the rounding error of that many operations on numbers of that size."""
    return value - operations * (EPS * size + TINY) if math.isfinite(value) else value
