"""Test for structure in common: compare the cost of the best match with the costs of unrelated spaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtr

from blindmatch.geometry.correlation import agreement
from blindmatch.problem.task import Task
from blindmatch.trust.null import Null
from blindmatch.trust.search import MOST, Part, search
from blindmatch.trust.stability import redraw_dimensions, stability
from blindmatch.validation import FloatArray

ENOUGH = 10  # unrelated spaces that match as well: the p-value is then known well enough to stop
# Items from which on it also counts how much of a match is left in resampled spaces: of many items, unrelated spaces
# can be matched at a lower cost than two whose match is right for the most part.
BOTH = 30
RESAMPLES = 6
_STEADY = 15  # draws whose steadiness is measured where it does not count
_SEARCHES = 3  # of the real spaces, of which the median counts: of many items, a single search may be unlucky
_FEWEST_DRAWS, _WORK = 39, 4e5  # draws of each kind: at least so many (half of more than MOST items)


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
    """

    p_value: float
    p_value_error: float
    draws: int
    z: float
    agreement: float | None
    hits: int
    steadiness: float | None = None

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
    draws whenever the deadline comes. Constant kernels, for which every match costs the same, give p = 1. None if the
    deadline came before the first draw of every kind, or if there is no kind.
    """
    n = max(task.sizes)
    both = n >= BOTH and task.has_points
    observed = [_measured(task, None, part, both) for _ in range(_SEARCHES if both else 1)]
    if any(one is None for one in observed) or not nulls:
        return None
    found = [one for one in observed if one is not None]
    most = min(draws, max(_FEWEST_DRAWS if n <= MOST else _FEWEST_DRAWS // 2, int(_WORK / n**2)))
    samples: list[list[Measured]] = [[] for _ in nulls]
    while len(samples[-1]) < most:
        for null, sample in zip(nulls, samples, strict=True):
            steady = both or (task.has_points and len(sample) < _STEADY)
            measured = _measured(task, null(part.rng), part, steady)
            if measured is None:
                break
            sample.append(measured)
        else:
            tests = [_test(found, sample, both) for sample in samples]
            hits = max(test.hits for test in tests)
            part.progress(max(len(samples[-1]) / most, hits / ENOUGH))
            if hits < ENOUGH:
                continue
        break
    if not samples[-1]:
        return None
    return max((_test(found, sample, both) for sample in samples), key=lambda test: (test.p_value, -test.z))


@dataclass(frozen=True)
class Measured:
    """A match of the real spaces, or of the source with an unrelated space; the steadiness is nan if not measured."""

    cost: float
    steadiness: float
    agreement: float | None
    slack: float


def _measured(task: Task, copy: FloatArray | None, part: Part, steady: bool) -> Measured | None:
    """Match the target, or a copy in its place; None if the deadline cuts it short."""
    problem = task.problem if copy is None else task.problem_with(target=copy)
    found = search(problem, part)
    if found is None:
        return None
    kernels = task.kernels if copy is None else (task.kernels[0], task.kernel_of(copy, 1))
    kept = None
    if steady:
        points = task.all_points[0], task.all_points[1] if copy is None else copy
        redraws = redraw_dimensions(points[0]), redraw_dimensions(points[1])
        kept = stability(task, found[0], redraws, RESAMPLES, part)
    steadiness = math.nan if kept is None else float(kept.mean())
    return Measured(found[1], steadiness, agreement(kernels, task.reduced(found[0])), 1e-9 * problem.scale)


def _test(observed: Sequence[Measured], sample: Sequence[Measured], both: bool) -> Significance:
    """The share of draws that are as good; cost and steadiness are added in units of their spread over all of them.

    The observed match is one of those that the spread is taken from, so that it is treated as a draw is.
    p = (1 + hits) / (1 + draws) is a valid p-value also if the draws end after a fixed number of hits.
    """
    values = np.array([(one.cost, -one.steadiness) for one in (*observed, *sample)])
    steady = -float(np.nanmean(values[len(observed) :, 1])) if np.isfinite(values[len(observed) :, 1]).any() else None
    values = values if both else values[:, :1]
    spread = values.std(axis=0)
    flat = spread <= [observed[0].slack, *[0.0] * (values.shape[1] - 1)]  # a tie counts against the match
    scores = np.where(flat, 0.0, (values - values.mean(axis=0)) / np.where(flat, 1.0, spread)).sum(axis=1)
    own, others = float(np.median(scores[: len(observed)])), scores[len(observed) :]
    count, hits = len(sample), int((others <= own + 1e-9).sum())
    p = hits / count if hits >= ENOUGH else (1 + hits) / (1 + count)
    deviation = float(others.std(ddof=1)) if count > 1 else 0.0
    z = (float(others.mean()) - own) / deviation if deviation > 0 else 0.0
    agreed = [draw.agreement for draw in sample if draw.agreement is not None]
    alike = float(np.mean(agreed)) if agreed else None
    return Significance(p, math.sqrt(p * (1 - p) / count), count, z, alike, hits, steady)
