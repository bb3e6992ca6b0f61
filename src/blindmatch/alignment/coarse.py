"""Rough starts of an alignment: matched cluster centres, and rough pairs found in several independent ways."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from blindmatch.alignment.coordinates import Coordinates
from blindmatch.alignment.crew import Crew
from blindmatch.alignment.frame import Points
from blindmatch.alignment.neighbours import adjusted_nearest
from blindmatch.alignment.rotation import LearningSchedule, Pairs, learn, procrustes, unit
from blindmatch.geometry.kernels import unit_rows
from blindmatch.problem.known import FEWEST, Known
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Solver
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.limits import complete
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
    known: Known | None = None  # pairs of points that are known


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


def screen(
    sources: Sequence[FloatArray],
    targets: Sequence[FloatArray],
    rng: np.random.Generator,
    known: Known | None = None,
) -> Iterable[CoarseStart]:
    """Match every clustering of one side quickly with every clustering of the other; with some known pairs, with one.

    k-means partitions the same cloud differently from run to run. With s runs on each side there are s^2 chances that
    two of them partition alike, and the cost of the match shows which do. Known pairs tell more than such a chance.
    """
    for (i, source), (j, target) in product(enumerate(sources), enumerate(targets)):
        if known is not None and known.count >= FEWEST and i != j:
            continue
        start = CoarseStart((i, j), source, target, np.arange(len(source)), 0.0, known)
        result = match_centres(start, _SCREEN, rng=rng, threads=1)
        yield replace(start, permutation=result.permutation, cost=result.cost / len(source) ** 2)


def match_centres(start: CoarseStart, solver: Solver, **options: Any) -> Result:
    """The match of the centres, with its proof if the solver has one; `options` are those of ``bm.solve``."""
    problem = Task(start.source_centres, start.target_centres, known=start.known).problem
    return complete(solve(problem, solver, **options))


_PAIRED = 1500  # sources that are paired
_COLUMNS = 4000  # items that a signature looks at
_QUANTILES = 400  # numbers of a signature
_ROWS = 1000
_CLUSTERS, _CLUSTERINGS = 20, 4
_TRIAL = LearningSchedule(first=1, sample=300, rounds=24)  # of each choice of signs


def by_signatures(source: Coordinates, target: Coordinates, axes: int, rng: np.random.Generator, crew: Crew) -> Pairs:
    """Pair items whose similarities to their own side, sorted, are alike (the start of VecMap)."""
    quantiles = min(_QUANTILES, len(source), len(target))
    a, b = (_signatures(side, axes, quantiles, rng, crew) for side in (source, target))
    rows = np.sort(rng.choice(len(a), min(len(a), _PAIRED), replace=False))
    return Pairs(rows, adjusted_nearest(a[rows], b, 1, crew)[:, 0])


def by_centres(source: Coordinates, target: Coordinates, axes: int, rng: np.random.Generator, crew: Crew) -> Pairs:
    """Match the centres of clusters by their distances, and pair items that the centres' rotation brings together."""
    a, b = unit(source.points[:, :axes]), unit(target.points[:, :axes])
    clusters = min(_CLUSTERS, len(a) // 4, len(b) // 4)
    sides = [clusterings(points, clusters, _CLUSTERINGS, rng) for points in (a, b)]
    starts = []
    for start in screen(sides[0], sides[1], rng):
        crew.check()
        starts.append(start)
    best = min(starts, key=lambda start: start.cost)
    rotation = procrustes(best.source_centres, best.target_centres[best.permutation])
    return rotated_pairs(a, b, rotation, rng, crew)


def by_axes(source: Coordinates, target: Coordinates, axes: int, rng: np.random.Generator, crew: Crew) -> Pairs:
    """Take the principal axes for the same on both sides, turned so that their third moments have the same sign."""
    a, b = source.points[:, :axes], target.points[:, :axes]
    signs = np.sign((a**3).mean(axis=0) * (b**3).mean(axis=0))
    rotation = np.diag(np.where(signs == 0, 1, signs)).astype(np.float32)
    return rotated_pairs(unit(a), unit(b), rotation, rng, crew)


def by_signs(source: Coordinates, target: Coordinates, axes: int, rng: np.random.Generator, crew: Crew) -> Pairs:
    """Learn a little from every choice of the directions of the leading axes, and take the one that gets furthest.

    Where many items have no partner, moments do not tell the directions of the axes.
    """
    a, b = unit(source.points[:, :axes]), unit(target.points[:, :axes])
    sides, schedule = (source.directions, target.directions), replace(_TRIAL, first=axes)
    found = []
    for signs in product((1, -1), repeat=axes):
        pairs = rotated_pairs(a, b, np.diag(signs).astype(np.float32), rng, crew, _TRIAL.sample)
        found.append(learn(sides, pairs, schedule, rng=rng, crew=crew))
    return rotated_pairs(*sides, max(found, key=lambda learned: learned.score).rotation, rng, crew)


def rotated_pairs(
    a: Points, b: Points, rotation: Points, rng: np.random.Generator, crew: Crew, sample: int = _PAIRED
) -> Pairs:
    """A sample of sources, each with its nearest target after a rotation."""
    rows = np.sort(rng.choice(len(a), min(len(a), sample), replace=False))
    return Pairs(rows, adjusted_nearest(a[rows] @ rotation, b, 1, crew)[:, 0])


def _signatures(side: Coordinates, axes: int, quantiles: int, rng: np.random.Generator, crew: Crew) -> Points:
    """Quantiles of each item's similarities to its own side, centred: (n, q) rows of unit length.

    The similarities are those of the square root of the matrix of inner products: less of them is decided by the first
    few axes.
    """
    scaled = side.points[:, :axes] / np.sqrt(side.spreads[:axes]).astype(np.float32)
    columns = np.ascontiguousarray(scaled[rng.permutation(len(scaled))[:_COLUMNS]].T)
    at = np.linspace(0, columns.shape[1] - 1, quantiles).astype(np.intp)
    found = np.empty((len(scaled), len(at)), dtype=np.float32)

    def work(rows: slice) -> Points:
        similarity = scaled[rows] @ columns
        similarity.sort(axis=1)
        return np.asarray(similarity[:, at], dtype=np.float32)

    for rows, values in crew.blocks(len(scaled), _ROWS, work):
        found[rows] = values
    found = unit(found)
    return unit(found - found.mean(axis=0, dtype=np.float64).astype(np.float32))
