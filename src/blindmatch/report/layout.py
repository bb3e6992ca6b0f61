"""Where things are drawn: items in the plane, rows of a matrix in an order that shows groups."""

from __future__ import annotations

import numpy as np

from blindmatch.geometry.kernels import classical_scaling
from blindmatch.validation import FloatArray, IntArray

_OPTIMAL_UP_TO = 150  # items: the best order of the leaves takes time n^3


def dissimilarity(kernel: FloatArray, similarity: bool) -> FloatArray:
    """Turn a kernel of either kind into dissimilarities: symmetric, and zero between the nearest two."""
    symmetric = (kernel + kernel.T) / (-2.0 if similarity else 2.0)
    result = symmetric - symmetric[~np.eye(len(kernel), dtype=bool)].min()
    np.fill_diagonal(result, 0.0)
    return np.asarray(result)


def plane(distances: FloatArray) -> tuple[FloatArray, float]:
    """(n, 2) points by classical scaling, and the share of the spread that two axes show.

    >>> points, share = plane(np.array([[0.0, 3, 4], [3, 0, 5], [4, 5, 0]]))
    >>> round(float(np.linalg.norm(points[1] - points[2])), 6), round(share, 6)
    (5.0, 1.0)
    """
    points, values = classical_scaling(distances)
    flat = np.zeros((len(distances), 2))
    flat[:, : points.shape[1]] = points[:, :2]
    total = float(np.abs(values).sum())
    return flat, float(values[:2].clip(0.0).sum()) / total if total > 0 else 1.0


def laid_over(points: FloatArray, anchors: FloatArray, onto: FloatArray) -> FloatArray:
    """Rotate, mirror and scale `points` (Procrustes) so that `anchors`, a part of them, lie near `onto`.

    The scale is that of `onto`, not the one with the least error: a bad match must not shrink to a dot.

    >>> square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    >>> turned = 3 * square @ np.array([[0.0, 1], [-1, 0]]) + 5
    >>> bool(np.allclose(laid_over(turned, turned, square), square))
    True
    """
    from scipy.linalg import orthogonal_procrustes

    here, there = anchors.mean(axis=0), onto.mean(axis=0)
    a, b = anchors - here, onto - there
    size = np.linalg.norm(a)
    scale = np.linalg.norm(b) / size if size > 0 else 1.0
    return np.asarray(scale * (points - here) @ orthogonal_procrustes(a, b)[0] + there)


def similar_together(*matrices: FloatArray) -> IntArray:
    """An order of the rows that puts similar rows of all matrices next to each other."""
    from scipy.cluster.hierarchy import leaves_list, linkage  # takes a while to import, and only reports need it

    n = len(matrices[0])
    if n < 3:
        return np.arange(n)
    tree = linkage(np.hstack(matrices), "average", optimal_ordering=n <= _OPTIMAL_UP_TO)
    return np.asarray(leaves_list(tree), dtype=np.intp)
