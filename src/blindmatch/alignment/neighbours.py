"""Nearest neighbours across the two spaces, a block at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blindmatch.alignment.frame import Points
from blindmatch.validation import FloatArray, IntArray

_CELLS = 2**24  # similarities in memory at once: 64 MB


def nearest(queries: Points, candidates: Points, count: int) -> tuple[FloatArray, IntArray]:
    """The `count` candidates of the largest cosine for each query, best first: cosines and indices."""
    rows = max(1, _CELLS // len(candidates))
    cosines = np.empty((len(queries), count))
    indices = np.empty((len(queries), count), dtype=np.intp)
    for start in range(0, len(queries), rows):
        block = queries[start : start + rows] @ candidates.T
        some = np.argpartition(-block, count - 1, axis=1)[:, :count]
        values = np.take_along_axis(block, some, axis=1)
        order = np.lexsort((some, -values), axis=1)  # equal cosines: the lower index first
        cosines[start : start + rows] = np.take_along_axis(values, order, axis=1)
        indices[start : start + rows] = np.take_along_axis(some, order, axis=1)
    return cosines, indices


def adjusted_similarity(a: Points, b: Points, neighbourhood: int) -> NDArray[np.float32]:
    """Cosines minus the mean cosine of each point with its nearest neighbours on the other side (CSLS).

    In high dimensions a few points ("hubs") are close to everything; without this correction they would take every
    match.
    """
    similarity = a @ b.T
    k = min(neighbourhood, *similarity.shape)
    of_a = np.partition(similarity, -k, axis=1)[:, -k:].mean(axis=1)
    of_b = np.partition(np.ascontiguousarray(similarity.T), -k, axis=1)[:, -k:].mean(axis=1)
    similarity *= 2.0
    similarity -= of_a[:, None]
    similarity -= of_b[None, :]
    return np.asarray(similarity)
