"""Relations that are given: matrices, completed where some are missing, or the edges of graphs with their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from scipy.stats import rankdata

from blindmatch.errors import unknown_name
from blindmatch.geometry.metrics import Metric, paths
from blindmatch.io.edge_lists import Edge, read_edges
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


Names = tuple[str, ...]


def _ranks(matrix: FloatArray) -> FloatArray:
    """The rank of each weight that is not zero among them, from 0 to 1; ties get their mean rank."""
    found, edges = np.zeros_like(matrix), matrix != 0
    found[edges] = rankdata(matrix[edges]) / max(int(edges.sum()), 1)
    return found


EDGE_WEIGHTS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "none": lambda matrix: matrix,
    "log": lambda matrix: np.sign(matrix) * np.log1p(np.abs(matrix)),
    "binary": lambda matrix: (matrix != 0).astype(np.float64),
    "ranks": _ranks,
}


def adjacency(edges: Sequence[Edge], rows: Names, columns: Names | None = None) -> FloatArray:
    """The weights of the edges from rows to columns; several edges of the same nodes are added up."""
    places = [{name: at for at, name in enumerate(names)} for names in (rows, rows if columns is None else columns)]
    matrix = np.zeros((len(places[0]), len(places[1])))
    for start, end, weight in edges:
        if start in places[0] and end in places[1]:
            matrix[places[0][start], places[1][end]] += weight
    return matrix


def graph_layers(given: Sequence[Any], side: str) -> tuple[list[Any], Names | None]:
    """The relations of one side in each layer: matrices, networkx graphs, or paths; and their names.

    All layers of a side have the same nodes. A list of edges names only nodes with edges, so all lists count together.
    """
    listed = [read_edges(one) if isinstance(one, str | Path) else None for one in given]
    ends = {node for edges in listed if edges is not None for start, end, _ in edges for node in (start, end)}
    names = tuple(sorted(ends)) or None
    found: list[Any] = []
    for at, (one, edges) in enumerate(zip(given, listed, strict=True)):
        own: Names | None = names
        if edges is not None:
            assert names is not None
            found.append(adjacency(edges, names))
        elif type(one).__module__.split(".")[0] == "pandas" and set(one.index) == set(one.columns):
            own = tuple(map(str, one.index))
            found.append(one[one.index])
        elif type(one).__module__.split(".")[0] == "networkx":
            own = tuple(map(str, one.nodes))
            order = {node: i for i, node in enumerate(one.nodes)}
            matrix = np.zeros((len(order), len(order)))
            for start, end, weight in one.edges(data="weight", default=1.0):
                if not isinstance(weight, Real):
                    raise ValueError(f"{side}: edge ({start}, {end}) has weight {weight!r}; expected a number")
                matrix[order[start], order[end]] += weight
                if not one.is_directed() and start != end:
                    matrix[order[end], order[start]] += weight
            if names is not None and set(names) == set(own) and names != own:
                rows = [own.index(name) for name in names]
                matrix, own = matrix[np.ix_(rows, rows)], names
            found.append(matrix)
        else:
            found.append(one)
            continue
        names = names or own
        if own != names:
            odd = ", ".join(sorted(set(own or ()) ^ set(names or ()))[:1])
            raise ValueError(f"{side}: layer {at + 1} has other nodes than the first ({odd}); expected the same ones")
    return found, names
