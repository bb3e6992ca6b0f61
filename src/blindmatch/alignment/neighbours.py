"""Nearest neighbours across the two spaces, a block at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blindmatch.alignment.crew import Crew
from blindmatch.alignment.frame import Points
from blindmatch.validation import FloatArray, IntArray

NEIGHBOURHOOD = 10
_CELLS = 2**22  # similarities that a thread holds at once: 16 MB, little enough to stay in the cache for the most part
_ALONE = Crew()


def nearest(queries: Points, candidates: Points, count: int, crew: Crew = _ALONE) -> tuple[FloatArray, IntArray]:
    """The `count` candidates of the largest inner product for each query, best first: products and indices."""
    products = np.empty((len(queries), count))
    indices = np.empty((len(queries), count), dtype=np.intp)
    columns = np.ascontiguousarray(candidates.T)

    def work(rows: slice) -> tuple[NDArray[np.float32], IntArray]:
        return largest(queries[rows] @ columns, count)

    for rows, (values, which) in crew.blocks(len(queries), max(1, _CELLS // len(candidates)), work):
        products[rows], indices[rows] = values, which
    return products, indices


def adjusted_nearest(queries: Points, candidates: Points, count: int, crew: Crew) -> IntArray:
    """The `count` candidates of the largest CSLS for each query, best first.

    The closeness of the query itself is left out, because it changes no order.
    """
    means = nearest(candidates, queries, min(NEIGHBOURHOOD, len(queries)), crew)[0].mean(axis=1)
    ones = np.ones((len(queries), 1), np.float32)
    lowered = np.concatenate([2 * candidates, -means[:, None]], axis=1, dtype=np.float32)
    return nearest(np.concatenate([queries, ones], axis=1), lowered, count, crew)[1]


def largest(block: NDArray[np.float32], count: int) -> tuple[NDArray[np.float32], IntArray]:
    """The `count` largest entries of each row, largest first, and their columns; of equal ones the first columns.

    A selection in the whole row is slow. The maxima of groups of columns are found fast, and `count` entries at least
    reach the count-th largest of these maxima: only those are sorted.
    """
    rows, width = block.shape
    if count == 1:
        which = block.argmax(axis=1)[:, None]
        return np.take_along_axis(block, which, axis=1), which
    groups = width // (8 * count)  # columns in a group; there are 8 * count groups or more
    if groups < 4:
        some = np.argpartition(-block, count - 1, axis=1)[:, :count]
        some.sort(axis=1)
        values = np.take_along_axis(block, some, axis=1)
    else:
        length = width // groups
        maxima = block[:, : groups * length].reshape(rows, groups, length).max(axis=1)
        floor = np.partition(maxima, length - count, axis=1)[:, length - count]
        flat = np.flatnonzero(block >= floor[:, None])
        row = flat // width
        firsts = np.searchsorted(row, np.arange(rows + 1))
        at = np.arange(len(flat)) - firsts[row]
        values = np.full((rows, int(np.diff(firsts).max())), -np.inf, dtype=block.dtype)
        some = np.full(values.shape, width, dtype=np.intp)
        values[row, at], some[row, at] = block.ravel()[flat], flat - row * width
    order = np.argsort(-values, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(some, order, axis=1)


def adjusted_similarity(a: Points, b: Points, neighbourhood: int = NEIGHBOURHOOD) -> NDArray[np.float32]:
    """Cosines minus the mean cosine of each point with its nearest neighbours on the other side (CSLS).

    In high dimensions a few points ("hubs") are close to everything; without this correction they would take every
    match.
    """
    similarity = a @ b.T
    k = min(neighbourhood, *similarity.shape)
    of_a = closeness(similarity, k)
    of_b = closeness(np.ascontiguousarray(similarity.T), k)
    return adjust(similarity, of_a, of_b)


def adjust(
    similarity: NDArray[np.float32], of_a: NDArray[np.float32], of_b: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Similarities, overwritten by twice themselves less the closeness of both points."""
    similarity *= np.float32(2)
    similarity -= of_a[:, None]
    similarity -= of_b[None, :]
    return similarity


def closeness(similarity: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """The mean of the `count` largest entries of each row."""
    return np.asarray(largest(similarity, count)[0].mean(axis=1))


def column_closeness(similarity: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """About the mean of the `count` largest entries of each column: of maxima of groups of rows, if there are many.

    Two of the largest may fall into one group, so it is a little less; a transposed copy would take several times as
    long.
    """
    rows = len(similarity)
    groups = rows // (8 * count)
    if groups < 2:
        return closeness(np.ascontiguousarray(similarity.T), count)
    length = rows // groups
    maxima = similarity[: groups * length].reshape(groups, length, -1).max(axis=0)
    return np.asarray(np.partition(maxima, length - count, axis=0)[length - count :].mean(axis=0))


def mutual(similarity: NDArray[np.float32]) -> tuple[IntArray, IntArray]:
    """Rows and columns that choose each other."""
    forth, back = similarity.argmax(axis=1), similarity.argmax(axis=0)
    rows = np.flatnonzero(back[forth] == np.arange(len(similarity)))
    return rows, forth[rows]
