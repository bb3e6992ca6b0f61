"""One-to-one partners: the linear assignment problem of adjusted similarities, among near candidates if n is large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from blindmatch.alignment.crew import Crew
from blindmatch.alignment.frame import Points
from blindmatch.alignment.neighbours import NEIGHBOURHOOD, adjusted_similarity, nearest
from blindmatch.validation import FloatArray, IntArray

DENSE = 1000  # items of the larger side up to which all pairs take part
_NEAR = 30  # candidates of each item, on both sides, beyond
_DEAR = 1e3  # what a pair that is no candidate costs: far more than similarities differ by


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs that may be matched, and the adjusted similarity of each: (p,) rows, columns, scores.

    `of_a` and `of_b` are the closeness of each item to its nearest few on the other side.
    """

    rows: IntArray
    columns: IntArray
    scores: FloatArray
    of_a: FloatArray
    of_b: FloatArray


def links(a: Points, b: Points, crew: Crew, near: int = _NEAR) -> Links:
    """The nearest few of each item on the other side, both ways, with their CSLS."""
    near = min(near, len(a), len(b))
    count = min(NEIGHBOURHOOD, near)
    forth, back = nearest(a, b, near, crew), nearest(b, a, near, crew)
    of_a, of_b = forth[0][:, :count].mean(axis=1), back[0][:, :count].mean(axis=1)
    rows = np.concatenate([np.repeat(np.arange(len(a)), near), back[1].ravel()])
    columns = np.concatenate([forth[1].ravel(), np.repeat(np.arange(len(b)), near)])
    cosines = np.concatenate([forth[0].ravel(), back[0].ravel()])
    _, first = np.unique(rows * len(b) + columns, return_index=True)
    rows, columns = rows[first], columns[first]
    return Links(rows, columns, 2 * cosines[first] - of_a[rows] - of_b[columns], of_a, of_b)


def one_to_one(a: Points, b: Points, crew: Crew, barred: IntArray | None = None) -> IntArray:
    """A partner for each item of the smaller side: the column of each row, -1 for rows that are left over.

    Parameters
    ----------
    a, b
        Points whose inner products are similarities.
    barred
        (q, 2) pairs of rows and columns that must not be used.
    """
    crew.check()
    if len(a) > len(b):
        turned = one_to_one(b, a, crew, None if barred is None else barred[:, ::-1])
        partners = np.full(len(a), -1, dtype=np.intp)
        partners[turned] = np.arange(len(b))
        return partners
    bars = np.zeros((0, 2), dtype=np.intp) if barred is None else barred
    if len(b) <= DENSE:
        return _among_all(adjusted_similarity(a, b), bars)
    found = _among(links(a, b, crew), len(a), len(b), bars)
    alone = np.flatnonzero(found < 0)
    if len(alone):  # the candidates have no partner for everybody: the others choose among what is left
        free = np.setdiff1d(np.arange(len(b)), found)
        if len(alone) > len(a) // 2:  # no candidates to speak of
            free = free[: len(alone)]
            found[alone] = free
        else:
            inside = renumbered(bars, alone, free, (len(a), len(b)))
            found[alone] = free[one_to_one(a[alone], b[free], crew, inside)]
    return _allowed(a, b, found, bars)


def _among_all(similarity: NDArray[np.float32], bars: IntArray) -> IntArray:
    similarity[bars[:, 0], bars[:, 1]] = -_DEAR
    return np.asarray(linear_sum_assignment(similarity, maximize=True)[1], dtype=np.intp)


def _among(found: Links, n: int, m: int, bars: IntArray) -> IntArray:
    """The best assignment that uses as many links as possible; -1 for rows without one."""
    good = ~np.isin(found.rows * m + found.columns, bars[:, 0] * m + bars[:, 1])
    rows, columns, scores = found.rows[good], found.columns[good], found.scores[good]
    # One expensive link for each row, all to different columns, so that there is a solution.
    spare = np.arange(n)
    spare = spare[~np.isin(spare * m + (spare + 1) % m, rows * m + columns)]
    costs = np.concatenate([scores.max(initial=0.0) + 1 - scores, np.full(len(spare), _DEAR)])
    at = (np.concatenate([rows, spare]), np.concatenate([columns, (spare + 1) % m]))
    partners = min_weight_full_bipartite_matching(coo_array((costs, at), shape=(n, m)).tocsr())[1]
    known = np.isin(np.arange(n) * m + partners, rows * m + columns)
    return np.where(known, partners, -1).astype(np.intp)


def renumbered(bars: IntArray, rows: IntArray, columns: IntArray, sizes: tuple[int, int]) -> IntArray:
    """Barred pairs among some rows and columns, in their numbering."""
    row_at, column_at = (np.full(size, -1, dtype=np.intp) for size in sizes)
    row_at[rows], column_at[columns] = np.arange(len(rows)), np.arange(len(columns))
    inside = np.stack([row_at[bars[:, 0]], column_at[bars[:, 1]]], axis=1)
    return inside[(inside >= 0).all(axis=1)]


def _allowed(a: Points, b: Points, partners: IntArray, bars: IntArray) -> IntArray:
    """Where barred pairs were used, change partners with some others."""
    wrong = np.flatnonzero(np.isin(np.arange(len(a)) * len(b) + partners, bars[:, 0] * len(b) + bars[:, 1]))
    if not len(wrong):
        return partners
    others = np.setdiff1d(np.arange(len(a)), wrong)[: max(DENSE - len(wrong), len(wrong))]
    rows = np.concatenate([wrong, others])
    columns = partners[rows]
    inside = renumbered(bars, rows, columns, (len(a), len(b)))
    partners = partners.copy()
    partners[rows] = columns[_among_all(adjusted_similarity(a[rows], b[columns]), inside)]
    return partners
