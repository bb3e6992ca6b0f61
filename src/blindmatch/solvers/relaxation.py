"""The assignment problem on doubly stochastic matrices, which FAQ descends, and points to begin at."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from blindmatch import _core
from blindmatch.problem.qap import QAP, FactorPair, NormalForm
from blindmatch.solvers.base import Budget
from blindmatch.validation import FloatArray, IntArray


class Relaxation:
    """The objective on doubly stochastic matrices: its gradient and its exact line search, for a stack of matrices."""

    def __init__(self, factors: Sequence[FactorPair], linear: FloatArray) -> None:
        self.factors = factors
        self.linear = linear

    def gradient(self, P: FloatArray) -> FloatArray:
        """Gradient of sum_f <A, P B P^T> + <L, P>, with both matrices of a pair symmetric or both antisymmetric."""
        return np.asarray(self.linear + 2 * sum(A @ P @ B.T for A, B in self.factors))

    def best_steps(self, gradient: FloatArray, step: FloatArray) -> FloatArray:
        """The t in [0, 1] that minimises the objective at P + t * step, which is quadratic in t."""
        slope = np.einsum("rij,rij->r", gradient, step)
        curvature = np.einsum("rij,rij->r", self.gradient(step) - self.linear, step) / 2
        with np.errstate(over="ignore"):  # costs near the smallest float: what overflows is clipped
            inside = np.clip(-slope / np.where(curvature > 0, 2 * curvature, 1.0), 0.0, 1.0)
        return np.asarray(np.where(curvature > 0, inside, slope + curvature < 0), dtype=np.float64)

    def cost(self, permutation: IntArray) -> float:
        """The objective at a permutation."""
        linear = self.linear[np.arange(len(permutation)), permutation].sum()
        pairs = ((A, B[np.ix_(permutation, permutation)]) for A, B in self.factors)
        return float(linear + sum(np.vdot(A, B) for A, B in pairs))

    def sample(self, rows: IntArray, columns: IntArray) -> Relaxation:
        """The relaxation for some items of each side. Linear costs keep their weight next to the fewer relations."""
        share = len(rows) / len(self.linear)
        factors = [(A[np.ix_(rows, rows)], B[np.ix_(columns, columns)]) for A, B in self.factors]
        return Relaxation(factors, share * self.linear[np.ix_(rows, columns)])

    def gradient_of_part(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """The gradient if the pairs (rows[k], columns[k]) stand for all items."""
        weight = len(self.linear) / len(rows)
        return np.asarray(self.linear + 2 * weight * sum(A[:, rows] @ B[:, columns].T for A, B in self.factors))


def relaxations(form: NormalForm, centre: bool) -> list[Relaxation]:
    """The relaxation, and if `centre` the one with zero diagonals set to their means, which comes first."""
    plain = Relaxation(form.factors, form.linear)
    if not centre:
        return [plain]
    # Constant diagonals add a constant to the cost of every permutation.
    means = [tuple(matrix.sum() / max(1, len(matrix) * (len(matrix) - 1)) for matrix in pair) for pair in form.factors]
    unit = np.eye(len(form.linear))
    factors = [(A + a * unit, B + b * unit) for (A, B), (a, b) in zip(form.factors, means, strict=True)]
    centred = Relaxation(factors, form.linear)
    # Standardised kernels have mean zero up to rounding, so the two versions are the same.
    tiny = 1e-12 * max(float(np.abs(matrix).max()) for pair in form.factors for matrix in pair)
    same = all(np.abs(np.diag(matrix)).max() <= tiny for pair in centred.factors for matrix in pair)
    return [plain] if same else [centred, plain]


def barycentre(n: int) -> FloatArray:
    """The matrix with all entries 1/n."""
    return np.full((n, n), 1.0 / n)


def random_start(n: int, rng: np.random.Generator) -> FloatArray:
    """The midpoint of the barycentre and a random doubly stochastic matrix (Sinkhorn on uniform numbers)."""
    matrix = 1.0 - rng.random((n, n))  # never zero
    for _ in range(20):
        matrix /= matrix.sum(axis=1, keepdims=True)
        matrix /= matrix.sum(axis=0, keepdims=True)
    return (barycentre(n) + matrix) / 2


def halfway(permutation: IntArray) -> FloatArray:
    """The midpoint of the barycentre and a permutation."""
    n = len(permutation)
    matrix = barycentre(n) / 2
    matrix[np.arange(n), permutation] += 0.5
    return matrix


def assignment(cost: FloatArray) -> IntArray:
    """The cheapest permutation for a matrix of linear costs."""
    return _core.solve_lap(np.ascontiguousarray(cost)).columns.astype(np.intp)


def feasible_permutation(problem: QAP) -> IntArray:
    """A permutation without forbidden pairs; ValueError if there is none."""
    if problem.forbidden is None:
        return np.arange(problem.n)
    _, columns = linear_sum_assignment(problem.forbidden.astype(float))
    if not problem.allows(columns):
        raise ValueError("forbidden (or known_pairs) leaves no permutation to choose from")
    return np.asarray(columns, dtype=np.intp)


_ITEMS, _SHARE = 256, 3  # in a sample: that many, but at most a third of all
_SAMPLES = 24  # matching them takes as long as a descent with all of 700 items
_EXTENDED = 8  # of them: the cost of a sample depends on what was drawn, that of its extension does not

_EXTENSION_SECONDS = 2.5e-10  # of an extension, over n^3, on an idle machine

Descend = Callable[[Relaxation, FloatArray, Budget], list[IntArray]]


def extension_seconds(n: int, budget: Budget) -> float:
    """About how long the extension of a sample to n items takes here and now."""
    return _EXTENSION_SECONDS * n**3 * budget.slowness


def by_samples(relaxation: Relaxation, descend: Descend, budget: Budget, rng: np.random.Generator) -> IntArray:
    """A match of random samples, extended to all items.

    A descent ends in one of many local optima. Two samples look like the whole sets and are matched in a tenth of a
    second, so there is time for many of them. The cheapest are extended: each item goes where its relations to the
    sample fit best. The cheapest extension is the result. `descend` runs Frank-Wolfe from a stack of starts.
    """
    n = len(relaxation.linear)
    size = min(_ITEMS, n // _SHARE)
    found: list[tuple[float, IntArray, IntArray]] = []
    longest = extension_seconds(n, budget)
    for number in range(_SAMPLES):
        rows, columns = (rng.choice(n, size, replace=False) for _ in range(2))
        sample = relaxation.sample(rows, columns)
        start = random_start(size, rng) if number % 2 else barycentre(size)
        [match] = descend(sample, start[None], budget)
        found.append((sample.cost(match), rows, columns[match]))
        if budget.stopped or budget.remaining < 2 * longest:
            break
    extended: list[IntArray] = []
    for _, rows, columns in sorted(found, key=lambda one: one[0])[:_EXTENDED]:
        begin = budget.seconds
        extended.append(assignment(relaxation.gradient_of_part(rows, columns)))
        longest = max(longest, budget.seconds - begin)
        if budget.stopped or budget.remaining < longest:
            break
    return min(extended, key=relaxation.cost)


def by_sorted_rows(form: NormalForm) -> IntArray:
    """The assignment of Gilmore and Lawler's bound.

    That bound pairs a row of A with a row of B as if each of its entries could choose its partner. It sees sizes of
    clusters, which the barycentre does not.
    """
    pairs = (np.sort(A, axis=1) @ np.sort(B, axis=1)[:, ::-1].T for A, B in form.factors)
    return assignment(np.asarray(form.linear + sum(pairs)))
