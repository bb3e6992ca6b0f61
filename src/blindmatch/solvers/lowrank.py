"""The splitting with a slack of low rank, for problems whose eigenvalue problem is too large.

The point Y has a high rank on the way, but its dual slack does not: positivity is enforced in the r directions only in
which s violates it most. They are corrected by one block Rayleigh-Ritz step per iteration, so that a step takes three
products of (p + 1) x (p + 1) and (p + 1) x r matrices and no eigenvalue problem. With eigenvalues mu below the level,
F = U sqrt(level - mu),

    P(s) = Q (s - level) Q + FF'     (Q projects onto the face)

is the exact projection onto {U'YU >= 0, trace Y = n + 1}. So the dual is valid whatever U is.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from blindmatch import _core
from blindmatch.solvers.eigen import Equations, Spectrum, whole_spectrum
from blindmatch.solvers.semidefinite_stage import PairCosts, SlackDual
from blindmatch.solvers.splitting import CHANGE, HARDEN, Splitting, SplittingState
from blindmatch.validation import BoolArray, FloatArray

Float32s = NDArray[np.float32]

_NEVER = 1e30  # cost of two pairs that exclude each other
_PANEL = 500_000  # numbers of a panel of FF'
_ROWS = 512  # of the products with s; constant, so that the result does not depend on the number of threads
_RANK, _MOST_RANK = 0.05, 0.25  # the first and the largest number of directions, over the dimension of the face
_MOST_NUMBERS = 10_000_000  # of a factor: 40 MB in the file of the proof, less where it compresses
_BETA = 4.0  # the first penalty, over n
_RATIO, _MOST_SOFTENING = 0.12, 4.0  # of the residuals that is aimed at; the largest factor between two penalties
_GROWTH = 1.6  # of the number of directions
_STRIDE = 1.9  # of a step; 2 would reflect, and never damp what both projections leave alone
_DEPENDENT = 5e-3  # unit columns whose part across all earlier ones is shorter than this depend on those
_SMALLEST = np.float32(1e-30)


class LowRankSplitting(Splitting):
    """The iteration; `threads` work on panels of the matrices, and do not change the result."""

    def __init__(self, costs: PairCosts, allowed: BoolArray, threads: int) -> None:
        self._costs, self._threads = costs, threads
        super().__init__(np.empty((1 + int(allowed.sum()), 0)), allowed, _BETA * len(allowed))

    def _set(self, cost: Any, allowed: BoolArray) -> None:
        self.allowed, self._equations = allowed, Equations(allowed)
        rows, columns = self._equations.rows, self._equations.columns
        self._rows, self._columns = rows.astype(np.intc), columns.astype(np.intc)
        p = len(rows)
        self._L, self._Lt = self._equations.L.astype(np.float32), self._equations.Lt.astype(np.float32)
        self._G = self._equations.G.astype(np.float32)
        self.dimension = 1 + p - int(np.linalg.matrix_rank(self._equations.G, hermitian=True))
        self._cost = np.zeros((p + 1, p + 1), np.float32)
        for start in range(0, p, _ROWS):
            part = np.arange(start, min(start + _ROWS, p))
            block = self._costs.centred_rows(allowed, part)
            block[(rows[part, None] == rows) != (columns[part, None] == columns)] = _NEVER
            self._cost[1 + part, 1:] = block
        self._U: Float32s | None = None
        self.rank = min(self._most_rank, max(8, int(_RANK * self.dimension)))

    def _scale_cost(self) -> None:
        pass  # the pass over the matrices divides by the penalty

    @property
    def work(self) -> float:
        """Operations of a step: three products."""
        return 6.0 * len(self.s) ** 2 * self.rank

    def grow(self) -> bool:
        """Use more directions; return whether there are more to use."""
        if self.rank >= self._most_rank:
            return False
        self.rank = min(self._most_rank, int(_GROWTH * self.rank))
        return True

    @property
    def _most_rank(self) -> int:
        return max(8, int(min(_MOST_RANK * self.dimension, _MOST_NUMBERS / len(self._cost))))

    def project(self) -> None:
        """P(s), as F, the level and the multipliers D of the equations."""
        if self._U is None:
            self._U = self._first_directions()
            self._sums = (self._Lt @ self.s).T.astype(np.float64)
        mu = self._correct()
        n, d = self.n, self.dimension
        inner = self._Lt @ self._sums
        trace = float(np.diag(self.s).sum(dtype=np.float64)) - float((self._equations.G * inner).sum())
        counts = np.arange(1, len(mu) + 1)
        levels = (trace - np.cumsum(mu) - (n + 1)) / (d - counts)
        below = np.flatnonzero(mu < levels)
        k = int(below[-1]) + 1 if len(below) else 0
        self.level = float(levels[k - 1]) if k else (trace - n - 1) / d
        self._F = self._U[:, :k] * np.sqrt(self.level - mu[:k]).astype(np.float32)
        self._D = self._equations.multipliers(self._sums, self.level)

    def dual(self) -> SlackDual:
        """The dual of this step."""
        return SlackDual(np.sqrt(self.beta) * self._F.astype(np.float64), self.beta * self._D)

    @property
    def state(self) -> SplittingState:
        """The current point and dual, after a projection."""
        D = self._D.astype(np.float32)
        multiplied = self._L @ D.T
        Z = multiplied + multiplied.T
        Z -= self._F @ self._F.T
        Z[np.diag_indices(len(Z))] += self.level
        Z *= self.beta
        return SplittingState(self.allowed, self.Y, (Z + Z.T) / 2, self.beta)

    def advance(self) -> None:
        """The box, and the reflection, in one pass over panels of FF'."""
        F, s, D = self._F, self.s, self._D.astype(np.float32)
        side = len(s)
        across, transposed = np.ascontiguousarray(F.T), np.ascontiguousarray(D.T)
        sums = np.zeros(D.shape, np.float32)
        first, diagonal, corner = self._borders()
        old_first, old_diagonal, old_corner = s[0, 1:].copy(), np.diag(s)[1:].copy(), float(s[0, 0])
        height = max(1, _PANEL // side)

        def step(start: int) -> tuple[float, float]:
            slack = F[start : start + height] @ across
            matrices = s, self.Y, self._cost, slack, D, transposed
            return _core.box_step(*matrices, self._rows, self._columns, sums, 1 / self.beta, _STRIDE, start)

        norms = np.array(self._on_threads(step, range(0, side, height)))
        index = np.arange(1, side)
        costs = self._cost[index, index] / self.beta
        arrow = np.clip((2 * (2 * first - old_first) + 2 * diagonal - old_diagonal - costs) / 3, 0, 1)
        moved = 3 * float(((arrow - self.Y[0, 1:]) ** 2).sum())
        residual = 2 * float(((arrow - first) ** 2).sum()) + float(((arrow - diagonal) ** 2).sum()) + (1 - corner) ** 2
        s[0, 1:] = s[1:, 0] = old_first + _STRIDE * (arrow - first)
        s[index, index] = old_diagonal + _STRIDE * (arrow - diagonal)
        s[0, 0] = old_corner + _STRIDE * (1 - corner)
        self.Y[0, 1:] = self.Y[1:, 0] = self.Y[index, index] = arrow
        self.residual = float(np.sqrt(norms[:, 0].sum() + residual))
        self.movement = self.beta * float(np.sqrt(norms[:, 1].sum() + moved))
        self._sums = sums.astype(np.float64)
        self._sums[index, self._rows] += s[index, index]
        self._sums[index, self.n + self._columns] += s[index, index]
        self._sums[0] = (self._Lt[:, 1:] @ s[0, 1:]).astype(np.float64)
        self._sums -= s[:, :1]

    def _borders(self) -> tuple[Float32s, Float32s, float]:
        """The projection's row 0, its diagonal and its corner."""
        F, D, s, n = self._F, self._D, self.s, self.n
        index, rows, columns = np.arange(1, len(s)), self._rows, self._columns
        first = s[0, 1:] + D[1:].sum(axis=1) - D[0, rows] - D[0, n + columns] + F[1:] @ F[0]
        diagonal = s[index, index] - self.level - 2 * (D[index, rows] + D[index, n + columns])
        diagonal = diagonal + np.einsum("ij,ij->i", F[1:], F[1:])
        corner = float(s[0, 0]) - self.level + 2 * float(D[0].sum()) + float(F[0] @ F[0])
        return first.astype(np.float32), diagonal.astype(np.float32), corner

    def balance(self) -> None:
        """Adjust the penalty: it begins high, since few directions do not follow a point that moves much."""
        ratio = self.movement / max(self.residual * self.n, 1e-30)
        if ratio > _RATIO:
            self.soften(min(_MOST_SOFTENING, (ratio / _RATIO) ** 0.7))
        elif ratio < HARDEN:
            self.soften(1 / CHANGE)

    def soften(self, factor: float) -> None:
        """Divide the penalty by a factor; Y and Z do not change."""
        for start in range(0, len(self.s), _ROWS):
            part = slice(start, start + _ROWS)
            self.s[part] = self.Y[part] + (self.s[part] - self.Y[part]) * np.float32(factor)
        self.beta /= factor
        self._sums = (self._Lt @ self.s).T.astype(np.float64)

    def shrink(self, allowed: BoolArray) -> None:
        """Drop the pairs that are ruled out."""
        index = np.concatenate(([0], 1 + np.flatnonzero(allowed[self.allowed])))
        assert self._U is not None
        U, rank = self._U[index], self.rank
        self.s, self.Y = (np.ascontiguousarray(matrix[np.ix_(index, index)]) for matrix in (self.s, self.Y))
        self._set(None, allowed)
        self.rank = max(self.rank, min(rank, self._most_rank))
        self._U = self._orthonormal(U)
        self._sums = (self._Lt @ self.s).T.astype(np.float64)

    def _first_directions(self) -> Float32s:
        """Kronecker products of eigenvectors, where the costs are most positive; the steps correct them."""
        n = self.n
        A, B = max(self._costs.centred, key=lambda pair: float(np.linalg.norm(pair[0]) * np.linalg.norm(pair[1])))
        values_a, vectors_a = np.linalg.eigh(_centred(A))
        values_b, vectors_b = np.linalg.eigh(_centred(B))
        order = np.argsort(-np.outer(values_a, values_b).ravel(), kind="stable")[: self.rank]
        X = np.zeros((len(self.s), len(order)), np.float32)
        X[1:] = vectors_a[self._rows][:, order // n] * vectors_b[self._columns][:, order % n]
        return self._orthonormal(X)

    def _correct(self) -> FloatArray:
        """One block Rayleigh-Ritz step for the lowest eigenvectors of s on the face; their eigenvalues.

        The basis is U and its residuals R. Its Gram matrix is measured, not made the identity: that takes half of the
        products, and errors do not add up over the steps.
        """
        U = self._U
        assert U is not None
        sU = self._product(self.s, U)
        H = self._product(U.T, sU)
        R = self._on_face(sU - self._product(U, H))
        R = self._on_face(R / np.maximum(np.linalg.norm(R, axis=0), _SMALLEST))
        S = np.hstack([U, R])
        cross, own = self._product(sU.T, R), self._product(R.T, self._product(self.s, R))
        values, E = _ritz(np.block([[H, cross], [cross.T, own]]), S.T @ S)
        self._U = self._on_face(self._product(S, E[:, : self.rank]))
        return values[: self.rank].astype(np.float64)

    def _on_face(self, X: Float32s) -> Float32s:
        return np.asarray(X - self._L @ (self._G @ (self._Lt @ X)))

    def _orthonormal(self, X: Float32s) -> Float32s:
        """An orthonormal basis of the columns on the face."""
        return self._on_face(scipy.linalg.qr(self._on_face(X), mode="economic", check_finite=False)[0])

    def _product(self, A: Float32s, B: Float32s) -> Float32s:
        """A @ B, by panels of rows."""
        result = np.empty((len(A), B.shape[1]), np.float32)
        height = min(_ROWS, -(-len(A) // 4))  # at least four panels

        def multiply(start: int) -> None:
            np.matmul(A[start : start + height], B, out=result[start : start + height])

        self._on_threads(multiply, range(0, len(A), height))
        return result

    def _on_threads(self, work: Callable[[int], Any], starts: range) -> list[Any]:
        if self._threads == 1 or len(starts) == 1:
            return [work(start) for start in starts]
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(work, starts))


def _centred(matrix: FloatArray) -> FloatArray:
    symmetric = (matrix + matrix.T) / 2
    means = symmetric.mean(axis=0)
    return np.asarray(symmetric - means - means[:, None] + means.mean())


def _ritz(matrix: Float32s, gram: Float32s) -> Spectrum:
    """The Ritz values of a matrix in a basis, and their vectors; columns that depend on others are left out."""
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(gram, tol=_DEPENDENT**2, lower=1)
    L, used = factor[:rank, :rank].astype(np.float32), order[:rank] - 1
    half = scipy.linalg.solve_triangular(L, matrix[np.ix_(used, used)], lower=True, check_finite=False)
    inner = scipy.linalg.solve_triangular(L, half.T, lower=True, check_finite=False)
    values, vectors = whole_spectrum((inner + inner.T) / 2)
    E = np.zeros((len(gram), rank), np.float32)
    E[used] = scipy.linalg.solve_triangular(L, vectors, lower=True, trans=1, check_finite=False)
    return values, E
