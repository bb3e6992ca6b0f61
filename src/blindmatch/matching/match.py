"""Match two sets of embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown
from blindmatch.matching.match_task import SolveOptions, by_coordinates, match_task
from blindmatch.matching.price import task_with_price
from blindmatch.problem.distortion import Distortion, Kernels
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Callback, Solver
from blindmatch.solving.limits import TimeLimit, as_seconds
from blindmatch.solving.result import Result
from blindmatch.trust.abstention import abstained_by, assessed_or_kept
from blindmatch.trust.assessment import AssessmentPlan, Schedule, as_share, assess_task
from blindmatch.trust.prior import Prior, as_prior, refuse_prior
from blindmatch.validation import as_generator

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
    prior: Prior | None = None,
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
    prior
        With `min_confidence`: the share of right pairs that you expect in such matches, or other items whose partners
        are known, as in ``bm.assess``.

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
    options = SolveOptions(solver, time_limit, rng, callback, threads, start)
    plan = AssessmentPlan(regret=False, prior=as_prior(prior, task))
    if prior is not None and least is None:
        raise ValueError(f"prior={shown(prior)} needs a min_confidence")
    if by_coordinates(task, options):
        refuse_prior(prior, max(task.sizes))
    task.warn_of_units()
    result = match_task(task, options)
    result = result if price is None else price.noted(result)
    if least is None:
        return result
    if result.support is not None:  # a large match: it has confidences of its own
        return abstained_by(result, least)
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
