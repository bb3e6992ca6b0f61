"""Proved regret: how much more any match without a pair costs, at least."""

from __future__ import annotations

import math

import numpy as np

from blindmatch.problem.optimality import tolerance
from blindmatch.problem.qap import QAP
from blindmatch.solving.limits import complete
from blindmatch.solving.run import solve
from blindmatch.trust.alternatives import Alternatives, without_pair
from blindmatch.trust.search import Part
from blindmatch.validation import FloatArray, IntArray

LARGEST = 60  # items; beyond, there is no time for a bound for each pair


def proved_regret(
    problem: QAP, found: Alternatives, rows: IntArray, lower_bound: float | None, part: Part
) -> FloatArray:
    """(n,) for each source of `rows`: no match without its pair costs less than the match plus this.

    For each pair the problem is solved by branch and bound with the pair forbidden, and the checker's bound is taken.
    The time is shared evenly. If the time of a pair runs out, its regret is smaller than it could be, and nan if
    nothing was proved about it; so it is for other sources. It is inf if no match can do without the pair, 0 if another
    match costs the same, and negative if a cheaper match without the pair is not ruled out. Pairs with a small regret,
    as far as that is known, come first.
    """
    match, cost = found.matches[0], found.cost
    floor = -math.inf if lower_bound is None else min(lower_bound, cost) - cost
    if -floor <= tolerance(problem, cost):
        floor = 0.0
    regret = np.full(problem.n, math.nan)
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
        least = floor if best.lower_bound is None else max(floor, best.lower_bound - cost)
        if least > 0 or best.status == "optimal":
            regret[row] = least
        part.progress((at + 1) / len(order))
    return regret
