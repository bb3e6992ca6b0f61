"""Unrelated spaces: points with the geometry of the target that have nothing in common with the source."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import pdist, squareform

from blindmatch.geometry.kernels import unit_rows
from blindmatch.validation import FloatArray, IntArray

T = TypeVar("T")
Null = Callable[[np.random.Generator], FloatArray]
_REFERENCES = 20  # rotated copies that clusters and outliers are compared with
_ROUNDS = 4  # of giving a copy both the spectrum and the distances from the mean
_ON = 1e-6  # largest relative difference of the distances from the centre of points on a sphere
_CHOICES, _MOST_CHOICES = 160, 25  # copies to choose from: so many by the number of points, and at most
_TRIES = 100  # to draw members of all clusters at random; where clusters are many and small, that hardly ever happens


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
      variances between and within clusters.

    None at all if the deadline comes before it is known which are needed.
    """
    flat = compact(points)
    try:
        labels = clusters(flat, rng, deadline)
        plain = _copies(flat, np.zeros_like(labels))
        whole = _with_outliers(flat, plain) if has_outliers(flat, plain, rng, deadline) else plain
    except TimeoutError:
        return []
    kinds = [_copies(flat, labels), whole] if labels.any() else [whole]
    sphere = on_sphere(flat)
    if sphere is not None:  # where the copies are not
        kinds = [_on_sphere(kind, *sphere) for kind in (*kinds[:-1], plain)]
    kinds = [*kinds, _with_values(points)] if has_values(points, rng) else kinds
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
    plain = _copies(columns, np.zeros(len(columns), dtype=np.intp))
    others = np.array([_shape(plain(rng)) for _ in range(_REFERENCES)])
    return bool(abs(_shape(columns) - others.mean()) > 1.5 * others.std())


def _shape(columns: FloatArray) -> float:
    deviations = np.abs(columns - columns.mean(axis=0)).mean(axis=0)
    return float(np.mean(deviations / columns.std(axis=0)))


def _with_values(points: FloatArray) -> Null:
    """Rotated copies whose columns hold the values of the points' own columns, in the order of the copies' values."""
    centred, middle = points - points.mean(axis=0), points.mean(axis=0)
    basis = _complement(np.full((len(points), 1), len(points) ** -0.5))
    inner = basis.T @ centred
    values = np.sort(points, axis=0)

    def draw(rng: np.random.Generator) -> FloatArray:
        copy = middle + basis @ (_orthogonal(len(points) - 1, rng) @ inner)
        ranks = copy.argsort(axis=0).argsort(axis=0)
        return np.take_along_axis(values, ranks, axis=0)

    return draw


def has_outliers(points: FloatArray, plain: Null, rng: np.random.Generator, deadline: float = math.inf) -> bool:
    """Whether the distances from the mean differ more than in rotated copies, by 1.5 standard deviations."""
    others = np.array(_references(lambda: _unevenness(plain(rng)), deadline))
    return bool(_unevenness(points) > others.mean() + 1.5 * others.std() + 1e-9)


def _references(value: Callable[[], T], deadline: float) -> list[T]:
    """The values of rotated copies; TimeoutError if the deadline comes before the last."""
    values = []
    for _ in range(_REFERENCES):
        if time.perf_counter() > deadline:
            raise TimeoutError
        values.append(value())
    return values


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


def _copies(points: FloatArray, labels: IntArray) -> Null:
    k, n = int(labels.max()) + 1, len(points)
    chances = (np.bincount(labels) + 1) / (n + k)
    centres = np.array([points[labels == c].mean(axis=0) for c in range(k)])
    middle = centres.mean(axis=0)
    between = _complement(np.full((k, 1), k**-0.5))
    outer = between.T @ (centres - middle)
    inner = _within_basis(labels, k).T @ (points - centres[labels])

    # Clusters of one size keep their members: two sets of such clusters share what their design gave them.
    fixed = len(np.unique(np.bincount(labels))) == 1

    def draw(rng: np.random.Generator) -> FloatArray:
        fresh = labels if fixed else _members(n, chances, rng)
        moved = middle + between @ (_orthogonal(k - 1, rng) @ outer)
        return np.asarray(moved[fresh] + _within_basis(fresh, k) @ (_orthogonal(n - k, rng) @ inner))

    return draw


def _members(n: int, chances: FloatArray, rng: np.random.Generator) -> IntArray:
    """The cluster of each of n points, at random, such that no cluster is lost."""
    k = len(chances)
    for _ in range(_TRIES):
        drawn = rng.choice(k, size=n, p=chances)
        if len(np.unique(drawn)) == k:
            return drawn
    return rng.permutation(np.concatenate([np.arange(k), rng.choice(k, size=n - k, p=chances)]))


def clusters(points: FloatArray, rng: np.random.Generator, deadline: float = math.inf) -> IntArray:
    """Cluster labels by Ward's method; the gap statistic decides how many there are.

    It compares the variance within clusters with that of rotated copies, which have none (Tibshirani, Walther and
    Hastie 2001), and takes the first number after which more clusters gain nothing, which is usually one.
    TimeoutError if the deadline comes first.
    """
    n = len(points)
    most = n // 2
    if most < 2 or not np.ptp(points, axis=0).any():
        return np.zeros(n, dtype=np.intp)
    tree = linkage(points, "ward")
    own = _within(points, tree, most)
    centred = points - points.mean(axis=0)
    basis = _complement(np.full((n, 1), n**-0.5))
    inner = basis.T @ centred

    def reference() -> FloatArray:
        copy = basis @ (_orthogonal(n - 1, rng) @ inner)
        return _within(copy, linkage(copy, "ward"), most)

    others = np.array(_references(reference, deadline))
    gap = others.mean(axis=0) - own
    error = others.std(axis=0) * np.sqrt(1 + 1 / _REFERENCES)
    enough = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    k = int(enough[0]) + 1 if len(enough) else most
    return np.asarray(cut_tree(tree, n_clusters=k)[:, 0], dtype=np.intp)


def _within(points: FloatArray, tree: FloatArray, most: int) -> FloatArray:
    """Logarithm of the variance within 1, 2, ... `most` clusters of Ward's tree."""
    total = float(((points - points.mean(axis=0)) ** 2).sum())
    # Ward's heights are the root of twice what a merge adds to the sum of squares.
    left = total - np.concatenate([[0.0], np.cumsum(tree[::-1, 2] ** 2 / 2)])[:most]
    return np.asarray(np.log(np.maximum(left, 1e-12 * total)))


def _within_basis(labels: IntArray, k: int) -> FloatArray:
    """An orthonormal basis of the deviations from the centres of k clusters."""
    members = np.zeros((len(labels), k))
    members[np.arange(len(labels)), labels] = 1 / np.sqrt(np.bincount(labels, minlength=k)[labels])
    return _complement(members)


def compact(points: FloatArray) -> FloatArray:
    """The same inner products in as few dimensions as there are points."""
    if points.shape[1] <= len(points):
        return points
    left, values, _ = np.linalg.svd(points, full_matrices=False)
    return np.asarray(left * values)


def _complement(columns: FloatArray) -> FloatArray:
    """An orthonormal basis of what is orthogonal to orthonormal columns."""
    n, k = columns.shape
    return np.asarray(np.linalg.qr(columns, mode="complete")[0][:, k:]) if k < n else np.zeros((n, 0))


def _orthogonal(size: int, rng: np.random.Generator) -> FloatArray:
    """A random orthogonal matrix, uniform (Haar)."""
    Q, R = np.linalg.qr(rng.standard_normal((size, size)))
    return np.asarray(Q * np.sign(np.diag(R)))
