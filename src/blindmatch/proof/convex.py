"""The convex quadratic bound (Anstreicher & Brixius 2001): above the projection bound, O(n^3) time and O(n^2) memory.

For symmetric A and B with zero diagonals, let V'AV = W S W' and V'BV = U T U' (V as in `spectral.py`, S ascending, T
descending). For a permutation P, O = W'V'PVU is orthogonal, so that the squares of its entries sum up to 1 in each row
and column, and the quadratic part of the cost is, for any numbers p and q,

    sum_ij s_i t_j O_ij^2 = sum p + sum q + sum_ij M_ij O_ij^2,     M_ij = s_i t_j - p_i - q_j.

Where M >= 0, O^2 >= 2KO - K^2 makes the last sum at least a linear function of P, for any matrix K: what is left is an
assignment problem. The certificate holds a matrix X, and K = W'V'XVU. All of p, q and X may be anything: entries of M
below zero are paid for, (n - 1) times the least.
"""

from __future__ import annotations

import math

import numpy as np

from blindmatch.machine import one_blas_thread
from blindmatch.problem.qap import QAP
from blindmatch.proof.rounding import EPS, TINY, assignment_bounds, guarded
from blindmatch.proof.spectral import column_duals, norm, projected, reflected, scaled
from blindmatch.validation import FloatArray

_LARGEST_POINT = 1e3


def has_convex_bound(problem: QAP) -> bool:
    """Whether the problem has one pair of symmetric factors that do not vanish."""
    if len(problem.factors) != 1 or problem.n < 3:
        return False
    return all(matrix.any() and bool((matrix == matrix.T).all()) for matrix in problem.factors[0])


def convex_bound(problem: QAP, point: FloatArray) -> float:
    """A lower bound on the cost of every permutation, rounded down safely; -inf if LAPACK fails or for other problems.

    Raises a ValueError where the point is not a matrix of the problem's size with numbers of reasonable size.
    """
    if point.shape != (problem.n, problem.n) or not (np.abs(point) <= _LARGEST_POINT).all():
        raise ValueError(
            f"certificate: a point of shape {point.shape}; expected {(problem.n, problem.n)} and numbers up to "
            f"{_LARGEST_POINT:g}"
        )
    if not has_convex_bound(problem):
        return -math.inf
    try:
        with guarded(), one_blas_thread():
            return _convex_bound(problem, np.asarray(point, dtype=np.float64))
    except (FloatingPointError, np.linalg.LinAlgError):
        return -math.inf


def _convex_bound(problem: QAP, point: FloatArray) -> float:
    n = problem.n
    (A, a), (B, b) = (scaled(matrix) for matrix in problem.factors[0])
    diagonals = np.outer(np.diag(A), np.diag(B))
    for matrix in (A, B):
        np.fill_diagonal(matrix, 0.0)
    spectra = Spectrum(A), Spectrum(B)
    tangent, value, error = _tangent(*spectra, point)
    row_sums = A.sum(axis=1), B.sum(axis=1)
    # Row sums and products of them: as in `spectral.py`. Both errors of the spectra count with the norm of the other.
    error += 32 * (n + 4) * EPS * norm(A) * norm(B)
    for one, other in (spectra, spectra[::-1]):
        error += 2 * one.error * (norm(other.values) + other.error)
    value -= float(row_sums[0].sum() * row_sums[1].sum()) / n**2
    linear = np.ldexp(diagonals + np.outer(*row_sums) * (2.0 / n) + tangent, a + b)
    reach = float(np.abs(linear).max() + np.abs(problem.linear).max()) + math.ldexp(float(np.abs(tangent).max()), a + b)
    linear += problem.linear
    constant = math.fsum([problem.constant, math.ldexp(value, a + b)])
    allowed = problem.allowed
    duals = column_duals(np.where(allowed, linear, np.abs(linear).sum() + linear))
    bound = assignment_bounds(linear, allowed, duals, constant)[0]
    error = math.ldexp(error, a + b) + 8 * EPS * (n * reach + abs(constant) + abs(problem.constant)) + 8 * n**2 * TINY
    return bound - error * (1 + 8 * EPS) - 2 * EPS * abs(bound) if math.isfinite(bound) else bound


class Spectrum:
    """Eigenvalues w of V'MV for a symmetric M, ascending, and the eigenvectors L = VW of VV'MVV' as columns.

    With V'MV = Q diag(w) Q' + R, whatever Q and w are, and Q'Q = I + S, |S| < 1/4, the nearest orthogonal matrix W is
    within |S| of Q. So V'MV is within |R| + 2.25 |S| |w| of W diag(w) W', all in the Frobenius norm; `error` bounds it.
    L is computed by the reflection: within `defect` of VW, where |Q| <= 1.2 sqrt(n).
    """

    def __init__(self, matrix: FloatArray) -> None:
        n = len(matrix)
        M = projected(matrix)
        self.values, Q = np.linalg.eigh(M)
        rounding = (n + 4) * EPS
        residual = norm(M - (Q * self.values) @ Q.T) + rounding * (norm(Q * self.values) * norm(Q) + norm(M))
        defect = norm(Q.T @ Q - np.eye(n - 1)) + rounding * (norm(Q) ** 2 + n)
        if not (residual < math.inf and defect < 0.25):  # also where one of them is NaN
            raise FloatingPointError("LAPACK's eigenvectors are not orthogonal")
        self.error = 32 * rounding * norm(matrix) + 2 * residual + 3 * defect * norm(self.values)
        self.vectors = reflected(np.vstack([np.zeros(n - 1), Q]))
        self.defect = 1.1 * defect + 16 * rounding * 1.2 * math.sqrt(n)


def multipliers(s: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Numbers p and q with p_i + q_j <= s_i t_j, for s ascending and t descending, and equality for i = j.

    The mean of two solutions: steps along the diagonal from its first entry, and from its last one.
    """
    first, last = (_steps(x, y) for x, y in ((s, t), (s[::-1], t[::-1])))
    return (first[0] + last[0][::-1]) / 2, (first[1] + last[1][::-1]) / 2


def _steps(s: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    # q rises by s_i (t_{i+1} - t_i), so that p_i + q_{i+1} = s_i t_{i+1}, and p takes what is left on the diagonal.
    q = np.concatenate([[0.0], np.cumsum(s[:-1] * np.diff(t))])
    return s * t - q, q


def _tangent(of_A: Spectrum, of_B: Spectrum, point: FloatArray) -> tuple[FloatArray, float, float]:
    """A matrix G, a number c and an error: the quadratic part is at least <G, P> + c less the error."""
    n = len(point)
    s, t = of_A.values, of_B.values[::-1]
    L, R = of_A.vectors, of_B.vectors[:, ::-1]
    p, q = multipliers(s, t)
    M = np.outer(s, t) - p[:, None] - q
    sizes = float(np.abs(s).max() * np.abs(t).max() + np.abs(p).max() + np.abs(q).max())
    missing = max(0.0, -float(M.min())) + 4 * EPS * sizes  # what an entry lacks to be at least that of max(M, 0)
    M = np.maximum(M, 0.0)
    K = L.T @ point @ R
    N = M * K
    G = 2.0 * (L @ N @ R.T)
    squares = float((N * K).sum())
    value = math.fsum([*p.tolist(), *q.tolist(), -squares])
    size = norm(N)
    # <N, O> is <VWNU'V', P>, and |P| = sqrt(n). L and R are within their defects of VW and VU, whose norm is 1; both
    # products with them are wrong by (n + 4) EPS times the norms, at most 1.5 n in all; rounding N itself costs EPS.
    error = 2 * math.sqrt(n) * size * (2 * (of_A.defect + of_B.defect) + 8 * n * (n + 4) * EPS)
    error += (n - 1) * missing + 4 * n**2 * EPS * squares + 4 * n * EPS * sizes
    return G, value, error * (1 + 8 * EPS) + 8 * n**2 * TINY
