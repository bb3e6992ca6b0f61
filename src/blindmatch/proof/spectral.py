"""The projection bound (Hadley, Rendl & Wolkowicz 1992): weak but cheap, O(n^3) time and O(n^2) memory.

A permutation matrix is P = ee^T/n + V Q V^T with V an orthonormal basis of the complement of e and Q orthogonal. In

    <A, P B P^T> = <V^T A V, Q (V^T B V) Q^T> + <2/n (Ae)(Be)^T, P> - (e^T A e)(e^T B e) / n^2

the first term is bounded by the eigenvalues of both, the second joins the linear term: an assignment problem.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from blindmatch.problem.qap import QAP
from blindmatch.validation import FloatArray

EPS = 2.0**-53
TINY = 2.0**-1074  # what an operation below the normal range of float64 may be wrong by


def projection_bound(problem: QAP) -> float:
    """A lower bound on the cost of every permutation, rounded down safely (forbidden pairs only make it larger)."""
    form = problem.normal_form
    n = problem.n
    linear = form.linear.copy()
    total, error = form.constant, abs(form.constant)
    for A, B in form.factors:
        if (A == A.T).all():
            rows_a, rows_b = A.sum(axis=1), B.sum(axis=1)
            linear += np.outer(rows_a, rows_b) * (2.0 / n)
            total -= float(rows_a.sum() * rows_b.sum()) / n**2
            a, b = np.linalg.eigvalsh(_projected(A)), np.linalg.eigvalsh(_projected(B))
            total += float(a @ b[::-1])  # the least pairing: ascending against descending
            error += float(np.abs(A).sum() * np.abs(B).max())
        else:
            # <A, X B X^T> >= -sum of products of singular values, for any orthogonal X
            a, b = (np.linalg.svd(matrix, compute_uv=False) for matrix in (A, B))
            total -= float(a @ b)
        # Eigenvalues are exact for a matrix that differs by a small multiple of n eps in norm (Weyl's inequality).
        error += n * float(np.linalg.norm(A) * np.linalg.norm(B))
    if problem.forbidden is not None:
        # A finite price that no optimum pays unless it must keeps the assignment problem feasible.
        linear = np.where(problem.forbidden, np.abs(linear).sum() + linear, linear)
    rows, columns = linear_sum_assignment(linear)
    chosen = linear[rows, columns]
    total += float(chosen.sum())
    error += n * n * float(np.abs(linear).max())  # scipy compares rounded sums of any entries, not only of the best
    return total - 32 * (EPS * error + n * n * n * TINY)


def _projected(matrix: FloatArray) -> FloatArray:
    """V^T M V, with the Householder reflection that takes e to a multiple of the first unit vector."""
    n = len(matrix)
    if n == 1:
        return np.zeros((0, 0))
    v = np.ones(n)
    v[0] += np.sqrt(n)
    v /= np.linalg.norm(v)
    half = matrix - 2.0 * np.outer(v, v @ matrix)
    full = half - 2.0 * np.outer(half @ v, v)
    return (full[1:, 1:] + full[1:, 1:].T) / 2
