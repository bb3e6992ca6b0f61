"""The paper's solvers: Hahn and Grant's dual ascent (Alg. 1), and the same on factorised costs (Alg. 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from blindmatch import _core
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Budget, Capabilities, Outcome, Solver
from blindmatch.solvers.core_problem import core_problem, root_proof
from blindmatch.solvers.faq import FAQ
from blindmatch.solvers.progress import Status
from blindmatch.solvers.two_opt import improve
from blindmatch.validation import at_least, boolean, not_negative

_SWEEP_SECONDS = 2e-8  # of a sweep, over n^4: what the work limit counts with
LapMethod = Literal["jonker-volgenant", "auction", "hungarian"]


@dataclass(frozen=True)
class FactorizedHahnGrant(Solver):
    """The factorised Hahn-Grant solver (Alg. 2), with O(n^3) memory.

    Parameters
    ----------
    lap
        The method for the assignment problems.
    evaluate_laps
        Evaluate the solution of every assignment problem as a match (the paper's "LAP solutions").
    primal_heuristic
        Start from the best of `restarts` runs of FAQ, improved by 2-opt.
    restarts
        Number of starts of the primal heuristic.
    tolerance
        Stop when a sweep raises the bound by less than this, relative to the bound or to the mean magnitude of a term
        of the cost, or when bound and cost are this close.
    max_sweeps
        Maximum number of sweeps; None for no limit.
    """

    lap: LapMethod = "jonker-volgenant"
    evaluate_laps: bool = True
    primal_heuristic: bool = True
    restarts: int = 100
    tolerance: float = 1e-6
    max_sweeps: int | None = None

    name: ClassVar[str] = "factorized-hahn-grant"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True, quadratic_memory=1000, cubic_memory=65, note="the paper's Alg. 2; proves, may stall"
    )
    factorized: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.lap not in get_args(LapMethod):
            raise ValueError(f"lap={self.lap!r}; expected one of {', '.join(get_args(LapMethod))}")
        at_least(self.restarts, 1, "restarts")
        boolean(self.evaluate_laps, "evaluate_laps")
        boolean(self.primal_heuristic, "primal_heuristic")
        not_negative(self.tolerance, "tolerance")
        if self.max_sweeps is not None:
            at_least(self.max_sweeps, 1, "max_sweeps")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Ascend until the bound stalls or meets the cost, or the budget is used up."""
        ascent = _core.HahnGrant(
            core_problem(problem),
            factorized=self.factorized,
            lap=self.lap,
            evaluate_laps=self.evaluate_laps,
            threads=budget.threads,
        )
        if self.primal_heuristic:  # Alg. 2, l. 4
            start = FAQ(restarts=self.restarts)(problem, budget=budget, rng=rng).permutation
            ascent.offer(improve(problem, start).astype(np.int32))
        status: Status = "interrupted"
        with budget.interruptible():  # between two calls of the core: what it has is whole, and is kept
            status = self._ascend(problem, ascent, budget)
        permutation = np.asarray(ascent.permutation, dtype=np.intp)
        if not len(permutation):  # stopped before the first assignment problem gave a match
            permutation = np.arange(problem.n)
        return Outcome(permutation, status, root_proof(problem.n, 0, [ascent.take_duals()]))

    def _ascend(self, problem: QAP, ascent: _core.HahnGrant, budget: Budget) -> Status:
        """Run the sweeps (Alg. 2, l. 5)."""
        status: Status | None = None
        before = -math.inf
        sweep = 0
        while status is None:
            if budget.stopped or not ascent.sweep(budget):
                status = budget.stop_status
            sweep += 1
            budget.offer(np.asarray(ascent.permutation, dtype=np.intp), ascent.cost)
            budget.spend(_SWEEP_SECONDS * problem.n**4)
            if not budget.report(ascent.bound, ascent.cost, sweep, phase="root"):
                status = budget.stop_status
            elif status is None:
                status = self._verdict(problem, ascent.bound - before, ascent.bound, ascent.cost, sweep)
            before = ascent.bound
        return status

    def _verdict(
        self, problem: QAP, gain: float, bound: float, cost: float, sweep: int
    ) -> Literal["optimal", "stalled"] | None:
        """The paper's stopping rule: a small absolute or relative change."""
        # The paper's kernels are standardised, so "absolute" is relative to the magnitude of a term of the cost.
        unit = problem.scale / problem.n**2
        if cost - bound <= self.tolerance * max(unit, abs(cost)):
            return "optimal"
        # The bound changes when the next leader problem is solved, so the first two sweeps say nothing. Nor does the
        # auction, as long as its relaxation (0.1, times 0.9 after each sweep) is coarser than the tolerance.
        coarse = self.lap == "auction" and 0.1 * 0.9**sweep > self.tolerance * unit
        if sweep > 2 and not coarse and gain <= self.tolerance * max(unit, abs(bound)):
            return "stalled"
        return "stalled" if self.max_sweeps is not None and sweep >= self.max_sweeps else None


@dataclass(frozen=True)
class HahnGrant(FactorizedHahnGrant):
    """The Hahn-Grant solver on the dense cost tensor (Alg. 1): O(n^4) memory, the same bounds.

    The options are those of `FactorizedHahnGrant`. By default it is the method of 1998, without the primal parts.
    """

    lap: LapMethod = "hungarian"
    evaluate_laps: bool = False
    primal_heuristic: bool = False

    name: ClassVar[str] = "hahn-grant"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True,
        max_size=128,
        cubic_memory=65,
        quartic_memory=8,
        note="the paper's Alg. 1 on the dense tensor, n^4 numbers",
    )
    factorized: ClassVar[bool] = False
