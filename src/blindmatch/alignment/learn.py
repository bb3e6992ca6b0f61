"""Self-learning: pair mutual neighbours, fit the rotation to the pairs, and again (Artetxe et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from blindmatch.alignment.crew import Crew
from blindmatch.alignment.frame import Points
from blindmatch.alignment.neighbours import NEIGHBOURHOOD, adjusted, closeness, column_closeness
from blindmatch.alignment.refine import inner_products, unit, weighted_fit
from blindmatch.validation import IntArray

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

    def joined(self, others: Pairs) -> Pairs:
        """These pairs and the others in one list."""
        return Pairs(np.concatenate([self.source, others.source]), np.concatenate([self.target, others.target]))


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
    """Grow a rotation of all axes from a few pairs, most of which may be wrong.

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
        known = pairs.joined(anchors)
        products = inner_products(source[known.source, :axes], target[known.target, :axes])
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

    def compared(columns: slice) -> None:
        similarity[:, columns] = part = a @ b[columns].T
        of_b[columns] = column_closeness(part, count)

    def chosen(rows: slice) -> None:
        part = similarity[rows]
        highest[rows] = part.max(axis=1)
        adjusted(part, closeness(part, count), of_b)
        if keep < 1:
            drawn = np.random.default_rng(seeds[rows.start // tall]).random(part.shape, dtype=np.float32)
            part[drawn > keep] -= _BARRED
        forth[rows] = part.argmax(axis=1)

    def chosen_back(columns: slice) -> None:
        back[columns] = similarity[:, columns].argmax(axis=0)

    for work, total, size in ((compared, len(b), wide), (chosen, len(a), tall), (chosen_back, len(b), wide)):
        for _ in crew.blocks(total, size, work):
            pass
    rows = np.flatnonzero(back[forth] == np.arange(len(a)))
    return rows, forth[rows], float(highest.mean())
