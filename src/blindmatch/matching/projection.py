"""Soft answers: where each source lies in the space of the targets, as a mean over the partners of its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from blindmatch.matching.match import SolveOptions, match_task
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Solver
from blindmatch.solvers.faq import FAQ
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.result import Result
from blindmatch.validation import FloatArray, IntArray, as_generator, as_sequence, at_least, refuse_other

Partners = int | Literal["auto"]
_SIMILAR = 0.05  # of the cost: what matches that are averaged may cost more than the cheapest
_FEW = 100  # items up to which exchanges improve a descent much, in no time
_COUNTS = (1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 63, 94)  # what "auto" tries


@dataclass(frozen=True, eq=False)
class Projection:
    """The sources in the space of the targets.

    Attributes
    ----------
    points
        (n, e) the mean position of the partners of the matched sources nearest to each source, itself included.
    partners
        How many partners each is the mean of.
    errors
        For each number that "auto" tried, the mean squared distance between the partner of a source and the mean of the
        partners of its other neighbours, relative to the variance of all partners: below 1, neighbours have partners
        that are neighbours. No true pair is needed for it.
    matches
        How many matches the partners are the mean over.
    """

    points: FloatArray
    partners: int
    errors: dict[int, float]
    matches: int = 1


def project(
    result: Result,
    *,
    partners: Partners = "auto",
    alternatives: int | Sequence[Result] = (),
    rng: int | np.random.Generator | None = None,
    threads: int | None = None,
) -> Projection:
    """Project each source into the space of the targets: a soft match, for items without a single partner.

    A one-to-one match of noisy items puts each of them somewhere near its true partner. The mean over the partners of
    its nearest neighbours is nearer, until the neighbours are too many.

    Parameters
    ----------
    result
        From ``bm.match``. The target's space has the coordinates of its embeddings; those of a precomputed kernel are
        found by classical scaling.
    partners
        The number of partners to average, or "auto": the number with which the neighbours of a source predict its
        partner best, with the source itself left out.
    alternatives
        Other matches of the same task that cost about as much: a partner is then the mean over all of the matches. A
        number asks for so many descents of FAQ (with forbidden pairs: short tabu searches), of which those within 5 %
        of the cheapest match are used; if `result` itself costs more than that, it is left out. They have no time
        limit, but Ctrl-C ends them.
    rng, threads
        For these descents, as in ``bm.solve``.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> line = np.linspace(0, 1, 12)[:, None] ** 2
    >>> soft = bm.project(bm.match(line, 5 * line[::-1], rng=0), partners=3)
    >>> soft.points.shape, soft.partners
    ((12, 1), 3)
    """
    refuse_other(result, Result, "result", "expected what bm.match returns")
    task = result.task
    if not isinstance(task, Task):
        raise ValueError("result is of bm.solve, which has no space of targets; expected one of bm.match")
    if isinstance(alternatives, int | np.integer):
        matches = similar_matches(result, task, at_least(alternatives, 0, "alternatives"), rng=rng, threads=threads)
    else:
        matches = [result, *as_sequence(alternatives, "alternatives", "results, or a number")]
    for found in matches:
        refuse_other(found, Result, "a match", "expected what bm.match returns")
        if found.permutation.shape != task.sizes[:1]:
            raise ValueError(f"a result matches {len(found.permutation)} sources; the task has {task.sizes[0]}")
    matched, ends = mean_partners(matches, task.points[1])
    if not len(matched):
        raise ValueError("result matches nothing: there is nothing to project")
    apart = distances_to_sources(task)[:, matched]
    count, errors = chosen_count(apart[matched], ends, partners)
    return Projection(mean_of_nearest(apart, ends, count), count, errors, len(matches))


def similar_matches(
    result: Result,
    task: Task,
    descents: int,
    *,
    rng: int | np.random.Generator | None = None,
    threads: int | None = None,
) -> list[Result]:
    """The different matches, of `result` and some searches, that cost about as much as the cheapest; it comes first.

    Where relations tie, a descent of FAQ depends on the order of the items, which ``bm.solve`` draws anew each time.
    """
    if not descents:  # the problem of many items would not fit into memory
        return [result]
    generator, found, n = as_generator(rng), [result], task.problem.n
    solver: Solver = FAQ(restarts=1, polish=n <= _FEW)
    if task.problem.forbidden is not None:  # which FAQ cannot use
        solver = Tabu(iterations=20 * n)
    for _ in range(descents):
        options = SolveOptions(solver, None, int(generator.integers(2**31)), threads=threads)
        found.append(match_task(task, options))
        if found[-1].status == "interrupted":
            break
    different = {one.permutation.tobytes(): one for one in reversed(found)}
    ranked = sorted(different.values(), key=lambda one: one.cost)
    return [one for one in ranked if one.cost <= ranked[0].cost + _SIMILAR * abs(ranked[0].cost)]


def mean_partners(matches: Sequence[Result], targets: FloatArray) -> tuple[IntArray, FloatArray]:
    """The sources that have a partner in some match, and the mean place of their partners."""
    n = len(matches[0].permutation)
    total, votes = np.zeros((n, targets.shape[1])), np.zeros((n, 1))
    for found in matches:
        rows = np.flatnonzero(found.permutation >= 0)
        total[rows] += targets[found.permutation[rows]]
        votes[rows] += 1
    matched = np.flatnonzero(votes)
    return matched, total[matched] / votes[matched]


def distances_to_sources(task: Task, points: FloatArray | None = None) -> FloatArray:
    """(q, n) distances of points, by default the sources, to the sources: by the metric without its graph."""
    if points is not None and task.views != (None, None) and task.precomputed:
        return task.view_distances(points)
    if task.precomputed:
        given = task.sides[0] if points is None else points
        return -given if task.distortion.similarities else given
    own = task.points[0]
    return task.distortion.metrics[0].between(own if points is None else points, own)


def chosen_count(apart: FloatArray, ends: FloatArray, partners: Partners) -> tuple[int, dict[int, float]]:
    """The number of partners to average, and the errors of the numbers that were tried.

    `apart` are the (k, k) distances between the matched sources, `ends` the (k, e) positions of their partners.
    """
    if partners != "auto":
        return min(at_least(partners, 1, "partners"), len(ends)), {}
    spread = float(((ends - ends.mean(axis=0)) ** 2).sum(axis=1).mean())
    if len(ends) < 3 or spread == 0:
        return 1, {}
    others = apart.copy()
    np.fill_diagonal(others, np.inf)
    order = np.argsort(others, axis=1, kind="stable")
    errors = {}
    for count in _COUNTS:
        if count < len(ends):
            guess = _mean_by_rows(ends, order[:, :count])
            errors[count] = float(((guess - ends) ** 2).sum(axis=1).mean() / spread)
    best = min(errors, key=lambda count: errors[count])
    if errors[best] >= 1:  # neighbours tell nothing about the partner
        return 1, errors
    return best + 1, errors  # and the source itself


def mean_of_nearest(apart: FloatArray, ends: FloatArray, count: int) -> FloatArray:
    """(q, e) the mean end of the `count` nearest columns of each row."""
    return _mean_by_rows(ends, np.argsort(apart, axis=1, kind="stable")[:, :count])


def _mean_by_rows(ends: FloatArray, chosen: IntArray) -> FloatArray:
    total = np.zeros((len(chosen), ends.shape[1]))
    for column in chosen.T:  # one neighbour at a time: (n, count, e) numbers would not fit
        total += ends[column]
    return np.asarray(total / chosen.shape[1])
