"""The rotation that fits pairs of points: refined on mutual neighbours, or learned from a few pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from blindmatch.alignment.crew import Crew
from blindmatch.alignment.frame import Points
from blindmatch.alignment.neighbours import (
    NEIGHBOURHOOD,
    adjust,
    adjusted_similarity,
    closeness,
    column_closeness,
    mutual,
)
from blindmatch.validation import FloatArray, IntArray

Anchors = tuple[Points, Points]  # known pairs: directions of some source points, and of their partners

_ANCHOR = 20.0  # a known pair counts as much as so many pairs that a round finds


def procrustes(a: NDArray[np.floating], b: NDArray[np.floating]) -> Points:
    """The orthogonal matrix R that brings the rows of `a` nearest to those of `b`: argmin |a R - b|.

    >>> import numpy as np
    >>> turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> bool(np.allclose(procrustes(np.eye(2), turn), turn))
    True
    """
    left, _, right = np.linalg.svd(inner_products(a, b))
    return np.asarray(left @ right, dtype=np.float32)


def weighted_fit(products: FloatArray, weight: float) -> tuple[Points, Points, Points]:
    """Procrustes as two maps, and the rotation itself, from the inner products of the axes over all pairs.

    The two maps carry both sides to common axes, each weighted by this power of how strongly the pairs agree on it (its
    singular value). 1/2 finds the way from rougher starts, 0 ends nearer to the truth.
    """
    u, strengths, vt = np.linalg.svd(products)
    weights = (strengths / max(float(strengths[0]), 1e-300)) ** weight
    left, right = (u * weights).astype(np.float32), (vt.T * weights).astype(np.float32)
    return left, right, (u @ vt).astype(np.float32)


def inner_products(a: NDArray[np.floating], b: NDArray[np.floating]) -> FloatArray:
    """Inner products of the columns of `a` and `b`, in float64."""
    return np.asarray(a.astype(np.float64).T @ b.astype(np.float64))


def unit(points: Points) -> Points:
    """Scale each row to unit length; a zero row stays zero."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(lengths > 0, lengths, np.float32(1)))


def sample(points: Points, size: int, rng: np.random.Generator) -> Points:
    """A random sample of the rows, in their order; all rows if there are no more."""
    if len(points) <= size:
        return points
    return points[np.sort(rng.choice(len(points), size, replace=False))]


def refine(
    sides: tuple[Points, Points],
    rotation: Points,
    *,
    schedule: Iterable[int],
    size: int,
    rng: np.random.Generator,
    weight: float = 0.0,
    memory: float = 0.0,
    anchors: Anchors | None = None,
    one_to_one: bool = False,
) -> Points:
    """Improve a rotation on fresh samples of both sides, of `size` points each.

    The start is a rotation of as many leading axes as it has rows; `schedule` is the number of leading axes that each
    round fits. A rough start only knows the few main directions. In the others it would pair noise with noise, and the
    fit would learn it, so the axes are added step by step. `weight` is that of `weighted_fit`, for the search of the
    next pairs; `memory` is the weight that the pairs of earlier rounds keep in each new round.

    `anchors` are known pairs: they count in every round, together as much as half of the pairs that it finds, but none
    of them more than 20 of those. With `one_to_one`, a round pairs by assignment instead of mutual neighbours: every
    point of the smaller sample gets a partner, which settles more once the rotation is about right. These rounds end
    when the assignment stays the same.
    """
    left, right = rotation, np.eye(len(rotation), dtype=np.float32)
    sums, before = np.zeros(rotation.shape), None
    for components in schedule:
        known = len(left)
        a, b = (sample(points, size, rng) for points in sides)
        similarity = adjusted_similarity(unit(a[:, :known] @ left), unit(b[:, :known] @ right))
        rows, columns = pairs = linear_sum_assignment(similarity, maximize=True) if one_to_one else mutual(similarity)
        if one_to_one and before is not None and np.array_equal(pairs, before):
            break
        before = pairs
        products = inner_products(unit(a[rows, :components]), unit(b[columns, :components]))
        if anchors is not None:
            each = min(_ANCHOR, len(rows) / (2 * len(anchors[0])))
            first, second = (unit(side[:, :components]) for side in anchors)
            products += each * inner_products(first, second)
        sums = products + memory * sums if sums.shape == products.shape else products
        left, right, rotation = weighted_fit(sums, weight)
    return rotation


def overlap(a: Points, b: Points) -> float:
    """How well two sets overlap: the mean adjusted similarity of each point's best partner, in both directions."""
    similarity = adjusted_similarity(a, b)
    return float(similarity.max(axis=1).mean() + similarity.max(axis=0).mean()) / 2


_PER_STAGE = 4  # rounds with the same number of axes, before it doubles
_PATIENCE = 3  # rounds without a better score
_BETTER = 5e-4  # what counts as better
_GROWTH = 2.5  # factor by which the share of similarities grows
_CELLS = 2**26  # similarities of a round: 256 MB
_BLOCK = 2**21  # similarities that a thread takes at once
_BARRED = np.float32(10)  # more than similarities differ by


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of the source and the rows of the target that they are paired with, for the time being."""

    source: IntArray
    target: IntArray


NO_PAIRS = Pairs(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Learned:
    """A rotation and how well it serves."""

    rotation: Points  # (c, c) orthogonal
    score: float  # mean cosine of the sampled sources with their nearest target


@dataclass(frozen=True)
class LearningSchedule:
    """How a rotation is learned.

    The first rounds look at a random share of the similarities, which grows to 1 (stochastic dictionary induction).
    Small shares find the way out of poor starts.
    """

    first: int  # leading axes that the first rounds look at; they double until all are in
    keep: float = 1.0  # the share of similarities that the first rounds look at
    sample: int = 1500  # sources that a round looks at
    rounds: int = 120  # at most


def learn(
    sides: tuple[Points, Points],
    pairs: Pairs,
    schedule: LearningSchedule,
    *,
    rng: np.random.Generator,
    crew: Crew,
    anchors: Pairs = NO_PAIRS,
    better: Callable[[Learned], None] = lambda learned: None,
) -> Learned:
    """Grow a rotation of all axes from a few pairs, most of which may be wrong (Artetxe et al. 2018).

    The anchors are known pairs, which take part in every fit. `better` is called with the best so far, for when time
    runs out; axes that it does not know yet are zero.
    """
    source, target = sides
    full = source.shape[1]
    axes, keep, since = min(schedule.first, full), schedule.keep, 0
    best: Learned | None = None
    for number in range(schedule.rounds):
        crew.check()
        if number and number % _PER_STAGE == 0 and axes < full:
            axes, since, best = min(2 * axes, full), 0, None
        rows = np.concatenate([pairs.source, anchors.source])
        products = inner_products(source[rows, :axes], target[np.concatenate([pairs.target, anchors.target]), :axes])
        left, right, rotation = weighted_fit(products, weight=0.5)
        rows = rng.permutation(len(source))[: min(schedule.sample, 1 + _CELLS // len(target))]
        mapped = unit(source[rows, :axes] @ left), unit(target[:, :axes] @ right)
        chosen, partners, score = sampled_pairs(*mapped, keep, rng=rng, crew=crew)
        pairs = Pairs(rows[chosen], partners)
        if best is None or score > best.score + _BETTER:
            best, since = Learned(np.pad(rotation, (0, full - axes)), score), 0
            better(best)
        else:
            since += 1
        if since >= _PATIENCE and axes == full:
            if keep >= 1:
                break
            keep, since = min(1.0, _GROWTH * keep), 0
    assert best is not None
    return best


def sampled_pairs(
    a: Points, b: Points, keep: float, *, rng: np.random.Generator, crew: Crew
) -> tuple[IntArray, IntArray, float]:
    """Mutual CSLS neighbours of a few sources and all targets, and the mean cosine of the sources with their nearest.

    A share of the similarities, drawn at random, is not looked at: 1 - `keep`.
    """
    similarity = np.empty((len(a), len(b)), dtype=np.float32)
    of_b = np.empty(len(b), dtype=np.float32)
    forth, back = np.empty(len(a), dtype=np.intp), np.empty(len(b), dtype=np.intp)
    highest = np.empty(len(a), dtype=np.float32)
    count = min(NEIGHBOURHOOD, *similarity.shape)
    tall, wide = max(1, _BLOCK // len(b)), max(1, _BLOCK // len(a))
    seeds = rng.integers(2**63, size=-(-len(a) // tall))

    def compare(columns: slice) -> None:
        similarity[:, columns] = part = a @ b[columns].T
        of_b[columns] = column_closeness(part, count)

    def choose(rows: slice) -> None:
        part = similarity[rows]
        highest[rows] = part.max(axis=1)
        adjust(part, closeness(part, count), of_b)
        if keep < 1:
            drawn = np.random.default_rng(seeds[rows.start // tall]).random(part.shape, dtype=np.float32)
            part[drawn > keep] -= _BARRED
        forth[rows] = part.argmax(axis=1)

    def choose_back(columns: slice) -> None:
        back[columns] = similarity[:, columns].argmax(axis=0)

    for work, total, size in ((compare, len(b), wide), (choose, len(a), tall), (choose_back, len(b), wide)):
        for _ in crew.blocks(total, size, work):
            pass
    rows = np.flatnonzero(back[forth] == np.arange(len(a)))
    return rows, forth[rows], float(highest.mean())
