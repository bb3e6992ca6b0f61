"""Refine a rough rotation: pair mutual neighbours, fit the rotation to the pairs, and repeat."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from blindmatch.alignment.frame import Points
from blindmatch.alignment.neighbours import adjusted_similarity, mutual
from blindmatch.validation import FloatArray


def procrustes(a: NDArray[np.floating], b: NDArray[np.floating]) -> Points:
    """The orthogonal matrix R that brings the rows of `a` nearest to those of `b`: argmin |a R - b|.

    >>> import numpy as np
    >>> turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> bool(np.allclose(procrustes(np.eye(2), turn), turn))
    True
    """
    left, _, right = np.linalg.svd(inner_products(a, b))
    return np.asarray(left @ right, dtype=np.float32)


def weighted_fit(products: FloatArray, weight: float) -> tuple[Points, Points, Points]:
    """Procrustes as two maps, and the rotation itself, from the inner products of the axes over all pairs.

    The two maps carry both sides to common axes, each weighted by this power of how strongly the pairs agree on it (its
    singular value). 1/2 finds the way from rougher starts, 0 ends nearer to the truth.
    """
    u, strengths, vt = np.linalg.svd(products)
    weights = (strengths / max(float(strengths[0]), 1e-300)) ** weight
    left, right = (u * weights).astype(np.float32), (vt.T * weights).astype(np.float32)
    return left, right, (u @ vt).astype(np.float32)


def inner_products(a: NDArray[np.floating], b: NDArray[np.floating]) -> FloatArray:
    """Inner products of the columns of `a` and `b`, in float64."""
    return np.asarray(a.astype(np.float64).T @ b.astype(np.float64))


def unit(points: Points) -> Points:
    """Scale each row to unit length; a zero row stays zero."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(lengths > 0, lengths, np.float32(1)))


def sample(points: Points, size: int, rng: np.random.Generator) -> Points:
    """A random sample of the rows, in their order; all rows if there are no more."""
    if len(points) <= size:
        return points
    return points[np.sort(rng.choice(len(points), size, replace=False))]


def refine(
    sides: tuple[Points, Points],
    rotation: Points,
    *,
    schedule: Iterable[int],
    size: int,
    rng: np.random.Generator,
    weight: float = 0.0,
    memory: float = 0.0,
) -> Points:
    """Improve a rotation on fresh samples of both sides.

    Parameters
    ----------
    rotation
        The start: a rotation of as many leading axes as it has rows.
    schedule
        The number of leading axes whose rotation each round fits. A rough start only knows the few main directions. In
        the others it would pair noise with noise, and the fit would learn it, so the axes are added step by step.
    size
        Points of each side that a round uses.
    weight
        As in `weighted_fit`, for the search of the next pairs.
    memory
        Weight that the pairs of earlier rounds keep in each new round.
    """
    left, right = rotation, np.eye(len(rotation), dtype=np.float32)
    sums = np.zeros(rotation.shape)
    for components in schedule:
        known = len(left)
        a, b = (sample(points, size, rng) for points in sides)
        rows, columns = mutual(adjusted_similarity(unit(a[:, :known] @ left), unit(b[:, :known] @ right)))
        products = inner_products(unit(a[rows, :components]), unit(b[columns, :components]))
        sums = products + memory * sums if sums.shape == products.shape else products
        left, right, rotation = weighted_fit(sums, weight)
    return rotation


def overlap(a: Points, b: Points) -> float:
    """How well two sets overlap: the mean adjusted similarity of each point's best partner, in both directions."""
    similarity = adjusted_similarity(a, b)
    return float(similarity.max(axis=1).mean() + similarity.max(axis=0).mean()) / 2
