"""What one set of duals proves, in plain numpy.

For any numbers U, V and any permutation p, the cost is, exactly,

    constant + sum_i leader[i, p_i] + sum_{i<k} R[i, p_i, k, p_k],
    leader[i, j]  = L_ij + A_ii B_jj + sum_{k != i} U[i, j, k] + sum_{l != j} V[i, j, l],
    R[i, j, k, l] = A_ik B_jl + A_ki B_lj - U[i, j, k] - V[i, j, l] - U[k, l, i] - V[k, l, j],

because each dual is added once and taken away once. A permutation through (i, j) uses exactly one pair of each other
row k, so its R there is at least the least R of that row. Half of it is charged to either end, which leaves a linear
assignment problem; its column duals give the bound. Rounding errors are bounded a priori and subtracted; `rounding.py`
says in what range.

A stage with a factor F bounds the costs less W = FF' in this way; W itself is never negative (`semidefinite.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Stage
from blindmatch.proof.rounding import EPS, LARGEST_DUAL, TINY, assignment_bounds, guarded, lowered
from blindmatch.proof.semidefinite import SemidefiniteTerm, semidefinite_term
from blindmatch.validation import BoolArray, FloatArray, IntArray

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
        """Raise an OutOfTimeError if less than `seconds` are left."""
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
    """Bound of all permutations without excluded pairs, and of those that use a given pair; +inf if there are none.

    Raises a ValueError where a number that counts is out of range, and a FloatingPointError where a result is.
    """
    duals = _Duals.of(stage, excluded)
    with guarded():
        term = None if stage.factor is None else semidefinite_term(stage.factor, stage.forbidden, excluded)
        leaders = _leaders(problem, duals, term)
        charges = _charges(problem, stage, duals, excluded, effort, term)
        allowed = charges < math.inf
        charges[~allowed] = 0.0
        constant = problem.constant
        if term is not None:
            constant = math.fsum([constant, -term.constant, -term.error])
            constant = lowered(constant, abs(constant), 2)
        return assignment_bounds(leaders + charges, allowed, stage.column_duals, constant)


@dataclass(frozen=True)
class _Duals:
    """The duals that count, in float64: U[k, l, i] at by_row[i, k, l], V[k, l, j] at by_column[j, k, l], else zero."""

    by_row: FloatArray
    by_column: FloatArray

    @classmethod
    def of(cls, stage: Stage, excluded: BoolArray) -> _Duals:
        by_row = np.array(stage.U.transpose(2, 0, 1), dtype=np.float64, order="C")
        by_column = np.array(stage.V.transpose(2, 0, 1), dtype=np.float64, order="C")
        index = np.arange(stage.size)
        by_row[index, index, :] = 0.0
        by_column[index, :, index] = 0.0
        by_row[:, excluded] = by_column[:, excluded] = 0.0
        for name, values in (("U", by_row), ("V", by_column), ("column_duals", stage.column_duals)):
            least, largest = values.min(), values.max()
            if not (least >= -LARGEST_DUAL and largest <= LARGEST_DUAL):  # also where one of them is NaN
                raise ValueError(
                    f"certificate: {name} of a stage goes from {least:g} to {largest:g}; "
                    f"expected numbers between {-LARGEST_DUAL:g} and {LARGEST_DUAL:g}"
                )
        return cls(by_row, by_column)


def _leaders(problem: QAP, duals: _Duals, term: SemidefiniteTerm | None) -> FloatArray:
    """Leaders of all pairs, lowered by a bound of their rounding errors: sums of 2n + 4 numbers and the products."""
    n = problem.n
    products = [np.outer(np.diag(A), np.diag(B)) for A, B in problem.factors]
    terms = [problem.linear, *products, duals.by_row.sum(axis=0), duals.by_column.sum(axis=0)]
    sizes = [np.abs(problem.linear), *map(np.abs, products)]
    sizes += [np.abs(duals.by_row).sum(axis=0), np.abs(duals.by_column).sum(axis=0)]
    if term is not None:
        terms.append(-term.linear(n))
        sizes.append(np.full((n, n), 4 * term.largest))  # three entries of W, one of them twice
    errors = (2 * n + len(terms) + 4) * (EPS * sum(sizes) + TINY)
    return np.asarray(sum(terms) - errors - (3 * term.error if term is not None else 0.0))


def _charges(
    problem: QAP,
    stage: Stage,
    duals: _Duals,
    excluded: BoolArray,
    effort: Effort,
    term: SemidefiniteTerm | None,
) -> FloatArray:
    """For each pair (i, j): half of the least residuals in all other rows; +inf where a row has no partner left.

    A residual is a sum of 2F + 5 numbers, 2F of them products; n of them are summed up. The least residual of a row is
    taken over pairs that may be used together with (i, j); the others get +inf, from which no NaN can arise because
    every other number is finite.
    """
    n = problem.n
    by_row, by_column = duals.by_row, duals.by_column
    size = 2 * (_largest(by_row) + _largest(by_column))
    size += sum(2 * _largest(A) * _largest(B) for A, B in problem.factors)
    size += 2 * term.largest if term is not None else 0.0
    error = (2 * len(problem.factors) + 9) * (EPS * size + TINY) * n
    error += 2.0 * n * term.error if term is not None else 0.0
    products = [product for pair in problem.factors for product in _products(*pair)]
    by_row = np.where(excluded, -math.inf, by_row)
    charges = np.full((n, n), math.inf)
    pairs = np.argwhere(~excluded)

    def charge(block: IntArray) -> None:
        with guarded():  # threads do not inherit it
            i, j = block[:, 0], block[:, 1]
            here = np.arange(len(block))
            u, v = stage.U[i, j].astype(np.float64), stage.V[i, j].astype(np.float64)
            u[here, i] = 0.0
            v[here, j] = -math.inf
            residual = -by_row[i]  # [pair, k, l]
            for A, B in products:
                residual += A[i][:, :, None] * B[j][:, None, :]
            if term is not None:
                residual -= term.rows(i, j, n)
            residual -= by_column[j]
            residual -= v[:, None, :]
            rows = residual.min(axis=2) - u
            rows[here, i] = 0.0
            rounding = error + (n + 4) * EPS * np.abs(rows).sum(axis=1, where=rows < math.inf)
            charges[i, j] = 0.5 * (rows.sum(axis=1) - rounding)

    blocks = len(pairs) * n * n // _BLOCK
    effort.spend(charge, np.array_split(pairs, blocks) if blocks > 1 else [pairs])
    return charges


def _products(A: FloatArray, B: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Matrices X and Y such that A_ik B_jl + A_ki B_lj is the sum of all X_ik Y_jl."""
    if not ((A == A.T).all() and (B == B.T).all()):
        return [(A, B), (A.T, B.T)]
    # Both terms are the same. The smaller matrix has entries of at most 1e100, twice which is exact.
    return [(2.0 * A, B)] if _largest(A) <= _largest(B) else [(A, 2.0 * B)]


def _largest(values: FloatArray) -> float:
    return float(max(values.max(), -values.min()))
