"""When a cost counts as optimal: the only definition, for results, for solvers and for the core."""

from __future__ import annotations

from blindmatch.problem.qap import QAP

RELATIVE_TOLERANCE = 1e-6  # of the cost: the paper's epsilon
ROUNDING_TOLERANCE = 1e-12  # of the size of the numbers that are summed: below it float64 cannot tell costs apart


def tolerance(problem: QAP, cost: float) -> float:
    """How far below the cost a proved bound may be for the cost to count as optimal.

    Where costs are known to differ by a step, bounds are rounded up to the next possible cost, and must meet the cost.
    """
    if problem.granularity > 0:
        return problem.granularity / 2
    return max(RELATIVE_TOLERANCE * abs(cost), ROUNDING_TOLERANCE * problem.scale)
