"""How far two sets agree about the relations between their items."""

from __future__ import annotations

import numpy as np

from blindmatch.validation import FloatArray, IntArray


def correlation(a: FloatArray, b: FloatArray) -> float | None:
    """Pearson's correlation; None where one side is constant.

    >>> a = np.array([1.0, 2.0, 4.0])
    >>> round(correlation(a, 3 * a + 1), 9), correlation(a, np.ones(3))
    (1.0, None)
    """
    x, y = a - a.mean(), b - b.mean()
    size = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / size if size > 1e-12 * len(a) * float(np.abs(a).max() * np.abs(b).max()) else None


def kernel_correlation(kernels: tuple[FloatArray, FloatArray], rows: IntArray, columns: IntArray) -> float | None:
    """Correlation of the relations among `rows` of one set with those among their partners, `columns` of the other.

    What an item is to itself does not count. None for fewer than three pairs, or where one side is constant.
    """
    if len(rows) < 3:
        return None
    off = ~np.eye(len(rows), dtype=bool)
    K, G = kernels
    return correlation(K[np.ix_(rows, rows)][off], G[np.ix_(columns, columns)][off])
