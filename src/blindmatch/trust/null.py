"""Unrelated spaces: sets of points with the geometry of the target, and nothing in common with the source."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage

from blindmatch.validation import FloatArray, IntArray

Null = Callable[[np.random.Generator], FloatArray]
_REFERENCES = 20  # rotated copies that clusters and outliers are compared with
_ROUNDS = 4  # of giving a copy both the spectrum and the distances from the mean


def from_background(background: FloatArray, size: int) -> Null:
    """Other items of the target's space, drawn without replacement: exact if the targets are such a draw as well."""
    return lambda rng: np.asarray(background[rng.choice(len(background), size, replace=False)])


def rotated(points: FloatArray, rng: np.random.Generator) -> list[Null]:
    """Copies of the points, rotated in the space of samples: the same spectrum, other relations.

    An orthogonal matrix that mixes the points keeps all principal variances. For points drawn from a normal
    distribution the copies have exactly the distribution of the points. Clusters and outliers get lost that way:

    - with outliers (see `has_outliers`) the points of each copy are made as far from the mean as the points are;
    - with clusters (see `clusters`) there is another kind of copies, which comes first: it draws the cluster of every
      point anew, rotates the centres among each other, and rotates the points around their centres, which keeps the
      variances between and within clusters.
    """
    flat = _compact(points)
    labels = clusters(flat, rng)
    plain = _copies(flat, np.zeros_like(labels))
    whole = _with_outliers(flat, plain) if has_outliers(flat, plain, rng) else plain
    return [_copies(flat, labels), whole] if labels.any() else [whole]


def has_outliers(points: FloatArray, plain: Null, rng: np.random.Generator) -> bool:
    """Whether the distances from the mean differ more than in rotated copies, by 1.5 standard deviations."""
    others = np.array([_unevenness(plain(rng)) for _ in range(_REFERENCES)])
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


def _copies(points: FloatArray, labels: IntArray) -> Null:
    k, n = int(labels.max()) + 1, len(points)
    chances = (np.bincount(labels) + 1) / (n + k)
    centres = np.array([points[labels == c].mean(axis=0) for c in range(k)])
    middle = centres.mean(axis=0)
    between = _complement(np.full((k, 1), k**-0.5))
    outer = between.T @ (centres - middle)
    inner = _within_basis(labels, k).T @ (points - centres[labels])

    def draw(rng: np.random.Generator) -> FloatArray:
        fresh = labels
        while k > 1:
            fresh = rng.choice(k, size=n, p=chances)
            if len(np.unique(fresh)) == k:  # no cluster is lost
                break
        moved = middle + between @ (_orthogonal(k - 1, rng) @ outer)
        return np.asarray(moved[fresh] + _within_basis(fresh, k) @ (_orthogonal(n - k, rng) @ inner))

    return draw


def clusters(points: FloatArray, rng: np.random.Generator) -> IntArray:
    """Cluster labels by Ward's method; how many clusters there are is told by the gap statistic.

    It compares the variance within clusters with that of rotated copies, which have none (Tibshirani, Walther and
    Hastie 2001), and takes the first number after which more clusters gain nothing. Mostly it is one.
    """
    n = len(points)
    most = n // 2
    if most < 2 or not np.ptp(points, axis=0).any():
        return np.zeros(n, dtype=np.intp)
    own, cuts = _within(points, most)
    centred = points - points.mean(axis=0)
    basis = _complement(np.full((n, 1), n**-0.5))
    inner = basis.T @ centred
    others = np.array([_within(basis @ (_orthogonal(n - 1, rng) @ inner), most)[0] for _ in range(_REFERENCES)])
    gap = others.mean(axis=0) - own
    error = others.std(axis=0) * np.sqrt(1 + 1 / _REFERENCES)
    enough = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    k = int(enough[0]) + 1 if len(enough) else most
    return np.asarray(cuts[:, n - k], dtype=np.intp)


def _within(points: FloatArray, most: int) -> tuple[FloatArray, IntArray]:
    """Logarithm of the variance within 1, 2, ... `most` clusters, and the labels for each number of clusters."""
    n, total = len(points), float(((points - points.mean(axis=0)) ** 2).sum())
    tree = linkage(points, "ward")
    # Ward's heights are the root of twice what a merge adds to the sum of squares.
    left = total - np.concatenate([[0.0], np.cumsum(tree[::-1, 2] ** 2 / 2)])[:most]
    return np.log(np.maximum(left, 1e-12 * total)), cut_tree(tree).reshape(n, n)


def _within_basis(labels: IntArray, k: int) -> FloatArray:
    """An orthonormal basis of the deviations from the centres of k clusters."""
    members = np.zeros((len(labels), k))
    members[np.arange(len(labels)), labels] = 1 / np.sqrt(np.bincount(labels, minlength=k)[labels])
    return _complement(members)


def _compact(points: FloatArray) -> FloatArray:
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
