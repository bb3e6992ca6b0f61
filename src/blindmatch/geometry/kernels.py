"""Kernels: n x n matrices of relations between the items of one set (the paper's Sec. 3 and its first appendix)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from blindmatch.validation import FloatArray

_SMALL, _LARGE = 1e-100, 1e100  # lengths between these need no rescaling
_VANISHES = 1e-153  # products of numbers below this lose digits in float64


def distances(points: FloatArray) -> FloatArray:
    """Euclidean distances, exactly symmetric with an exact zero diagonal."""
    if len(points) < 2:
        return np.zeros((1, 1))
    # Computed from the differences: |x|^2 + |y|^2 - 2xy is faster but loses digits for points that are close together
    # or far from zero.
    found = pdist(points)
    if found.max() < _SMALL:  # such squares underflow; those of huge numbers overflow and are refused
        exponent = _exponents(points, axis=None)
        found = np.ldexp(pdist(np.ldexp(points, -exponent)), exponent[0])
    return np.asarray(squareform(found))


def saturated(kernel: FloatArray, bandwidth: float, relative: bool = False) -> FloatArray:
    """1 - exp(-(d / w)^2) of distances d, w = `bandwidth` times their mean: near 0 for neighbours, else near 1.

    If all distances have a large offset in common, so have these numbers, and rounding hides how they differ. With
    `relative`, the relations have it no more: that of ``offset_of`` the distances is subtracted.
    """
    n = len(kernel)
    if kernel.min() < 0:
        raise ValueError(f"kernels holds {kernel.min()}; expected distances, which are non-negative")
    off = kernel[~np.eye(n, dtype=bool)]
    largest = off.max(initial=0.0)
    if largest == 0:
        return np.zeros_like(kernel)
    mean = (off / largest).mean()  # sums of huge numbers would overflow
    bandwidth = max(bandwidth, _SMALL)
    offset = offset_of(off) if relative else 0.0
    below, above, least = (part / largest / mean / bandwidth for part in (kernel - offset, kernel + offset, offset))
    with np.errstate(over="ignore"):  # far beyond the bandwidth
        apart = below * above  # of the squares, which would lose it
        nearer = np.exp(-(np.minimum(kernel / largest / mean / bandwidth, least) ** 2))
        return np.asarray(-np.sign(apart) * nearer * np.expm1(-np.abs(apart)))


def inner_products(points: FloatArray) -> FloatArray:
    """The linear kernel X X^T."""
    size = np.abs(points).max()
    if 0 < size < _VANISHES:
        raise ValueError(f"embeddings hold no number above {size:.3g}; their inner products underflow: scale them up")
    matrix = points @ points.T
    return np.asarray((matrix + matrix.T) / 2)


def centred(kernel: FloatArray) -> FloatArray:
    """H K H with H = I - 11^T/n. Centring both sides makes the result independent of the order of the items."""
    half = kernel - kernel.mean(axis=0, keepdims=True)
    matrix = half - half.mean(axis=1, keepdims=True)
    # Rounding must not make a symmetric kernel asymmetric: the problem would need a second factor pair.
    return np.asarray((matrix + matrix.T) / 2 if (kernel == kernel.T).all() else matrix)


def cka_kernel(kernel: FloatArray) -> FloatArray:
    """Centre on both sides and scale to unit Frobenius norm: the inner product of two of them is their CKA."""
    size = np.abs(kernel).max()
    if size == 0:
        return np.zeros_like(kernel)
    apart = kernel - offset_of(kernel)  # centring would round what is left of a large offset
    spread = np.abs(apart).max()
    if spread == 0:
        return np.zeros_like(kernel)
    matrix = centred(apart / spread)
    norm = np.linalg.norm(matrix)
    # Centring a constant kernel leaves rounding noise, which must not be scaled up to unit norm.
    return matrix / norm if norm * (spread / size) > 1e-12 * len(kernel) else np.zeros_like(kernel)


def centred_norm(kernel: FloatArray) -> float:
    """The Frobenius norm of the centred kernel; 0 for a constant one."""
    return float(np.linalg.norm(centred(kernel))) if cka_kernel(kernel).any() else 0.0


def knn_kernel(similarity: FloatArray, k: int) -> FloatArray:
    """Indicator of the k most similar other items of each row, divided by sqrt(n k); ties go to the lower index."""
    n = len(similarity)
    if not 1 <= k <= n - 1:
        raise ValueError(f"k={k}; expected 1 <= k <= {n - 1} for {n} points")
    others = similarity.copy()
    np.fill_diagonal(others, -np.inf)
    nearest = np.argsort(-others, axis=1, kind="stable")[:, :k]
    kernel = np.zeros((n, n))
    np.put_along_axis(kernel, nearest, 1.0 / np.sqrt(n * k), axis=1)
    return kernel


def offset_of(*values: FloatArray) -> float:
    """One of the numbers, if they all have one sign and differ by a factor of at most 2; otherwise 0.

    The difference of each number and this one is then a float64, without rounding (Sterbenz 1974).
    """
    ends = [bound(part) for part in values if part.size for bound in (np.min, np.max)]
    if np.sign(min(ends)) != np.sign(max(ends)) or np.abs(ends).max() / 2 > np.abs(ends).min():
        return 0.0
    return float(np.sign(ends[0]) * middle_of(*(np.abs(part) for part in values)))


def middle_of(*values: FloatArray) -> float:
    """One of the numbers, as large as half of them."""
    everything = np.concatenate([part.ravel() for part in values])
    middle = len(everything) // 2
    return float(np.partition(everything, middle)[middle])


def common_numbers(
    K: FloatArray, G: FloatArray, find: Callable[[FloatArray, FloatArray], float]
) -> tuple[FloatArray, FloatArray]:
    """A matrix for each kernel, with a number for all relations of both, and one for the diagonals.

    A pairing compares relations with relations, and the diagonal with the diagonal. `find` finds the numbers.
    """
    relations = [kernel[~np.eye(len(kernel), dtype=bool)] for kernel in (K, G)]
    own = find(np.diagonal(K), np.diagonal(G))
    others = find(relations[0], relations[1]) if relations[0].size or relations[1].size else own
    source, target = (np.where(np.eye(len(kernel), dtype=bool), own, others) for kernel in (K, G))
    return source, target


def standardized(kernel: FloatArray) -> FloatArray:
    """Off-diagonal mean 0 and standard deviation 1, diagonal 0; a constant kernel becomes all zeros."""
    n = len(kernel)
    if n < 2:
        return np.zeros_like(kernel)
    off = ~np.eye(n, dtype=bool)
    values = kernel[off]
    size = np.abs(values).max()
    result = np.zeros_like(kernel)
    values -= offset_of(values)  # the mean would round what is left of a large offset
    spread = np.abs(values).max()
    if spread > 0:
        values /= spread  # squares of huge or tiny numbers would overflow or underflow
        deviation = values.std()
        # Rounding leaves a tiny deviation in constant kernels; dividing by it would amplify noise.
        if deviation * (spread / size) > 1e-12:
            result[off] = (values - values.mean()) / deviation
    return result


def unit_rows(points: FloatArray) -> FloatArray:
    """Scale each row to unit length; a zero row stays zero."""
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(points, axis=1, keepdims=True)
    lengths = norms[:, 0].astype(np.float64)  # points may be float32
    odd = ~((lengths > _SMALL) & (lengths < _LARGE))
    if odd.any():  # squares of such numbers overflow or underflow
        points = points.copy()
        points[odd] = np.ldexp(points[odd], -_exponents(points[odd], axis=1))
        norms[odd] = np.linalg.norm(points[odd], axis=1, keepdims=True)
    return points / np.where(norms > 0, norms, 1.0)


def _exponents(points: FloatArray, axis: int | None) -> NDArray[np.int32]:
    """The binary exponent of the largest number, of each row or of all: scaling by it is exact."""
    return np.asarray(np.frexp(np.abs(points).max(axis=axis, keepdims=True))[1], dtype=np.int32)


def classical_scaling(kernel: FloatArray, similarities: bool = False) -> tuple[FloatArray, FloatArray]:
    """(n, d) points with these distances (or inner products), and all eigenvalues, in descending order.

    This is classical multidimensional scaling (Torgerson 1952); the axis of largest variance comes first. Eigenvalues
    that are not positive, which no points can have, are left out; d is at least 1.

    >>> points, _ = classical_scaling(np.array([[0.0, 3.0], [3.0, 0.0]]))
    >>> points.shape, round(float(np.linalg.norm(points[0] - points[1])), 9)
    ((2, 1), 3.0)
    """
    matrix = (kernel + kernel.T) / 2
    if not similarities:
        matrix = centred(-0.5 * matrix**2)
    values, vectors = (array[..., ::-1] for array in np.linalg.eigh(matrix))
    count = int((values > 1e-12 * max(float(np.abs(values).max(initial=0.0)), 1e-300)).sum())
    points = vectors[:, :count] * np.sqrt(values[:count]) if count else np.zeros((len(kernel), 1))
    return np.ascontiguousarray(points), values
