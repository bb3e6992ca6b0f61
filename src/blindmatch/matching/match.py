"""Match two sets, or what a `Task` describes: what ``bm.match``, the estimators and the commands share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TextIO

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown
from blindmatch.geometry.views import Views
from blindmatch.matching.coordinate_matches import FEWEST, solve_from_coordinates
from blindmatch.matching.match_crossed import match_crossed
from blindmatch.matching.match_large import in_haste, match_large
from blindmatch.matching.price import suggest_price
from blindmatch.matching.ties import tie_notes
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task, with_dummies
from blindmatch.solvers.auto import Auto
from blindmatch.solvers.base import Callback, Solver
from blindmatch.solvers.progress import NO_LIMITS, Limits
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.limits import TimeLimit, as_seconds, note_limit
from blindmatch.solving.result import Result, attach_result
from blindmatch.solving.run import solve
from blindmatch.trust.abstention import abstained_by, assessed_or_kept
from blindmatch.trust.assessment import AssessmentPlan, Schedule, as_share, assess_result
from blindmatch.trust.prior import Prior, as_prior, refuse_prior
from blindmatch.validation import as_generator, as_partners, at_least


@dataclass(frozen=True)
class SolveOptions:
    """The options of a run; the attributes are the arguments of ``bm.match``."""

    solver: str | Solver = "auto"
    time_limit: TimeLimit = "auto"
    rng: int | np.random.Generator | None = None
    callback: Callback | None = None
    threads: int | None = None
    start: ArrayLike | None = None
    limits: Limits = NO_LIMITS
    pool_size: int = 1
    log: bool | TextIO = False

    @property
    def steering(self) -> dict[str, Any]:
        """The arguments of ``solve`` besides the problem, the solver, the clock and the starts."""
        plain = {name: getattr(self, name) for name in ("rng", "callback", "threads", "pool_size", "log")}
        return {**plain, **vars(self.limits)}

    @property
    def automatic(self) -> bool:
        """True if the program chooses the solver."""
        return self.solver in ("auto", Auto())


def match_task(task: Task, options: SolveOptions) -> Result:
    """Match; this is what ``bm.match`` and the command ``match`` share."""
    begin = time.perf_counter()
    if task.price_wanted:
        task = task.priced(suggest_price(task, as_seconds(options.time_limit)))
    if by_coordinates(task, options):
        given = [*(["start"] if options.start is not None else []), *options.limits.given]
        for name in [*given, *(["pool_size"] if options.pool_size > 1 else [])]:
            raise ValueError(f"{name} cannot be used for {max(task.sizes)} items, which are not matched by a solver")
        result = (match_crossed if task.crossed else match_large)(
            task,
            time_limit=as_seconds(options.time_limit, 60.0 if task.crossed else None),
            rng=as_generator(options.rng),
            callback=options.callback,
            threads=options.threads,
        )
        finish = partial(_add_notes, result, task)
    else:
        ties = tie_notes(task)  # before the search: nothing may come between a match and its return
        try:
            result = _solve(task, options, begin)
        except BaseException as error:
            found = getattr(error, "result", None)
            if isinstance(found, Result):  # of a failing callback: in the caller's numbering
                attach_result(error, _add_notes(_without_dummies(found, task), task))
            raise
        finish = partial(_in_pairs, result, task, ties, options.time_limit)
    try:
        return finish()
    except KeyboardInterrupt:  # in the last microseconds: it comes too late to stop anything
        return finish()


def _in_pairs(result: Result, task: Task, ties: Sequence[str], limit: TimeLimit) -> Result:
    return note_limit(_add_notes(_without_dummies(result, task), task, ties), limit)


def by_coordinates(task: Task, options: SolveOptions) -> bool:
    """Return True if a match is so large that no assignment problem is built."""
    limit, large = as_seconds(options.time_limit, None), task.too_large
    whole = task.known is None and not (task.given_layers or task.crossed)  # of one relation, and nothing else
    if options.start is None and whole and min(task.sizes) > Auto().largest:
        large = large or in_haste(task.sizes, task.distortion, task.hints, limit)
    return options.automatic and large


def _solve(task: Task, options: SolveOptions, begin: float) -> Result:
    """Solve the problem of a task, with no more dummies than needed, within the time limit that began at `begin`."""
    problem, limit = task.problem, as_seconds(options.time_limit)
    own = None if options.start is None else as_partners(options.start, task.sizes, "start")
    if own is not None:
        task.completed(own, "start")  # raises a ValueError if it leaves too many items unmatched
    if task.enough_dummies() < task.hints.max_unmatched:
        found = quick_search(task, options)
        if found.status == "interrupted":
            return found
        problem = small_problem(task, found, options.pool_size)
    if options.pool_size > 1:
        problem = problem.with_items(*task.sizes)  # matches that differ in dummies alone are the same
    left = None if limit is None else max(limit - (time.perf_counter() - begin), 1e-3)
    if options.automatic and min(task.sizes) >= FEWEST:
        return solve_from_coordinates(problem, task, time_limit=left, start=own, **options.steering)
    full = None if own is None else with_dummies(own, task.sizes[1], problem.n)  # None: it needs more dummies
    return solve(problem, options.solver, time_limit=left, start=full, **options.steering)


def quick_search(task: Task, options: SolveOptions) -> Result:
    """A good match in which any number of items may stay unmatched, in a tenth of the time."""
    limit = as_seconds(options.time_limit)
    limit = None if limit is None else 0.1 * limit
    return solve(
        task.problem.with_items(*task.sizes),
        Tabu(iterations=20 * task.problem.n),
        time_limit=limit,
        rng=options.rng,
        threads=options.threads,
        pool_size=options.pool_size,
    )


def small_problem(task: Task, found: Result, pool_size: int = 1) -> QAP:
    """The problem of a task with no more dummies than needed, if matches of these costs were found.

    If every item may stay unmatched, the problem has n + m items a side. But leaving many items unmatched may cost more
    than the matches that were found: then fewer dummies have the same optimum, and the same pool.
    """
    assert found.pool is not None
    if len(found.pool) < pool_size:
        return task.problem
    dummies = task.enough_dummies(float(found.pool.costs.max()), task.problem.scale)
    return task.problem if dummies == task.hints.max_unmatched else task.problem_with(dummies=dummies)


def _without_dummies(result: Result, task: Task) -> Result:
    pool = result.pool
    if pool is not None:
        rows = [task.reduced(one) for one in pool]
        whole = pool.costs.max() <= task.of_size(result.problem.n)[1]  # with fewer dummies, others may be missing
        pool = replace(pool, permutations=np.array(rows), complete=pool.complete and whole)
    return replace(result, permutation=task.reduced(result.permutation), pool=pool)


def _add_notes(result: Result, task: Task, further: Sequence[str] = ()) -> Result:
    """The result with its task, and with what the user should know about the relations and the price."""
    price = []
    if task.price is not None:
        cut = "" if task.price.curve else ", without trying prices: the time limit is too short for that"
        price = [f"unmatched_cost={task.price.price!r} was suggested{cut}"]
    return replace(result, task=task, notes=(*result.notes, *task.notes, *further, *price)).sealed()


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
        Limits, the size of ``result.pool`` and a log, as in ``bm.solve``: `gap_limit`, `cost_limit`, `bound_limit`,
        `node_limit`, `solution_limit`, `work_limit`, `pool_size`, `log`. And what to match, as in ``bm.Task``:
        `kernels`, `weights`, `crossed`, `edge_weights`, `distortion`, `standardize`, `scale`, `metric`, `neighbors`,
        `missing`, `known_pairs`, `known`, `forbidden_pairs`, `similarity`, `similarity_weight`, `unmatched_cost`,
        `max_unmatched`, `source_names`, `target_names`.

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
    log = task.pop("log", False)
    given = as_task(source, target, **task)
    least = None if min_confidence is None else as_share(min_confidence, "min_confidence")
    options = SolveOptions(solver, time_limit, rng, callback, threads, start, limits, pool_size, log)
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
