"""What the solvers that call a mixed-integer programming code have in common."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linear_sum_assignment

from blindmatch.problem import QAP
from blindmatch.validation import FloatArray, IntArray

# Bounds of these codes hold up to their tolerances: constraints and integrality at 1e-9 in our settings, and no more than
# the scale of the problem can be gained for each. A hundred times that is taken off.
_MARGIN = 1e-8


def safe_bound(problem: QAP, bound: float) -> float | None:
    """A lower bound that holds in spite of the tolerances; None where the code has none yet."""
    if not math.isfinite(bound) or abs(bound) >= 1e19:  # SCIP's infinity is 1e20
        return None
    margin = _MARGIN * problem.scale
    # Rounding up cannot pass the optimum: a bound within a step of it is rounded to it.
    return problem.round_up(bound - margin) if margin < problem.granularity / 2 else bound - margin


def round_matrix(values: FloatArray) -> IntArray:
    """The permutation nearest to a matrix of nearly zeros and ones."""
    return np.asarray(linear_sum_assignment(-np.asarray(values))[1], dtype=np.intp)
