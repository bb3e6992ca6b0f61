"""Match a few cluster centres on each side: the starts of an alignment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from blindmatch.alignment.frame import Points
from blindmatch.geometry.kernels import unit_rows
from blindmatch.problem.distortions import GromovWasserstein
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Solver
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.interrupts import complete
from blindmatch.solving.result import Result
from blindmatch.solving.run import solve
from blindmatch.validation import FloatArray, IntArray

_SAMPLE = 10_000  # points that k-means uses: a few hundred per centre are enough
_SCREEN = Tabu(streams=2)  # no time limit, so that the same seed gives the same result


@dataclass(frozen=True, eq=False)
class CoarseStart:
    """One clustering of each side, and how well they match."""

    clusterings: tuple[int, int]  # the index of the clustering on each side
    source_centres: FloatArray  # (k, c) unit rows
    target_centres: FloatArray
    permutation: IntArray  # the match of the centres that a quick search found
    cost: float  # its distortion divided by k^2, comparable across starts

    @property
    def problem(self) -> QAP:
        """The match of the centres as an assignment problem."""
        return GromovWasserstein().problem(self.source_centres, self.target_centres)


def clusterings(points: Points, clusters: int, count: int, rng: np.random.Generator) -> list[FloatArray]:
    """Unit centres of `count` independent runs of k-means, each on its own sample."""
    from sklearn.cluster import KMeans  # takes a second to import, and `match` rarely needs it

    found = []
    for _ in range(count):
        sample = points[np.sort(rng.choice(len(points), min(len(points), _SAMPLE), replace=False))]
        means = KMeans(clusters, n_init=1, max_iter=100, random_state=int(rng.integers(2**31)))
        # The order of summation across threads would change the last digits, and with them the clustering.
        with threadpool_limits(1):
            means.fit(sample)
        found.append(unit_rows(means.cluster_centers_.astype(np.float64)))
    return found


def screened(
    sources: Sequence[FloatArray], targets: Sequence[FloatArray], rng: np.random.Generator
) -> Iterable[CoarseStart]:
    """Match every clustering of one side quickly with every clustering of the other.

    k-means partitions the same cloud differently from run to run. With s runs on each side there are s^2 chances that
    two of them partition alike, and the cost of the match shows which do.
    """
    for i, source in enumerate(sources):
        for j, target in enumerate(targets):
            start = CoarseStart((i, j), source, target, np.arange(len(source)), 0.0)
            result = solved(start, _SCREEN, rng=rng, threads=1)
            yield replace(start, permutation=result.permutation, cost=result.cost / len(source) ** 2)


def solved(start: CoarseStart, solver: Solver, **options: Any) -> Result:
    """The match of the centres, with its proof if the solver has one; `options` are those of ``bm.solve``."""
    return complete(solve(start.problem, solver, **options))
