"""Relations that are given as a matrix: checked, completed where some are missing, or the edges of a graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from blindmatch.errors import unknown_name
from blindmatch.geometry.metrics import Metric, paths
from blindmatch.validation import FloatArray, as_array, as_square

RULES = ("path", "mean")


def as_relations(given: ArrayLike, name: str, metric: Metric = Metric()) -> FloatArray:  # noqa: B008 (it is immutable)
    """An (n, n) matrix of relations: the given one, or shortest paths if the metric is "geodesic" or "hops".

    A sparse matrix is the adjacency matrix of a graph. Its relations are its entries, zero where there is no edge, or
    the shortest paths along its edges. Of a dense matrix, paths lead along its nearest neighbours.
    """
    if not metric.path:
        if metric != Metric():
            raise ValueError(f"metric={metric.base!r} is given together with kernels, which are relations already")
        return _complete(given, name)
    complete = _complete(given, name)
    least = complete.min()
    if least < 0:  # a path that goes back and forth would get ever shorter
        raise ValueError(f"{name} holds {least}; paths need lengths that are not negative")
    if not issparse(given):
        return metric.along(complete)
    if metric.neighbors is not None:
        raise ValueError(f"neighbors={metric.neighbors} is given for {name}, a sparse graph, which has its own edges")
    found = paths(csr_array(given), hops=metric.path == "hops")
    apart = int(np.isinf(found).sum()) // 2
    if apart:
        raise ValueError(f"{name}: no path joins {apart} pairs of items; expected a connected graph")
    return found


def fill_missing(dissimilarities: ArrayLike, rule: str = "path") -> FloatArray:
    """Fill in missing dissimilarities (nan) by a rule.

    Parameters
    ----------
    dissimilarities
        (n, n) numbers, nan where unknown. If only one of d(i, k) and d(k, i) is known, it is used for both.
    rule
        "path": the length of the shortest path over other items, along known dissimilarities. It is the largest value
        that the triangle inequality allows. "mean": the average of the mean known value of the one item and that of the
        other.

    Examples
    --------
    >>> import numpy as np
    >>> fill_missing([[0, 1, np.nan], [1, 0, 2], [np.nan, 2, 0]]).tolist()
    [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]
    """
    if rule not in RULES:
        raise unknown_name("rule", rule, RULES)
    given = _square(dissimilarities, "dissimilarities")
    known = ~np.isnan(given)
    values = np.where(known, given, given.T)
    known = ~np.isnan(values)
    np.fill_diagonal(known, True)
    values[np.isnan(values) & np.eye(len(values), dtype=bool)] = 0.0
    as_square(np.where(known, values, 0.0), "dissimilarities")  # infinite ones are refused
    if rule == "path":
        if values[known].min() < 0:
            raise ValueError(f"dissimilarities holds {values[known].min()}; paths need values that are not negative")
        rows, columns = np.nonzero(known)
        filled = paths(csr_array((values[rows, columns], (rows, columns)), shape=values.shape))
    else:
        others = known & ~np.eye(len(values), dtype=bool)
        counts = others.sum(axis=1)
        means = np.where(others, values, 0.0).sum(axis=1) / np.maximum(counts, 1)
        filled = np.where((counts > 0)[:, None] & (counts > 0), (means[:, None] + means) / 2, np.inf)
    filled = np.where(known, values, filled)
    lost = np.isinf(filled).sum(axis=1)
    if lost.any():
        raise ValueError(f"dissimilarities: item {lost.argmax()} is not related to all others, not even by a {rule}")
    return filled


def _square(values: ArrayLike, name: str) -> FloatArray:
    array = as_array(values, name)
    if array.dtype.kind not in "biuf" or array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        return as_square(values, name)  # it says what is wrong
    return np.array(array, dtype=np.float64)


def _complete(values: ArrayLike, name: str) -> FloatArray:
    missing = int(np.isnan(_square(values, name)).sum())
    if missing:
        raise ValueError(
            f"{name} holds nan in {missing} of {np.shape(values)[0] ** 2} entries; bm.fill_missing completes them"
        )
    return as_square(values, name)
