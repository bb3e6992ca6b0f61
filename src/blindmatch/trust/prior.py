"""The share of right pairs to expect before looking at a match: stated, or counted on pairs that are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown
from blindmatch.problem.distortion import as_sides
from blindmatch.problem.known import FEWEST
from blindmatch.problem.task import Task
from blindmatch.trust.search import Part, search
from blindmatch.validation import FloatArray, IntArray

Prior = float | tuple[ArrayLike, ArrayLike]
_DRAWS = 20  # sets of known items to match


@dataclass(frozen=True)
class Count:
    """How many of the pairs of known items were right."""

    right: int
    pairs: int

    @property
    def share(self) -> float:
        """The share to expect: neither 0 nor 1, however few pairs there are (Jeffreys' prior)."""
        return (self.right + 0.5) / (self.pairs + 1)


@dataclass(frozen=True, eq=False)
class KnownPairs:
    """Other items of both spaces, with a known pairing: item i of one side is the partner of item i of the other.

    `sides` holds embeddings, scaled as those of the task, or kernels if the task has kernels.
    """

    sides: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, given: tuple[ArrayLike, ArrayLike], task: Task, name: str = "prior") -> KnownPairs:
        """Check that there are enough known items, and that they are of the task's two spaces."""
        if task.views != (None, None):
            raise ValueError(f"{name}: items with known partners cannot be counted with views; give the share itself")
        try:
            points, kernels = ((None, None), given) if task.precomputed else (given, None)
            sides = as_sides(points[0], points[1], kernels, task.distortion.metrics)
        except ValueError as error:
            raise ValueError(f"{name}, the items with known partners: {error}") from None
        sizes, least = [len(side) for side in sides], max(task.sizes)
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"{name} has {sizes[0]} sources and {sizes[1]} targets; item i must be the partner of item i"
            )
        if sizes[0] < least:
            raise ValueError(
                f"{name} has {sizes[0]} known pairs; expected at least {least}, as many as the match has items"
            )
        for side, own, which in zip(sides, task.sides, ("sources", "targets"), strict=True):
            if not task.precomputed and side.shape[1] != own.shape[1]:
                raise ValueError(
                    f"{name} has {which} of {side.shape[1]} dimensions; those of the match have {own.shape[1]}"
                )
        if task.scalings is not None:
            sides = task.scalings[0].transform(sides[0]), task.scalings[1].transform(sides[1])
        return cls(sides)

    def count(self, task: Task, part: Part) -> Count:
        """Match random sets of known items, as many and by the same relation as the task; count the right pairs.

        At least one set is matched, whatever the deadline is.
        """
        (n, m), known = task.sizes, len(self.sides[0])
        right = pairs = 0
        draws = _DRAWS if known > max(n, m) else 1
        for at in range(draws):
            chosen = part.rng.permutation(known)[: max(n, m)]
            sources, targets = chosen[:n], part.rng.permutation(chosen[:m])
            problem = self._drawn(task, sources, targets).problem
            found = search(problem, part if at else replace(part, deadline=np.inf))
            if found is None:
                break
            partners = task.reduced(found[0])
            matched = partners >= 0
            right += int((targets[partners[matched]] == sources[matched]).sum())
            pairs += int(matched.sum())
            part.progress((at + 1) / draws)
        if not pairs:
            raise ValueError(
                f"prior: none of {known} known pairs was matched at unmatched_cost={task.hints.unmatched_cost:g}"
            )
        return Count(right, pairs)

    def _drawn(self, task: Task, *chosen: IntArray) -> Task:
        """The task for some of the known items. Hints about single pairs do not apply to them."""
        sides = [
            side[np.ix_(rows, rows)] if task.precomputed else side[rows]
            for side, rows in zip(self.sides, chosen, strict=True)
        ]
        hints = replace(task.hints, known=(), forbidden=None, reward=None)
        return task.changed(sides=(sides[0], sides[1]), hints=hints)


def count_hidden(task: Task, part: Part) -> Count | None:
    """Hide some of the known pairs of other items among the items, match all, and count how many come back.

    The others stay known, and the match is larger than the real one: the share is a little too low. None if too few
    pairs are known to hide some, or if the deadline leaves no time.
    """
    known = task.known
    if known is None or known.count < 2 * FEWEST:
        return None
    (n, m), right, hidden = task.sizes, 0, 0
    size = max(1, min(known.count // 5, max(n, m)))
    for fold in np.array_split(part.rng.permutation(known.count), min(_DRAWS, known.count // size)):
        rest = np.setdiff1d(np.arange(known.count), fold)
        sides = zip(task.all_points, (n, m), strict=True)
        points = [np.concatenate([own[:count], own[count + fold]]) for own, count in sides]
        others = replace(known, given=(known.given[0][rest], known.given[1][rest]))
        sizes = n + len(fold), m + len(fold)
        hints = replace(task.hints, sizes=sizes, known=(), forbidden=None, reward=None, excess=None)
        found = search(task.changed(sides=(points[0], points[1]), hints=hints, known=others).problem, part)
        if found is None:
            break
        right += int((found[0][n : n + len(fold)] == m + np.arange(len(fold))).sum())
        hidden += len(fold)
        part.progress(min(1.0, hidden / known.count))
    return Count(right, hidden) if hidden else None


def as_prior(value: Prior | None, task: Task, name: str = "prior") -> float | KnownPairs | None:
    """A prior for the match of a task: None, a number between 0 and 1, or items whose partners are known."""
    if isinstance(value, tuple | list) and len(value) == 2:
        return KnownPairs.of((value[0], value[1]), task, name)
    return as_stated_prior(value, name, "a number above 0 and below 1, or two arrays")


def as_stated_prior(value: object, name: str, expected: str = "a number above 0 and below 1") -> float | None:
    """Return `value` if it is None or a number between 0 and 1."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating) or not 0 < value < 1:
        raise ValueError(f"{name}={shown(value)}; expected {expected}")
    return float(value)


def refuse_prior(prior: object, items: int, name: str = "prior") -> None:
    """Say that a large match has no use for a prior."""
    if prior is not None:
        why = "large matches have a confidence of their own"
        raise ValueError(f"{name}={shown(prior)} cannot be used for {items} items: {why}")
