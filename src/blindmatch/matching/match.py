"""Match two sets of embeddings."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.problem.distortion import Distortion, Kernels, as_distortion
from blindmatch.problem.hints import Hints
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Callback, Solver
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.result import Result
from blindmatch.solving.run import solve
from blindmatch.trust.assessment import as_share, confident
from blindmatch.trust.spaces import Spaces
from blindmatch.validation import FloatArray, positive

Pairs = Iterable[tuple[int, int]]


def match(
    source: ArrayLike | None = None,
    target: ArrayLike | None = None,
    *,
    kernels: Kernels | None = None,
    distortion: str | Distortion = "gw",
    solver: str | Solver = "auto",
    standardize: bool = True,
    known_pairs: Pairs = (),
    forbidden_pairs: Pairs | ArrayLike = (),
    similarity: ArrayLike | None = None,
    similarity_weight: float = 1.0,
    unmatched_cost: float | None = None,
    max_unmatched: int | None = None,
    min_confidence: float | None = None,
    time_limit: float | None = None,
    rng: int | np.random.Generator | None = None,
    callback: Callback | None = None,
    threads: int | None = None,
) -> Result:
    """Match two sets of embeddings by the relations inside each set alone: no pairs, any order, any dimensions.

    The cost of a match is the distortion's loss, summed over all ordered pairs of matched items, plus two terms that
    are zero unless asked for::

        sum over matched i, k of loss(K[i, k], G[p[i], p[k]])
        - similarity_weight * sum over matched i of similarity[i, p[i]]
        + unmatched_cost * (number of unmatched sources + number of unmatched targets)

    Parameters
    ----------
    source, target
        (n, d) and (m, e) arrays: numpy, torch tensors, data frames, lists. If n < m every source gets a target of its
        own; if n > m every target is used, and ``permutation[i] == -1`` marks a source that is left over.
    kernels
        Instead of embeddings: (n, n) and (m, m) matrices of relations, for example distances.
    distortion
        "gw" (Gromov-Wasserstein), "gaussian", "cka", "mutual-knn", "kl", "inner-product", or a configured object.
    solver, time_limit, rng, callback, threads
        As in ``bm.solve``.
    standardize
        Bring both kernels to a common scale first, so that the units of the two spaces do not matter.
    known_pairs
        Pairs (source index, target index) that are known and must be kept.
    forbidden_pairs
        Pairs that must not be used, or an (n, m) matrix of booleans that is True there.
    similarity, similarity_weight
        (n, m) numbers, larger for pairs that seem more alike: a wish, not an order. One unit of similarity takes
        `similarity_weight` off the cost. The loss is a sum over n^2 ordered pairs, and each item has a part in 2n - 1
        of them: with "gw" a weight of n makes a unit of similarity count as much as half a unit of mean loss over all
        relations of the item, where a random pairing has a mean loss of 2; a weight of 1 decides little but ties.
    unmatched_cost
        The price of each item, on either side, that stays without a partner, so that outliers can do so. Without it
        as many items as possible are matched. An unmatched source and an unmatched target save together what their
        pair would have cost: with ``unmatched_cost=t * n``, pairs stay apart whose relations to the others differ by
        a loss of more than about t on average. With "gw" a random pair has 2 there and a perfect one 0, but an outlier
        finds the least bad of many partners, so try t = 0.3 first; for a price of 0 nothing needs a partner.
    max_unmatched
        At most so many items of the smaller set stay unmatched (of the larger, the difference of the sizes more). A
        small number makes a proof easier.
    min_confidence
        Keep only the pairs that are right with at least this probability, as ``bm.assess`` tells; the others become -1.
        Cost and bound stay those of the whole match. The assessment takes `time_limit` seconds more at most; pairs
        whose confidence it does not get to know become -1 as well (for 0 they are kept). Ctrl-C, in the match or in
        the assessment, leaves out no pair: the status is then "interrupted", and the message says so.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> bm.match(X, X[[3, 1, 0, 2]], rng=0).permutation.tolist()
    [2, 1, 3, 0]

    The last source is moved far away. For a price it stays alone, and its former partner as well:

    >>> moved = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [-9.0, 2.0]])
    >>> bm.match(moved, X[[3, 1, 0, 2]], standardize=False, unmatched_cost=4, rng=0).permutation.tolist()
    [2, 1, 3, -1]
    """
    chosen = as_distortion(distortion, standardize)
    K, G = chosen.kernels(source, target, kernels=kernels)
    hints = Hints.of(
        (len(K), len(G)),
        known_pairs=known_pairs,
        forbidden_pairs=forbidden_pairs,
        similarity=similarity,
        similarity_weight=similarity_weight,
        unmatched_cost=unmatched_cost,
        max_unmatched=max_unmatched,
    )
    if min_confidence is not None:
        as_share(min_confidence, "min_confidence")
    start = time.perf_counter()
    problem = small_problem(chosen, K, G, hints, rng=rng, time_limit=time_limit, threads=threads)
    left = None if time_limit is None else max(time_limit - (time.perf_counter() - start), 1e-3)
    try:
        result = solve(problem, solver, time_limit=left, rng=rng, callback=callback, threads=threads)
    except BaseException as error:
        if isinstance(getattr(error, "result", None), Result):  # of a failing callback: in the caller's numbering
            error.result = without_dummies(error.result, len(K), len(G))  # type: ignore[attr-defined]
        raise
    result = without_dummies(result, len(K), len(G))
    if min_confidence is None:
        return result
    return confident(
        result,
        lambda: Spaces.of(chosen, source, target, kernels, hints),
        min_confidence,
        time_limit=time_limit,
        rng=rng,
        threads=threads,
    )


def matching_problem(
    source: ArrayLike | None = None,
    target: ArrayLike | None = None,
    *,
    kernels: Kernels | None = None,
    distortion: str | Distortion = "gw",
    standardize: bool = True,
    known_pairs: Pairs = (),
    forbidden_pairs: Pairs | ArrayLike = (),
    similarity: ArrayLike | None = None,
    similarity_weight: float = 1.0,
    unmatched_cost: float | None = None,
    max_unmatched: int | None = None,
) -> QAP:
    """The problem that ``bm.match`` solves for the same arguments, for example to verify its certificate.

    Each side of the problem is its items and then dummies: an item whose partner is a dummy stays unmatched. It has
    ``max(n, m) + max_unmatched`` items a side if there is an `unmatched_cost`, or else ``max(n, m)``. ``match`` uses
    fewer dummies where a higher price than the match's whole cost rules more of them out; its certificate is then for
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
    chosen = as_distortion(distortion, standardize)
    K, G = chosen.kernels(source, target, kernels=kernels)
    hints = Hints.of(
        (len(K), len(G)),
        known_pairs=known_pairs,
        forbidden_pairs=forbidden_pairs,
        similarity=similarity,
        similarity_weight=similarity_weight,
        unmatched_cost=unmatched_cost,
        max_unmatched=max_unmatched,
    )
    return hints.problem(chosen, K, G)


def small_problem(
    distortion: Distortion,
    K: FloatArray,
    G: FloatArray,
    hints: Hints,
    *,
    rng: int | np.random.Generator | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
) -> QAP:
    """The problem of two kernels with hints, with no more dummies than needed.

    If every item may stay unmatched, the problem has n + m items a side. But the price of leaving many unmatched alone
    may be above what a match costs that a quick search finds: then fewer dummies give the same optimum.
    """
    if time_limit is not None:
        positive(time_limit, "time_limit")
    problem = hints.problem(distortion, K, G)
    if hints.max_unmatched == 0 or hints.enough_dummies(distortion, 0.0, 0.0) == hints.max_unmatched:
        return problem
    limit = None if time_limit is None else 0.1 * time_limit
    found = solve(problem, Tabu(iterations=20 * problem.n), time_limit=limit, rng=rng, threads=threads)
    if found.status == "interrupted":
        raise KeyboardInterrupt
    dummies = hints.enough_dummies(distortion, found.cost, problem.scale)
    return problem if dummies == hints.max_unmatched else hints.problem(distortion, K, G, dummies)


def without_dummies(result: Result, n: int, m: int) -> Result:
    """The result for the n sources and m targets that there are: sets are filled up with dummies to solve."""
    permutation = result.permutation[:n].copy()
    permutation[permutation >= m] = -1
    return replace(result, permutation=permutation)
