"""Test for structure in common: compare the cost of the best match with the costs of unrelated spaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri, stdtr

from blindmatch.geometry.correlation import agreement, centred_agreement
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task
from blindmatch.trust.rotation import Null
from blindmatch.trust.search import MOST, Part, search
from blindmatch.trust.stability import predicted, redraw_dimensions, stability
from blindmatch.validation import FloatArray

ENOUGH = 10  # unrelated spaces that match as well: the p-value is then known well enough to stop
# Items from which on it also counts how much of a match is left in resampled spaces: of many items, unrelated spaces
# can be matched at a lower cost than two whose match is right for the most part.
BOTH = 30
RESAMPLES = 6  # half of them for more than MOST items
_EARLY = 15  # draws whose likeness is measured, and whose steadiness is where it does not count
_PILOT = 5  # draws of each kind after which, of many items, one kind goes on
_SEARCHES = 3  # of the real spaces, of which the median counts: of many items, a single search may be unlucky
_FEWEST_DRAWS, _WORK = 39, 4e5  # draws of each kind: at least so many


@dataclass(frozen=True)
class Significance:
    """The outcome of the test.

    Attributes
    ----------
    p_value, p_value_error
        How often unrelated spaces match at least as well, and the Monte Carlo standard error of that share.
    draws
        How many unrelated spaces were matched.
    z
        How many standard deviations the cost is below the mean cost of unrelated spaces.
    agreement
        The mean agreement of the unrelated spaces under their best match; None if it is undefined.
    hits
        How many of them match at least as well.
    steadiness
        The mean share of a match of unrelated spaces that is left in resampled ones; None if it was not measured.
    centred, predicted
        The same of the agreement without the mean of each item, by Fisher's transform, and of the share of pairs that
        the other pairs predict.
    """

    p_value: float
    p_value_error: float
    draws: int
    z: float
    agreement: float | None
    hits: int
    steadiness: float | None = None
    centred: float | None = None
    predicted: float | None = None

    @property
    def signal(self) -> float:
        """`z`, allowing for a mean and a deviation from few draws: the normal score of the same tail probability."""
        if self.draws >= ENOUGH:
            return self.z
        if self.draws < 2:
            return 0.0
        t = self.z / math.sqrt(1 + 1 / self.draws)
        return -float(ndtri(stdtr(self.draws - 1, -t)))


def significance(task: Task, nulls: Sequence[Null], draws: int, part: Part) -> Significance | None:
    """Match unrelated spaces with the same search as the real ones, until it is clear how rare the real match is.

    With several kinds of unrelated spaces the largest p-value counts. They are drawn in turn, so that each has its
    draws whenever the deadline comes; of many items, only the kind that matches best after a few draws goes on.
    Constant kernels, for which every match costs the same, give p = 1. None if the deadline came before the first draw
    of every kind, or if there is no kind.
    """
    n = max(task.sizes)
    both = n >= BOTH and task.has_points
    observed = [_measured(task, None, part, both) for _ in range(_SEARCHES if both else 1)]
    early, likeness = _PILOT if both else _EARLY, [own_likeness(kernel, part) for kernel in task.kernels]
    if any(one is None for one in observed) or None in likeness or not nulls:
        return None
    test = _Test([one for one in observed if one is not None], min(one for one in likeness if one is not None), both)
    most = min(draws, max(_FEWEST_DRAWS, int(_WORK / n**2)))
    samples: list[list[Measured]] = [[] for _ in nulls]
    while len(samples[-1]) < most:
        for null, sample in zip(nulls, samples, strict=True):
            first = len(sample) < early
            measured = _measured(task, null(part.rng), part, both or (task.has_points and first), first)
            if measured is None:
                break
            sample.append(measured)
        else:
            found = test.of(samples)
            if both and len(samples) > 1 and len(samples[0]) == _PILOT:
                best = int(np.argmin([one.z for one in found]))
                nulls, samples = nulls[best : best + 1], samples[best : best + 1]
            hits = max(one.hits for one in found)
            part.progress(max(len(samples[-1]) / most, hits / ENOUGH))
            if hits < ENOUGH:
                continue
        break
    if not samples[-1]:
        return None
    return max(test.of(samples), key=lambda one: (one.p_value, -one.z))


@dataclass(frozen=True)
class Measured:
    """A match of the real spaces, or of the source with an unrelated space; what was not measured is nan.

    Attributes
    ----------
    cost, steadiness, agreement, centred, predicted
        As in `Significance`.
    extra
        How much the cost exceeds what the distribution of the relations alone allows.
    likeness
        How alike the unrelated space is to itself (`own_likeness`).
    slack, unit
        Differences of costs that are rounding errors; what a correlation of 1 saves.
    """

    cost: float
    extra: float
    steadiness: float
    likeness: float
    agreement: float | None
    slack: float
    unit: float
    centred: float = math.nan
    predicted: float = math.nan


def _measured(task: Task, copy: FloatArray | None, part: Part, steady: bool, likeness: bool = False) -> Measured | None:
    """Match the target, or a copy in its place; None if the deadline cuts it short."""
    problem = task.problem if copy is None else task.problem_with(target=copy)
    found = search(problem, part)
    if found is None:
        return None
    kernels = task.kernels if copy is None else (task.kernels[0], task.kernel_of(copy, 1))
    own = own_likeness(kernels[1], part) if likeness else math.nan
    if own is None:
        return None
    partners = task.reduced(found[0])
    measured = Measured(
        cost=found[1],
        extra=found[1] - sum(least_product(A, B) for A, B in problem.factors),
        steadiness=math.nan,
        likeness=own,
        agreement=agreement(kernels, partners),
        slack=1e-9 * problem.scale,
        unit=sum(A.size * float(A.std() * B.std()) for A, B in problem.factors),
    )
    if not steady:
        return measured
    points = task.all_points[0], task.all_points[1] if copy is None else copy
    redraws = redraw_dimensions(points[0]), redraw_dimensions(points[1])
    kept = stability(task, found[0], redraws, RESAMPLES if problem.n <= MOST else RESAMPLES // 2, part)
    return replace(
        measured,
        steadiness=math.nan if kept is None else float(kept.mean()),
        centred=fisher(centred_agreement(kernels, partners)),
        predicted=float(predicted(points, partners).mean()),
    )


def fisher(correlation: float | None) -> float:
    """Fisher's transform of a correlation, 0 where that is undefined."""
    return math.atanh(min(max(correlation or 0.0, -0.99), 0.99))


def least_product(A: FloatArray, B: FloatArray) -> float:
    """About the least that a sum of products can be, by how the relations are distributed.

    Those of each item are sorted, and the smallest of all items, the next ones, and so on are sorted again.
    """
    first, second = (np.sort(np.sort(matrix, axis=1), axis=0) for matrix in (A, B))
    return float((first * second[::-1, ::-1]).sum())


def own_likeness(kernel: FloatArray, part: Part) -> float | None:
    """How alike a set is to itself when every item takes the place of another: the correlation of the relations.

    It is 1 for the corners of a polygon or pairs of duplicates. None if the deadline cuts the search short.
    """
    n = len(kernel)
    off = ~np.eye(n, dtype=bool)
    spread = float(kernel[off].std()) if n > 1 else 0.0
    if n < 3 or spread <= 1e-9 * float(np.abs(kernel).max()):
        return 1.0
    K = np.where(off, (kernel - kernel[off].mean()) / spread, 0.0)
    found = search(QAP(-K, K, forbidden=~off), part)
    return None if found is None else -found[1] / (n * (n - 1))


@dataclass(frozen=True)
class _Test:
    """How the observed matches (the median counts) compare with those of unrelated spaces.

    `likeness` is that of the real spaces, of the one that is less like itself.
    """

    observed: Sequence[Measured]
    likeness: float
    both: bool

    def of(self, samples: Sequence[Sequence[Measured]]) -> list[Significance]:
        """The test against each kind of unrelated spaces."""
        design = self.design(samples)
        return [self.against(sample, design) for sample in samples]

    def against(self, sample: Sequence[Measured], design: float = 0.0) -> Significance:
        """The share of draws that are as good, although the real match is treated as if it cost `design` more.

        p = (1 + hits) / (1 + draws) is a valid p-value also if the draws end after a fixed number of hits.
        """
        scores = self._scores([one.extra for one in (*self.observed, *sample)], sample, design)
        own, others = float(np.median(scores[: len(self.observed)])), scores[len(self.observed) :]
        count, hits = len(sample), int((others <= own + 1e-9).sum())
        p = hits / count if hits >= ENOUGH else (1 + hits) / (1 + count)
        scores = self._scores([one.cost for one in (*self.observed, *sample)], sample)
        own, others = float(np.median(scores[: len(self.observed)])), scores[len(self.observed) :]
        deviation = float(others.std(ddof=1)) if count > 1 else 0.0
        z = (float(others.mean()) - own) / deviation if deviation > 0 else 0.0
        alike = _mean([math.nan if draw.agreement is None else draw.agreement for draw in sample])
        means = (_mean([getattr(one, name) for one in sample]) for name in ("steadiness", "centred", "predicted"))
        return Significance(p, math.sqrt(p * (1 - p) / count), count, z, alike, hits, *means)

    def design(self, samples: Sequence[Sequence[Measured]]) -> float:
        """What both real spaces may save because they are made in the same way, not because they correspond.

        Two sets of pairs, or of points on the same figure, match well whatever the items are. Such sets are more like
        themselves than copies are, of whatever kind. Of many items, a match that is better than what each set has in
        common with itself is not explained by that.
        """
        alike = self.observed[0].agreement
        if self.both and alike is not None and alike >= self.likeness:
            return 0.0
        known = [[one.likeness for one in sample if math.isfinite(one.likeness)] for sample in samples]
        usual = max((float(np.mean(values)) for values in known if values), default=1.0)
        return self.observed[0].unit * max(0.0, self.likeness - usual)

    def _scores(self, costs: Sequence[float], sample: Sequence[Measured], added: float = 0.0) -> FloatArray:
        """Costs, and where it counts also steadiness, each in units of its spread over observed and drawn matches.

        The observed match is one of those that the spread is taken from, so that it is treated as a draw is.
        """
        steady = [-one.steadiness if self.both else 0.0 for one in (*self.observed, *sample)]
        values = np.column_stack([costs, steady])
        spread = values.std(axis=0)
        values[: len(self.observed), 0] += added
        flat = spread <= [self.observed[0].slack, 0.0]  # a tie counts against the match
        return np.asarray(np.where(flat, 0.0, (values - values.mean(axis=0)) / np.where(flat, 1.0, spread)).sum(axis=1))


def _mean(values: Sequence[float]) -> float | None:
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else None
