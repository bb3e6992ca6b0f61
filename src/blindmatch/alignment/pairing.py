"""One-to-one matches of two sets of points by rotation: several starts, each learns by itself, then assignment."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from blindmatch.alignment.assign import Candidates, allowed, in_haste, one_to_one, renumbered
from blindmatch.alignment.coarse import by_axes, by_centres, by_signatures, by_signs
from blindmatch.alignment.coordinates import Coordinates
from blindmatch.alignment.crew import Crew, Ending
from blindmatch.alignment.frame import Points
from blindmatch.alignment.neighbours import nearest
from blindmatch.alignment.rotation import NO_PAIRS, Learned, LearningSchedule, Pairs, learn, procrustes, unit
from blindmatch.machine import one_blas_thread
from blindmatch.validation import IntArray

Step = Callable[[str, float], None]

# (kind of start, leading axes, share of similarities that the first rounds look at): cheap ones first
_STARTS = (
    ("signatures", 20, 1.0),
    ("axes", 10, 1.0),
    ("signatures", 10, 1.0),
    ("axes", 5, 1.0),
    ("signatures", 20, 0.1),
    ("axes", 20, 0.1),
    ("signs", 4, 1.0),
    ("signs", 5, 1.0),
    ("signatures", 40, 0.1),
    ("centres", 20, 1.0),
    ("centres", 32, 0.1),
)
_FEW, _SLOW = 300, ("centres", "signs")  # items for which these starts take longer than they are worth
_PROBES = 500  # sources whose nearest targets are compared between rotations
ALIKE = 0.3  # share of equal nearest targets from which two rotations count as the same
_ROUNDS = 6  # rounds of assignment and fit
_MOVED = 1e-3  # the rounds end when a smaller share of the pairs changes
_LEARNING = 0.6  # share of the remaining time for the starts
_KEPT = 3  # matches that are handed over where no start supports another


@dataclass(frozen=True, eq=False)
class Start:
    """What came of one start: a rotation, and the nearest targets of a few probes after it."""

    learned: Learned
    partners: IntArray


@dataclass(frozen=True, eq=False)
class Pairing:
    """A one-to-one match by a rotation."""

    partners: IntArray  # the target of each source; -1 for sources that are left over
    agreement: float = 0.0  # mean cosine of the pairs after the rotation
    support: int = 0  # how many other starts learned the same rotation by themselves


@dataclass(frozen=True, eq=False)
class Pairings:
    """Matches that were found, the best first; `ended` is what cut the search short, if anything."""

    found: tuple[Pairing, ...]
    starts: int
    ended: Literal["", "time_limit", "interrupted"] = ""


@dataclass(frozen=True, eq=False)
class Given:
    """What is known about the pairs: `anchors` are right, `barred` ((q, 2) rows and columns) must not be used."""

    anchors: Pairs = NO_PAIRS
    barred: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.intp))


def pairings(
    source: Coordinates,
    target: Coordinates,
    *,
    rng: np.random.Generator,
    given: Given | None = None,
    threads: int = 1,
    remaining: Callable[[], float] = lambda: math.inf,
    step: Step = lambda name, share: None,
) -> Pairings:
    """Match two sets one to one, from several starts, until two of them agree.

    When time runs out, or at Ctrl-C, the best so far is returned; if there is none, a match along the first axis.
    `remaining` tells the seconds that are left, and `step` gets the name of each phase and the share that is done.
    """
    known, total = given or Given(), remaining()
    finishing = (1 - _LEARNING) * total if total < math.inf else 0.0
    learning = Crew(threads, lambda: remaining() - finishing)
    starts: list[Start] = []
    ending = Ending()
    with one_blas_thread():
        with ending.record():
            for start in _learn_from_starts(source, target, known.anchors, rng, learning, step):
                starts.append(start)
        ranked = sorted(starts, key=lambda start: -start.learned.score)
        kept = ranked[: 1 if not ranked or _support(ranked[0], ranked) else _KEPT]
        found: list[Pairing] = []
        crew = Crew(threads, remaining)
        for number, start in enumerate(kept):
            if ending.why == "interrupted":
                break
            with ending.record():
                for pairing in alternate(source, target, start.learned.rotation, known, crew, quick=ending.why != ""):
                    step("assignment", number / len(kept))
                    found = [*found[:number], replace(pairing, support=_support(start, ranked))]
        if not found and kept:
            a, b = unit(source.directions @ kept[0].learned.rotation), target.directions
            rough = assign_free(a, b, known, Crew(threads), None)  # there is no time for an assignment
            found = [Pairing(rough, support=_support(kept[0], ranked))]
    if not found:
        found = [_along_first_axis(source, target, known)]
    return Pairings(tuple(sorted(found, key=lambda pairing: -pairing.agreement)), len(starts), ending.why)


def alternate(
    source: Coordinates, target: Coordinates, rotation: Points, given: Given, crew: Crew, *, quick: bool = False
) -> Iterator[Pairing]:
    """Alternate between one-to-one partners and the rotation that fits them, until hardly a pair changes."""
    a, b = source.directions, target.directions
    before, candidates = None, Candidates()
    for _ in range(1 if quick else _ROUNDS):
        partners = assign_free(unit(a @ rotation), b, given, crew, candidates)
        rows = np.flatnonzero(partners >= 0)
        rotation = procrustes(a[rows], b[partners[rows]])
        agreement = float(((a[rows] @ rotation) * b[partners[rows]]).sum() / len(rows))
        yield Pairing(partners, agreement)
        if before is not None and float((partners != before).mean()) <= _MOVED:
            return
        before = partners


def assign_free(a: Points, b: Points, given: Given, crew: Crew, candidates: Candidates | None) -> IntArray:
    """`one_to_one` (`in_haste` without candidates) of the items without a known partner, and the known pairs."""
    partners = np.full(len(a), -1, dtype=np.intp)
    partners[given.anchors.source] = given.anchors.target
    rows = np.delete(np.arange(len(a)), given.anchors.source)
    columns = np.delete(np.arange(len(b)), given.anchors.target)
    if len(rows) and len(columns):
        barred = renumbered(given.barred, rows, columns, (len(a), len(b)))
        sides = a[rows], b[columns], crew, barred
        found = in_haste(*sides) if candidates is None else one_to_one(*sides, candidates)
        partners[rows] = np.where(found >= 0, columns[found], -1)
    return partners


def _learn_from_starts(
    source: Coordinates, target: Coordinates, anchors: Pairs, rng: np.random.Generator, crew: Crew, step: Step
) -> Iterator[Start]:
    """What each start leads to, until another one supports the best."""
    a, b = source.directions, target.directions
    probes = rng.permutation(len(a))[:_PROBES]
    found: list[Start] = []

    def probe(learned: Learned) -> IntArray:
        return nearest(a[probes] @ learned.rotation, b, 1, Crew(crew.threads))[1][:, 0]

    plan = [entry for entry in _STARTS if entry[0] not in _SLOW or min(len(a), len(b)) > _FEW]
    for number, (kind, leading, keep) in enumerate(plan):
        step("starts", number / len(plan))
        axes = min(leading, a.shape[1])
        if number == 0 and len(anchors.source) > 1:  # the first one begins with what is known, and nothing else
            pairs, axes = NO_PAIRS, min(axes, len(anchors.source))
        else:
            pairs = _WAYS[kind](source, target, axes, rng, crew)
        rough: list[Learned] = []
        schedule = LearningSchedule(axes, keep)
        try:
            learned = learn((a, b), pairs, schedule, rng=rng, crew=crew, anchors=anchors, better=rough.append)
        except BaseException:  # time, Ctrl-C
            if rough and not found:  # better than nothing
                yield Start(rough[-1], probe(rough[-1]))
            raise
        found.append(Start(learned, probe(learned)))
        yield found[-1]
        best = max(found, key=lambda start: start.learned.score)
        if _support(best, found):
            return


def _support(start: Start, among: list[Start]) -> int:
    """How many of the others have the same nearest targets."""
    return sum(float((start.partners == other.partners).mean()) >= ALIKE for other in among) - 1


def _along_first_axis(source: Coordinates, target: Coordinates, given: Given) -> Pairing:
    """Both sides in the order of their first coordinate: better than nothing, in no time."""
    order = []
    for side, anchors in ((source, given.anchors.source), (target, given.anchors.target)):
        first = side.points[:, 0] * (np.sign((side.points[:, 0] ** 3).mean()) or 1)
        ascending = np.argsort(first, kind="stable")
        order.append(ascending[~np.isin(ascending, anchors)])
    rows, columns = (side[: min(map(len, order))] for side in order)
    a, b = source.directions, target.directions
    barred = renumbered(given.barred, rows, columns, (len(a), len(b)))
    partners = np.full(len(a), -1, dtype=np.intp)
    partners[given.anchors.source] = given.anchors.target
    if len(rows):
        partners[rows] = columns[allowed(a[rows], b[columns], np.arange(len(rows)), barred)]
    return Pairing(partners)


_WAYS = {"signatures": by_signatures, "centres": by_centres, "axes": by_axes, "signs": by_signs}
