"""Gromov-Wasserstein optimal transport (Peyre et al. 2016) with POT; a LAP rounds its plan to a permutation.

With uniform weights the plans T are the doubly stochastic matrices S = n T (the paper's last appendix), and on those
sum_ijkl (X_ik - Y_jl)^2 T_ij T_kl is a constant minus 2 sum_ijkl X_ik Y_jl T_ij T_kl. Setting X = -A / 2 and Y = B
therefore turns the quadratic cost, divided by n^2, into Gromov-Wasserstein, and a linear term L into the feature cost L
/ n of the fused form.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from blindmatch.errors import pip_install
from blindmatch.problem.qap import QAP, FactorPair
from blindmatch.solvers.base import Budget, Capabilities, Dependency, Outcome, Solver
from blindmatch.solvers.relaxation import assignment, barycentre, random_start
from blindmatch.validation import FloatArray, at_least, positive

Method = Literal["entropic", "proximal", "bapg", "conditional-gradient"]
_POT = Dependency("ot", pip_install("ot"))
_CHUNK = 10  # POT iterations between two tests whether the plan still changes
_STAGE_SECONDS = 1e-7  # of an iteration, over n^3: what the work limit counts with
_FEW = 300  # items; with more of them, the clock is looked at after each iteration
_SINKHORN = 100  # maximum number of inner Sinkhorn iterations


@dataclass(frozen=True)
class EntropicGW(Solver):
    """Entropic Gromov-Wasserstein, annealed.

    Parameters
    ----------
    method
        The POT solver: "entropic" (projected gradient with Sinkhorn, the paper's OT), "proximal" (proximal
        point), "bapg" (Bregman alternating projected gradient) or "conditional-gradient" (no regularisation).
    regularization
        The first and the last epsilon, as multiples of the spread of the gradient.
    stages
        Number of epsilon values, in geometric progression; each stage starts from the plan of the previous one. After
        each stage the plan is rounded, and the best permutation is kept.
    max_iterations, tolerance
        A stage ends after `max_iterations`, or when no entry of n times the plan changes by `tolerance`.
    restarts
        Number of runs: the first starts at the barycentre, the others at random plans.
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
        try:
            first, last = self.regularization
            falling = bool(first >= last > 0)
        except (TypeError, ValueError):
            falling = False
        if not falling:
            raise ValueError(f"regularization={self.regularization!r}; expected (first, last), first >= last > 0")
        at_least(self.stages, 1, "stages")
        at_least(self.max_iterations, 1, "max_iterations")
        positive(self.tolerance, "tolerance")
        at_least(self.restarts, 1, "restarts")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Compute the plan of every stage and round it."""
        gromov = _POT.load(self.name).gromov
        n = problem.n
        transport = FusedTransport(problem)
        best, best_cost, iteration = np.arange(n), np.inf, 0
        for restart in range(self.restarts):
            start = random_start(n, rng) if restart else barycentre(n)
            for plan in self.anneal(gromov, transport, start / n, budget):
                permutation = assignment(-plan / plan.max())  # the one with the most mass
                cost = problem.objective(permutation)
                budget.offer(permutation, cost)
                if cost < best_cost:
                    best, best_cost = permutation, cost
                iteration += 1
                budget.spend(_STAGE_SECONDS * self.max_iterations * n**3)
                if not budget.report(None, best_cost, iteration):
                    return Outcome(best, budget.stop_status)
        return Outcome(best, "heuristic")

    def anneal(self, gromov: Any, transport: FusedTransport, plan: FloatArray, budget: Budget) -> Iterator[FloatArray]:
        """Yield the plan after each stage; the last stage ends early if the budget is used up."""
        exact = self.method == "conditional-gradient"
        first, last = (factor * transport.spread for factor in self.regularization)
        for epsilon in [0.0] if exact else np.geomspace(first, last, self.stages) if transport.spread > 0 else []:
            for _ in range(0, self.max_iterations, _CHUNK):
                before = plan
                at_once = _CHUNK if len(plan) <= _FEW else 1
                for _ in range(0, _CHUNK, at_once):
                    plan = self._iterate(gromov, transport, plan, epsilon, at_once)
                    if budget.stopped:
                        break
                if not abs(plan.sum() - 1) < 0.01:  # epsilon is too small for Sinkhorn in float64
                    yield before
                    return
                if budget.stopped or np.abs(plan - before).max() * len(plan) < self.tolerance:
                    break
            yield plan
            if budget.stopped:
                return
        yield plan

    def _iterate(
        self, gromov: Any, transport: FusedTransport, plan: FloatArray, epsilon: float, count: int
    ) -> FloatArray:
        """Some iterations of POT. Their only state is the plan, so several chunks equal one long run."""
        data = (transport.features, transport.source, transport.target)
        common = {"alpha": 0.5, "G0": plan, "max_iter": count, "symmetric": transport.symmetric}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # about plans that have not converged: we check the plan ourselves
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

    The fused objective is half of <features, T> plus the Gromov-Wasserstein loss of T between source and target, the X
    and Y above, scaled alike. `spread` is the magnitude of the differences within a gradient at a permutation, the unit
    of epsilon.
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


def _centred(pair: FactorPair) -> FactorPair:
    """The pair without its diagonals (which are in `normal_form.linear`) and off-diagonal means.

    This changes the loss of all plans by the same amount. Sinkhorn needs it: a mean that is large compared with the
    differences underflows the whole kernel.
    """
    A, B = (matrix.copy() for matrix in pair)
    off = ~np.eye(len(A), dtype=bool)
    for matrix in (A, B):
        np.fill_diagonal(matrix, 0.0)
        matrix[off] -= matrix.sum() / max(1, off.sum())
    return A, B
