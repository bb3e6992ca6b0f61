"""When a cost counts as optimal: the only definition, for results, for solvers and for the core."""

from __future__ import annotations

from blindmatch.problem.qap import QAP

RELATIVE_TOLERANCE = 1e-6  # of the cost: the paper's epsilon
ROUNDING_TOLERANCE = 1e-12  # of the size of the numbers that are summed: below it float64 cannot tell costs apart

_SHARE = 0.9  # of the tolerance: what searches use up of it


def tolerance(problem: QAP, cost: float) -> float:
    """How far below the cost a proved bound may be for the cost to count as optimal.

    Where costs are known to differ by a step, bounds are rounded up to the next possible cost, and must meet the cost.
    """
    if problem.granularity > 0:
        return problem.granularity / 2
    return max(RELATIVE_TOLERANCE * abs(cost), ROUNDING_TOLERANCE * problem.scale)


def closing_bound(problem: QAP, cost: float) -> float:
    """The bound at which a search may end because nothing that counts as better can cost more.

    >>> import blindmatch as bm
    >>> closing_bound(bm.QAP([[0, 1], [1, 0]], [[0, 3], [3, 0]]), 6.0)  # doctest: +ELLIPSIS
    5.99...e-06
    """
    step = problem.granularity
    return cost - (1 - 1e-6) * step if step > 0 else cost - _SHARE * tolerance(problem, cost)
