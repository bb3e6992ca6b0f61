"""A problem as the C++ core takes it."""

from __future__ import annotations

import numpy as np

from blindmatch import _core
from blindmatch.problem import QAP


def core_problem(problem: QAP) -> _core.Problem:
    """Hand the normal form over to the core."""
    form = problem.normal_form
    factors = [(np.ascontiguousarray(A), np.ascontiguousarray(B)) for A, B in form.factors]
    forbidden = form.forbidden if form.forbidden is not None and form.forbidden.any() else None
    return _core.Problem(factors, np.ascontiguousarray(form.linear), form.constant, forbidden)
