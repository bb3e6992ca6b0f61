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
_NEAR = 30  # candidates of each item if there are more items than that
_STILL = 0.99  # cosine of all coordinates before and after a turn, from which it is a small one
_ROWS = 2**11  # items whose candidates are scored together
_HASTE = 5 * 10**8  # similarities that are looked at where time is short: about a second
_ASSIGN_SECONDS = 1e-6  # of the assignment among candidates, over n^1.5: 0.3 to 2 of these
_DENSE_SECONDS = 1e-10  # of an assignment among all pairs, over n^3: 0.1 to 1 of these
_POOR = 0.1  # share of the links that are worse than no partner
_LEFT = 0.9  # share of rows without a partner from which the assignment among links gives up
_PROHIBITIVE = 1e3  # what a pair that is no candidate costs: far more than similarities differ by


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs that may be matched, and the adjusted similarity of each: (p,) rows, columns, scores, by row and column.

    `of_a` and `of_b` are the closeness of each item to its nearest few on the other side.
    """

    rows: IntArray
    columns: IntArray
    scores: FloatArray
    of_a: FloatArray
    of_b: FloatArray


class Candidates:
    """The nearest few of each item on the other side, searched once, while one side turns little by little."""

    def __init__(self, near: int = _NEAR) -> None:
        self._near = near
        self._forth: IntArray | None = None
        self._back: IntArray | None = None
        self._sides: tuple[Points, ...] = ()

    def links(self, a: Points, b: Points, crew: Crew) -> Links:
        """The candidates of each item, scored by CSLS. After a small turn they stay, and are only scored again."""
        if self._forth is None or self._back is None or not self._still(a, b):
            near = min(self._near, len(a), len(b))
            forth, back = nearest(a, b, near, crew), nearest(b, a, near, crew)
            self._forth, self._back, self._sides = forth[1], back[1], (a, b)
        else:
            forth, back = _again(a, b, self._forth, crew), _again(b, a, self._back, crew)
        return _link(forth, back)

    def _still(self, *sides: Points) -> bool:
        return all(
            before is after
            or float(np.vdot(before, after)) >= _STILL * float(np.linalg.norm(before) * np.linalg.norm(after))
            for before, after in zip(self._sides, sides, strict=True)
        )


def mutual_partners(found: Links) -> IntArray:
    """The column of each row where both are each other's best, -1 for the other rows."""
    n, m = len(found.of_a), len(found.of_b)
    forth, back = np.full(n, -1, dtype=np.intp), np.full(m, -1, dtype=np.intp)
    order = np.argsort(found.scores, kind="stable")  # of the links of an item, the best is written last
    forth[found.rows[order]] = found.columns[order]
    back[found.columns[order]] = found.rows[order]
    return np.where(back[forth] == np.arange(n), forth, -1)


def _again(a: Points, b: Points, indices: IntArray, crew: Crew) -> tuple[FloatArray, IntArray]:
    """What `nearest` returns, among candidates that are known."""
    products, found = np.empty(indices.shape), np.empty_like(indices)

    def work(rows: slice) -> tuple[NDArray[np.float32], IntArray]:
        values = np.matmul(b[indices[rows]], a[rows, :, None])[:, :, 0]
        order = np.argsort(-values, axis=1, kind="stable")
        return np.take_along_axis(values, order, axis=1), np.take_along_axis(indices[rows], order, axis=1)

    for rows, (values, which) in crew.blocks(len(a), _ROWS, work):
        products[rows], found[rows] = values, which
    return products, found


def _link(forth: tuple[FloatArray, IntArray], back: tuple[FloatArray, IntArray]) -> Links:
    n, m, near = len(forth[0]), len(back[0]), forth[0].shape[1]
    count = min(NEIGHBOURHOOD, near)
    of_a, of_b = forth[0][:, :count].mean(axis=1), back[0][:, :count].mean(axis=1)
    rows = np.concatenate([np.repeat(np.arange(n), near), back[1].ravel()])
    columns = np.concatenate([forth[1].ravel(), np.repeat(np.arange(m), near)])
    cosines = np.concatenate([forth[0].ravel(), back[0].ravel()])
    _, first = np.unique(rows * m + columns, return_index=True)
    rows, columns = rows[first], columns[first]
    return Links(rows, columns, 2 * cosines[first] - of_a[rows] - of_b[columns], of_a, of_b)


def one_to_one(
    a: Points, b: Points, crew: Crew, barred: IntArray | None = None, candidates: Candidates | None = None
) -> IntArray:
    """A partner for each item of the smaller side: the column of each row, -1 for rows that are left over.

    Similarities are inner products. `barred` are (q, 2) rows and columns that must not be paired, and `candidates` what
    earlier calls with nearly the same points found.
    """
    crew.check()
    if len(a) > len(b):
        turned = one_to_one(b, a, crew, None if barred is None else barred[:, ::-1], candidates)
        partners = np.full(len(a), -1, dtype=np.intp)
        partners[turned] = np.arange(len(b))
        return partners
    bars = np.zeros((0, 2), dtype=np.intp) if barred is None else barred
    if len(b) <= DENSE:
        crew.check(_DENSE_SECONDS * len(b) ** 3)
        return _among_all(adjusted_similarity(a, b), bars)
    near = (candidates or Candidates()).links(a, b, crew)
    crew.check(_ASSIGN_SECONDS * len(b) ** 1.5)
    found = _among(near, len(a), len(b), bars)
    alone = np.flatnonzero(found < 0)
    if len(alone):  # the candidates have no partner for everybody: the others choose among what is left
        free = np.setdiff1d(np.arange(len(b)), found)
        if len(alone) > _LEFT * len(a):  # no candidates to speak of
            free = free[: len(alone)]
            found[alone] = free
        else:
            inside = renumbered(bars, alone, free, (len(a), len(b)))
            found[alone] = free[one_to_one(a[alone], b[free], crew, inside)]
    return allowed(a, b, found, bars)


def in_haste(a: Points, b: Points, crew: Crew, barred: IntArray) -> IntArray:
    """A quick assignment: each target goes to the nearest source that wants it, and the rest get what is left."""
    rows = np.arange(min(len(a), max(1, _HASTE // len(b))))  # of very many items, the others get what is left too
    products, wanted = (found[:, 0] for found in nearest(a[rows], b, 1, crew))
    partners = np.full(len(a), -1, dtype=np.intp)
    order = np.argsort(-products, kind="stable")
    columns, first = np.unique(wanted[order], return_index=True)
    partners[rows[order[first]]] = columns
    alone, free = np.flatnonzero(partners < 0), np.setdiff1d(np.arange(len(b)), columns)
    count = min(len(alone), len(free))
    partners[alone[:count]] = free[:count]
    return allowed(a, b, partners, barred)


def _among_all(similarity: NDArray[np.float32], bars: IntArray) -> IntArray:
    similarity[bars[:, 0], bars[:, 1]] = -_PROHIBITIVE
    return np.asarray(linear_sum_assignment(similarity, maximize=True)[1], dtype=np.intp)


def _among(found: Links, n: int, m: int, bars: IntArray) -> IntArray:
    """The best assignment in which a row may stay alone, at the price of a poor link: -1 for such rows.

    Without that, items that have no partner would take those of others, in long chains that take long to find.
    """
    rows, columns, scores = found.rows, found.columns, found.scores
    alone = float(np.quantile(scores, _POOR))
    if len(bars):
        good = ~np.isin(rows * m + columns, bars[:, 0] * m + bars[:, 1])
        rows, columns, scores = rows[good], columns[good], scores[good]
    every = np.arange(n)  # staying alone is a link to a column of one's own
    costs = 1 + max(float(scores.max(initial=alone)), alone) - np.concatenate([scores, np.full(n, alone)])
    at = (np.concatenate([rows, every]), np.concatenate([columns, m + every]))
    partners = min_weight_full_bipartite_matching(coo_array((costs, at), shape=(n, m + n)).tocsr())[1]
    return np.where(partners < m, partners, -1).astype(np.intp)


def renumbered(bars: IntArray, rows: IntArray, columns: IntArray, sizes: tuple[int, int]) -> IntArray:
    """Barred pairs among some rows and columns, in their numbering."""
    row_at, column_at = (np.full(size, -1, dtype=np.intp) for size in sizes)
    row_at[rows], column_at[columns] = np.arange(len(rows)), np.arange(len(columns))
    inside = np.stack([row_at[bars[:, 0]], column_at[bars[:, 1]]], axis=1)
    return inside[(inside >= 0).all(axis=1)]


def allowed(a: Points, b: Points, partners: IntArray, bars: IntArray) -> IntArray:
    """Where barred pairs were used, change partners with some others."""
    used = np.isin(np.arange(len(a)) * len(b) + partners, bars[:, 0] * len(b) + bars[:, 1])
    wrong = np.flatnonzero(used & (partners >= 0))
    if not len(wrong):
        return partners
    others = np.setdiff1d(np.flatnonzero(partners >= 0), wrong)[: max(DENSE - len(wrong), len(wrong))]
    rows = np.concatenate([wrong, others])
    columns = partners[rows]
    inside = renumbered(bars, rows, columns, (len(a), len(b)))
    partners = partners.copy()
    partners[rows] = columns[_among_all(adjusted_similarity(a[rows], b[columns]), inside)]
    return partners
