"""The map between two spaces, and its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.alignment.frame import Frame, Points
from blindmatch.io.files import read_npz, write_atomically
from blindmatch.validation import FloatArray, as_floats, positive

_KIND = "blindmatch-alignment-1"


@dataclass(frozen=True, eq=False)
class SpaceMap:
    """A similarity transform between the main parts of two spaces: shift, rotation, one scale.

    Attributes
    ----------
    source, target
        The frames of the two spaces, with the same number of axes.
    rotation
        (c, c) orthogonal: directions of the source times `rotation` are directions of the target.
    """

    source: Frame
    target: Frame
    rotation: Points

    def forward(self, points: NDArray[Any]) -> FloatArray:
        """Map source points to the target's space."""
        return _carried(points, self.source, self.target, self.rotation.astype(np.float64))

    def backward(self, points: NDArray[Any]) -> FloatArray:
        """Map target points to the source's space."""
        return _carried(points, self.target, self.source, self.rotation.T.astype(np.float64))

    def directions(self, points: NDArray[Any]) -> Points:
        """Directions of source points in the target's frame."""
        return np.asarray(self.source.directions(points) @ self.rotation)

    def save(self, path: str | Path, **more: NDArray[Any]) -> None:
        """Write an ``.npz`` file atomically; nothing in it is pickled."""
        arrays: dict[str, Any] = {"kind": np.array(_KIND), "rotation": self.rotation, **more}
        for side, frame in (("source", self.source), ("target", self.target)):
            arrays |= {f"{side}_mean": frame.mean, f"{side}_axes": frame.axes, f"{side}_spread": np.array(frame.spread)}
        write_atomically(path, lambda file: np.savez(file, **arrays))

    @classmethod
    def load(cls, path: str | Path) -> tuple[SpaceMap, dict[str, NDArray[Any]]]:
        """Read a file written by `save`: the map, and the additional arrays in it."""
        arrays = read_npz(path)
        if str(arrays.pop("kind", "")) != _KIND:
            found = ", ".join(arrays) or "nothing"
            raise ValueError(f"{path}: not an alignment; it holds {found}")
        try:
            source, target = (_frame(arrays, side) for side in ("source", "target"))
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
        return cls(source, target, rotation), arrays


def _frame(arrays: dict[str, NDArray[Any]], side: str) -> Frame:
    mean = as_floats(arrays.pop(f"{side}_mean"), f"{side}_mean", 1)
    axes = as_floats(arrays.pop(f"{side}_axes"), f"{side}_axes")
    spread = float(as_floats(arrays.pop(f"{side}_spread"), f"{side}_spread", 0))
    if len(axes) != len(mean):
        raise ValueError(f"{side}_axes has shape {axes.shape}; expected {len(mean)} rows")
    return Frame(mean, axes, positive(spread, f"{side}_spread"))


def _carried(points: NDArray[Any], here: Frame, there: Frame, rotation: FloatArray) -> FloatArray:
    """Map points of one space to the other; the scale makes the spread of the two sets equal."""
    linear = here.axes @ rotation @ there.axes.T * (there.spread / here.spread)
    return np.asarray((np.asarray(points, dtype=np.float64) - here.mean) @ linear + there.mean)
