"""The metrics that a map between coordinates can have: each is the Euclidean distance of transformed points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.alignment.frame import blocks
from blindmatch.errors import shown, unknown_name
from blindmatch.geometry.metrics import METRICS
from blindmatch.validation import FloatArray

COORDINATES = ("euclidean", "cosine", "correlation")
_CONSTANT = 1e-12  # relative deviations below this are rounding errors

Metrics = tuple[str, str]


def as_coordinates(metric: object) -> Metrics:
    """The metric of each side, from one name for both or a pair of names."""
    names = metric if isinstance(metric, tuple | list) else (metric, metric)
    if len(names) != 2:
        raise ValueError(f"metric has {len(names)} items; expected one, or a pair (source, target)")
    for name in names:
        if isinstance(name, str) and name in COORDINATES:
            continue
        if isinstance(name, str) and name.partition(":")[0] not in (*METRICS, "precomputed", "auto"):
            raise unknown_name("metric", name, COORDINATES)
        raise ValueError(
            f"metric={shown(name)}; an aligner rotates coordinates, so it takes {', '.join(COORDINATES)}. "
            "For another metric use bm.match, and bm.project for new points"
        )
    return names[0], names[1]


def embedded(points: NDArray[Any], metric: str, name: str) -> NDArray[Any]:
    """Points with the distances of a metric: as they are, as unit rows (cosine), or as centred unit rows (correlation).

    >>> embedded(np.array([[3.0, 4.0]]), "cosine", "X").tolist()
    [[0.6, 0.8]]
    """
    if metric == "euclidean":
        return points
    found = np.empty(points.shape, dtype=np.result_type(points.dtype, np.float32))
    for start, rows in blocks(points):
        found[start : start + len(rows)] = _unit(rows, metric, name, start)
    return found


def _unit(rows: FloatArray, metric: str, name: str, start: int) -> FloatArray:
    sizes = np.abs(rows).max(axis=1, keepdims=True)
    small = rows / np.where(sizes > 0, sizes, 1.0)  # squares of huge or tiny numbers would overflow or underflow
    if metric == "correlation":
        small -= small.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(small, axis=1, keepdims=True)
    lost = np.flatnonzero(lengths <= _CONSTANT)
    if len(lost):
        kind = "zeros" if metric == "cosine" else "equal numbers"
        raise ValueError(f"{name} holds only {kind} in row {start + lost[0]}, which has no {metric} to other rows")
    return np.asarray(small / lengths)
