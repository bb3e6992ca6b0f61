"""SCIP on the level-1 reformulation-linearisation of the problem: an open exact baseline for small n."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from blindmatch.errors import pip_install
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import MOST_STEPS, Budget, Capabilities, Dependency, Outcome, Solver
from blindmatch.solvers.mip import CentredCost
from blindmatch.solvers.relaxation import assignment, feasible_permutation
from blindmatch.validation import IntArray, not_negative

PYSCIPOPT = Dependency("pyscipopt", pip_install("scip"))


@dataclass(frozen=True)
class SCIP(Solver):
    """Branch and bound by SCIP.

    The model is Adams and Johnson's: x_ij for each pair and y_ijkl = x_ij x_kl for each two pairs, with sum_l y_ijkl =
    sum_k y_ijkl = x_ij. Its LP is the bound that Hahn and Grant's ascent approaches; it is tight for many matching
    problems, but has n^4 / 2 variables, so n = 12 is about the limit.

    Parameters
    ----------
    gap
        Stop when the relative gap between bound and cost is this small.
    """

    gap: float = 0.0

    name: ClassVar[str] = "scip"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True,
        certificate=False,
        exact=True,
        forbidden=True,
        max_size=30,
        requires=PYSCIPOPT,
        ignores=("work_limit",),
        note="open; n^4 / 2 variables",
    )

    def __post_init__(self) -> None:
        not_negative(self.gap, "gap")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Build the model and let SCIP solve it."""
        scip = PYSCIPOPT.load(self.name)
        start = feasible_permutation(problem)
        cost = CentredCost(problem)
        model = scip.Model()
        model.hideOutput()
        x = _build(scip, model, cost, budget)
        if budget.stopped:
            return Outcome(start, budget.stop_status)
        self._configure(scip, model, budget, int(rng.integers(2**31)))
        watcher = _watcher(scip, cost, budget, x)
        model.includeEventhdlr(watcher, "blindmatch", "passes solutions and bounds on")
        model.optimize()
        if model.getStatus() == "userinterrupt" and not budget.stopped:
            budget.interrupted = True  # SCIP caught Ctrl-C itself
        permutation = _permutation(model, x, model.getBestSol()) if model.getNSols() else start
        bound = cost.safe_bound(model.getDualbound())
        budget.count_nodes(model.getNTotalNodes())
        if model.getStatus() in ("optimal", "gaplimit"):
            return Outcome(permutation, "optimal", lower_bound=bound, notes=("optimal within SCIP's tolerances",))
        return Outcome(permutation, budget.stop_status, lower_bound=bound)

    def _configure(self, scip: Any, model: Any, budget: Budget, seed: int) -> None:
        # The LP does the work; time for presolving, cuts and heuristics is wasted.
        off = scip.SCIP_PARAMSETTING.OFF
        model.setPresolve(off)
        model.setSeparating(off)
        model.setHeuristics(off)
        for name, value in {
            "lp/initalgorithm": "p",
            "limits/gap": self.gap,
            "numerics/feastol": 1e-9,
            "numerics/dualfeastol": 1e-9,
            "randomization/randomseedshift": seed,
        }.items():
            model.setParam(name, value)
        if not math.isinf(budget.time_limit):
            model.setParam("limits/time", max(0.0, budget.remaining))
        if budget.limits.node_limit is not None:
            model.setParam("limits/totalnodes", min(budget.limits.node_limit, MOST_STEPS))


def _build(scip: Any, model: Any, cost: CentredCost, budget: Budget) -> list[list[Any]]:
    """Add variables and constraints; stop early if the budget is used up."""
    n, allowed = cost.problem.n, cost.problem.allowed
    items = range(n)
    x = [[model.addVar(vtype="B", ub=int(allowed[i, j]), obj=cost.linear[i, j]) for j in items] for i in items]
    for i in items:
        model.addCons(scip.quicksum(x[i]) == 1)
        model.addCons(scip.quicksum(row[i] for row in x) == 1)
    # y[i, j][k, l] is the same variable as y[k, l][i, j].
    y: dict[tuple[int, int], dict[tuple[int, int], Any]] = {(i, j): {} for i in items for j in items}
    for i in items:
        for k in range(i + 1, n):
            pair = 2 * sum(A[i, k] * B for A, B in cost.factors)
            for j in items:
                for other in items:
                    if other != j:
                        y[i, j][k, other] = y[k, other][i, j] = model.addVar(lb=0.0, obj=float(pair[j, other]))
            if budget.stopped:
                return x
    for (i, j), products in y.items():
        for k in items:
            if k != i:
                model.addCons(scip.quicksum(products[k, other] for other in items if other != j) == x[i][j])
            if k != j:
                model.addCons(scip.quicksum(products[other, k] for other in items if other != i) == x[i][j])
        if budget.stopped:
            return x
    return x


def _permutation(model: Any, x: list[list[Any]], solution: Any) -> IntArray:
    return assignment(np.array([[-model.getSolVal(solution, variable) for variable in row] for row in x]))


def _watcher(scip: Any, cost: CentredCost, budget: Budget, x: list[list[Any]]) -> Any:
    """SCIP's event handler: passes solutions and bounds to the budget, and stops SCIP if the budget says so."""
    events = (scip.SCIP_EVENTTYPE.BESTSOLFOUND, scip.SCIP_EVENTTYPE.LPSOLVED, scip.SCIP_EVENTTYPE.NODEFOCUSED)

    class Watcher(scip.Eventhdlr):  # its base is known only once SCIP is loaded
        def eventinit(self) -> None:
            for event in events:
                self.model.catchEvent(event, self)

        def eventexit(self) -> None:
            for event in events:
                self.model.dropEvent(event, self)

        def eventexec(self, event: Any) -> None:
            if event.getType() == scip.SCIP_EVENTTYPE.BESTSOLFOUND:
                permutation = _permutation(self.model, x, self.model.getBestSol())
                budget.offer(permutation, cost.problem.objective(permutation))
            nodes, waiting = self.model.getNNodes(), len(self.model.getOpenNodes()[0])
            bound = cost.safe_bound(self.model.getDualbound())
            if not budget.report(bound, None, nodes, phase="tree", nodes=nodes, open_nodes=waiting):
                self.model.interruptSolve()

    return Watcher()
