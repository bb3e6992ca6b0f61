"""Solve the assignment problem of a match from starts that the coordinates of the items give."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from blindmatch.machine import one_blas_thread
from blindmatch.matching.coordinate_matches import (
    Matches,
    Spaces,
    as_permutation,
    given_pairs,
    matches,
    points_or_relations,
)
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task, with_dummies
from blindmatch.solvers.auto import Auto
from blindmatch.solving.limits import keep_what_is_done
from blindmatch.solving.result import Result
from blindmatch.solving.run import solve
from blindmatch.validation import IntArray, as_generator

FEWEST = 30  # items from which coordinates give starts; fewer are solved in no time
_BY_COST = 100  # items up to which the cheapest match is the result
_SAME = 0.5  # least share of pairs that a believed match has in common with the cheapest one
_DEARER = 0.5  # of the cost of the cheapest start: what a believed match may cost more
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
    left = None if time_limit is None else max(remaining(), 1e-3)
    # Without a search there are two eigenproblems to solve, in which a second thread costs more than it saves.
    with nullcontext() if solver.search or problem.n <= solver.largest else one_blas_thread():
        result = solve(problem, solver, time_limit=left, rng=rng, threads=threads, start=own, starts=given, **steering)
    if problem.n > _BY_COST:
        result = _prefer_believed(result, problem, believed)
    partners = task.reduced(result.permutation)
    if not (partners >= 0).any():
        return result
    if problem.n <= solver.largest:  # an assessment says more about few items
        return replace(result, ranking=found.ranking(partners))
    judged = found.judge(result, partners, remaining)
    support = f"support {judged.support} of {found.found.starts} starts"
    return replace(judged, notes=(*judged.notes, support), seconds=time.perf_counter() - begin)


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
    if cost <= result.cost or same < _SAME:  # what the search found is better, or something else altogether
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
    """What Ctrl-C leaves: the cheapest start that is allowed."""
    allowed = [start for start in starts if problem.allows(start)]
    if not allowed:
        raise KeyboardInterrupt
    best = min(allowed, key=problem.objective)
    return Result(best, problem.objective(best), None, "interrupted", "auto", seconds)
