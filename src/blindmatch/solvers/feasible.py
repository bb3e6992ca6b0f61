"""What follows from the forbidden pairs alone: forced pairs, and one allowed permutation."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from blindmatch.problem.qap import QAP
from blindmatch.validation import IntArray


def forced_pairs(problem: QAP) -> list[tuple[int, int]]:
    """Pairs without an alternative in their row or column, found one by one; at least one item stays free."""
    if problem.forbidden is None:
        return []
    free = ~problem.forbidden
    forced: list[tuple[int, int]] = []
    while len(forced) < problem.n - 1:
        single = np.argwhere(free & ((free.sum(1) == 1)[:, None] | (free.sum(0) == 1)[None, :]))
        if not len(single):
            break
        i, j = (int(index) for index in single[0])
        forced.append((i, j))
        free[i, :] = free[:, j] = False
    return forced


def feasible_permutation(problem: QAP) -> IntArray:
    """A permutation without forbidden pairs; ValueError if there is none."""
    if problem.forbidden is None:
        return np.arange(problem.n)
    _, columns = linear_sum_assignment(problem.forbidden.astype(float))
    if not problem.allows(columns):
        raise ValueError("forbidden (or known_pairs) leaves no permutation to choose from")
    return np.asarray(columns, dtype=np.intp)
