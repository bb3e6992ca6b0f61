"""Gromov-Wasserstein optimal transport (Peyre et al. 2016) by POT, its plan rounded to a permutation by a LAP.

With uniform weights the plans T are the doubly stochastic matrices S = n T (the paper's last appendix), and on those
sum_ijkl (X_ik - Y_jl)^2 T_ij T_kl is a constant minus 2 sum_ijkl X_ik Y_jl T_ij T_kl. So X = -A / 2 and Y = B turn the
quadratic cost, over n^2, into Gromov-Wasserstein, and a linear term L into the feature cost L / n of the fused form.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from blindmatch import _core
from blindmatch.problem.qap import QAP, FactorPair
from blindmatch.solvers.base import Budget, Capabilities, Dependency, Outcome
from blindmatch.solvers.faq import barycentre, random_start
from blindmatch.validation import FloatArray, IntArray, at_least, positive

Method = Literal["entropic", "proximal", "bapg", "conditional-gradient"]
_POT = Dependency("ot", "pip install 'blindmatch[ot]'")
_CHUNK = 10  # iterations of POT between two looks at the clock
_SINKHORN = 100  # of its inner iterations at most


@dataclass(frozen=True)
class EntropicGW:
    """Entropic Gromov-Wasserstein, annealed.

    Parameters
    ----------
    method
        Which of POT's solvers: "entropic" (projected gradient with Sinkhorn, the paper's OT), "proximal" (proximal
        point), "bapg" (Bregman alternating projected gradient) or "conditional-gradient" (no regularisation).
    regularization
        The first and the last epsilon, as multiples of the spread of the gradient.
    stages
        How many values of epsilon, in geometric progression; each begins at the plan of the one before. After each
        the plan is rounded, and the best permutation counts.
    max_iterations, tolerance
        A stage ends after so many iterations, or when no entry of n times the plan changes by `tolerance`.
    restarts
        The first run begins at the barycentre, the others at random plans.
    """

    method: Method = "entropic"
    regularization: tuple[float, float] = (1.0, 0.02)
    stages: int = 5
    max_iterations: int = 50
    tolerance: float = 1e-3
    restarts: int = 1

    name: ClassVar[str] = "entropic-gw"
    capabilities: ClassVar[Capabilities] = Capabilities(
        unequal=False, requires=_POT, note="local; optimal transport, rounded"
    )

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise ValueError(f"method={self.method!r}; expected one of {', '.join(get_args(Method))}")
        if not (len(self.regularization) == 2 and self.regularization[0] >= self.regularization[1] > 0):
            raise ValueError(f"regularization={self.regularization!r}; expected (first, last), first >= last > 0")
        at_least(self.stages, 1, "stages")
        at_least(self.max_iterations, 1, "max_iterations")
        positive(self.tolerance, "tolerance")
        at_least(self.restarts, 1, "restarts")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Transport, and round the plan of every stage."""
        gromov = _POT.load(self.name).gromov
        n = problem.n
        transport = FusedTransport(problem)
        best, best_cost, iteration = np.arange(n), np.inf, 0
        for restart in range(self.restarts):
            start = random_start(n, rng) if restart else barycentre(n)
            for plan in self.anneal(gromov, transport, start / n, budget):
                permutation = rounded(plan)
                cost = problem.objective(permutation)
                budget.offer(permutation, cost)
                if cost < best_cost:
                    best, best_cost = permutation, cost
                iteration += 1
                if not budget.report(None, best_cost, iteration):
                    return Outcome(best, budget.stop_status)
        return Outcome(best, "heuristic")

    def anneal(self, gromov: Any, transport: FusedTransport, plan: FloatArray, budget: Budget) -> Iterator[FloatArray]:
        """The plan after each stage; the last one early if the budget is over."""
        exact = self.method == "conditional-gradient"
        first, last = (factor * transport.spread for factor in self.regularization)
        for epsilon in [0.0] if exact else np.geomspace(first, last, self.stages) if transport.spread > 0 else []:
            for _ in range(0, self.max_iterations, _CHUNK):
                before = plan
                plan = self._iterate(gromov, transport, before, epsilon)
                if not abs(plan.sum() - 1) < 0.01:  # epsilon is too small for Sinkhorn in float64
                    yield before
                    return
                if budget.stopped or np.abs(plan - before).max() * len(plan) < self.tolerance:
                    break
            yield plan
            if budget.stopped:
                return
        yield plan

    def _iterate(self, gromov: Any, transport: FusedTransport, plan: FloatArray, epsilon: float) -> FloatArray:
        """Some iterations of POT. They have no memory but the plan, so chunks of them are as good as one run."""
        data = (transport.features, transport.source, transport.target)
        common = {"alpha": 0.5, "G0": plan, "max_iter": _CHUNK, "symmetric": transport.symmetric}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # on plans that have not converged: we look at the plan ourselves
            if self.method == "conditional-gradient":
                plan = gromov.fused_gromov_wasserstein(*data, **common)
            elif self.method == "bapg":
                plan = gromov.BAPG_fused_gromov_wasserstein(*data, **common, epsilon=epsilon)
            else:
                solver = "PPA" if self.method == "proximal" else "PGD"
                plan = gromov.entropic_fused_gromov_wasserstein(
                    *data, **common, epsilon=epsilon, solver=solver, numItermax=_SINKHORN, stopThr=1e-5
                )
        return np.asarray(plan, dtype=np.float64)


class FusedTransport:
    """A QAP with one factor pair as a fused Gromov-Wasserstein problem with alpha = 1/2 and uniform weights.

    Attributes
    ----------
    source, target
        X and Y, scaled alike.
    features
        M: the fused objective is half of <M, T> plus the Gromov-Wasserstein loss of T.
    spread
        Size of the differences inside a gradient at a permutation: epsilon is measured by it.
    """

    def __init__(self, problem: QAP) -> None:
        A, B = _centred(problem.factors[0])
        balance = np.sqrt(max(np.abs(A).max(), 1e-300) / max(np.abs(B).max(), 1e-300))
        self.source, self.target = -A / (2 * balance), B * balance
        linear = problem.normal_form.linear
        self.features = (linear - linear.min()) / problem.n
        self.symmetric = bool((A == A.T).all() and (B == B.T).all())
        # At a permutation an entry of 2 X T Y is 2/n times a sum of n products of two (nearly) independent numbers.
        product = 2 * self.source.std() * self.target.std() / np.sqrt(problem.n)
        self.spread = float(np.hypot(2 * product, self.features.std()))

    def loss(self, plan: FloatArray) -> float:
        """<M, T> + sum_ijkl (X_ik - Y_jl)^2 T_ij T_kl, for any plan with uniform marginals."""
        n = len(plan)
        constant = (self.source**2).sum() / n**2 + (self.target**2).sum() / n**2
        cross = (self.source * (plan @ self.target @ plan.T)).sum()
        return float((self.features * plan).sum() + constant - 2 * cross)


def rounded(plan: FloatArray) -> IntArray:
    """The permutation that carries the most mass of the plan."""
    return np.asarray(_core.solve_lap(np.ascontiguousarray(-plan / plan.max()))[0], dtype=np.intp)


def _centred(pair: FactorPair) -> FactorPair:
    """The pair without its diagonals (which `normal_form.linear` accounts for) and off-diagonal means.

    That changes the loss of all plans alike, and Sinkhorn needs it: a mean that is large against the differences drives
    all its kernel to zero.
    """
    A, B = (matrix.copy() for matrix in pair)
    off = ~np.eye(len(A), dtype=bool)
    for matrix in (A, B):
        np.fill_diagonal(matrix, 0.0)
        matrix[off] -= matrix.sum() / max(1, off.sum())
    return A, B
