"""The frame of a space: its centre and its principal axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from blindmatch.geometry.kernels import unit_rows
from blindmatch.geometry.views import Views
from blindmatch.validation import FloatArray, as_array

Points = NDArray[np.float32]  # many points on the unit sphere of the common space; float32 halves memory and time

_ROWS = 8192  # rows that are copied to float64 at a time
_FEW = 4  # dimensions for each point: from there on there are few points
_SOME = 2000  # rows that show how many axes are above the noise
_RANK = 1e-10  # axes with less than this share of the largest variance are rounding errors


def as_points(values: ArrayLike | Views, name: str, features: int | None = None) -> NDArray[Any]:
    """Return `values` as a two-dimensional array of real, finite numbers, without a copy if it is one already.

    Views are laid side by side.
    """
    points = as_array(values.columns if isinstance(values, Views) else values, name)
    if points.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {points.dtype}; expected real numbers")
    if points.ndim != 2:
        raise ValueError(f"{name} has shape {points.shape}; expected 2 axes")
    if points.size == 0:
        raise ValueError(f"{name} is empty: its shape is {points.shape}")
    if features is not None and points.shape[1] != features:
        raise ValueError(f"{name} has {points.shape[1]} features; the aligner was fitted with {features}")
    for start, rows in blocks(points):
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            i, j = bad[0]
            raise ValueError(f"{name} holds {rows[i, j]} at [{start + i}, {j}]; every value must be finite")
    return points


def blocks(points: NDArray[Any]) -> Iterator[tuple[int, FloatArray]]:
    """Yield blocks of rows in float64, each with the index of its first row."""
    for start in range(0, len(points), _ROWS):
        yield start, np.asarray(points[start : start + _ROWS], dtype=np.float64)


def by_blocks(points: NDArray[Any], width: int, change: Callable[[FloatArray], FloatArray]) -> Points:
    """What `change` makes of each block of rows: (n, width)."""
    found = np.empty((len(points), width), dtype=np.float32)
    for start, rows in blocks(points):
        found[start : start + len(rows)] = change(rows)
    return found


@dataclass(frozen=True, eq=False)
class Frame:
    """The centre and the principal axes of a space."""

    mean: FloatArray  # (d,) the centre
    axes: FloatArray  # (d, c) orthonormal columns, largest variance first
    spread: float  # root mean square distance of the points from the centre, along the axes

    @property
    def components(self) -> int:
        """The number of axes."""
        return int(self.axes.shape[1])

    def directions(self, points: NDArray[Any]) -> Points:
        """The direction of each point from the centre: (n, c) rows of unit length (zero for the centre itself)."""
        return by_blocks(points, self.components, lambda rows: unit_rows((rows - self.mean) @ self.axes))


def fit_frames(
    source: NDArray[Any],
    target: NDArray[Any],
    components: int,
    report: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> tuple[Frame, Frame]:
    """Frames of two sets with the same number of axes: `components`, or fewer if a set spans fewer dimensions."""
    sides = []
    for done, (points, name) in enumerate(((source, "X"), (target, "Y"))):
        report("reducing dimensions", done, 2)
        sides.append(moments(points, name, components))
    kept = min(components, *(len(variances) for _, variances, _ in sides))
    frames = (
        Frame(mean, np.ascontiguousarray(axes[:, :kept]), float(np.sqrt(variances[:kept].sum())))
        for mean, variances, axes in sides
    )
    return next(frames), next(frames)


def axes_above_noise(points: NDArray[Any]) -> int:
    """The number of axes along which points spread more than noise would (Gavish and Donoho 2014), from a sample.

    The threshold is a multiple of the median singular value, whatever the noise.
    """
    rows = np.asarray(points[:: math.ceil(len(points) / _SOME)], dtype=np.float32)
    values = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
    ratio = min(rows.shape) / max(rows.shape)
    return int((values > (0.56 * ratio**3 - 0.95 * ratio**2 + 1.82 * ratio + 1.43) * np.median(values)).sum())


def moments(points: NDArray[Any], name: str, most: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean, the variances along the `most` leading axes (largest first, no rounding errors), and these axes."""
    mean = np.zeros(points.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for _, rows in blocks(points):
            mean += rows.sum(axis=0) / len(points)
        few = _FEW * len(points) <= points.shape[1]
        variances, axes = (_by_points if few else _by_covariance)(points, mean, name, most)
    # If the points are far from the origin, the rounding error of the mean adds a variance too.
    noise = max(_RANK * float(variances[0]), (1e-14 * float(np.abs(mean).max())) ** 2)
    rank = int((variances > noise).sum())
    if rank < 2:
        raise ValueError(f"{name} spans {rank} dimensions; at least 2 are needed to tell directions apart")
    return mean, variances[:rank], axes[:, :rank]


def _by_points(points: NDArray[Any], mean: FloatArray, name: str, most: int) -> tuple[FloatArray, FloatArray]:
    """The variances, largest first, and the axes of few points in many dimensions: O(n^2 d) time instead of O(d^3)."""
    centred = points.astype(np.float64) - mean
    _refuse_overflow(np.square(centred).sum(), name)
    _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    return np.square(lengths[:most]) / len(points), axes[:most].T


def _by_covariance(points: NDArray[Any], mean: FloatArray, name: str, most: int) -> tuple[FloatArray, FloatArray]:
    """The same of many points, which are read block by block."""
    covariance = np.zeros((points.shape[1], points.shape[1]))
    for _, rows in blocks(points):
        centred = rows - mean
        covariance += centred.T @ centred
    _refuse_overflow(covariance, name)
    size = len(covariance)
    # All eigenvectors take two to three times as long as the leading ones.
    leading = (max(0, size - most), size - 1)
    variances, axes = eigh(covariance / len(points), subset_by_index=leading, overwrite_a=True, check_finite=False)
    return variances[::-1], axes[:, ::-1]


def _refuse_overflow(squares: FloatArray, name: str) -> None:
    if not np.isfinite(squares).all():
        raise ValueError(f"{name} holds numbers so large that their squares overflow")
