"""Proved regret: what any match without a pair costs more, at least."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.solving.result import Result
from blindmatch.solving.run import solve, tolerance
from blindmatch.trust.alternatives import without_pair
from blindmatch.validation import FloatArray, IntArray

LARGEST = 60  # beyond, one bound takes too long to have one for each pair


def proved_regret(
    problem: QAP,
    result: Result,
    match: IntArray,
    rows: IntArray,
    guess: FloatArray,
    rng: np.random.Generator,
    *,
    threads: int | None = None,
    deadline: float = math.inf,
    progress: Callable[[float], object] = lambda share: None,
) -> FloatArray:
    """(n,) for each source of `rows`: no match without its pair costs less than `cost` plus this.

    The problem is solved again with the pair forbidden, by branch and bound, and the checker's bound is taken. Time is
    shared evenly; a pair whose time ran out has a smaller number, at the worst the bound of the whole problem less the
    cost (which is 0 if the match is proved optimal, and negative if a cheaper match is not ruled out). Sources that no
    match can do without their pair have inf, and others nan. The least regrets in `guess` come first.
    """
    cost = problem.objective(match)
    floor = -math.inf if result.lower_bound is None else min(result.lower_bound, cost) - cost
    if -floor <= tolerance(problem, cost):
        floor = 0.0
    regret = np.full(problem.n, math.nan)
    regret[rows] = floor
    order = rows[np.argsort(guess[rows], kind="stable")]
    for at, row in enumerate(order):
        left = deadline - time.perf_counter()
        if left <= 0:
            break
        other = without_pair(problem, int(row), int(match[row]))
        if other is None:
            regret[row] = math.inf
            continue
        share = None if math.isinf(left) else max(left / (len(order) - at), 0.01)
        found = solve(other, "auto", time_limit=share, rng=rng, threads=threads)
        if found.lower_bound is not None:
            regret[row] = max(floor, found.lower_bound - cost)
        if found.status == "interrupted":
            raise KeyboardInterrupt
        progress((at + 1) / len(order))
    return regret
