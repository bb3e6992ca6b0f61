"""Matches of hundreds to a hundred thousand items by coordinates: starts for the solvers, or the match itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blindmatch.alignment.assign import Candidates, mutual_partners
from blindmatch.alignment.coordinates import Coordinates, coordinates, kernel_coordinates
from blindmatch.alignment.crew import Crew, Ending, Stopped
from blindmatch.alignment.frame import Points
from blindmatch.alignment.margins import SimilarityRanking, confidence, held_out_margins
from blindmatch.alignment.neighbours import NEIGHBOURHOOD
from blindmatch.alignment.pairing import Given, Pairings, assign_free, pairings
from blindmatch.alignment.rotation import Pairs, procrustes, unit
from blindmatch.machine import one_blas_thread, usable_cores
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.hints import Hints
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task, with_dummies
from blindmatch.solvers.auto import Auto
from blindmatch.solving.limits import keep_what_is_done
from blindmatch.solving.result import Result
from blindmatch.solving.run import solve
from blindmatch.validation import FloatArray, IntArray, as_generator

_SETTLING = 3  # rounds of assignment by distances
_MOVED = 1e-3  # the rounds end when a smaller share of the pairs changes
_BELIEVED = 0.5  # mean confidence from which a match is believed
_SAME = 0.5  # share of equal pairs from which two matches count as the same
_FEW_AXES = 4  # with fewer, there are so few choices of signs that starts agree by chance


@dataclass(frozen=True, eq=False)
class Spaces:
    """Two sets along their principal axes: scaled to unit length, and as they are."""

    aligned: tuple[Coordinates, Coordinates]
    placed: tuple[Coordinates, Coordinates]

    @classmethod
    def of(cls, sides: tuple[FloatArray, FloatArray], distortion: Distortion, precomputed: bool) -> Spaces:
        """From embeddings, or from relations: points that have about these distances (or inner products)."""
        if precomputed:
            placed = kernel_coordinates(*sides, similarities=distortion.similarities)
            return cls(placed, placed)
        aligned = coordinates(*sides, cosine=True)
        return cls(aligned, aligned if distortion.normalize else coordinates(*sides, cosine=False))


@dataclass(frozen=True, eq=False)
class Matches:
    """One-to-one matches by coordinates, the best first, and how to judge one."""

    spaces: Spaces
    given: Given
    found: Pairings
    settled: tuple[IntArray, ...]
    threads: int

    @property
    def all(self) -> list[IntArray]:
        """Every match that was found, without repetitions."""
        distinct: list[IntArray] = []
        for partners in (*self.settled, *(pairing.partners for pairing in self.found.found)):
            if not any(np.array_equal(partners, other) for other in distinct):
                distinct.append(partners)
        return distinct

    def believed(self, remaining: Callable[[], float]) -> list[IntArray]:
        """Matches that other starts support and whose own confidence says that most pairs are right."""
        found = []
        for partners in self.all:
            sure = self.confidence(partners, remaining) if self.support(partners) else None
            if sure is not None and np.nanmean(sure) > _BELIEVED:
                found.append(partners)
        return found

    def confidence(self, partners: IntArray, remaining: Callable[[], float]) -> FloatArray | None:
        """The probability that each pair is right; None if there is no time to tell, or no pair."""
        if (partners >= 0).sum() < 2:
            return None
        a, b = (side.directions for side in self.spaces.aligned)
        crew, rng = Crew(self.threads, remaining), np.random.default_rng(0)
        try:
            with one_blas_thread():
                margins = held_out_margins(a, b, partners, rng=rng, crew=crew)
        except Stopped:
            return None
        probabilities = confidence(margins, self.support(partners) if a.shape[1] >= _FEW_AXES else 0)
        probabilities[self.given.anchors.source] = 1.0
        return probabilities

    def support(self, partners: IntArray) -> int:
        """The number of other starts that led to this match, or to one that shares half of its pairs."""
        rows = np.flatnonzero(partners >= 0)  # of the pairs that are left, where items may stay unmatched
        if not len(rows):
            return 0
        alike = (each for each in self.found.found if float((each.partners == partners)[rows].mean()) >= _SAME)
        return max((each.support for each in alike), default=0)

    def ranking(self, partners: IntArray) -> SimilarityRanking:
        """The best partners of each source after the rotation that fits this match."""
        return SimilarityRanking(*self._turned(partners), self.threads)

    def mutual(self, partners: IntArray, crew: Crew) -> IntArray:
        """After the rotation that fits a match, the pairs that are each other's best by CSLS; -1 for other sources."""
        a, b = self._turned(partners)
        found = mutual_partners(Candidates(NEIGHBOURHOOD).links(a, b, crew))
        rows, columns = self.given.barred.T
        found[rows[found[rows] == columns]] = -1
        found[np.isin(found, self.given.anchors.target)] = -1
        found[self.given.anchors.source] = self.given.anchors.target
        return found

    def _turned(self, partners: IntArray) -> tuple[Points, Points]:
        a, b = (side.directions for side in self.spaces.aligned)
        rows = np.flatnonzero(partners >= 0)
        return unit(a @ procrustes(a[rows], b[partners[rows]])), b

    def judge(self, result: Result, partners: IntArray, remaining: Callable[[], float]) -> Result:
        """The result with its support, the confidence of its pairs (if there is time for it), and its ranking."""
        ranking = self.ranking(partners) if (partners >= 0).any() else None
        sure = None
        with keep_what_is_done():
            sure = self.confidence(partners, remaining) if result.status != "interrupted" else None
        return replace(result, support=self.support(partners), confidence=sure, ranking=ranking)


def points_or_relations(task: Task) -> tuple[tuple[FloatArray, FloatArray], bool]:
    """Return the points, or the relations (and True) if the metric is not Euclidean, to make coordinates of."""
    return (task.sides, False) if task.euclidean else (task.relations, True)


def given_pairs(hints: Hints) -> Given:
    """Known and forbidden pairs as the alignment takes them."""
    known = np.array(hints.known, dtype=np.intp).reshape(-1, 2)
    barred = np.zeros((0, 2), dtype=np.intp) if hints.forbidden is None else np.argwhere(hints.forbidden)
    return Given(Pairs(known[:, 0], known[:, 1]), barred)


def matches(
    spaces: Spaces,
    given: Given,
    *,
    rng: np.random.Generator,
    threads: int | None,
    remaining: Callable[[], float],
    step: Callable[[str, float], None] = lambda name, share: None,
) -> Matches:
    """Match by directions, from several starts; then settle the best by distances, which is what most costs look at."""
    count = threads or usable_cores()
    found = pairings(*spaces.aligned, rng=rng, given=given, threads=count, remaining=remaining, step=step)
    ended: list[IntArray] = []
    if not found.ended:
        crew, ending = Crew(count, remaining), Ending()
        with ending.record(), one_blas_thread():
            for number, pairing in enumerate(found.found):
                step("distances", number / len(found.found))
                ended.append(settle(spaces.placed, pairing.partners, given, crew))
        found = replace(found, ended=ending.why)
    return Matches(spaces, given, found, tuple(ended), count)


def as_permutation(partners: IntArray, targets: int, size: int) -> IntArray:
    """A match as a permutation of `size` items: the sources, then dummies; the targets, then dummies."""
    full = with_dummies(partners, targets, size)
    assert full is not None, "a match by coordinates leaves no more items unmatched than there are dummies"
    return full


def settle(placed: tuple[Coordinates, Coordinates], partners: IntArray, given: Given, crew: Crew) -> IntArray:
    """Assign by distances instead of directions, and fit the rotation, in turn."""
    a, b = (side.points for side in placed)
    # The inner products of these are half the squared distances, negative, but for what belongs to a source alone.
    ends = np.concatenate([b, -(b**2).sum(axis=1, keepdims=True) / 2], axis=1)
    ones, candidates = np.ones((len(a), 1), np.float32), Candidates()
    for _ in range(_SETTLING):
        rows = np.flatnonzero(partners >= 0)
        turned = a @ procrustes(a[rows], b[partners[rows]])
        before = partners
        partners = assign_free(np.concatenate([turned, ones], axis=1), ends, given, crew, candidates)
        if float((before != partners).mean()) <= _MOVED:
            break
    return partners


FEWEST = 30  # items from which coordinates give starts; fewer are solved in no time
_BY_COST = 100  # items up to which the cheapest match is the result
_IN_COMMON = 0.5  # least share of pairs that a believed match has in common with the cheapest one
_DEARER = 0.5  # of the cost of the cheapest start: what a believed match may cost more
_FEWEST_STARTS = 3  # for which a work limit must leave room
_START_SECONDS = 1e-6  # of work, which a start takes for each pair of items
_STARTING, _MOSTLY_STARTING = 0.3, 0.6  # of the time limit; the latter where there are too many items for a tree


def solve_from_coordinates(
    problem: QAP,
    task: Task,
    *,
    time_limit: float | None = None,
    rng: int | np.random.Generator | None = None,
    threads: int | None = None,
    start: IntArray | None = None,
    **steering: Any,
) -> Result:
    """Solve the problem of a task with "auto", beginning with matches by coordinates.

    The problem is the task's, or the same with fewer dummies. `start` is another match to begin with: the target of
    each source, -1 for none. Beyond 100 items a match that several starts agree on is the result, even if another one
    costs a little less, unless that is proved to be the best. `steering` is for ``solve``.
    """
    hints = task.hints
    own = None if start is None else with_dummies(start, hints.sizes[1], problem.n)
    begin = time.perf_counter()
    limit = math.inf if time_limit is None else time_limit

    def remaining(share: float = 1.0) -> float:
        return share * limit - (time.perf_counter() - begin)

    share = _STARTING if problem.n <= Auto().largest else _MOSTLY_STARTING
    work, each = steering.get("work_limit"), _START_SECONDS * problem.n**2
    found = None
    if work is None or work > _FEWEST_STARTS * each:
        found = _matches(task, as_generator(rng), threads, lambda: remaining(share))
    if found is None:
        return solve(problem, "auto", time_limit=time_limit, rng=rng, threads=threads, start=own, **steering)
    starts = [as_permutation(partners, hints.sizes[1], problem.n) for partners in found.all]
    believed: list[IntArray] = []
    with keep_what_is_done() as interrupted:
        if found.found.ended != "interrupted":
            believed = [as_permutation(partners, hints.sizes[1], problem.n) for partners in found.believed(remaining)]
    if starts:
        cheapest = min(map(problem.objective, starts))
        believed = [match for match in believed if problem.objective(match) <= cheapest + _DEARER * abs(cheapest)]
    if interrupted or found.found.ended == "interrupted":
        return _cheapest_start(problem, starts, time.perf_counter() - begin)
    solver = Auto(search=not believed or problem.n <= _BY_COST)
    given = believed if believed and problem.n > solver.largest else starts
    if work is not None:
        steering["work_limit"] = max(work - found.found.starts * each, each)
    left = None if time_limit is None else max(remaining(), 1e-3)
    result = solve(problem, solver, time_limit=left, rng=rng, threads=threads, start=own, starts=given, **steering)
    try:
        judged = _judged(result, problem, task, found, believed, remaining)
        return judged if judged.support is None else replace(judged, seconds=time.perf_counter() - begin)
    except KeyboardInterrupt:  # the match is kept
        return result


def _judged(
    result: Result,
    problem: QAP,
    task: Task,
    found: Matches,
    believed: list[IntArray],
    remaining: Callable[[], float],
) -> Result:
    """The result, or the match that is believed, with what the starts say of it."""
    if problem.n > _BY_COST:
        result = _prefer_believed(result, problem, believed)
    partners = task.reduced(result.permutation)
    if not (partners >= 0).any():
        return result
    if problem.n <= Auto().largest:  # an assessment says more about few items
        return replace(result, ranking=found.ranking(partners))
    judged = found.judge(result, partners, remaining)
    support = f"support {judged.support} of {found.found.starts} starts"
    return replace(judged, notes=(*judged.notes, support))


def _prefer_believed(result: Result, problem: QAP, believed: list[IntArray]) -> Result:
    """The match that several starts agree on, unless another one is proved to be the best.

    Where sets are noisy, a few per cent of the cost can be saved by wrong pairs: of many items, the cheapest match is
    not the right one. What the rotation of the whole space says is worth more.
    """
    allowed = [match for match in believed if problem.allows(match)]
    if not allowed or result.status in ("optimal", "interrupted"):
        return result
    match = min(allowed, key=problem.objective)
    cost = problem.objective(match)
    same = float((match[: len(result.permutation)] == result.permutation).mean())
    if cost <= result.cost or same < _IN_COMMON:  # what the search found is better, or something else altogether
        return result
    note = (
        f"a match that {100 * same:.0f} % of these pairs have in common costs {100 * (1 - result.cost / cost):.1f} % "
        "less: bm.solve(result.task.problem) finds it"
    )
    return replace(result, permutation=match, cost=cost, notes=(*result.notes, note))


def _matches(
    task: Task, rng: np.random.Generator, threads: int | None, remaining: Callable[[], float]
) -> Matches | None:
    """Matches by coordinates; None if the points have none to speak of."""
    sides, precomputed = points_or_relations(task)
    try:
        with one_blas_thread():
            spaces = Spaces.of(sides, task.distortion, precomputed)
    except ValueError:  # points on a line, or all the same
        return None
    return matches(spaces, given_pairs(task.hints), rng=rng, threads=threads, remaining=remaining)


def _cheapest_start(problem: QAP, starts: list[IntArray], seconds: float) -> Result:
    """Return the cheapest allowed start, after Ctrl-C."""
    allowed = [start for start in starts if problem.allows(start)]
    if not allowed:
        raise KeyboardInterrupt
    best = min(allowed, key=problem.objective)
    return Result(best, problem.objective(best), None, "interrupted", "auto", seconds)
