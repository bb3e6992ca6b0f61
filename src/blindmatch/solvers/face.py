"""The linear span of all permutations y = (1, x) over the allowed pairs, without a dense basis."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from blindmatch.solvers.eigen import NUMPY, Arrays, Floats
from blindmatch.validation import BoolArray, FloatArray


class Equations:
    """The equations of the face, L'y = 0: a column of L has -1 for the 1, and 1 for each pair of a row or a column."""

    def __init__(self, allowed: BoolArray) -> None:
        n = len(allowed)
        self.rows, self.columns = np.nonzero(allowed)
        p = len(self.rows)
        pairs = np.arange(1, p + 1)
        line = np.concatenate([np.zeros(2 * n, np.intp), pairs, pairs])
        equation = np.concatenate([np.arange(2 * n), self.rows, n + self.columns])
        self.L = scipy.sparse.csr_array((np.repeat([-1.0, 1.0], [2 * n, 2 * p]), (line, equation)))
        self.Lt = self.L.T.tocsr()
        self.G = np.linalg.pinv((self.Lt @ self.L).toarray(), hermitian=True)  # the projection onto it is I - LGL'

    def sums(self, M: Floats) -> FloatArray:
        """ML, for a matrix with as many columns as y has entries."""
        return np.asarray((self.Lt @ M.T).T)

    def multipliers(self, sums: FloatArray, level: float) -> FloatArray:
        """D with LD' + DL' = S - QSQ for S = s - level, where Q projects onto the face; `sums` are sL."""
        M = sums - level * self.L
        inner = (self.Lt @ M) @ self.G  # L'SLG
        return np.asarray(M @ self.G - 0.5 * (self.L @ (self.G @ inner)))


class Face:
    """An orthonormal basis V of all y for which every row and every column of x sums to y_0.

    V is the last columns of a product of at most 2n Householder reflections, I - U S U' (compact WY form). So a product
    with V takes O(n) operations per entry, not O(n^2).
    """

    def __init__(self, equations: Equations, dtype: type[np.floating[Any]], arrays: Arrays = NUMPY) -> None:
        L = equations.L.toarray()
        (reflectors, tau), R, _ = scipy.linalg.qr(L, mode="raw", pivoting=True, check_finite=False)
        size = np.abs(np.diag(R))
        k = int((size > 1e-9 * size[0]).sum())
        U = np.tril(reflectors[:, :k], -1)
        U[np.arange(k), np.arange(k)] = 1.0
        S = np.zeros((k, k))
        for j in range(k):
            S[:j, j] = -tau[j] * (S[:j, :j] @ (U[:, :j].T @ U[:, j]))
            S[j, j] = tau[j]
        self.rank = k
        self.dimension = len(L) - k
        self.U: Floats = arrays.put(U, dtype)
        self.S: Floats = arrays.put(S, dtype)
        self.US: Floats = arrays.put(U @ S, dtype)

    def restrict(self, M: Floats) -> Floats:
        """V'MV of a symmetric matrix M."""
        k = self.rank
        MU = M @ self.US
        inner = (self.S.T @ (self.U.T @ MU)) @ self.U[k:].T
        result: Floats = M[k:, k:] - MU[k:] @ self.U[k:].T - self.U[k:] @ (MU[k:].T - inner)
        return result

    def extend(self, F: Floats) -> Floats:
        """VF."""
        k = self.rank
        result: Floats = -self.US @ (self.U[k:].T @ F)
        result[k:] += F
        return result
