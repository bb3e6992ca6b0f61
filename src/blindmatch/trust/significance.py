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
from blindmatch.validation import FloatArray

ENOUGH = 10  # unrelated spaces that match as well: the p-value is then known well enough to stop
DOUBT = 0.1  # up to this p-value, other kinds of unrelated spaces are matched as well


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
    """

    p_value: float
    p_value_error: float
    draws: int
    z: float
    agreement: float | None

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
    """Match unrelated spaces with the same search as the real ones, until it is clear how rare the real cost is.

    With several kinds of unrelated spaces the largest p-value counts; a later kind is drawn only if the earlier ones
    give p <= 0.1. Constant kernels, for which every match costs the same, give p = 1. None if the deadline came before
    the first draw of every kind that is needed was matched.
    """
    problem = task.problem
    found = search(problem, part)
    if found is None:
        return None
    observed = found[1]
    slack = 1e-9 * problem.scale  # a tie counts against the match
    worst: Significance | None = None
    for null in nulls:
        costs, agreements = _sampled(task, null, draws, observed + slack, part)
        if not costs:  # without a draw of this kind nothing can be said
            return None
        agreed = float(np.mean(agreements)) if agreements else None
        test = _test(np.array(costs), observed, slack, agreed)
        if worst is None or test.p_value >= worst.p_value:
            worst = test
        if worst.p_value > DOUBT:
            break
    return worst


def _sampled(task: Task, null: Null, draws: int, limit: float, part: Part) -> tuple[list[float], list[float]]:
    """Costs and agreements of unrelated spaces: `draws`, or fewer if `ENOUGH` of them are within the limit before."""
    costs: list[float] = []
    agreements: list[float] = []
    hits = 0
    while len(costs) < draws and hits < ENOUGH:
        copy = null(part.rng)
        found = search(task.problem_with(target=copy), part)
        if found is None:
            break
        agreed = agreement((task.kernels[0], task.kernel_of(copy, 1)), task.reduced(found[0]))
        agreements += [] if agreed is None else [agreed]
        costs.append(found[1])
        hits += costs[-1] <= limit
        part.progress(max(len(costs) / draws, hits / ENOUGH))
    return costs, agreements


def _test(costs: FloatArray, observed: float, slack: float, agreement: float | None) -> Significance:
    """Besag and Clifford (1991): p = hits / draws where `ENOUGH` hits ended it, or else (1 + hits) / (1 + draws).

    Either is a valid p-value.
    """
    count, hits = len(costs), int((costs <= observed + slack).sum())
    p = hits / count if hits >= ENOUGH else (1 + hits) / (1 + count)
    spread = float(np.std(costs, ddof=1)) if count > 1 else 0.0
    z = (float(costs.mean()) - observed) / spread if spread > slack else 0.0
    return Significance(p, math.sqrt(p * (1 - p) / count), count, z, agreement)
