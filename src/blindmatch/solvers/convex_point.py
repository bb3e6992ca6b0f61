"""A point for the convex quadratic bound, by conjugate Frank-Wolfe steps with exact line search."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from blindmatch.machine import one_blas_thread
from blindmatch.problem.qap import QAP
from blindmatch.proof.convex import Spectrum, convex_bound, has_convex_bound, multipliers
from blindmatch.solvers.base import Budget
from blindmatch.validation import FloatArray

_STEPS, _FEWEST = 1000, 50
_MOST_SECONDS = 20.0
_STEP = 1.5e-9  # seconds of a step, over n^3
_SHARE = 0.8  # of the time that is left after the search
_LONGEST = 0.99  # weight of the earlier corner in a step's goal, at most
_FORBIDDEN = 1e6  # price of a forbidden pair, over the largest entry


def convex_point(problem: QAP, budget: Budget) -> FloatArray | None:
    """A doubly stochastic matrix at which the convex quadratic bound is good; None without the time or the bound."""
    seconds = min(_MOST_SECONDS, _SHARE * budget.remaining)
    steps = int(min(_STEPS, seconds / (_STEP * problem.n**3)))
    if steps < _FEWEST or not has_convex_bound(problem):
        return None
    with one_blas_thread():
        point = _descend(problem, steps, budget)
    budget.report(problem.round_up(convex_bound(problem, point)), None, bound="convex quadratic")
    return point


def _descend(problem: QAP, steps: int, budget: Budget) -> FloatArray:
    n = problem.n
    A, B = (matrix / np.abs(matrix).max() for matrix in problem.factors[0])
    unit = float(np.abs(problem.factors[0][0]).max()) * float(np.abs(problem.factors[0][1]).max())
    fixed = problem.linear / unit + np.outer(np.diag(A), np.diag(B))
    for matrix in (A, B):
        np.fill_diagonal(matrix, 0.0)
    fixed += np.outer(A.sum(axis=1), B.sum(axis=1)) * (2.0 / n)
    if problem.forbidden is not None:
        fixed[problem.forbidden] += _FORBIDDEN * np.abs(fixed).max()
    of_A, of_B = Spectrum(A), Spectrum(B)
    s, t, L, R = of_A.values, of_B.values[::-1], of_A.vectors, of_B.vectors[:, ::-1]
    p, q = multipliers(s, t)
    M = np.maximum(np.outer(s, t) - p[:, None] - q, 0.0)
    X, K = np.full((n, n), 1.0 / n), np.zeros((n - 1, n - 1))
    best, highest = X, -np.inf
    goal, goal_K = X, K  # where the last step went
    for _ in range(steps):
        slope = fixed + 2.0 * (L @ (M * K) @ R.T)
        rows, columns = linear_sum_assignment(slope)
        least = float(slope[rows, columns].sum())
        bound = least - float((M * K * K).sum())
        if bound > highest:
            best, highest = X, bound
        before, corner = goal_K - K, L[rows].T @ R[columns] - K
        length, across = (float((M * before * other).sum()) for other in (before, corner))
        # Conjugate to the last step; plain steps zigzag between the same corners.
        weight = min(max(across / (across - length), 0.0), _LONGEST) if across < 0.0 < length else 0.0
        goal, goal_K = weight * goal, K + weight * before + (1.0 - weight) * corner
        goal[rows, columns] += 1.0 - weight
        direction = goal_K - K
        curvature, descent = float((M * direction * direction).sum()), float((slope * (X - goal)).sum())
        if descent <= 0.0 or budget.stopped:
            break
        size = min(1.0, descent / (2.0 * curvature)) if curvature > 0.0 else 1.0
        X, K = X + size * (goal - X), K + size * direction
    return best
