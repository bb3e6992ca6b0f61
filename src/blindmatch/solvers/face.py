"""The linear span of all permutations y = (1, x) over the allowed pairs, without a dense basis."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from blindmatch.solvers.eigen import NUMPY, Arrays, Floats
from blindmatch.validation import BoolArray, FloatArray


class Face:
    """An orthonormal basis V of all y for which every row and every column of x sums to y_0.

    V is the last columns of a product of at most 2n Householder reflections, I - U S U' (compact WY form). So a product
    with V takes O(n) operations per entry, not O(n^2).
    """

    def __init__(self, allowed: BoolArray, dtype: type[np.floating[Any]], arrays: Arrays = NUMPY) -> None:
        n = len(allowed)
        rows, columns = np.nonzero(allowed)
        p = len(rows)
        equations = np.zeros((p + 1, 2 * n))
        equations[0] = -1.0
        equations[1 + np.arange(p), rows] = equations[1 + np.arange(p), n + columns] = 1.0
        (reflectors, tau), R, _ = scipy.linalg.qr(equations, mode="raw", pivoting=True, check_finite=False)
        size = np.abs(np.diag(R))
        k = int((size > 1e-9 * size[0]).sum())
        U = np.tril(reflectors[:, :k], -1)
        U[np.arange(k), np.arange(k)] = 1.0
        S = np.zeros((k, k))
        for j in range(k):
            S[:j, j] = -tau[j] * (S[:j, :j] @ (U[:, :j].T @ U[:, j]))
            S[j, j] = tau[j]
        self.rank = k
        self.dimension = p + 1 - k
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


class Equations:
    """The equations of the face, L'y = 0: a column of L has -1 for the 1, and 1 for each pair of a row or a column."""

    def __init__(self, allowed: BoolArray) -> None:
        self.n = len(allowed)
        self.rows, self.columns = np.nonzero(allowed)
        square = 1.0 + np.diag(np.concatenate([allowed.sum(axis=1), allowed.sum(axis=0)]).astype(np.float64))
        square[: self.n, self.n :] += allowed
        square[self.n :, : self.n] += allowed.T
        self.G = np.linalg.pinv(square, hermitian=True)  # of L'L: the projection onto the face is I - LGL'

    def sums(self, M: Floats) -> FloatArray:
        """ML, for a matrix with as many columns as y has entries."""
        of_rows = np.add.reduceat(M[:, 1:], np.searchsorted(self.rows, np.arange(self.n)), axis=1, dtype=np.float64)
        order = np.argsort(self.columns, kind="stable")
        starts = np.searchsorted(self.columns[order], np.arange(self.n))
        of_columns = np.add.reduceat(M[:, 1 + order], starts, axis=1, dtype=np.float64)
        return np.hstack([of_rows, of_columns]) - M[:, :1]

    def times(self, X: Floats) -> Floats:
        """LX, for a matrix with a row for each equation."""
        return np.vstack([-X.sum(axis=0), X[self.rows] + X[self.n + self.columns]])

    def multipliers(self, sums: FloatArray, level: float) -> FloatArray:
        """D with LD' + DL' = S - QSQ for S = s - level, where Q projects onto the face; `sums` are sL."""
        M = sums - level * self.times(np.eye(2 * self.n))
        inner = self.sums(M.T).T @ self.G  # L'SLG
        return np.asarray(M @ self.G - 0.5 * self.times(self.G @ inner))
