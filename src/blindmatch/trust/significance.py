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
from blindmatch.trust.search import Part, search
from blindmatch.trust.stability import redraw_gently, reproducibility
from blindmatch.validation import FloatArray

ENOUGH = 10  # unrelated spaces that match as well: the p-value is then known well enough to stop
# Items from which on it also counts whether resampled spaces give the same match: of many items, unrelated spaces can
# be matched at a lower cost than two whose match is right for the most part.
BOTH = 30
RESAMPLES = 4
_FEWEST_DRAWS, _WORK = 39, 4e5  # draws of each kind: at least so many, as far as the time limit allows


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
    """

    p_value: float
    p_value_error: float
    draws: int
    z: float
    agreement: float | None
    hits: int

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
    observed = _measured(task, None, part)
    if observed is None or not nulls:
        return None
    n = max(task.sizes)
    most = min(draws, max(_FEWEST_DRAWS, int(_WORK / n**2)))
    samples: list[list[Measured]] = [[] for _ in nulls]
    while len(samples[-1]) < most:
        for null, sample in zip(nulls, samples, strict=True):
            measured = _measured(task, null(part.rng), part)
            if measured is None:
                break
            sample.append(measured)
        else:
            tests = [_test(observed, sample) for sample in samples]
            hits = max(test.hits for test in tests)
            part.progress(max(len(samples[-1]) / most, hits / ENOUGH))
            if hits < ENOUGH:
                continue
        break
    if not samples[-1]:
        return None
    return max((_test(observed, sample) for sample in samples), key=lambda test: (test.p_value, -test.z))


@dataclass(frozen=True)
class Measured:
    """A match of the real spaces, or of the source with an unrelated space.

    `values` are smaller for better matches: the cost and, from `BOTH` items on, minus the reproducibility.
    """

    values: tuple[float, ...]
    agreement: float | None
    slack: float


def _measured(task: Task, copy: FloatArray | None, part: Part) -> Measured | None:
    """Match the target, or a copy in its place; None if the deadline cuts it short."""
    problem = task.problem if copy is None else task.problem_with(target=copy)
    found = search(problem, part)
    if found is None:
        return None
    kernels = task.kernels if copy is None else (task.kernels[0], task.kernel_of(copy, 1))
    values = [found[1]]
    if max(task.sizes) >= BOTH and task.has_points:
        points = task.all_points[0], task.all_points[1] if copy is None else copy
        same = reproducibility(task, (redraw_gently(points[0]), redraw_gently(points[1])), RESAMPLES, part)
        if same is None:
            return None
        values.append(-same)
    return Measured(tuple(values), agreement(kernels, task.reduced(found[0])), 1e-9 * problem.scale)


def _test(observed: Measured, sample: Sequence[Measured]) -> Significance:
    """The share of draws that are as good; two values are added in units of their spread over all of them.

    The observed match is one of those that the spread is taken from, so that it is treated as a draw is.
    p = (1 + hits) / (1 + draws) is a valid p-value also if the draws end after a fixed number of hits.
    """
    values = np.array([observed.values, *(draw.values for draw in sample)])
    spread = values.std(axis=0)
    flat = spread <= [observed.slack, *[0.0] * (values.shape[1] - 1)]  # a tie counts against the match
    scores = np.where(flat, 0.0, (values - values.mean(axis=0)) / np.where(flat, 1.0, spread)).sum(axis=1)
    count, hits = len(sample), int((scores[1:] <= scores[0] + 1e-9).sum())
    p = hits / count if hits >= ENOUGH else (1 + hits) / (1 + count)
    own = float(scores[1:].std(ddof=1)) if count > 1 else 0.0
    z = (float(scores[1:].mean()) - float(scores[0])) / own if own > 0 else 0.0
    agreed = [draw.agreement for draw in sample if draw.agreement is not None]
    return Significance(p, math.sqrt(p * (1 - p) / count), count, z, float(np.mean(agreed)) if agreed else None, hits)
