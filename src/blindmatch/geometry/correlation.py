"""The agreement of two sets about the relations between their items."""

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


def agreement(kernels: tuple[FloatArray, FloatArray], partners: IntArray) -> float | None:
    """The agreement of two sets under a match: the correlation of the relations on one side with those on the other.

    `partners` has the target of each source, -1 for none. It is 1 if the relations are the same up to scale, and about
    0 for a random match. None for fewer than three pairs, or where one side is constant.
    """
    rows = np.flatnonzero(partners >= 0)
    if len(rows) < 3:
        return None
    off = ~np.eye(len(rows), dtype=bool)  # what an item is to itself does not count
    K, G = kernels
    return correlation(K[np.ix_(rows, rows)][off], G[np.ix_(partners[rows], partners[rows])][off])


def centred_agreement(kernels: tuple[FloatArray, FloatArray], partners: IntArray) -> float | None:
    """The agreement of what is left of the relations without the mean of each item: outliers alone give none.

    None for fewer than four pairs, or where one side is constant.
    """
    rows = np.flatnonzero(partners >= 0)
    if len(rows) < 4:
        return None
    both = [kernel[np.ix_(items, items)] for kernel, items in zip(kernels, (rows, partners[rows]), strict=True)]
    return agreement((_without_means(both[0]), _without_means(both[1])), np.arange(len(rows)))


def _without_means(kernel: FloatArray) -> FloatArray:
    """The relations less the part that each item has in common with all others; what an item is to itself is 0."""
    n = len(kernel)
    off = kernel - np.diag(np.diag(kernel))
    own = off.sum(axis=1) / (n - 2)
    left = off - own - own[:, None] + off.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(left, 0.0)
    return np.asarray(left)


def pair_agreement(kernels: tuple[FloatArray, FloatArray], partners: IntArray) -> FloatArray:
    """(n,) the same for the relations of each pair to all other pairs; nan where it is undefined, or without a partner.

    With fewer than four pairs it is nan as well: two relations always correlate perfectly.
    """
    rows = np.flatnonzero(partners >= 0)
    found = np.full(len(partners), np.nan)
    if len(rows) < 4:
        return found
    K, G = (kernel[np.ix_(items, items)] for kernel, items in zip(kernels, (rows, partners[rows]), strict=True))
    others = ~np.eye(len(rows), dtype=bool)
    for at, row in enumerate(rows):
        value = correlation(K[at][others[at]], G[at][others[at]])
        found[row] = np.nan if value is None else value
    return found
