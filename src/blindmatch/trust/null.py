"""Unrelated spaces: points with the geometry of the target that have nothing in common with the source."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from scipy.spatial.distance import pdist, squareform

from blindmatch.geometry.kernels import unit_rows
from blindmatch.trust.rotation import Null, clusters, compact, copies, references
from blindmatch.validation import FloatArray

_ROUNDS = 4  # of giving a copy both the spectrum and the distances from the mean
_ON = 1e-6  # largest relative difference of the distances from the centre of points on a sphere, and of paths in a tree
_CHOICES, _MOST_CHOICES = 160, 25  # copies to choose from: so many by the number of points, and at most


def from_background(background: FloatArray, size: int) -> Null:
    """Other items of the target's space, drawn without replacement: exact if the targets are such a draw too."""
    return lambda rng: np.asarray(background[rng.choice(len(background), size, replace=False)])


def rotated(points: FloatArray, rng: np.random.Generator, deadline: float = math.inf) -> list[Null]:
    """Copies of the points, rotated in the space of samples: the same spectrum, other relations.

    An orthogonal matrix that mixes the points keeps all principal variances. For points drawn from a normal
    distribution the copies have exactly the distribution of the points. Clusters and outliers do not survive it:

    - with outliers (see `has_outliers`) the points of each copy are made as far from the mean as the points are;
    - with clusters (see `clusters`) there is another kind of copies, which comes first: it draws the cluster of every
      point anew, rotates the centres among each other, and rotates the points around their centres, which keeps the
      variances between and within clusters;
    - on a sphere the copies are put back on it; columns with ties or odd values, and trees, have another kind each.

    None at all if the deadline comes before it is known which are needed.
    """
    flat = compact(points)
    try:
        labels = clusters(flat, rng, deadline)
        plain = copies(flat, np.zeros_like(labels))
        whole = _with_outliers(flat, plain) if has_outliers(flat, plain, rng, deadline) else plain
    except TimeoutError:
        return []
    kinds = [copies(flat, labels), whole] if labels.any() else [whole]
    sphere = on_sphere(flat)
    if sphere is not None:  # where the copies are not
        kinds = [_on_sphere(kind, *sphere) for kind in (*kinds[:-1], plain)]
    kinds = [*kinds, _with_values(points)] if has_values(points, rng) else kinds
    tree = _rewired(flat)
    kinds = kinds if tree is None else [*kinds, tree]
    return [_most_alike(kind, flat) for kind in kinds]


def _most_alike(kind: Null, points: FloatArray) -> Null:
    """Of several copies, the one whose distances are distributed most like those of the points.

    Two sets that are both unusual in the same way (points along a curve, on several circles, in a tree) match better
    than either matches ordinary copies. So the copies must be as unusual as the points.
    """
    count = int(np.clip(_CHOICES // len(points), 1, _MOST_CHOICES))
    if count == 1:
        return kind
    wanted = _neighbour_distances(points)

    def draw(rng: np.random.Generator) -> FloatArray:
        copies = [kind(rng) for _ in range(count)]
        apart = [float(((_neighbour_distances(copy) - wanted) ** 2).sum()) for copy in copies]
        return copies[int(np.argmin(apart))]

    return draw


def _neighbour_distances(points: FloatArray) -> FloatArray:
    """(n, n) the sorted distances of all points to themselves, to their nearest neighbours, to the next ones, ..."""
    return np.sort(np.sort(squareform(pdist(points)), axis=1), axis=0)


def on_sphere(points: FloatArray) -> tuple[FloatArray, float] | None:
    """The centre and radius of the sphere on which all points lie, by least squares; None if there is none.

    Unit vectors lie on one, and so do points on a circle. Any d + 1 points do: there must be more.
    """
    n, d = points.shape
    if n <= d + 2:
        norms = np.linalg.norm(points, axis=1)
        return (np.zeros(d), float(norms.mean())) if np.ptp(norms) <= _ON * norms.max() else None
    squares = (points**2).sum(axis=1)
    fitted, *_ = np.linalg.lstsq(np.column_stack([2 * points, np.ones(n)]), squares, rcond=None)
    norms = np.linalg.norm(points - fitted[:d], axis=1)
    return (fitted[:d], float(norms.mean())) if np.ptp(norms) <= _ON * norms.max() else None


def _on_sphere(plain: Null, centre: FloatArray, radius: float) -> Null:
    """Rotated copies, put back on the sphere."""
    return lambda rng: np.asarray(centre + radius * unit_rows(plain(rng) - centre))


def has_values(points: FloatArray, rng: np.random.Generator) -> bool:
    """Whether the columns hold values that rotated copies do not have: ties, or another shape of the distribution.

    The shape is the mean absolute deviation in standard deviations (Geary), which is 0.8 for normal values, more for
    values at two ends, and less for heavy tails. The values of a single column, in another order, are the points
    themselves: they are no other space.
    """
    columns = points[:, points.std(axis=0) > 0]
    if np.linalg.matrix_rank(columns - columns.mean(axis=0)) < 2:
        return False
    if any(len(np.unique(column)) < len(column) for column in columns.T):
        return True
    plain = copies(columns, np.zeros(len(columns), dtype=np.intp))
    others = np.array(references(lambda: _shape(plain(rng))))
    return bool(abs(_shape(columns) - others.mean()) > 1.5 * others.std())


def _shape(columns: FloatArray) -> float:
    deviations = np.abs(columns - columns.mean(axis=0)).mean(axis=0)
    return float(np.mean(deviations / columns.std(axis=0)))


def _with_values(points: FloatArray) -> Null:
    """Rotated copies whose columns hold the values of the points' own columns, in the order of the copies' values."""
    plain = copies(points, np.zeros(len(points), dtype=np.intp))
    values = np.sort(points, axis=0)

    def draw(rng: np.random.Generator) -> FloatArray:
        ranks = plain(rng).argsort(axis=0).argsort(axis=0)
        return np.take_along_axis(values, ranks, axis=0)

    return draw


def _rewired(points: FloatArray) -> Null | None:
    """If squared distances are the lengths of paths in a tree: trees whose nodes have the same numbers of edges.

    A shuffled code of Pruefer is a random one of them; its edges take the lengths in any order. None for other points.
    """
    n, squares = len(points), squareform(pdist(points, "sqeuclidean"))
    edges = minimum_spanning_tree(squares).tocoo()
    if n < 4 or edges.nnz < n - 1:  # duplicates have no edge between them
        return None
    if np.abs(shortest_path(edges, directed=False) - squares).max() > _ON * squares.max():
        return None
    degrees, lengths = np.bincount(np.concatenate([edges.row, edges.col])), np.sqrt(edges.data)
    code = np.repeat(np.arange(n), degrees - 1)

    def draw(rng: np.random.Generator) -> FloatArray:
        joined: list[tuple[int, int]] = []
        free = degrees.copy()
        for node in rng.permutation(code):
            leaf = int(np.argmax(free == 1))
            joined.append((leaf, int(node)))
            free[[leaf, node]] -= 1
        first, last = np.flatnonzero(free == 1)
        joined.append((int(first), int(last)))
        copy, apart = np.zeros((n, n)), rng.permutation(lengths)
        for at, (leaf, node) in reversed(list(enumerate(joined))):
            copy[leaf] = copy[node]
            copy[leaf, at] = apart[at]
        return copy

    return draw


def has_outliers(points: FloatArray, plain: Null, rng: np.random.Generator, deadline: float = math.inf) -> bool:
    """Whether the distances from the mean differ more than in rotated copies, by 1.5 standard deviations."""
    others = np.array(references(lambda: _unevenness(plain(rng)), deadline))
    return bool(_unevenness(points) > others.mean() + 1.5 * others.std() + 1e-9)


def _unevenness(points: FloatArray) -> float:
    norms = np.linalg.norm(points - points.mean(axis=0), axis=1)
    return float(norms.std() / norms.mean()) if norms.any() else 0.0


def _with_outliers(points: FloatArray, plain: Null) -> Null:
    """Rotated copies that have the distances from the mean and, nearly, the spectrum of the points."""
    centred = points - points.mean(axis=0)
    norms, spectrum = np.sort(np.linalg.norm(centred, axis=1)), np.linalg.svd(centred, compute_uv=False)

    def stretched(copy: FloatArray) -> FloatArray:
        own = copy - copy.mean(axis=0)
        lengths = np.linalg.norm(own, axis=1)
        wanted = np.empty_like(norms)
        wanted[np.argsort(lengths)] = norms  # the farthest stays the farthest
        return np.asarray(own * (wanted / np.where(lengths > 0, lengths, 1.0))[:, None])

    def draw(rng: np.random.Generator) -> FloatArray:
        copy = stretched(plain(rng))
        for _ in range(_ROUNDS):  # by turns one and the other is exact
            left, _, right = np.linalg.svd(copy - copy.mean(axis=0), full_matrices=False)
            copy = stretched((left * spectrum) @ right)
        return np.asarray(copy + points.mean(axis=0))

    return draw
