"""Points of two spaces along their own principal axes: what a match by rotation works on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.alignment.frame import Points, blocks, by_blocks, moments
from blindmatch.alignment.rotation import unit
from blindmatch.geometry.kernels import centred, classical_scaling, unit_rows
from blindmatch.validation import FloatArray

_MOST, _LEAST, _POINTS = 256, 32, 4  # axes: one for 4 points, but within these limits
_DIRECT = 600  # items from which only the leading axes are computed
_POWERS, _SPARE = 4, 10  # of that computation: products with the matrix, and vectors beyond those wanted


@dataclass(frozen=True, eq=False)
class Coordinates:
    """One set of points, centred."""

    points: Points  # (n, c) along the principal axes, those of the largest variance first
    spreads: FloatArray  # (c,) the norms of its columns

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def directions(self) -> Points:
        """(n, c) rows of unit length."""
        return unit(self.points)


def coordinates(source: NDArray[Any], target: NDArray[Any], *, cosine: bool) -> tuple[Coordinates, Coordinates]:
    """Both sides, with equally many axes: at most one for 4 points, between 32 and 256.

    With `cosine`, the points are scaled to unit length before and after they are centred: what models of text or images
    learn is mostly in the directions.
    """
    sides = [_directed(side) if cosine else _centred(side) for side in (source, target)]
    most = _most_axes(source, target)
    axes = [moments(side, name, most) for side, name in zip(sides, ("source", "target"), strict=True)]
    kept = min(most, *(len(variances) for _, variances, _ in axes))
    first, second = (_turned(side, *found, kept) for side, found in zip(sides, axes, strict=True))
    return first, second


def _most_axes(source: NDArray[Any], target: NDArray[Any]) -> int:
    return min(_MOST, max(_LEAST, min(len(source), len(target)) // _POINTS))


def _directed(points: NDArray[Any]) -> Points:
    """Directions from their mean. Differences are taken in float64: points may be far from the origin."""
    mean = sum(unit_rows(rows).sum(axis=0) for _, rows in blocks(points)) / len(points)
    return by_blocks(points, points.shape[1], lambda rows: unit_rows(unit_rows(rows) - mean))


def _centred(points: NDArray[Any]) -> Points:
    """The points less their mean, in units of the largest difference: what float32 can hold."""
    mean = sum(rows.mean(axis=0) * (len(rows) / len(points)) for _, rows in blocks(points))
    largest = max(float(np.abs(rows - mean).max()) for _, rows in blocks(points)) or 1.0
    return by_blocks(points, points.shape[1], lambda rows: (rows - mean) / largest)


def _turned(points: Points, mean: FloatArray, variances: FloatArray, axes: FloatArray, kept: int) -> Coordinates:
    found = by_blocks(points, kept, lambda rows: (rows - mean) @ axes[:, :kept])
    spreads = np.sqrt(len(points) * variances[:kept])
    scale = float(np.sqrt(len(points)) / np.linalg.norm(spreads))  # a mean square length of one
    return Coordinates(found * np.float32(scale), spreads * scale)


def kernel_coordinates(
    source: FloatArray, target: FloatArray, *, similarities: bool
) -> tuple[Coordinates, Coordinates]:
    """Both sides from their relations, by classical scaling: distances (or inner products) to points.

    Only the leading axes are computed where there are many items.
    """
    wanted = _most_axes(source, target)
    return coordinates(*(scaled_points(side, wanted, similarities) for side in (source, target)), cosine=False)


def scaled_points(kernel: FloatArray, components: int, similarities: bool) -> FloatArray:
    """At most `components` coordinates of each item, whose distances (or inner products) are about those given.

    >>> points = scaled_points(np.array([[0.0, 3.0, 1.0], [3.0, 0.0, 2.0], [1.0, 2.0, 0.0]]), 2, similarities=False)
    >>> round(float(np.linalg.norm(points[0] - points[1])), 9)
    3.0
    """
    if len(kernel) <= _DIRECT:
        return classical_scaling(kernel, similarities)[0][:, :components]
    matrix = (kernel + kernel.T) / 2
    matrix = centred(matrix if similarities else -0.5 * matrix**2)
    values, vectors = _leading(matrix, min(components, len(matrix) // 4))
    kept = values > 1e-12 * max(float(np.abs(values).max()), 1e-300)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept])) if kept.any() else np.zeros((len(kernel), 1))


def _leading(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """About the largest eigenvalues of a symmetric matrix and their vectors, by subspace iteration.

    The first vectors are the same in every run, and so is the result.
    """
    basis = np.random.default_rng(0).normal(size=(len(matrix), count + _SPARE))
    for _ in range(_POWERS):
        basis = np.linalg.qr(matrix @ basis)[0]
    values, inner = np.linalg.eigh(basis.T @ (matrix @ basis))
    return values[::-1][:count], (basis @ inner[:, ::-1])[:, :count]
