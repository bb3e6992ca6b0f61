"""Rotated copies of points: plain ones, and those that keep clusters, which are found here."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage

from blindmatch.validation import FloatArray, IntArray

T = TypeVar("T")
Null = Callable[[np.random.Generator], FloatArray]
_REFERENCES = 20  # rotated copies that clusters and outliers are compared with
_TRIES = 100  # to draw members of all clusters at random; where clusters are many and small, that hardly ever happens


def copies(points: FloatArray, labels: IntArray) -> Null:
    """Rotated copies, whose clusters are rotated among each other and in themselves."""
    k, n = int(labels.max()) + 1, len(points)
    chances = (np.bincount(labels) + 1) / (n + k)
    centres = np.array([points[labels == c].mean(axis=0) for c in range(k)])
    middle = centres.mean(axis=0)
    between = complement(np.full((k, 1), k**-0.5))
    outer = between.T @ (centres - middle)
    inner = _within_basis(labels, k).T @ (points - centres[labels])

    # Clusters of one size keep their members: two sets of such clusters share what their design gave them.
    fixed = len(np.unique(np.bincount(labels))) == 1

    def draw(rng: np.random.Generator) -> FloatArray:
        fresh = labels if fixed else _members(n, chances, rng)
        moved = middle + between @ (orthogonal(k - 1, rng) @ outer)
        return np.asarray(moved[fresh] + _within_basis(fresh, k) @ (orthogonal(n - k, rng) @ inner))

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
    plain = copies(points, np.zeros(n, dtype=np.intp))

    def reference() -> FloatArray:
        copy = plain(rng)
        return _within(copy, linkage(copy, "ward"), most)

    others = np.array(references(reference, deadline))
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


def references(value: Callable[[], T], deadline: float = math.inf) -> list[T]:
    """The values of rotated copies; TimeoutError if the deadline comes before the last."""
    values = []
    for _ in range(_REFERENCES):
        if time.perf_counter() > deadline:
            raise TimeoutError
        values.append(value())
    return values


def _within_basis(labels: IntArray, k: int) -> FloatArray:
    """An orthonormal basis of the deviations from the centres of k clusters."""
    members = np.zeros((len(labels), k))
    members[np.arange(len(labels)), labels] = 1 / np.sqrt(np.bincount(labels, minlength=k)[labels])
    return complement(members)


def compact(points: FloatArray) -> FloatArray:
    """The same inner products in as few dimensions as there are points."""
    if points.shape[1] <= len(points):
        return points
    left, values, _ = np.linalg.svd(points, full_matrices=False)
    return np.asarray(left * values)


def complement(columns: FloatArray) -> FloatArray:
    """An orthonormal basis of what is orthogonal to orthonormal columns."""
    n, k = columns.shape
    return np.asarray(np.linalg.qr(columns, mode="complete")[0][:, k:]) if k < n else np.zeros((n, 0))


def orthogonal(size: int, rng: np.random.Generator) -> FloatArray:
    """A random orthogonal matrix, uniform (Haar)."""
    Q, R = np.linalg.qr(rng.standard_normal((size, size)))
    return np.asarray(Q * np.sign(np.diag(R)))
