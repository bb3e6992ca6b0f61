"""FAQ: Frank-Wolfe on the relaxation to doubly stochastic matrices (Vogelstein et al. 2015), with restarts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from blindmatch.problem import QAP, FactorPair
from blindmatch.solvers.base import Budget, Capabilities, Outcome
from blindmatch.validation import FloatArray, IntArray, at_least, positive


@dataclass(frozen=True)
class FAQ:
    """Fast approximate QAP.

    Parameters
    ----------
    restarts
        The first run starts at the barycentre, the others at random doubly stochastic matrices.
    max_iterations, tolerance
        A run ends after so many steps, or when a step moves the matrix by less than `tolerance` times sqrt(n).
    """

    restarts: int = 100
    max_iterations: int = 30
    tolerance: float = 0.03

    name: ClassVar[str] = "faq"
    capabilities: ClassVar[Capabilities] = Capabilities(note="local; best of many restarts")

    def __post_init__(self) -> None:
        at_least(self.restarts, 1, "restarts")
        at_least(self.max_iterations, 1, "max_iterations")
        positive(self.tolerance, "tolerance")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Best of the restarts."""
        relaxation = Relaxation(problem)
        best, best_cost = np.arange(problem.n), np.inf
        for restart in range(self.restarts):
            start = barycentre(problem.n) if restart == 0 else random_start(problem.n, rng)
            permutation = self.descend(relaxation, start)
            cost = problem.objective(permutation)
            budget.offer(permutation, cost)
            if cost < best_cost:
                best, best_cost = permutation, cost
            budget.report(None, best_cost, restart + 1)
            if budget.stopped:
                return Outcome(best, budget.stop_status)
        return Outcome(best, "heuristic")

    def descend(self, relaxation: Relaxation, start: FloatArray) -> IntArray:
        """One Frank-Wolfe run, projected to the nearest permutation at its end."""
        P = start
        n = len(P)
        for _ in range(self.max_iterations):
            gradient = relaxation.gradient(P)
            rows, columns = linear_sum_assignment(gradient)
            step = -P
            step[rows, columns] += 1.0
            length = relaxation.best_step(gradient, step)
            P = P + length * step
            if length * np.linalg.norm(step) < self.tolerance * np.sqrt(n):
                break
        return np.asarray(linear_sum_assignment(-P)[1], dtype=np.intp)


class Relaxation:
    """The objective on doubly stochastic matrices: its gradient and its exact line search."""

    def __init__(self, problem: QAP) -> None:
        form = problem.normal_form
        self.factors = [_with_mean_diagonal(pair) for pair in form.factors]
        self.linear = form.linear

    def gradient(self, P: FloatArray) -> FloatArray:
        """Derivative of sum_f <A, P B P^T> + <L, P>."""
        return np.asarray(self.linear + sum(A @ P @ B.T + A.T @ P @ B for A, B in self.factors))

    def best_step(self, gradient: FloatArray, step: FloatArray) -> float:
        """The t in [0, 1] that minimises the objective at P + t * step, which is quadratic in t."""
        slope = float((gradient * step).sum())
        curvature = float(sum((A * (step @ B @ step.T)).sum() for A, B in self.factors))
        if curvature > 0:
            return min(1.0, max(0.0, -slope / (2 * curvature)))
        return 1.0 if slope + curvature < 0 else 0.0


def barycentre(n: int) -> FloatArray:
    """The matrix of all 1/n."""
    return np.full((n, n), 1.0 / n)


def random_start(n: int, rng: np.random.Generator) -> FloatArray:
    """Half way from the barycentre to a random doubly stochastic matrix (Sinkhorn on uniform numbers)."""
    matrix = rng.uniform(0.05, 1.0, size=(n, n))
    for _ in range(20):
        matrix /= matrix.sum(axis=1, keepdims=True)
        matrix /= matrix.sum(axis=0, keepdims=True)
    return (barycentre(n) + matrix) / 2


def _with_mean_diagonal(pair: FactorPair) -> FactorPair:
    """Set both zero diagonals to their off-diagonal means.

    On permutations that only shifts the cost, but inside the polytope it takes away the pull of the diagonal.
    """
    A, B = (matrix.copy() for matrix in pair)
    n = len(A)
    if n > 1 and (A == A.T).all():
        for matrix in (A, B):
            np.fill_diagonal(matrix, matrix.sum() / (n * (n - 1)))
    return A, B
