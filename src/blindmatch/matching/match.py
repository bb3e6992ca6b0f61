"""Match two sets of embeddings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown
from blindmatch.matching.match_large import in_haste, match_large, too_large
from blindmatch.matching.price import task_with_price
from blindmatch.matching.starts import FEWEST, solve_from_coordinates
from blindmatch.matching.ties import tie_notes
from blindmatch.problem.distortion import Distortion, Kernels
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task, with_dummies
from blindmatch.solvers.auto import Auto
from blindmatch.solvers.base import Callback, Solver
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.limits import TimeLimit, as_seconds, with_limit_noted
from blindmatch.solving.result import Result, attach_result
from blindmatch.solving.run import solve
from blindmatch.trust.abstention import abstained_by, assessed_or_kept
from blindmatch.trust.assessment import AssessmentPlan, Schedule, as_share, assess_task
from blindmatch.validation import IntArray, as_array, as_generator

Pairs = Iterable[tuple[int, int]]


def match(
    source: ArrayLike | Task | None = None,
    target: ArrayLike | None = None,
    *,
    kernels: Kernels | None = None,
    distortion: str | Distortion = "gw",
    solver: str | Solver = "auto",
    standardize: bool = True,
    scale: str = "none",
    metric: str | tuple[str, str] = "euclidean",
    neighbors: int | tuple[int, int] | None = None,
    known_pairs: Pairs = (),
    forbidden_pairs: Pairs | ArrayLike = (),
    similarity: ArrayLike | None = None,
    similarity_weight: float = 1.0,
    unmatched_cost: float | Literal["auto"] | None = None,
    max_unmatched: int | None = None,
    min_confidence: float | None = None,
    time_limit: TimeLimit = "auto",
    start: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    callback: Callback | None = None,
    threads: int | None = None,
) -> Result:
    """Match two sets of embeddings by the relations inside each set alone: no pairs, any order, any dimensions.

    The cost of a match is the distortion's loss, summed over all ordered pairs of matched items, plus two optional
    terms::

        sum over matched i, k of loss(K[i, k], G[p[i], p[k]])
        - similarity_weight * sum over matched i of similarity[i, p[i]]
        + unmatched_cost * (number of unmatched sources + number of unmatched targets)

    Parameters
    ----------
    source, target
        (n, d) and (m, e) arrays: numpy, torch tensors, data frames, lists. If n < m every source gets a target of its
        own; if n > m every target is used, and ``permutation[i] == -1`` marks a source without a partner. In place of
        the source: a ``bm.Task``, which holds all arguments up to `max_unmatched`.
    kernels
        Instead of embeddings: (n, n) and (m, m) matrices of relations, for example distances, or the sparse adjacency
        matrices of two graphs. ``bm.fill_missing`` fills in missing relations (nan).
    distortion
        "gw" (Gromov-Wasserstein), "gaussian", "cka", "mutual-knn", "kl", "inner-product", or a configured object. A
        name may have options: "gaussian:bandwidth=0.48".
    time_limit
        Seconds; when they run out, the best match so far is returned. "auto" is 60 s, and no limit for thousands of
        items, which are matched without a proof (``docs/large.md``). None: no limit.
    start
        A match to begin with, for example ``permutation`` of an earlier result: the target of each source, -1 for none.
        The result costs no more, except that beyond 100 items a match on which several starts agree is preferred.
    solver, rng, callback, threads
        As in ``bm.solve``.
    standardize
        Bring both kernels to a common scale first, so that the two sides may have different units. The columns of one
        side are not changed: see `scale`.
    scale
        How to scale the columns of each side, for tables whose columns have units: "none"; "columns", z-scores;
        "robust", by median and quartiles; "log", z-scores after the logarithm of wide positive columns; "auto", which
        decides (`docs/embeddings.md` has the rule). With "none" a warning says when one column outweighs the others.
    metric, neighbors
        How dissimilar two items of one set are: "euclidean", "cosine", "correlation" or any other metric of scipy's
        ``cdist``; "geodesic", the length of the shortest path in a graph that joins each item to its nearest
        `neighbors` (50, or a fifth of the items if that is fewer), or "hops", the number of its edges. In the graph,
        "geodesic:cosine" uses another metric than the Euclidean. If the graph is not connected, its parts are joined by
        the shortest links, and the message says so. A pair of names, or of numbers, is for the source and the target.
        With `kernels`, only paths are available: along the edges of a sparse graph, or along nearest neighbours.
    known_pairs
        Pairs (source index, target index) that are known and must be kept.
    forbidden_pairs
        Pairs that must not be used, or an (n, m) matrix of booleans that is True there.
    similarity, similarity_weight
        (n, m) numbers, larger for pairs that seem more alike: a preference, not a constraint. One unit of similarity
        lowers the cost by `similarity_weight`. The loss is a sum over n^2 ordered pairs, and each item is part of
        2n - 1 of them: with "gw" a weight of n makes a unit of similarity count as much as half a unit of mean loss
        over all relations of the item, where a random pairing has a mean loss of 2; a weight of 1 only breaks ties.
    unmatched_cost
        What each item without a partner adds to the cost, on either side, so that outliers can stay unmatched. Without
        it as many items as possible are matched. An unmatched source and an unmatched target save what their pair would
        have cost: with ``unmatched_cost=t * n``, pairs are not formed if their relations to the others differ by a mean
        loss of more than about t. With "gw" a random pair has a mean loss of 2 and a perfect one 0, but an outlier gets
        the least bad of many partners, so try t = 0.3 first. With 0, nothing needs a partner. "auto" suggests a price,
        by how many pairs quick searches match at twelve prices (up to 400 items on both sides together). The message
        tells it; ``assess`` and ``write_report`` take that number.
    max_unmatched
        The largest number of items of the smaller set that may stay unmatched; in the larger set, the difference of the
        sizes is added. A small number makes a proof easier.
    min_confidence
        Keep only the pairs that are right with at least this probability according to ``bm.assess``; the others become
        -1. Cost and bound are those of the whole match. The assessment takes up to another `time_limit` seconds; pairs
        whose confidence is still unknown then become -1 too (with 0 they are kept). Ctrl-C, in the match or in the
        assessment, keeps all pairs: the status is then "interrupted", and the message says so.

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
    task, price = task_with_price(
        source,
        target,
        kernels=kernels,
        distortion=distortion,
        standardize=standardize,
        scale=scale,
        metric=metric,
        neighbors=neighbors,
        known_pairs=known_pairs,
        forbidden_pairs=forbidden_pairs,
        similarity=similarity,
        similarity_weight=similarity_weight,
        unmatched_cost=unmatched_cost,
        max_unmatched=max_unmatched,
    )
    least = None if min_confidence is None else as_share(min_confidence, "min_confidence")
    warn_of_units(task)
    result = match_task(task, SolveOptions(solver, time_limit, rng, callback, threads, start))
    result = result if price is None else price.noted(result)
    if least is None:
        return result
    if result.support is not None:  # a large match: it has confidences of its own
        return abstained_by(result, least)
    plan = AssessmentPlan(regret=False)
    return assessed_or_kept(
        result,
        lambda: assess_task(result, task, plan, Schedule(as_generator(rng), threads, as_seconds(time_limit))),
        least,
    )[0]


def matching_problem(
    source: ArrayLike | Task | None = None,
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
    unmatched_cost: float | Literal["auto"] | None = None,
    max_unmatched: int | None = None,
) -> QAP:
    """The problem that ``bm.match`` solves for the same arguments, for example to verify its certificate.

    Each side consists of its items, then dummies: an item whose partner is a dummy stays unmatched. With an
    `unmatched_cost` there are ``max(n, m) + max_unmatched`` items a side, without it ``max(n, m)``. ``match`` uses
    fewer dummies where leaving more items unmatched would cost more than the whole match; its certificate is then for
    ``max_unmatched=certificate.size - max(n, m)``.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> result = bm.match(X, X[::-1], forbidden_pairs=[(0, 3)], rng=0)
    >>> problem = bm.matching_problem(X, X[::-1], forbidden_pairs=[(0, 3)])
    >>> bool(np.isclose(bm.verify(problem, result.certificate), result.lower_bound))
    True
    """
    task, _ = task_with_price(
        source,
        target,
        kernels=kernels,
        distortion=distortion,
        standardize=standardize,
        scale=scale,
        metric=metric,
        neighbors=neighbors,
        known_pairs=known_pairs,
        forbidden_pairs=forbidden_pairs,
        similarity=similarity,
        similarity_weight=similarity_weight,
        unmatched_cost=unmatched_cost,
        max_unmatched=max_unmatched,
    )
    return task.problem


@dataclass(frozen=True)
class SolveOptions:
    """How to solve; the attributes are the arguments of ``bm.match``."""

    solver: str | Solver = "auto"
    time_limit: TimeLimit = "auto"
    rng: int | np.random.Generator | None = None
    callback: Callback | None = None
    threads: int | None = None
    start: ArrayLike | None = None

    @property
    def automatic(self) -> bool:
        """Whether the way to solve is left to the program."""
        return self.solver in ("auto", Auto())


def warn_of_units(task: Task) -> None:
    """Warn if one column of a side outweighs the others, and no scale was chosen."""
    sides = zip(task.heaviest, ("source", "target"), strict=True)
    heavy = [f"column {side[0]} of the {name} {outweighs(side[1])}" for side, name in sides if side is not None]
    if heavy:
        warnings.warn(f"{'; '.join(heavy)}. scale='auto' brings columns to a common scale", stacklevel=3)


def outweighs(share: float) -> str:
    """What is wrong with a column that has this share of the squared distances."""
    return f"carries {min(100 * share, 99.9):.3g} % of the squared distances, so the other columns hardly count"


def match_task(task: Task, options: SolveOptions) -> Result:
    """Match; this is what ``bm.match`` and the command ``match`` share."""
    limit, large = as_seconds(options.time_limit, None), too_large(task.sizes, task.hints.max_unmatched)
    if options.start is None and min(task.sizes) > Auto().largest:
        large = large or in_haste(task.sizes, task.distortion, task.hints, limit)
    if options.automatic and large:
        if options.start is not None:
            raise ValueError(f"start cannot be used for {max(task.sizes)} items, which are matched by coordinates")
        result = match_large(
            task,
            time_limit=limit,
            rng=as_generator(options.rng),
            callback=options.callback,
            threads=options.threads,
        )
        return _noted(result, task)
    ties = tie_notes(task)  # before the search: nothing may come between a match and its return
    try:
        result = _solved(task, options)
    except BaseException as error:
        found = getattr(error, "result", None)
        if isinstance(found, Result):  # of a failing callback: in the caller's numbering
            attach_result(error, _without_dummies(found, task))
        raise
    return with_limit_noted(_noted(_without_dummies(result, task), task, ties), options.time_limit)


def _solved(task: Task, options: SolveOptions) -> Result:
    """Solve the problem of a task, with no more dummies than needed, within the time limit."""
    begin = time.perf_counter()
    problem, limit = task.problem, as_seconds(options.time_limit)
    own = None if options.start is None else task.reduced(task.completed(_as_partners(options.start, task)))
    if task.enough_dummies() < task.hints.max_unmatched:
        found = quick_search(task, options)
        if found.status == "interrupted":
            return found
        problem = small_problem(task, found)
    left = None if limit is None else max(limit - (time.perf_counter() - begin), 1e-3)
    if options.automatic and min(task.sizes) >= FEWEST:
        return solve_from_coordinates(
            problem,
            task,
            time_limit=left,
            rng=options.rng,
            callback=options.callback,
            threads=options.threads,
            start=own,
        )
    full = None if own is None else with_dummies(own, task.sizes[1], problem.n)  # None: it needs more dummies
    return solve(
        problem,
        options.solver,
        time_limit=left,
        rng=options.rng,
        callback=options.callback,
        threads=options.threads,
        start=full,
    )


def _as_partners(start: ArrayLike, task: Task) -> IntArray:
    """The target of each source, -1 for none, checked."""
    n, m = task.sizes
    partners = as_array(start, "start")
    if partners.shape != (n,) or partners.dtype.kind not in "iu" or partners.min() < -1 or partners.max() >= m:
        raise ValueError(f"start={shown(start)}; expected {n} integers: targets below {m}, or -1")
    used = partners[partners >= 0]
    if len(np.unique(used)) < len(used):
        raise ValueError(f"start={shown(start)} uses a target twice")
    return partners.astype(np.intp)


def quick_search(task: Task, options: SolveOptions) -> Result:
    """A good match in which any number of items may stay unmatched, in a tenth of the time."""
    limit = as_seconds(options.time_limit)
    limit = None if limit is None else 0.1 * limit
    solver = Tabu(iterations=20 * task.problem.n)
    return solve(task.problem, solver, time_limit=limit, rng=options.rng, threads=options.threads)


def small_problem(task: Task, found: Result) -> QAP:
    """The problem of a task with no more dummies than needed, if a match of this cost was found.

    If every item may stay unmatched, the problem has n + m items a side. But leaving many items unmatched may cost more
    than the match that was found: then fewer dummies have the same optimum.
    """
    dummies = task.enough_dummies(found.cost, task.problem.scale)
    return task.problem if dummies == task.hints.max_unmatched else task.problem_with(dummies=dummies)


def _without_dummies(result: Result, task: Task) -> Result:
    return replace(result, permutation=task.reduced(result.permutation))


def _noted(result: Result, task: Task, further: Sequence[str] = ()) -> Result:
    """The result, with what the user should know about the relations in its message."""
    return replace(result, message="; ".join(filter(None, [result.message, *task.notes, *further])))
