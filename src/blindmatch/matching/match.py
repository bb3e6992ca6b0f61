"""Match two sets of embeddings."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown
from blindmatch.geometry.views import Views
from blindmatch.matching.match_task import SolveOptions, by_coordinates, match_task
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Callback, Solver
from blindmatch.solvers.limits import Limits
from blindmatch.solving.limits import TimeLimit, as_seconds
from blindmatch.solving.result import Result
from blindmatch.trust.abstention import abstained_by, assessed_or_kept
from blindmatch.trust.assessment import AssessmentPlan, Schedule, as_share, assess_result
from blindmatch.trust.prior import Prior, as_prior, refuse_prior
from blindmatch.validation import at_least


def match(
    source: ArrayLike | Views | Task | None = None,
    target: ArrayLike | Views | None = None,
    *,
    solver: str | Solver = "auto",
    time_limit: TimeLimit = "auto",
    start: ArrayLike | None = None,
    min_confidence: float | None = None,
    prior: Prior | None = None,
    rng: int | np.random.Generator | None = None,
    callback: Callback | None = None,
    threads: int | None = None,
    **task: Any,
) -> Result:
    """Match two sets of embeddings by the relations inside each set alone: no pairs, any order, any dimensions.

    Parameters
    ----------
    source, target
        (n, d) and (m, e) arrays: numpy, torch tensors, data frames, lists; or ``bm.Views`` of several models; or a
        ``bm.Task`` in place of the source.
    solver, rng, callback, threads
        As in ``bm.solve``.
    time_limit
        Seconds; when they run out, the best match so far is returned. "auto" is 60 s, and no limit for thousands of
        items, which are matched without a proof (``docs/large.md``). None: no limit.
    start
        A match to begin with, for example ``permutation`` of an earlier result: the target of each source, -1 for none.
        The result costs no more, except that beyond 100 items a match on which several starts agree is preferred.
    min_confidence
        Keep only the pairs that are right with at least this probability according to ``Result.assess``; the others
        become -1. Cost and bound are those of the whole match. The assessment takes up to another `time_limit` seconds;
        pairs whose confidence is still unknown then become -1 too (with 0 they are kept). Ctrl-C, in the match or in
        the assessment, keeps all pairs: the status is then "interrupted", and a note says so.
    prior
        With `min_confidence`: the share of right pairs that you expect in such matches, or other items whose partners
        are known, as in ``Result.assess``.
    task
        Limits and the size of ``result.pool``, as in ``bm.solve``: `gap_limit`, `cost_limit`, `bound_limit`,
        `node_limit`, `solution_limit`, `work_limit`, `pool_size`. And what to match, as in ``bm.Task``: `kernels`,
        `weights`, `distortion`, `standardize`, `scale`, `metric`, `neighbors`, `known_pairs`, `known`,
        `forbidden_pairs`, `similarity`, `similarity_weight`, `unmatched_cost`, `max_unmatched`, `source_names`,
        `target_names`.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> bm.match(X, X[[3, 1, 0, 2]], rng=0).permutation.tolist()
    [2, 1, 3, 0]

    The last source is moved far away. With a price it stays unmatched, and so does its former partner:

    >>> moved = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [-9.0, 2.0]])
    >>> bm.match(moved, X[[3, 1, 0, 2]], standardize=False, unmatched_cost=4, rng=0).permutation.tolist()
    [2, 1, 3, -1]
    """
    limits = Limits(**{limit.name: task.pop(limit.name, None) for limit in fields(Limits)})
    pool_size = at_least(task.pop("pool_size", 1), 1, "pool_size")
    given = as_task(source, target, **task)
    least = None if min_confidence is None else as_share(min_confidence, "min_confidence")
    options = SolveOptions(solver, time_limit, rng, callback, threads, start, limits, pool_size)
    plan = AssessmentPlan(regret=False, prior=as_prior(prior, given))
    if prior is not None and least is None:
        raise ValueError(f"prior={shown(prior)} needs a min_confidence")
    if by_coordinates(given, options):
        refuse_prior(prior, max(given.sizes))
    given.warn_of_units()
    result = match_task(given, options)
    if least is None:
        return result
    if result.support is not None:  # a large match: it has confidences of its own
        return abstained_by(result, least)
    schedule = Schedule.of(rng, threads, as_seconds(time_limit))
    return assessed_or_kept(result, lambda: assess_result(result, plan, schedule), least)[0]


def as_task(source: ArrayLike | Views | Task | None, target: ArrayLike | Views | None, **options: Any) -> Task:
    """A task from the arguments of ``bm.match``; a task in place of the source is returned as it is."""
    if not isinstance(source, Task):
        return Task(source, target, **options)
    for name in (*(["target"] if target is not None else []), *options):
        raise ValueError(f"{name} is given together with a Task, which already has it; pass one or the other")
    return source
