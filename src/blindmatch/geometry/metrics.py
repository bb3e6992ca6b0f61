"""Dissimilarities between the items of one set: by any metric of scipy, along a neighbourhood graph, or given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree, shortest_path
from scipy.spatial.distance import cdist, pdist, squareform

from blindmatch.errors import shown, unknown_name
from blindmatch.geometry.kernels import distances
from blindmatch.validation import BoolArray, FloatArray, at_least

# Those of scipy's cdist that need no further argument.
DIRECT = (
    *("braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "dice", "euclidean", "hamming"),
    *("jaccard", "jensenshannon", "mahalanobis", "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath"),
    *("sqeuclidean", "yule"),
)
_BOOLEAN = ("dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
PATHS = ("geodesic", "hops")
METRICS = (*DIRECT, *PATHS, "gower")
_TINY = 1e-300
_MOST = 20_000  # items: a matrix of their relations has 3.2 GB
_NEIGHBORS, _SHARE = 50, 5  # default number of neighbours, but at most one item in five: the rule of SCOT


@dataclass(frozen=True)
class Metric:
    """A measure of how dissimilar two items of a set are.

    The path is "" for the base itself, "geodesic" for the length of the shortest path in the graph of nearest
    neighbours, whose edges are as long as the base says, and "hops" for the number of edges on that path.
    """

    base: str = "euclidean"  # a name in `DIRECT`
    path: str = ""
    neighbors: int | None = None  # the number of nearest neighbours in the graph; None for the default

    @classmethod
    def of(cls, name: object, neighbors: object = None) -> Metric:
        """A metric from its name: "cosine", "geodesic", "hops:correlation"; ValueError if it is not known."""
        if not isinstance(name, str):
            raise ValueError(f"metric={shown(name)}; expected a name such as 'cosine', or a pair of names")
        path, colon, base = name.partition(":")
        if path in PATHS:
            base = base if colon else "euclidean"
            if base not in DIRECT:
                raise unknown_name("metric", name, [f"{path}:{known}" for known in DIRECT])
            if neighbors == "auto":
                raise ValueError("neighbors='auto'; expected an integer: bm.choose_relation compares some of them")
            count = None if neighbors is None else at_least(neighbors, 1, "neighbors")
            return cls(base, path, count)
        if name == "precomputed":
            raise ValueError("metric='precomputed'; expected kernels=(K, G) for relations that are given as matrices")
        if name == "auto":
            raise ValueError("metric='auto'; expected a name: bm.choose_relation compares some of them")
        if name == "gower":
            raise ValueError("metric='gower' is for tables; expected bm.match, bm.Task or 'blindmatch match'")
        if name not in DIRECT:
            raise unknown_name("metric", name, METRICS)
        return cls(name)

    def of_points(self, points: FloatArray) -> FloatArray:
        """(n, n) dissimilarities of points, exactly symmetric with a zero diagonal."""
        if self != Metric() and len(points) > _MOST:
            raise ValueError(f"{len(points)} items need a matrix of all their relations; expected up to {_MOST} items")
        if self.base == "euclidean" or len(points) < 2:
            direct = distances(points)
        else:
            with np.errstate(all="ignore"):
                found = pdist(points != 0 if self.base in _BOOLEAN else points, self.base)
            direct = np.asarray(squareform(np.maximum(found, 0.0)))  # rounding can leave -1e-17
        return self.along(direct) if self.path and np.isfinite(direct).all() else direct

    def between(self, points: FloatArray, others: FloatArray) -> FloatArray:
        """(n, m) dissimilarities of points and other points of their space, by the base."""
        if self.base in _BOOLEAN:
            return np.asarray(cdist(points != 0, others != 0, self.base))
        return np.asarray(cdist(points, others, self.base))

    def along(self, lengths: FloatArray) -> FloatArray:
        """Shortest paths in the graph of nearest neighbours by these dissimilarities; parts of it are joined first."""
        return paths(_joined(self.graph(lengths), lengths), hops=self.path == "hops")

    def graph(self, lengths: FloatArray) -> BoolArray:
        """Join two items if one is among the nearest neighbours of the other; all that tie for the last place are.

        By default there are 50 neighbours, or a fifth of the items if that is fewer (Demetci et al. 2022).
        """
        n = len(lengths)
        default = min(_NEIGHBORS, max(n // _SHARE, 1))
        k = min(default if self.neighbors is None else self.neighbors, n - 1)
        if k < 1:
            return np.zeros((n, n), dtype=bool)
        others = lengths.copy()
        np.fill_diagonal(others, np.inf)
        near = others <= np.partition(others, k - 1, axis=1)[:, k - 1 : k]
        return np.asarray(near | near.T)

    def components(self, lengths: FloatArray) -> int:
        """The number of connected parts of the graph before they are joined."""
        return int(connected_components(csr_array(self.graph(lengths)), directed=False)[0])


def as_metrics(metric: object, neighbors: object = None) -> tuple[Metric, Metric]:
    """The metric of each side, from one name for both or a pair of names; the same for the number of neighbours."""
    names = metric if isinstance(metric, tuple | list) else (metric, metric)
    counts = neighbors if isinstance(neighbors, tuple | list) else (neighbors, neighbors)
    for name, given in (("metric", names), ("neighbors", counts)):
        if len(given) != 2:
            raise ValueError(f"{name} has {len(given)} items; expected one, or a pair (source, target)")
    found = Metric.of(names[0], counts[0]), Metric.of(names[1], counts[1])
    if neighbors is not None and not any(one.path for one in found):
        raise ValueError(
            f"neighbors={shown(neighbors)} is given with metric={shown(metric)}; only {' and '.join(PATHS)} have them"
        )
    return found


def gower_distances(points: FloatArray, categories: int) -> FloatArray:
    """(n, n) Gower distances: the mean over the columns that two items both have (nan if they have none in common).

    Numbers differ by a share of their range; the last `categories` columns are codes, which differ or not.

    >>> gower_distances(np.array([[0.0, 1.0], [4.0, 1.0], [np.nan, 2.0]]), 1).tolist()
    [[0.0, 0.5, 1.0], [0.5, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    n, d = points.shape
    total, count = np.zeros((n, n)), np.zeros((n, n))
    for at, column in enumerate(points.T):
        known = ~np.isnan(column)
        width = np.ptp(column[known]) if known.any() else 0.0
        apart = np.abs(column[:, None] - column)
        share = apart != 0 if at >= d - categories else apart / (width or 1.0)
        both = known[:, None] & known
        total += np.where(both, share, 0.0)
        count += both
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)


def paths(graph: csr_array, hops: bool = False) -> FloatArray:
    """Lengths of the shortest paths in an undirected graph, exactly symmetric; inf between its parts."""
    found = shortest_path(graph, method="D", directed=False, unweighted=hops)
    return np.asarray(np.minimum(found, found.T))


def _joined(near: BoolArray, lengths: FloatArray) -> csr_array:
    """The graph, its parts joined by the edges between them of the minimum spanning tree of all items."""
    count, part = connected_components(csr_array(near), directed=False)
    if count > 1:
        tree = minimum_spanning_tree(np.maximum(lengths, _TINY)).tocoo()  # csgraph takes a zero for no edge
        between = part[tree.row] != part[tree.col]
        near = near.copy()
        near[tree.row[between], tree.col[between]] = near[tree.col[between], tree.row[between]] = True
    rows, columns = np.nonzero(near)
    # A sparse matrix keeps edges of length zero, between duplicates; a dense one would lose them.
    return csr_array((lengths[rows, columns], (rows, columns)), shape=lengths.shape)
