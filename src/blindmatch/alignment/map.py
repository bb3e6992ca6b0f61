"""The map between two spaces, the metrics that it can have, and its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.alignment.frame import Frame, Points, blocks
from blindmatch.errors import shown, unknown_name
from blindmatch.geometry.column_scaling import SCALES, ColumnScaling
from blindmatch.geometry.metrics import METRICS
from blindmatch.io.files import read_npz, write_atomically
from blindmatch.validation import FloatArray, as_floats, positive

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


_KIND = "blindmatch-alignment-1"
_SIDES = ("source", "target")
_PLAIN = ("euclidean", "euclidean")
_COLUMNS = ("logs", "robust", "centre", "spread")
Scalings = tuple[ColumnScaling, ColumnScaling]


@dataclass(frozen=True, eq=False)
class SpaceMap:
    """A similarity transform between the main parts of two spaces: shift, rotation, one scale."""

    source: Frame  # both frames have the same number of axes
    target: Frame
    rotation: Points  # (c, c) orthogonal: directions of the source times this are directions of the target
    scalings: Scalings | None = None  # how the columns of each side are scaled first; None if they are not
    metrics: Metrics = _PLAIN  # what is done next: nothing ("euclidean"), or to unit length ("cosine", "correlation")

    def forward(self, points: NDArray[Any]) -> FloatArray:
        """Map source points to the target's space."""
        found = _carried(self.prepared(points, 0), self.source, self.target, self.rotation.astype(np.float64))
        return found if self.scalings is None else self.scalings[1].inverse(found)

    def backward(self, points: NDArray[Any]) -> FloatArray:
        """Map target points to the source's space."""
        found = _carried(self.prepared(points, 1), self.target, self.source, self.rotation.T.astype(np.float64))
        return found if self.scalings is None else self.scalings[0].inverse(found)

    def directions(self, points: NDArray[Any]) -> Points:
        """Directions of source points in the target's frame."""
        return np.asarray(self.source.directions(self.prepared(points, 0)) @ self.rotation)

    def prepared(self, points: NDArray[Any], side: int, name: str | None = None) -> NDArray[Any]:
        """Points of the source (0) or the target (1) as their frame takes them; `name` is what errors call them."""
        scaled = points if self.scalings is None else self.scalings[side].transform(points.astype(np.float64))
        return embedded(scaled, self.metrics[side], name or "XY"[side])

    def save(self, path: str | Path, **more: NDArray[Any]) -> None:
        """Write an ``.npz`` file atomically; nothing in it is pickled."""
        arrays: dict[str, Any] = {"kind": np.array(_KIND), "rotation": self.rotation, **more}
        for side, frame in (("source", self.source), ("target", self.target)):
            arrays |= {f"{side}_mean": frame.mean, f"{side}_axes": frame.axes, f"{side}_spread": np.array(frame.spread)}
        for side, scaling in zip(_SIDES, self.scalings or (), strict=False):
            arrays |= {f"{side}_columns_{name}": np.array(value) for name, value in vars(scaling).items()}
        if self.metrics != _PLAIN:  # otherwise the file is one that older versions read
            arrays |= {f"{side}_metric": np.array(name) for side, name in zip(_SIDES, self.metrics, strict=True)}
        write_atomically(path, lambda file: np.savez(file, **arrays))

    @classmethod
    def load(cls, path: str | Path) -> tuple[SpaceMap, dict[str, NDArray[Any]]]:
        """Read a file written by `save`: the map, and the additional arrays in it."""
        arrays = read_npz(path)
        if str(arrays.pop("kind", "")) != _KIND:
            found = ", ".join(arrays) or "nothing"
            raise ValueError(f"{path}: not an alignment; it holds {found}")
        try:
            source, target = (_frame(arrays, side) for side in _SIDES)
            metrics = as_coordinates([str(arrays.pop(f"{side}_metric", "euclidean")) for side in _SIDES])
            scalings = None
            if "source_columns_scale" in arrays:
                scalings = _scaling(arrays, "source", source), _scaling(arrays, "target", target)
            rotation = as_floats(arrays.pop("rotation"), "rotation").astype(np.float32)
            size = len(rotation)
            if rotation.shape != (size, size) or not np.allclose(rotation @ rotation.T, np.eye(size), atol=1e-3):
                raise ValueError(f"rotation has shape {rotation.shape}; expected an orthogonal matrix")
            if not source.components == target.components == size:
                raise ValueError(f"frames of {source.components} and {target.components} axes, rotation of {size}")
        except KeyError as error:
            raise ValueError(f"{path}: it has no array {error}") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        return cls(source, target, rotation, scalings, metrics), arrays


def _frame(arrays: dict[str, NDArray[Any]], side: str) -> Frame:
    mean = as_floats(arrays.pop(f"{side}_mean"), f"{side}_mean", 1)
    axes = as_floats(arrays.pop(f"{side}_axes"), f"{side}_axes")
    spread = float(as_floats(arrays.pop(f"{side}_spread"), f"{side}_spread", 0))
    if len(axes) != len(mean):
        raise ValueError(f"{side}_axes has shape {axes.shape}; expected {len(mean)} rows")
    return Frame(mean, axes, positive(spread, f"{side}_spread"))


def _scaling(arrays: dict[str, NDArray[Any]], side: str, frame: Frame) -> ColumnScaling:
    scale = str(arrays.pop(f"{side}_columns_scale"))
    logs, robust, centre, spread = (arrays.pop(f"{side}_columns_{name}") for name in _COLUMNS)
    shape = frame.mean.shape
    if scale not in SCALES or any(flags.dtype != bool or flags.shape != shape for flags in (logs, robust)):
        raise ValueError(f"{side}_columns: expected a scale and {len(frame.mean)} flags")
    numbers = [as_floats(values, f"{side}_columns", 1) for values in (centre, spread)]
    if any(values.shape != shape for values in numbers) or not (numbers[1] > 0).all():
        raise ValueError(f"{side}_columns: expected {len(frame.mean)} centres, and spreads above 0")
    return ColumnScaling(scale, logs, robust, *numbers)


def _carried(points: NDArray[Any], here: Frame, there: Frame, rotation: FloatArray) -> FloatArray:
    """Map points of one space to the other; the scale makes the spread of the two sets equal."""
    linear = here.axes @ rotation @ there.axes.T * (there.spread / here.spread)
    return np.asarray((np.asarray(points, dtype=np.float64) - here.mean) @ linear + there.mean)
