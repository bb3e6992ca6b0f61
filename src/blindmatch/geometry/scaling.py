"""Points from a matrix of distances or of inner products."""

from __future__ import annotations

import numpy as np

from blindmatch.geometry.kernels import centred
from blindmatch.validation import FloatArray


def classical_scaling(kernel: FloatArray, similarities: bool = False) -> tuple[FloatArray, FloatArray]:
    """Classical multidimensional scaling (Torgerson 1952).

    Parameters
    ----------
    kernel
        (n, n) distances, or inner products.
    similarities
        Whether the kernel holds inner products.

    Returns
    -------
    points
        (n, d) points with these distances or inner products, the axis of largest variance first. Eigenvalues that
        are not positive, which no points can have, are left out; d is at least 1.
    eigenvalues
        (n,) all eigenvalues, in descending order.

    Examples
    --------
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
