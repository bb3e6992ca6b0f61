"""Which relations to match by, chosen without the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.geometry.correlation import agreement
from blindmatch.geometry.kernels import distances
from blindmatch.machine import one_blas_thread
from blindmatch.matching.projection import chosen_count
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.distortions import Gaussian, GromovWasserstein
from blindmatch.problem.task import Task
from blindmatch.solvers.faq import FAQ
from blindmatch.solving.run import solve
from blindmatch.validation import FloatArray, IntArray, as_floats, as_generator, at_least

RELATIONS: tuple[Distortion, ...] = (
    GromovWasserstein(),
    GromovWasserstein(metric="correlation"),
    GromovWasserstein(metric="hops:correlation", neighbors=20),
    GromovWasserstein(metric="hops:correlation"),
    GromovWasserstein(metric="geodesic:correlation", neighbors=20),
    GromovWasserstein(metric="geodesic:correlation"),
    Gaussian(bandwidth=0.6),
    Gaussian(bandwidth=1.0),
)


@dataclass(frozen=True, eq=False)
class RelationScore:
    """A quick match by one relation, and how it looks without the truth.

    Attributes
    ----------
    distortion
        The relation.
    error
        How badly the neighbours of an item predict its partner, from 0 (perfectly) to about 1 (not at all), averaged
        over both directions; see ``Projection.errors``. A match that makes sense is continuous.
    agreement
        Correlation of the relations under the match; None where they are constant. It is not comparable between
        relations: the coarser they are, the better they seem to agree.
    permutation
        The match.
    """

    distortion: Distortion
    error: float
    agreement: float | None
    permutation: IntArray


@dataclass(frozen=True, eq=False)
class RelationChoice:
    """The relations that were tried, the most continuous match first."""

    scores: tuple[RelationScore, ...]

    @property
    def distortion(self) -> Distortion:
        """The relation whose match is the most continuous: for ``bm.match(..., distortion=...)``."""
        return self.scores[0].distortion

    def table(self) -> list[dict[str, Any]]:
        """One row for each relation, ready for JSON or a data frame."""
        return [
            {
                "distortion": type(score.distortion).__name__,
                "metric": score.distortion.metric,
                "neighbors": score.distortion.neighbors,
                "bandwidth": getattr(score.distortion, "bandwidth", None),
                "error": score.error,
                "agreement": score.agreement,
            }
            for score in self.scores
        ]


def choose_relation(
    source: ArrayLike,
    target: ArrayLike,
    *,
    relations: Sequence[Distortion] = RELATIONS,
    restarts: int = 2,
    rng: int | np.random.Generator | None = None,
    threads: int | None = None,
) -> RelationChoice:
    """Match two sets by each of several relations, quickly, and rank these by how continuous the match is.

    Costs of different relations cannot be compared, but continuity can: if a match is right, items that are neighbours
    in one set have partners that are neighbours in the other. Neighbours are by Euclidean distance for every relation.

    Parameters
    ----------
    source, target
        (n, d) and (m, e) embeddings.
    relations
        Distortions with their metrics; by default Euclidean distances, correlations, paths in graphs of 20 and of the
        default number of neighbours, and saturated distances.
    restarts
        Starts of the quick search for each relation.
    rng, threads
        As in ``bm.solve``.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> choice = bm.choose_relation(X, X[::-1], rng=0)
    >>> bm.match(X, X[::-1], distortion=choice.distortion, rng=0).permutation[:3].tolist()
    [29, 28, 27]
    """
    X, Y = as_floats(source, "source"), as_floats(target, "target")
    if not relations:
        raise ValueError("relations is empty; expected at least one distortion")
    solver = FAQ(restarts=at_least(restarts, 1, "restarts"), polish=False)
    generator = as_generator(rng)
    apart = distances(X), distances(Y)
    scores = []
    for at, distortion in enumerate(relations):
        task = Task(X, Y, distortion=distortion)
        seed = int(generator.integers(2**31))
        with one_blas_thread():
            found = task.reduced(solve(task.problem, solver, rng=seed, threads=threads).permutation)
        rows = np.flatnonzero(found >= 0)
        error = (_error(apart[0], rows, Y[found[rows]]) + _error(apart[1], found[rows], X[rows])) / 2
        agreed = agreement(task.kernels, found)
        scores.append((error, at, RelationScore(distortion, error, agreed, found)))
    return RelationChoice(tuple(score for _, _, score in sorted(scores, key=lambda entry: entry[:2])))


def _error(apart: FloatArray, rows: IntArray, ends: FloatArray) -> float:
    """The error of the best number of neighbours; 1 where there are too few items to tell."""
    _, errors = chosen_count(apart[np.ix_(rows, rows)], ends, "auto")
    return min(errors.values(), default=1.0)
