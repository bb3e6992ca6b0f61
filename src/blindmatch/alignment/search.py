"""Try several starts and keep the rotation that fits held-out points best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile

import numpy as np

from blindmatch.alignment.coarse import CoarseStart, clusterings, match_centres, screen
from blindmatch.alignment.crew import Ending
from blindmatch.alignment.frame import Points
from blindmatch.alignment.neighbours import nearest
from blindmatch.alignment.rotation import (
    Anchors,
    inner_products,
    overlap,
    procrustes,
    refine,
    sample,
    unit,
    weighted_fit,
)
from blindmatch.problem.known import FEWEST, Known
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Solver
from blindmatch.solving.limits import keep_what_is_done
from blindmatch.solving.result import Result
from blindmatch.validation import FloatArray

Step = Callable[[str, int, int], None]

_COARSE = 32  # leading axes that the first match uses: axes of small variance are noise to k-means
_QUICK = 2000  # points on each side while candidates compete
_UNSEEN = 2000  # held-out points on each side for the choice among candidates; at most a fifth
_FEWEST = 10  # with fewer held-out points the choice would be random, so all points are used
_MEMORY = 0.8
_ALIKE = 0.2  # two maps are the same if they share this many nearest neighbours (benchmarks/README.md)
_SOME_ANCHORS = 100  # known pairs that count in the matches of centres; all of them count in the rounds
_PROOF = 5.0  # seconds for the match of the centres of one candidate
# Shares of the time limit after which no other step of a kind begins; each kind gets its first one.
_CLUSTERING, _SCREENING, _GROWING, _REFINING, _ENDING = 0.25, 0.4, 0.7, 0.8, 0.9


@dataclass(frozen=True, eq=False)
class Candidate:
    """One start, and the alignment refined from it.

    Attributes
    ----------
    clusterings
        The index of the clustering on each side.
    source_centres, target_centres
        (k, c) centres, as directions along the leading axes.
    result
        The match of the centres, with its bound and its certificate.
    overlap
        How well held-out points of the two sides overlap after the refinement.
    likeness
        Share of the held-out points that this alignment and the one that was kept map to the same nearest target.
    """

    clusterings: tuple[int, int]
    source_centres: FloatArray
    target_centres: FloatArray
    result: Result
    overlap: float
    likeness: float


@dataclass(frozen=True)
class Plan:
    """The effort of the search: the arguments of ``bm.BlindAligner``; its random numbers, and whom it tells."""

    clusters: int
    clusterings: int
    candidates: int
    solver: Solver
    time_limit: float | None
    iterations: int
    sample_size: int
    threads: int | None
    rng: np.random.Generator
    report: Step
    began: float = field(default_factory=time.perf_counter)
    ending: Ending = field(default_factory=Ending)

    def left(self, share: float) -> float:
        """Seconds until this share of the time limit is over."""
        return math.inf if self.time_limit is None else self.began + share * self.time_limit - time.perf_counter()

    def over(self, share: float) -> bool:
        """Whether this share of the time limit is over; if so, `ending` notes that something was left out."""
        if self.left(share) <= 0:
            self.ending.why = "time_limit"
        return self.left(share) <= 0


@dataclass(frozen=True, eq=False)
class Found:
    """The rotation, its candidates and how good it is.

    The overlap of unseen points is compared with that of a random rotation (`floor`), that of two halves of one set
    (`ceiling`), and that of a cloud with the target's spread and nothing in common, aligned in the same way (`chance`).
    `ceiling` and `chance` are nan if no points were held out; `interrupted` means that Ctrl-C stopped the search, and
    `limited` that the time limit did.
    """

    rotation: Points
    candidates: tuple[Candidate, ...]
    best: int
    overlap: float
    floor: float
    ceiling: float
    chance: float
    support: int
    interrupted: bool = False
    limited: bool = False


def search(source: Points, target: Points, plan: Plan, anchors: Anchors | None = None) -> Found:
    """Find the rotation that maps the source directions onto the target directions, and anchors near their partners.

    The candidates share out the anchors, so that they lead to the same map only if the data say so too. With few
    anchors, the candidate under which unseen points overlap best is refined further. Four or more are better guides
    than the overlap: the rotation then grows from the mean of all matches of centres, on all points.

    After the first candidate, Ctrl-C and the time limit end the search with the best rotation so far.
    """
    sides, rng = (source, target), plan.rng
    (unseen_source, source), (unseen_target, target) = (_split(side, rng) for side in sides)
    starts = _starts(source, target, plan, anchors)
    guides = anchors if anchors is not None and len(anchors[0]) >= FEWEST else None
    chosen = starts[: plan.candidates]
    grown: list[tuple[Result, Points]] = []
    with keep_what_is_done(lambda: bool(grown)) as interrupted:
        for number, start in enumerate(chosen):
            if grown and plan.over(_GROWING):
                break
            share = _shared(start, anchors, number, len(chosen))
            grown.append(_grow(*share, (source, target), plan, (number, len(chosen))))
    carried = [unseen_source @ rotation for _, rotation in grown]
    overlaps = [overlap(points, unseen_target) for points in carried]
    best = int(np.argmax(overlaps))
    rotation = grown[best][1]
    schedule = _report_each([source.shape[1]] * plan.iterations, "refining the best", (0, 1), plan)
    schedule = takewhile(lambda _: not plan.over(_REFINING), schedule)
    if not interrupted:
        with keep_what_is_done() as interrupted:
            if guides is not None:
                rotation = _guided(sides, starts, guides, schedule, plan)
            else:
                # At most half of a small set: rounds that use the same points repeatedly keep their mistakes.
                size = min(plan.sample_size, max(len(source), len(target)) // 2 + 1)
                improved = partial(refine, size=size, rng=rng, memory=_MEMORY, anchors=anchors)
                rotation = improved((source, target), rotation, schedule=schedule)
    partners = [nearest(points, unseen_target, 1)[1] for points in carried]
    kept = partners[best] if guides is None else nearest(unseen_source @ rotation, unseen_target, 1)[1]
    likenesses = [float((mine == kept).mean()) for mine in partners]
    return Found(
        rotation,
        tuple(
            Candidate(start.clusterings, start.source_centres, start.target_centres, result, overlapping, likeness)
            for start, (result, _), overlapping, likeness in zip(starts, grown, overlaps, likenesses, strict=False)
        ),
        best,
        overlap(unseen_source @ rotation, unseen_target) if guides is None else overlaps[best],
        floor=overlap(unseen_source @ _random_rotation(source.shape[1], rng), unseen_target),
        ceiling=sum(
            math.nan if unseen is seen else overlap(unseen, sample(seen, len(unseen), rng)) / 2
            for unseen, seen in ((unseen_source, source), (unseen_target, target))
        ),
        chance=math.nan if interrupted else _by_chance((unseen_source, source), (unseen_target, target), plan),
        support=sum(likeness > _ALIKE for likeness in likenesses) - (guides is None),  # do not count the one kept
        interrupted=bool(interrupted),
        limited=plan.ending.why == "time_limit",
    )


def _shared(start: CoarseStart, anchors: Anchors | None, number: int, total: int) -> tuple[CoarseStart, Anchors | None]:
    """A start, and the anchors, with the share of the anchors that one of several candidates gets."""
    if anchors is None or number >= len(anchors[0]):
        return replace(start, known=None), None
    share = anchors[0][number::total], anchors[1][number::total]
    first, second = (unit(side[:, : start.source_centres.shape[1]]).astype(np.float64) for side in share)
    return replace(start, known=Known((first, second))), share


def _guided(
    sides: tuple[Points, Points], starts: Sequence[CoarseStart], anchors: Anchors, schedule: Iterator[int], plan: Plan
) -> Points:
    """The rotation that grows from the mean of all matches of centres and the anchors, then by assignment."""
    axes = starts[0].source_centres.shape[1]
    first, second = (unit(side[:, :axes]) for side in anchors)
    products = inner_products(first, second) / (2 * len(first))
    for start in starts:
        matched = start.target_centres[start.permutation]
        products += inner_products(start.source_centres, matched) / (len(starts) * len(matched))
    rounds = _growing(axes, sides[0].shape[1], plan.iterations)
    size = min(plan.sample_size, _QUICK)
    improved = partial(refine, sides, size=size, rng=plan.rng, memory=_memory(*sides), anchors=anchors)
    rough = weighted_fit(products, weight=0.0)[2]
    grown = improved(rough, schedule=_in_time(iter(rounds), rounds[-1], plan), weight=0.5)
    return improved(grown, schedule=schedule, one_to_one=True)


def _memory(source: Points, target: Points) -> float:
    """How much the pairs of earlier rounds count: nothing where rounds use the same points, and would keep mistakes."""
    return _MEMORY if min(len(source), len(target)) >= 4 * _QUICK else 0.0


def _by_chance(sources: tuple[Points, Points], targets: tuple[Points, Points], plan: Plan) -> float:
    """The overlap of unseen points with an unrelated cloud, after as many rounds.

    It is nan if no points were held out, or if there is no time for all rounds: after fewer, it would be too low.

    The cloud has the values of the target along each axis, but each axis is shuffled by itself: its shape is gone.
    """
    (unseen, source), (held, target), rng = sources, targets, plan.rng
    if unseen is source or held is target or plan.over(_REFINING):
        return math.nan
    cloud = unit(rng.permuted(np.vstack([held, target]), axis=0))
    rounds = takewhile(lambda _: not plan.over(_ENDING), [source.shape[1]] * plan.iterations)
    start = _random_rotation(source.shape[1], rng)
    found = refine((source, cloud[len(held) :]), start, schedule=rounds, size=_QUICK, rng=rng, memory=_MEMORY)
    return math.nan if plan.over(_ENDING) else overlap(unseen @ found, cloud[: len(held)])


def _grow(
    start: CoarseStart,
    anchors: Anchors | None,
    sides: tuple[Points, Points],
    plan: Plan,
    turn: tuple[int, int],
) -> tuple[Result, Points]:
    """The match of the centres of a start, and the rotation refined from it."""
    rounds, rng = _growing(len(start.source_centres[0]), sides[0].shape[1], plan.iterations), plan.rng
    schedule = _in_time(_report_each(rounds, "refining candidates", turn, plan), rounds[-1], plan)
    plan.report("refining candidates", turn[0] * len(rounds), turn[1] * len(rounds))  # the match takes a while too
    seed = int(rng.integers(2**31))
    limit = min(_PROOF, max(plan.left(_GROWING) / 2, 1e-3))
    result = match_centres(start, plan.solver, time_limit=limit, rng=seed, threads=plan.threads)
    pairs = start.source_centres, start.target_centres[result.permutation]
    if anchors is not None:
        first, second = (unit(side[:, : pairs[0].shape[1]]) for side in anchors)
        pairs = np.vstack([pairs[0], first]), np.vstack([pairs[1], second])
    rough = procrustes(*pairs)
    found = refine(
        sides, rough, schedule=schedule, size=_QUICK, rng=rng, weight=0.5, memory=_memory(*sides), anchors=anchors
    )
    return result, found


def _starts(source: Points, target: Points, plan: Plan, anchors: Anchors | None) -> list[CoarseStart]:
    """The cheapest matches of centres among all pairs of clusterings."""
    leading = min(_COARSE, source.shape[1])
    known = None
    if anchors is not None:
        first, second = (unit(side[:_SOME_ANCHORS, :leading]).astype(np.float64) for side in anchors)
        # Its weight is chosen once, for all matches of centres.
        known = Task(first, second, known=(first, second)).known
    sides: list[list[FloatArray]] = []
    for points in (unit(source[:, :leading]), unit(target[:, :leading])):
        share = _CLUSTERING * (len(sides) + 1) / 2
        found: list[FloatArray] = []
        for _ in _report_each(range(plan.clusterings), "clustering", (len(sides), 2), plan):
            if found and plan.over(share):
                break
            found += clusterings(points, plan.clusters, 1, plan.rng)
        sides.append(found)
    starts, total = [], len(sides[0]) * (len(sides[1]) if known is None or known.count < FEWEST else 1)
    plan.report("matching centres", 0, total)
    for start in screen(sides[0], sides[1], plan.rng, known):
        starts.append(start)
        plan.report("matching centres", len(starts), total)
        if len(starts) < total and plan.over(_SCREENING):
            break
    return sorted(starts, key=lambda start: start.cost)


def _in_time(rounds: Iterator[int], all_axes: int, plan: Plan) -> Iterator[int]:
    """The rounds that there is time for, the last one with all axes."""
    components = 0
    for components in takewhile(lambda _: not plan.over(_GROWING), rounds):
        yield components
    if components < all_axes:
        yield all_axes


def _report_each(parts: Sequence[int], step: str, turn: tuple[int, int], plan: Plan) -> Iterator[int]:
    """Yield the parts of a step and report each; a step has several turns with equally many parts."""
    before, turns = turn
    for done, part in enumerate(parts):
        plan.report(step, before * len(parts) + done, turns * len(parts))
        yield part


def _split(points: Points, rng: np.random.Generator) -> tuple[Points, Points]:
    """Split off held-out points; if there are few, use all points for both."""
    order = rng.permutation(len(points))
    count = min(_UNSEEN, len(points) // 5)
    return (points[order[:count]], points[order[count:]]) if count >= _FEWEST else (points, points)


def _growing(first: int, last: int, rounds: int) -> list[int]:
    """Numbers of axes that double from `first` to `last`, each for about the same number of rounds."""
    sizes = [first]
    while sizes[-1] < last:
        sizes.append(min(2 * sizes[-1], last))
    return [sizes[round_ * len(sizes) // rounds] for round_ in range(rounds)] if rounds >= len(sizes) else sizes


def _random_rotation(size: int, rng: np.random.Generator) -> Points:
    return procrustes(rng.normal(size=(size, size)), np.eye(size))
