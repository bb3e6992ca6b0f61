"""The two sides of a task as they are given: arrays, or tables with names, text and missing cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from blindmatch.geometry.column_scaling import ColumnScaling
from blindmatch.geometry.metrics import Metric, gower_distances
from blindmatch.io.embeddings import Embeddings, as_embeddings, with_medians
from blindmatch.problem.distortion import Distortion
from blindmatch.validation import FloatArray

GOWER = "gower"
_SIDES = ("source", "target")


@dataclass(frozen=True, eq=False)
class GivenSides:
    """Both sides as they were read. Without sides there are kernels, and nothing to read."""

    sides: tuple[Embeddings | None, Embeddings | None]
    notes: tuple[str, ...]  # what the reader decided, for the user
    scale: str
    names_of_metrics: tuple[str, str]

    @classmethod
    def read(cls, source: Any, target: Any, kernels: Any, scale: str, metric: Any, missing: str | None) -> GivenSides:
        """Read both sides; what the reader left out becomes a note, unless the caller has read them already."""
        metrics = tuple(metric) if isinstance(metric, tuple | list) and len(metric) == 2 else (metric, metric)
        if kernels is not None and (GOWER in metrics or missing is not None):
            argument = f"missing={missing!r}" if missing is not None else "metric='gower'"
            raise ValueError(f"{argument} is for tables; kernels are relations already")
        sides, notes = [], []
        for name, given, how in zip(_SIDES, (source, target), metrics, strict=True):
            # Gower distances need no others for what is missing.
            rule = "distance" if how == GOWER and missing is None else missing
            read = None if given is None else as_embeddings(given, name, missing=rule, categories=how == GOWER)
            sides.append(read)
            if read is not None and not isinstance(given, Embeddings):
                notes += [f"{name}: left out {', '.join(read.ignored)}"] if read.ignored else []
                notes += [f"{name}: {read.gaps}"] if read.gaps else []
        return cls((sides[0], sides[1]), tuple(notes), scale, (metrics[0], metrics[1]))

    def both(self, what: str) -> tuple[Any, Any]:
        """An attribute of both sides: the values, the names of the items or the titles of the columns."""
        one, other = (None if side is None else getattr(side, what) for side in self.sides)
        return one, other

    @property
    def metric(self) -> Any:
        """The metrics that points have: Gower distances are relations."""
        one, other = ("euclidean" if name == GOWER else name for name in self.names_of_metrics)
        return one if one == other else (one, other)

    @property
    def incomplete(self) -> bool:
        """Whether a side is not a set of points: it has missing cells, or text."""
        given = [side for side in self.sides if side is not None]
        return GOWER in self.names_of_metrics or any(np.isnan(side.values).any() for side in given)

    @cached_property
    def scalings(self) -> tuple[ColumnScaling, ColumnScaling]:
        """How the columns of both sides are scaled before relations are measured."""
        source, target = (with_medians(side.values) for side in self.sides if side is not None)
        return ColumnScaling.pair(source, target, self.scale)

    @property
    def scale_notes(self) -> tuple[str, ...]:
        """The same in words, if a scale was asked for."""
        each = zip(_SIDES, self.scalings, self.both("columns"), strict=True)
        return () if self.scale == "none" else tuple(f"{name}: scaled: {how.described(of)}" for name, how, of in each)

    def relations(self, distortion: Distortion) -> tuple[FloatArray, FloatArray]:
        """The relations of both sides, each by its metric, of columns on the scale that was asked for."""
        from sklearn.metrics.pairwise import nan_euclidean_distances  # takes a second to import

        found = []
        for at, side in enumerate(side for side in self.sides if side is not None):
            points, metric = self.scalings[at].transform(side.values), distortion.metrics[at]
            if self.names_of_metrics[at] == GOWER:
                kernel = gower_distances(points, side.categories)
            elif metric == Metric():
                kernel = np.asarray(nan_euclidean_distances(points))
            elif np.isnan(points).any():
                raise ValueError(f"missing='distance' measures Euclidean distances; metric={metric.base!r} is given")
            else:
                kernel = metric.of_points(points)
            if np.isnan(kernel).any():
                i, k = np.argwhere(np.isnan(kernel))[0].tolist()
                raise ValueError(f"{_SIDES[at]}: rows {i} and {k} have no filled cell in common; leave one of them out")
            np.fill_diagonal(kernel, 0.0)
            found.append(-0.5 * kernel**2 if distortion.similarities else kernel)
        return found[0], found[1]
