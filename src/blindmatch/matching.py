"""Match two sets of embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.distortion import Distortion, Kernels, as_distortion
from blindmatch.result import Result
from blindmatch.solve import solve
from blindmatch.solvers.base import Callback, Solver
from blindmatch.validation import as_pairs


def match(
    source: ArrayLike | None = None,
    target: ArrayLike | None = None,
    *,
    kernels: Kernels | None = None,
    distortion: str | Distortion = "gw",
    solver: str | Solver = "auto",
    standardize: bool = True,
    known_pairs: Iterable[tuple[int, int]] = (),
    time_limit: float | None = None,
    rng: int | np.random.Generator | None = None,
    callback: Callback | None = None,
    threads: int | None = None,
) -> Result:
    """Match two sets of embeddings by the relations inside each set alone: no pairs, any order, any dimensions.

    Parameters
    ----------
    source, target
        (n, d) and (m, e) arrays. If n < m every source gets a target of its own; if n > m every target is used, and
        ``permutation[i] == -1`` marks a source that is left over.
    kernels
        Instead of embeddings: (n, n) and (m, m) matrices of relations, for example distances.
    distortion
        "gw" (Gromov-Wasserstein), "cka", "mutual-knn", "kl", "inner-product", or a configured object.
    solver, time_limit, rng, callback, threads
        As in ``bm.solve``.
    standardize
        Bring both kernels to a common scale first, so that the units of the two spaces do not matter.
    known_pairs
        Pairs (source index, target index) that are known and must be kept.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> bm.match(X, X[[3, 1, 0, 2]], rng=0).permutation.tolist()
    [2, 1, 3, 0]
    """
    chosen = as_distortion(distortion, standardize)
    K, G = chosen.kernels(source, target, kernels=kernels)
    problem = chosen.problem_of(K, G)
    pairs = as_pairs(known_pairs, (len(K), len(G)), "known_pairs")
    if pairs:
        problem = problem.with_known_pairs(pairs)
    result = solve(problem, solver, time_limit=time_limit, rng=rng, callback=callback, threads=threads)
    return without_dummies(result, len(K), len(G))


def without_dummies(result: Result, n: int, m: int) -> Result:
    """The result for the n sources and m targets that there are: unequal sets are filled up with dummies to solve."""
    permutation = result.permutation[:n].copy()
    permutation[permutation >= m] = -1
    return replace(result, permutation=permutation)
