"""Two bounds, weak but cheap, O(n^3) time and O(n^2) memory: of Gilmore and Lawler (1962), and by projection.

What row i of A costs with row j of B is at least the sum of the products of their entries, ascending with descending.
So are columns, and the mean of both. As a linear term, that is an assignment problem: the Gilmore-Lawler bound. It is
the better one for sparse graphs.

The projection bound is that of Hadley, Rendl and Wolkowicz (1992).

A permutation matrix is P = ee^T/n + V Q V^T with V an orthonormal basis of the complement of e and Q orthogonal. For
symmetric A and B, in

    <A, P B P^T> = <V^T A V, Q (V^T B V) Q^T> + <2/n (Ae)(Be)^T, P> - (e^T A e)(e^T B e) / n^2

the first term is bounded by the eigenvalues of both, and the second joins the linear term: an assignment problem. The
antisymmetric parts K of A and B contribute at least what the eigenvalues of the Hermitian matrices iK allow.

Nothing here trusts LAPACK or scipy. Eigenvalues count with an error that is computed from their eigenvectors, and the
assignment problem with column duals, of which any prove a bound. Matrices are scaled by powers of two, so that their
largest entry is between 1/2 and 1: then no square overflows, and what underflows is far below the rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from blindmatch.machine import one_blas_thread
from blindmatch.problem.qap import QAP
from blindmatch.proof.rounding import EPS, TINY, assignment_bounds, guarded
from blindmatch.validation import FloatArray

_MOST = 1000  # items up to which the duals of any assignment problem take little time: n rounds of n^2 steps


def cheap_bound(problem: QAP) -> tuple[float, str]:
    """The better of both lower bounds on the cost of every permutation, rounded down safely, and which it is."""
    by_rows = _safely(gilmore_lawler_bound, problem) if problem.n <= _MOST else -math.inf
    by_spectra = projection_bound(problem)
    return (by_rows, "Gilmore-Lawler") if by_rows > by_spectra else (by_spectra, "projection")


def projection_bound(problem: QAP) -> float:
    """The projection bound, rounded down safely; -inf if LAPACK fails."""
    return _safely(_projection_bound, problem)


def _safely(bound: Callable[[QAP], float], problem: QAP) -> float:
    """A bound, or -inf if it fails.

    LAPACK runs on one thread: its last digits do not depend on the machine then, and two threads of it take many times
    as long where other programs use the cores.
    """
    try:
        with guarded(), one_blas_thread():
            return bound(problem)
    except (FloatingPointError, np.linalg.LinAlgError):
        return -math.inf


def gilmore_lawler_bound(problem: QAP) -> float:
    """The least sum of what each pair costs at least, by the rows and by the columns of the factors."""
    n, factors = problem.n, len(problem.factors)
    linear, error, reach = problem.linear.copy(), 0.0, float(np.abs(problem.linear).max())
    for pair in problem.factors:
        if not all(matrix.any() for matrix in pair):
            continue
        (A, a), (B, b) = (scaled(matrix) for matrix in pair)
        unit = math.ldexp(1.0, a + b)
        ways = [(A, B)] if (A == A.T).all() and (B == B.T).all() else [(A, B), (A.T, B.T)]
        for X, Y in ways:
            least = _others(X) @ _others(Y)[:, ::-1].T / len(ways)
            linear += np.ldexp(least, a + b)
        linear += np.ldexp(np.outer(np.diag(A), np.diag(B)), a + b)
        # An entry of `least` is a sum of n - 1 products of numbers up to 1, and half of it.
        error += unit * n * 4 * (n + 4) * (n * EPS + TINY) + 4 * n * TINY
        reach += unit * (n + 1)
    error += EPS * n * (3 * factors + 2) * reach
    costs = np.where(problem.allowed, linear, np.abs(linear).sum() + linear)
    bound = assignment_bounds(linear, problem.allowed, column_duals(costs), problem.constant)[0]
    return bound - error * (1 + 8 * EPS) - 2 * EPS * abs(bound) if math.isfinite(bound) else bound


def _others(matrix: FloatArray) -> FloatArray:
    """(n, n - 1) the entries of each row outside the diagonal, ascending."""
    n = len(matrix)
    return np.sort(matrix[~np.eye(n, dtype=bool)].reshape(n, n - 1), axis=1)


def _projection_bound(problem: QAP) -> float:
    n, factors = problem.n, len(problem.factors)
    linear = problem.linear.copy()
    terms, error = [problem.constant], TINY * 4 * n**2 * (factors + 1)
    reach = float(np.abs(linear).max())  # no entry of `linear` is larger on the way
    for pair in problem.factors:
        if not all(matrix.any() for matrix in pair):
            continue
        (A, a), (B, b) = (scaled(matrix) for matrix in pair)
        unit = math.ldexp(1.0, a + b)
        row_sums, value, value_error = _quadratic_part(A, B)
        diagonal = bool(np.diag(A).any() and np.diag(B).any())
        linear += np.ldexp(np.outer(np.diag(A), np.diag(B)), a + b)
        linear += np.ldexp(np.outer(*row_sums) * (2.0 / n), a + b)
        terms.append(math.ldexp(value, a + b))
        error += unit * value_error
        reach += unit * (2 * n + 1)
    error += EPS * n * (2 * factors + 2) * reach
    allowed = problem.allowed
    if factors == 1 and problem.forbidden is None and not problem.linear.any() and len(terms) > 1 and not diagonal:
        duals = np.ldexp(_product_duals(row_sums[0], row_sums[1] * (2.0 / n)), a + b)
    else:  # a finite price that no optimum pays unless it must keeps scipy's problem feasible
        duals = column_duals(np.where(allowed, linear, np.abs(linear).sum() + linear))
    bound = assignment_bounds(linear, allowed, duals, math.fsum(terms))[0]
    error += 4 * EPS * math.fsum(map(abs, terms))
    return bound - error * (1 + 8 * EPS) - 2 * EPS * abs(bound) if math.isfinite(bound) else bound


def scaled(matrix: FloatArray) -> tuple[FloatArray, int]:
    """The matrix over a power of two, so that its largest entry is between 1/2 and 1, and the exponent."""
    exponent = math.frexp(float(np.abs(matrix).max()))[1]
    return np.ldexp(matrix, -exponent), exponent


def _quadratic_part(A: FloatArray, B: FloatArray) -> tuple[list[FloatArray], float, float]:
    """Row sums of the symmetric parts without diagonal; what is left of the cost is at least `value`, less an error."""
    n = len(A)
    symmetric, antisymmetric = ([(M + sign * M.T) / 2 for M in (A, B)] for sign in (1, -1))
    for matrix in symmetric:
        np.fill_diagonal(matrix, 0.0)
    row_sums = [matrix.sum(axis=1) for matrix in symmetric]
    value = -float(row_sums[0].sum() * row_sums[1].sum()) / n**2
    spectra = [[_spectrum(projected(M), 32 * (n + 4) * EPS * norm(M)) for M in symmetric]]
    if all(matrix.any() for matrix in antisymmetric):
        spectra.append([_spectrum(1j * matrix, 0.0) for matrix in antisymmetric])
    # Halves of sums, row sums and products of them: by the Cauchy-Schwarz inequality, these four parts of the cost are
    # at most 2 |A| |B| each, and no number in them is rounded more than 4 (n + 4) times.
    error = 32 * (n + 4) * EPS * norm(A) * norm(B)
    for (a, error_a), (b, error_b) in spectra:
        value += float(a @ b[::-1])  # the least pairing: ascending against descending
        norm_a, norm_b = norm(a), norm(b)
        error += 2 * (error_a * (norm_b + error_b) + error_b * (norm_a + error_a) + (n + 4) * EPS * norm_a * norm_b)
    return row_sums, value, error


def projected(matrix: FloatArray) -> FloatArray:
    """V^T M V, with the Householder reflection that takes e to a multiple of the first unit vector.

    The reflection is wrong by at most 4 (n + 4) EPS in norm, and each of the two products with it by 6 (n + 4) EPS.
    """
    full = reflected(reflected(matrix).T)
    return (full[1:, 1:] + full[1:, 1:].T) / 2


def reflected(matrix: FloatArray) -> FloatArray:
    """That reflection of the columns."""
    n = len(matrix)
    v = np.ones(n)
    v[0] += math.sqrt(n)
    v /= np.linalg.norm(v)
    return np.asarray(matrix - 2.0 * np.outer(v, v @ matrix))


def _spectrum(matrix: NDArray[Any], error: float) -> tuple[FloatArray, float]:
    """Eigenvalues w of a Hermitian matrix, ascending, and how far a matrix with them is from any within `error` of it.

    With M = Q diag(w) Q* + R and Q*Q = I + S, whatever Q and w are, the k-th eigenvalue of Q diag(w) Q* is w_k times a
    number within |S| of 1 (Ostrowski, for |S| < 1), so that a matrix with eigenvalues w is within |R| + |S| |w| of M,
    all in the Frobenius norm. A product of matrices is wrong by (n + 4) EPS times the product of their norms, and by
    less than 4 times that if they are complex. The sum is doubled for the rounding of the norms.
    """
    n = len(matrix)
    if n == 0:
        return np.zeros(0), 0.0
    values, Q = np.linalg.eigh(matrix)
    adjoint = Q.conj().T
    rounding = (4 if np.iscomplexobj(matrix) else 1) * (n + 4) * EPS
    residual = norm(matrix - (Q * values) @ adjoint) + rounding * (norm(Q * values) * norm(Q) + norm(matrix))
    defect = norm(adjoint @ Q - np.eye(n)) + rounding * (norm(Q) ** 2 + n)
    if not (residual < math.inf and defect < 0.25 and (np.diff(values) >= 0).all()):  # also where one of them is NaN
        raise FloatingPointError("LAPACK's eigenvectors are not orthogonal")
    return values, error + 2 * (residual + defect * norm(values))


def norm(matrix: NDArray[Any]) -> float:
    """The Frobenius norm."""
    return float(np.linalg.norm(matrix))


def _product_duals(rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Duals of the columns for costs rows[i] * columns[j]: the least sum pairs ascending with descending numbers.

    Of two neighbours in that order, the later column's dual may be above the earlier one's by what any number between
    their two rows makes of the difference of the columns. This takes no time; `column_duals` needs n rounds for it.
    """
    up, down = np.sort(rows), np.argsort(-columns, kind="stable")
    steps = (up[1:] + up[:-1]) / 2 * np.diff(columns[down])
    duals = np.empty(len(rows))
    duals[down] = np.concatenate([[0.0], np.cumsum(steps)])
    return duals


def column_duals(costs: FloatArray) -> FloatArray:
    """Duals of the columns in the assignment problem: shortest paths in the residual graph of scipy's assignment."""
    n = len(costs)
    rows, columns = linear_sum_assignment(costs)
    owner = np.empty(n, dtype=np.intp)
    owner[columns] = rows
    steps = costs[owner] - costs[owner, np.arange(n)][:, None]  # [j, l]: what j's owner pays more at l
    duals = np.zeros(n)
    for _ in range(n):
        shorter = np.minimum(duals, (duals[:, None] + steps).min(axis=0))
        if (shorter == duals).all():
            break
        duals = shorter
    return duals
