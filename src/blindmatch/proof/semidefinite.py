"""What a symmetric matrix adds to a set of duals, in plain numpy: the proof behind the doubly nonnegative bound.

Let y = (1, x), where x holds a 0 or 1 for each allowed pair. For any symmetric W the cost of a permutation is, exactly,

    y'Cy = y'(C - W)y + y'Wy.

The duals of a stage bound the first term (`stage_check.py`: W is one more pair cost there). This file bounds the second
from below. All y of permutations satisfy "each row and each column sums up to one". A spanning forest of the graph of
the allowed pairs solves these equations for the forest's edges: y = Tw with an integer matrix T, where w holds the 1
and the other edges, so w has entries 0 and 1, at most n + 1 of them 1. With G = T'WT, computed with an error whose size
is known, and a matrix L whose product LL' is close to G + shift,

    y'Wy = w'Gw >= -(n + 1) (shift + |G + shift - LL'|) - rounding.

L is whatever LAPACK's Cholesky factorisation returns: nothing is assumed of it. Only sums and products are trusted, to
be rounded as the standard model of floating point says. Where W is positive semidefinite on the face, the loss is tiny;
where it is not, the shift is what is missing. Any W proves something true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from blindmatch.proof.certificate import DualArray
from blindmatch.proof.rounding import EPS, LARGEST_DUAL
from blindmatch.validation import BoolArray, FloatArray, IntArray

_SMALL = 2.0**-1000  # far above what numbers below the normal range lose in all the sums here, in which 1 is large


@dataclass(frozen=True)
class SemidefiniteTerm:
    """A matrix W over 1 and the pairs, with y'Wy >= -deficit for all permutations."""

    matrix: FloatArray  # (p + 1, p + 1), symmetric
    pairs: IntArray  # (p,): the flat indices of its pairs, ascending
    deficit: float  # what the matrix lacks to be positive semidefinite on the face, times n + 1, rounded up

    @property
    def constant(self) -> float:
        """What y'Wy holds whatever the permutation."""
        return float(self.matrix[0, 0])

    @property
    def largest(self) -> float:
        """The largest entry, in absolute value."""
        return float(np.abs(self.matrix).max())

    def linear(self, n: int) -> FloatArray:
        """What y'Wy holds for each pair by itself, in two operations; zero for pairs that are left out."""
        result = np.zeros(n * n)
        result[self.pairs] = 2 * self.matrix[0, 1:] + np.diag(self.matrix)[1:]
        return result.reshape(n, n)

    def rows(self, i: IntArray, j: IntArray, n: int) -> FloatArray:
        """2 W between some allowed pairs and all others, (len(i), n, n); zero for pairs that are left out."""
        result = np.zeros((len(i), n * n))
        result[:, self.pairs] = 2 * self.matrix[1 + np.searchsorted(self.pairs, i * n + j), 1:]
        return result.reshape(len(i), n, n)


def semidefinite_term(matrix: DualArray, forbidden: BoolArray, excluded: BoolArray) -> SemidefiniteTerm | None:
    """The term of a stage's matrix on the pairs that are not excluded; None where it is zero or proves nothing.

    `matrix` is over 1 and the pairs that are not forbidden. Raises a ValueError where what counts of it is not
    symmetric or has a number out of range.
    """
    n = len(forbidden)
    of_matrix = np.flatnonzero(~forbidden.ravel())
    kept = np.flatnonzero(~excluded.ravel()[of_matrix])
    index = np.concatenate(([0], 1 + kept))
    W = matrix[np.ix_(index, index)].astype(np.float64)
    largest = float(max(W.max(), -W.min()))
    if not (largest <= LARGEST_DUAL and np.array_equal(W, W.T)):  # NaN as well
        raise ValueError(
            f"certificate: the matrix of a stage is not symmetric or has entries up to {largest:g}; "
            f"expected a symmetric matrix of numbers up to {LARGEST_DUAL:g}"
        )
    if largest == 0.0:
        return None
    pairs = of_matrix[kept]
    # By a power of two to entries of at most 1: exact, but for entries that nearly vanish beside the largest.
    exponent = math.frexp(largest)[1]
    G, rounding = _on_the_face(np.ldexp(W, -exponent), pairs, n)
    deficit = ((n + 1) * lack(G) + rounding + _SMALL) * (1 + 2.0**-40)
    return SemidefiniteTerm(W, pairs, math.ldexp(deficit, exponent)) if math.isfinite(deficit) else None


def _on_the_face(W: FloatArray, pairs: IntArray, n: int) -> tuple[FloatArray, float]:
    """G = T'WT (its lower triangle, mirrored), and a bound of what its rounding errors add up to in w'Gw.

    The entries of W are at most 1.
    """
    steps = _eliminations(pairs // n, pairs % n, n)
    growth = np.ones(len(W))  # sums of absolute values, over all ways in which an entry of W gets into one of G
    for edge, others in steps:
        growth[others] += growth[edge]
        growth[0] += growth[edge]
    kept = np.setdiff1d(np.arange(len(W)), [edge for edge, _ in steps])
    half = _eliminated(W, steps)[kept]
    G = _eliminated(np.ascontiguousarray(half.T), steps)[kept]
    # A number passes at most 6 n additions on its way through each of the two rounds: two in each row of the up to 2 n
    # forest edges before it, and 2 n in row 0. Those of w'Gw are chosen by w, at most n besides the first.
    largest = float(growth[kept[1:]].max(initial=0.0))
    rounding = 2 * (12 * n + 8) * EPS * (float(growth[0]) + n * largest) ** 2
    return np.tril(G) + np.tril(G, -1).T, rounding


def _eliminated(M: FloatArray, steps: list[tuple[int, IntArray]]) -> FloatArray:
    """T'M but for the rows of the forest: x_edge = 1 - (the others at its node), roots first."""
    result = M.copy()
    for edge, others in steps:
        result[others] -= result[edge]
        result[0] += result[edge]
    return result


def _eliminations(rows: IntArray, columns: IntArray, n: int) -> list[tuple[int, IntArray]]:
    """A spanning forest by breadth-first search: each edge, and the other edges at its end away from the root.

    Positions are those in y, so that the first pair is 1. Edges further down the tree come later: what replaces an edge
    has not been replaced yet.
    """
    edges = [1 + np.flatnonzero(rows == i) for i in range(n)] + [1 + np.flatnonzero(columns == j) for j in range(n)]
    seen = np.zeros(2 * n, dtype=bool)
    steps = []
    for root in sorted(range(2 * n), key=lambda node: -len(edges[node])):  # flat trees: numbers grow with the depth
        if seen[root]:
            continue
        seen[root] = True
        queue = [root]
        for node in queue:
            for edge in edges[node].tolist():
                other = int(n + columns[edge - 1] if node < n else rows[edge - 1])
                if not seen[other]:
                    seen[other] = True
                    queue.append(other)
                    steps.append((edge, edges[other][edges[other] != edge]))
    return steps


def lack(G: FloatArray) -> float:
    """A number c >= 0 for which w'Gw >= -c |w|^2 is proved, for all w; infinite where none is found."""
    d = len(G)
    size = float(np.abs(np.diag(G)).sum())
    shift = 0.0
    for attempt in range(4):
        shifted = G.copy()
        shifted[np.diag_indices(d)] += shift  # rounded by up to EPS times the result
        try:
            L = np.linalg.cholesky(shifted)
            break
        except np.linalg.LinAlgError:
            shift = _least_shift(G, size) if attempt == 0 else 16 * shift + _SMALL
    else:
        return math.inf
    squares = float((L * L).sum())  # |L|_F^2
    shifted -= L @ L.T
    # |fl(LL') - LL'| <= gamma_d |L||L|' entry by entry, whose norm is at most gamma_d |L|_F^2; the difference and the
    # shifted diagonal are each rounded once more. The sums themselves are wrong by at most a factor of 1 + d^2 EPS.
    norm = float(np.sqrt((shifted * shifted).sum()))
    rounding = (2 * d + 16) * EPS * (squares + size + d * shift) + _SMALL
    result = shift + norm * (1 + 4 * d * d * EPS) + rounding
    return result if math.isfinite(result) else math.inf


def _least_shift(G: FloatArray, size: float) -> float:
    """About what makes G positive definite; a guess, which `lack` tries."""
    try:
        least = float(np.linalg.eigvalsh(G)[0])
    except np.linalg.LinAlgError:
        least = -size
    return max(0.0, -least) + 4 * len(G) * EPS * size
