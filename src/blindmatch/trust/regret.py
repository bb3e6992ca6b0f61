"""Proved regret: what any match without a pair costs more, at least."""

from __future__ import annotations

import math

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.solving.interrupts import complete
from blindmatch.solving.run import solve, tolerance
from blindmatch.trust.alternatives import Alternatives, without_pair
from blindmatch.trust.search import Part
from blindmatch.validation import FloatArray, IntArray

LARGEST = 60  # beyond, one bound takes too long to have one for each pair


def proved_regret(
    problem: QAP, found: Alternatives, rows: IntArray, lower_bound: float | None, part: Part
) -> FloatArray:
    """(n,) for each source of `rows`: no match without its pair costs less than the match plus this.

    The problem is solved again with the pair forbidden, by branch and bound, and the checker's bound is taken. Time is
    shared evenly; a pair whose time ran out has a smaller number, at the worst the bound of the whole problem less the
    cost (which is 0 if the match is proved optimal, and negative if a cheaper match is not ruled out). Sources that no
    match can do without their pair have inf, and others nan. Pairs that are likely to have a small regret come first.
    """
    match, cost = found.matches[0], found.cost
    floor = -math.inf if lower_bound is None else min(lower_bound, cost) - cost
    if -floor <= tolerance(problem, cost):
        floor = 0.0
    regret = np.full(problem.n, math.nan)
    regret[rows] = floor
    order = rows[np.argsort(found.without[rows], kind="stable")]
    for at, row in enumerate(order):
        left = part.seconds_left
        if left <= 0:
            break
        other = without_pair(problem, int(row), int(match[row]))
        if other is None:
            regret[row] = math.inf
            continue
        share = None if math.isinf(left) else max(left / (len(order) - at), 0.01)
        best = complete(solve(other, "auto", time_limit=share, rng=part.rng, threads=part.threads))
        if best.lower_bound is not None:
            regret[row] = max(floor, best.lower_bound - cost)
        part.progress((at + 1) / len(order))
    return regret
