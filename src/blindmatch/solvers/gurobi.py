"""Gurobi, a commercial exact baseline; without a licence up to n = 31, or n = 14 with the quadratic model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from blindmatch.errors import SolverUnavailable, pip_install
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Budget, Capabilities, Dependency, Outcome, Solver
from blindmatch.solvers.mip import CentredCost
from blindmatch.solvers.relaxation import assignment, feasible_permutation
from blindmatch.validation import not_negative

Model = Literal["linear", "quadratic"]
GUROBI = Dependency("gurobipy", pip_install("gurobi"))
_TOO_LARGE = 10010  # GRB.Error.SIZE_LIMIT_EXCEEDED
_NO_LICENCE = 10009


@dataclass(frozen=True)
class Gurobi(Solver):
    """Branch and bound by Gurobi.

    Parameters
    ----------
    model
        "linear": Xia and Yuan's model, with one more variable per pair (i, j) for its cost with all others, and Gilmore
        and Lawler's bound on it; a hundred times as fast at n = 10. "quadratic": n^2 binary variables and the original
        objective.
    gap
        Stop when the relative gap between bound and cost is this small.
    """

    model: Model = "linear"
    gap: float = 0.0

    name: ClassVar[str] = "gurobi"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True,
        certificate=False,
        exact=True,
        forbidden=True,
        requires=GUROBI,
        note="commercial; without a licence up to n = 31",
    )

    def __post_init__(self) -> None:
        if self.model not in get_args(Model):
            raise ValueError(f"model={self.model!r}; expected one of {', '.join(get_args(Model))}")
        not_negative(self.gap, "gap")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Build the model and let Gurobi solve it."""
        gurobi = GUROBI.load(self.name)
        try:
            with gurobi.Env(params={"OutputFlag": 0, "LogToConsole": 0}) as env, gurobi.Model(env=env) as model:
                return self._solve(gurobi, model, problem, budget, int(rng.integers(2**31)))
        except gurobi.GurobiError as error:
            if error.errno in (_TOO_LARGE, _NO_LICENCE):
                raise SolverUnavailable(
                    f"solver='gurobi' needs a licence for n={problem.n} (without one: n <= 31, or n <= 14 with "
                    f"model='quadratic'): {error}. Academic licences are free: https://www.gurobi.com/academia"
                ) from error
            raise

    def _solve(self, gurobi: Any, model: Any, problem: QAP, budget: Budget, seed: int) -> Outcome:
        n, cost = problem.n, CentredCost(problem)
        x = model.addMVar((n, n), vtype=gurobi.GRB.BINARY)
        x.UB = problem.allowed.astype(np.float64)
        model.addConstr(x.sum(axis=0) == 1)
        model.addConstr(x.sum(axis=1) == 1)
        flat, Q = x.reshape(-1), cost.products()
        linear = cost.linear.reshape(-1) @ flat
        if self.model == "quadratic":
            model.setObjective(flat @ Q @ flat + linear)
        else:
            least, most = cost.ranges(Q)
            w = model.addMVar(n * n, lb=-gurobi.GRB.INFINITY)
            model.addConstr(w >= least * flat)
            model.addConstr(w >= Q @ flat - most * (1 - flat))
            model.setObjective(w.sum() + linear)
        start = feasible_permutation(problem)
        x.Start = np.eye(n)[start]
        for name, value in {
            "Threads": budget.threads,
            "Seed": seed,
            "MIPGap": self.gap,
            "MIPGapAbs": 0.0,
            "IntFeasTol": 1e-9,
            "FeasibilityTol": 1e-9,
            "OptimalityTol": 1e-9,
        }.items():
            model.setParam(name, value)
        if not math.isinf(budget.time_limit):
            model.setParam("TimeLimit", max(0.0, budget.remaining))
        if budget.limits.node_limit is not None:
            model.setParam("NodeLimit", budget.limits.node_limit)
        if budget.limits.work_limit is not None:
            model.setParam("WorkLimit", budget.limits.work_limit)
        model.optimize(_watcher(gurobi.GRB.Callback, cost, budget, x))
        permutation = assignment(-x.X) if model.SolCount else start
        bound = cost.safe_bound(model.ObjBound)
        if model.Status in (gurobi.GRB.NODE_LIMIT, gurobi.GRB.WORK_LIMIT):
            budget.reach("node_limit" if model.Status == gurobi.GRB.NODE_LIMIT else "work_limit")
        if model.Status == gurobi.GRB.INTERRUPTED and not budget.stopped:
            budget.interrupted = True  # Gurobi caught Ctrl-C itself
        if model.Status == gurobi.GRB.OPTIMAL:
            return Outcome(permutation, "optimal", lower_bound=bound, notes=("optimal within Gurobi's tolerances",))
        return Outcome(permutation, budget.stop_status, lower_bound=bound)


def _watcher(callback: Any, cost: CentredCost, budget: Budget, x: Any) -> Callable[[Any, int], None]:
    """Gurobi's callback: passes solutions and bounds to the budget, and stops Gurobi if the budget says so."""
    reported = 0.0

    def watch(model: Any, where: int) -> None:
        nonlocal reported
        if where == callback.MIPSOL:
            permutation = assignment(-model.cbGetSolution(x))
            budget.offer(permutation, cost.problem.objective(permutation))
        if where == callback.MIP and budget.seconds - reported >= 0.05:
            reported = budget.seconds
            bound, nodes = model.cbGet(callback.MIP_OBJBND), int(model.cbGet(callback.MIP_NODCNT))
            waiting = int(model.cbGet(callback.MIP_NODLFT))
            budget.report(cost.safe_bound(bound), None, nodes, phase="tree", nodes=nodes, open_nodes=waiting)
        if budget.stopped:
            model.terminate()

    return watch
