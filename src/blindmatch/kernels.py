"""Embeddings to n x n matrices of relations inside one set (the paper's Sec. 3 and its first appendix)."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import pairwise_distances

from blindmatch.validation import FloatArray


def distances(points: FloatArray) -> FloatArray:
    """Euclidean distances, exactly symmetric with an exact zero diagonal."""
    matrix = pairwise_distances(points, metric="euclidean")
    # The fast formula |x|^2 + |y|^2 - 2xy loses half of the digits where points nearly coincide.
    near = np.argwhere(np.triu(matrix < 1e-6 * max(matrix.max(), np.finfo(float).tiny), 1))
    for i, j in near:
        matrix[i, j] = np.linalg.norm(points[i] - points[j])
    upper = np.triu(matrix, 1)
    return np.asarray(upper + upper.T)


def inner_products(points: FloatArray) -> FloatArray:
    """The linear kernel X X^T."""
    matrix = points @ points.T
    return np.asarray((matrix + matrix.T) / 2)


def centred(kernel: FloatArray) -> FloatArray:
    """H K H with H = I - 11^T/n; both sides, so that it stays the same kernel under any reordering."""
    half = kernel - kernel.mean(axis=0, keepdims=True)
    return np.asarray(half - half.mean(axis=1, keepdims=True))


def cka_kernel(kernel: FloatArray) -> FloatArray:
    """Centre on both sides and scale to unit Frobenius norm: the inner product of two of them is their CKA."""
    matrix = centred(kernel)
    norm = np.linalg.norm(matrix)
    return matrix / norm if norm > 0 else matrix


def knn_kernel(similarity: FloatArray, k: int) -> FloatArray:
    """Indicator of the k most similar others of each row, over sqrt(n k); ties go to the lower index."""
    n = len(similarity)
    if not 1 <= k <= n - 1:
        raise ValueError(f"k={k}; expected 1 <= k <= {n - 1} for {n} points")
    others = similarity.copy()
    np.fill_diagonal(others, -np.inf)
    nearest = np.argsort(-others, axis=1, kind="stable")[:, :k]
    kernel = np.zeros((n, n))
    np.put_along_axis(kernel, nearest, 1.0 / np.sqrt(n * k), axis=1)
    return kernel


def standardized(kernel: FloatArray) -> FloatArray:
    """Off-diagonal mean 0 and standard deviation 1, diagonal 0; a constant kernel becomes all zeros."""
    n = len(kernel)
    if n < 2:
        return np.zeros_like(kernel)
    off = ~np.eye(n, dtype=bool)
    values = kernel[off]
    deviation = values.std()
    result = np.zeros_like(kernel)
    # Rounding leaves a tiny deviation in constant kernels: dividing by it would make noise out of nothing.
    if deviation > 1e-12 * np.abs(values).max(initial=0.0):
        result[off] = (values - values.mean()) / deviation
    return result


def unit_rows(points: FloatArray) -> FloatArray:
    """Scale each row to unit length; a zero row stays zero."""
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return points / np.where(norms > 0, norms, 1.0)
