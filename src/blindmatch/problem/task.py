"""What is matched: two sets, how they are compared, and what is known about the pairs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.geometry.columns import ColumnScaling, warn_of_units
from blindmatch.geometry.correlation import agreement
from blindmatch.geometry.metrics import Metric
from blindmatch.geometry.scaling import classical_scaling
from blindmatch.problem.distortion import Distortion, Kernels, as_sides
from blindmatch.problem.distortions import as_distortion
from blindmatch.problem.hints import Hints
from blindmatch.problem.qap import QAP
from blindmatch.validation import FloatArray, IntArray

_SAME_KERNEL = 0.8  # correlation of a kernel with that of the points which scaling finds for it

Pairs = Iterable[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Task:
    """Two sets to match. ``Task.of`` makes one from the arguments of ``bm.match``.

    Attributes
    ----------
    sides
        The embeddings of sources (n, d) and targets (m, e); their kernels, (n, n) and (m, m), if `precomputed`.
    distortion
        How relations inside one set are compared with relations inside the other.
    hints
        Known pairs, forbidden pairs, similarities, and the price of unmatched items.
    precomputed
        Whether `sides` holds kernels.
    scalings
        How the columns of each side were scaled; None if they were not.
    source_names, target_names
        What the items are called; None if they have no names.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> task = bm.Task.of(X, X[[3, 1, 0, 2]], known_pairs=[(0, 2)])
    >>> result = bm.match(task, rng=0)
    >>> result.permutation.tolist(), bool(np.isclose(bm.verify(task.problem, result.certificate), result.lower_bound))
    ([2, 1, 3, 0], True)
    """

    sides: tuple[FloatArray, FloatArray]
    distortion: Distortion
    hints: Hints
    precomputed: bool = False
    scalings: tuple[ColumnScaling, ColumnScaling] | None = None
    source_names: tuple[str, ...] | None = None
    target_names: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        source: ArrayLike | None = None,
        target: ArrayLike | None = None,
        *,
        kernels: Kernels | None = None,
        distortion: str | Distortion = "gw",
        standardize: bool = True,
        scale: str = "none",
        metric: str | tuple[str, str] = "euclidean",
        neighbors: int | tuple[int, int] | None = None,
        known_pairs: Pairs = (),
        forbidden_pairs: Pairs | ArrayLike = (),
        similarity: ArrayLike | None = None,
        similarity_weight: float = 1.0,
        unmatched_cost: float | None = None,
        max_unmatched: int | None = None,
        source_names: Sequence[str] | None = None,
        target_names: Sequence[str] | None = None,
    ) -> Task:
        """Check the arguments, which are those of ``bm.match``, and the names of the items."""
        chosen = as_distortion(distortion, standardize, metric, neighbors)
        sides = as_sides(source, target, kernels, chosen.metrics)
        scalings = _scalings(sides, scale, kernels is not None)
        if scalings is not None:
            sides = scalings[0].transform(sides[0]), scalings[1].transform(sides[1])
        hints = Hints.of(
            (len(sides[0]), len(sides[1])),
            known_pairs=known_pairs,
            forbidden_pairs=forbidden_pairs,
            similarity=similarity,
            similarity_weight=similarity_weight,
            unmatched_cost=unmatched_cost,
            max_unmatched=max_unmatched,
        )
        names = [None if given is None else tuple(given) for given in (source_names, target_names)]
        for given, side, which in zip(names, sides, ("source_names", "target_names"), strict=True):
            if given is not None and len(given) != len(side):
                raise ValueError(f"{which} has {len(given)} items; expected {len(side)}")
        return cls(sides, chosen, hints, kernels is not None, scalings, *names)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many sources and targets there are."""
        return self.hints.sizes

    def warn_of_units(self, stacklevel: int = 2) -> None:
        """Warn if one column of a side outweighs the others, and no scale was chosen."""
        if not self.precomputed and self.scalings is None:
            warn_of_units(zip(("source", "target"), self.sides, strict=True), stacklevel + 1)

    @cached_property
    def relations(self) -> tuple[FloatArray, FloatArray]:
        """Both kernels as they are, each on its own scale. They are computed once."""
        return self.sides if self.precomputed else self.distortion.kernels_of(*self.sides)

    @cached_property
    def kernels(self) -> tuple[FloatArray, FloatArray]:
        """Both kernels on their common scale: what is compared. They are computed once."""
        return self.distortion.scaled(self.relations[0]), self.distortion.scaled(self.relations[1])

    @property
    def euclidean(self) -> bool:
        """Whether the relations are Euclidean distances or inner products of embeddings, and nothing else is known."""
        return not self.precomputed and self.distortion.metrics == (Metric(), Metric())

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes about the relations: that a graph of neighbours was not connected and had to be joined."""
        notes = []
        for name, side, metric in zip(("source", "target"), self.sides, self.distortion.metrics, strict=True):
            if metric.path and not self.precomputed:
                parts = metric.components(replace(metric, path="").of_points(self.distortion.prepared(side)))
                if parts > 1:
                    notes.append(f"{name}: the graph of nearest neighbours had {parts} parts, joined by shortest links")
        return tuple(notes)

    @cached_property
    def points(self) -> tuple[FloatArray, FloatArray]:
        """Points with these kernels: the embeddings, or points that multidimensional scaling finds for kernels."""
        source, target = self.sides
        if self.precomputed:
            similar = self.distortion.similarities
            return classical_scaling(source, similar)[0], classical_scaling(target, similar)[0]
        return self.distortion.prepared(source), self.distortion.prepared(target)

    @cached_property
    def has_points(self) -> bool:
        """Whether there are points with these kernels. Inner products given as distances, for example, have none."""
        if not self.precomputed:
            return True
        pairs = [(self.kernels[side], self.kernel_of(self.points[side], side)) for side in (0, 1)]
        alike = [agreement(pair, np.arange(len(pair[0]))) for pair in pairs]
        return all(value is not None and value > _SAME_KERNEL for value in alike)

    @cached_property
    def problem(self) -> QAP:
        """The assignment problem in which as many items as allowed can stay unmatched."""
        return self.problem_with()

    def problem_with(
        self, source: FloatArray | None = None, target: FloatArray | None = None, *, dummies: int | None = None
    ) -> QAP:
        """The assignment problem with other points on one side or both, or with fewer dummies."""
        K = self.kernels[0] if source is None else self.kernel_of(source, 0)
        G = self.kernels[1] if target is None else self.kernel_of(target, 1)
        return self.hints.problem(self.distortion, K, G, dummies)

    def kernel_of(self, points: FloatArray, side: int) -> FloatArray:
        """The kernel of points of the source (0) or the target (1), on the scale of `kernels`."""
        # The points of a precomputed kernel were made to have these relations: their own are Euclidean.
        own = replace(self.distortion, metric="euclidean", neighbors=None) if self.precomputed else self.distortion
        return self.distortion.scaled(own.kernel(self.distortion.prepared(points), side))

    def enough_dummies(self, cost: float = 0.0, scale: float = 0.0) -> int:
        """How many dummies are enough if a match of this cost is known; `scale` is ``QAP.scale``."""
        return self.hints.enough_dummies(self.distortion, cost, scale)

    def of_size(self, size: int) -> tuple[QAP, float]:
        """The problem of `size` items a side, and the least cost of any match that it leaves out."""
        dummies = min(max(size - max(self.sizes), 0), self.hints.max_unmatched)
        problem = self.problem_with(dummies=dummies)
        return problem, self.hints.cost_beyond(self.distortion, dummies, problem.scale)

    def reduced(self, permutation: IntArray) -> IntArray:
        """A permutation of items and dummies as the partner of each source, -1 if that is a dummy."""
        n, m = self.sizes
        partners = permutation[:n].copy()
        partners[partners >= m] = -1
        return partners

    def completed(self, partners: IntArray, name: str = "result") -> IntArray:
        """The partner of each source (-1 for none) as a permutation of the items and dummies of `problem`."""
        full = with_dummies(partners, self.sizes[1], self.problem.n)
        if full is None:
            alone, most = int((partners < 0).sum()), self.problem.n - self.sizes[1]
            raise ValueError(f"{name} leaves {alone} sources unmatched; with these arguments at most {most} can be")
        return full


def _scalings(
    sides: tuple[FloatArray, FloatArray], scale: str, precomputed: bool
) -> tuple[ColumnScaling, ColumnScaling] | None:
    found = ColumnScaling.pair(*sides, scale)
    if scale == "none":
        return None
    if precomputed:
        raise ValueError(f"scale={scale!r} is for the columns of embeddings; kernels have none")
    return found


def with_dummies(partners: Sequence[int] | IntArray, m: int, size: int) -> IntArray | None:
    """Partners among m targets (-1 for none) as a permutation of `size` items and dummies; None if there is none.

    >>> with_dummies([1, -1], 2, 3).tolist()
    [1, 2, 0]
    """
    full = np.full(size, -1, dtype=np.intp)
    full[: len(partners)] = partners
    alone, used = np.flatnonzero(full[: len(partners)] < 0), full[full >= 0]
    if len(alone) > size - m or len(np.unique(used)) < len(used):
        return None
    full[alone] = np.arange(m, m + len(alone))  # each dummy is as good as the others
    full[len(partners) :] = np.setdiff1d(np.arange(size), full)
    return full


def as_task(source: ArrayLike | Task | None, target: ArrayLike | None, **options: Any) -> Task:
    """A task from the arguments of ``bm.match``; a task in place of the source is returned as it is."""
    if not isinstance(source, Task):
        return Task.of(source, target, **options)
    for name in given(target=target, **options):
        raise ValueError(f"{name} is given together with a Task, which already has it; pass one or the other")
    return source


def given(**options: Any) -> list[str]:
    """The names of those arguments of ``Task.of`` that differ from their defaults.

    >>> given(distortion="cka", known_pairs=(), similarity_weight=1.0)
    ['distortion']
    """
    defaults = {name: parameter.default for name, parameter in inspect.signature(Task.of).parameters.items()}
    return [
        name
        for name, value in options.items()
        if value is not defaults[name] and not (isinstance(value, str | int | float) and value == defaults[name])
    ]
