"""FAQ: Frank-Wolfe on the relaxation to doubly stochastic matrices (Vogelstein et al. 2015), with restarts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from blindmatch import _core
from blindmatch.problem.qap import QAP, FactorPair, NormalForm
from blindmatch.solvers.base import Budget, Capabilities, Outcome, Solver
from blindmatch.solvers.core_problem import core_problem
from blindmatch.validation import FloatArray, IntArray, at_least, positive

_BATCH = 16  # restarts that share each numpy call; constant, so that the result does not depend on it
_FEW = 300  # items; with more of them, one restart comes after the other


@dataclass(frozen=True)
class FAQ(Solver):
    """Fast approximate QAP.

    Parameters
    ----------
    restarts
        Number of starting points: the barycentre, then random doubly stochastic matrices. With more than 300 items, the
        second one is the assignment by sorted rows, and each begins only if there is time for as long a run as before.
    max_iterations, tolerance
        A run ends after `max_iterations`, or when a step moves the matrix by less than `tolerance` times sqrt(n).
    centre_diagonals
        Run a second time from each start with the zero diagonals set to their off-diagonal means. For permutations this
        only shifts the cost, but inside the polytope it removes the pull of the diagonal. It helps a lot on distances
        and harms on other data (QAPLIB's grids). If the means are zero, one run serves for both.
    polish
        Improve the permutations by iterated pairwise exchange. With False here and for `centre_diagonals`, this is the
        method as published.
    """

    restarts: int = 100
    max_iterations: int = 30
    tolerance: float = 0.03
    centre_diagonals: bool = True
    polish: bool = True

    name: ClassVar[str] = "faq"
    capabilities: ClassVar[Capabilities] = Capabilities(quadratic_memory=1000, note="local; best of many restarts")

    def __post_init__(self) -> None:
        at_least(self.restarts, 1, "restarts")
        at_least(self.max_iterations, 1, "max_iterations")
        positive(self.tolerance, "tolerance")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Best of the restarts."""
        relaxations = _relaxations(problem.normal_form, self.centre_diagonals)
        best, best_cost = np.arange(problem.n), np.inf
        batch, longest = (_BATCH if problem.n <= _FEW else 1), 0.0
        for first in range(0, self.restarts, batch):
            begin = budget.seconds
            restarts = range(first, min(first + batch, self.restarts))
            starts = np.stack([_start(problem.normal_form, number, rng) for number in restarts])
            seed = int(rng.integers(2**63))
            found = [p for relaxation in relaxations for p in self.descend(relaxation, starts, budget)]
            if self.polish:
                found.append(polished(problem, found, seed, budget))
            for permutation in found:
                cost = problem.objective(permutation)
                budget.offer(permutation, cost)
                if cost < best_cost:
                    best, best_cost = permutation, cost
            budget.report(None, best_cost, restarts.stop)
            if problem.n > _FEW:
                longest = max(longest, budget.seconds - begin)
            if restarts.stop < self.restarts and (budget.stopped or budget.remaining < longest):
                return Outcome(best, budget.stop_status)
        return Outcome(best, "heuristic")

    def descend(self, relaxation: Relaxation, starts: FloatArray, budget: Budget) -> list[IntArray]:
        """Simultaneous Frank-Wolfe runs, each projected to the nearest permutation at the end."""
        P = starts.copy()
        n = P.shape[-1]
        active = np.arange(len(P))
        longest = 0.0  # no step can be cut short: one that would end too late does not begin
        for _ in range(self.max_iterations):
            if not len(active) or budget.stopped or budget.remaining < longest:
                break
            begin = budget.seconds
            gradient = relaxation.gradient(P[active])
            step = -P[active]
            for run, matrix in enumerate(gradient):
                step[run, np.arange(n), _assignment(matrix)] += 1.0
            length = relaxation.best_steps(gradient, step)
            P[active] += length[:, None, None] * step
            moved = length * np.linalg.norm(step, axis=(1, 2))
            active = active[moved >= self.tolerance * np.sqrt(n)]
            longest = max(longest, budget.seconds - begin)
        return [_assignment(-matrix) for matrix in P]


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
        inside = np.clip(-slope / np.where(curvature > 0, 2 * curvature, 1.0), 0.0, 1.0)
        return np.asarray(np.where(curvature > 0, inside, slope + curvature < 0), dtype=np.float64)


def _start(form: NormalForm, number: int, rng: np.random.Generator) -> FloatArray:
    """The starting point with this number."""
    n = len(form.linear)
    if number == 0:
        return barycentre(n)
    return by_sorted_rows(form) if number == 1 and n > _FEW else random_start(n, rng)


def by_sorted_rows(form: NormalForm) -> FloatArray:
    """The midpoint of the barycentre and the assignment of Gilmore and Lawler's bound.

    That bound pairs a row of A with a row of B as if each of its entries could choose its partner. It sees sizes of
    clusters, which the barycentre does not.
    """
    n = len(form.linear)
    cost = form.linear + sum(np.sort(A, axis=1) @ np.sort(B, axis=1)[:, ::-1].T for A, B in form.factors)
    matrix = barycentre(n) / 2
    matrix[np.arange(n), _assignment(cost)] += 0.5
    return matrix


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


def with_mean_diagonal(pair: FactorPair) -> FactorPair:
    """Set both zero diagonals to their off-diagonal means, which adds a constant to the cost of all permutations."""
    A, B = (matrix.copy() for matrix in pair)
    n = len(A)
    for matrix in (A, B):
        np.fill_diagonal(matrix, matrix.sum() / max(1, n * (n - 1)))
    return A, B


def _relaxations(form: NormalForm, centre: bool) -> list[Relaxation]:
    plain = Relaxation(form.factors, form.linear)
    if not centre:
        return [plain]
    centred = Relaxation([with_mean_diagonal(pair) for pair in form.factors], form.linear)
    # Standardised kernels have mean zero up to rounding, so the two versions are the same.
    tiny = 1e-12 * max(float(np.abs(matrix).max()) for pair in form.factors for matrix in pair)
    same = all(np.abs(np.diag(matrix)).max() <= tiny for pair in centred.factors for matrix in pair)
    return [plain] if same else [centred, plain]


def _assignment(cost: FloatArray) -> IntArray:
    return _core.solve_lap(cost).columns.astype(np.intp)


def polished(problem: QAP, permutations: Sequence[IntArray], seed: int, budget: Budget) -> IntArray:
    """The best that iterated pairwise exchange makes of these permutations."""
    starts = [permutation.astype(np.int32) for permutation in permutations]
    best = _core.two_opt(
        core_problem(problem),
        seed=seed,
        restarts=len(starts),
        kicks=4 * problem.n,
        threads=budget.threads,
        initial=starts,
        budget=budget,
    )
    return best.permutation.astype(np.intp)
