"""Gurobi on the binary quadratic program, a commercial exact baseline; without a licence up to n = 14."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from blindmatch.errors import SolverUnavailable
from blindmatch.problem import QAP
from blindmatch.solvers.base import Budget, Capabilities, Dependency, Outcome
from blindmatch.solvers.feasible import feasible_permutation
from blindmatch.solvers.mip import round_matrix, safe_bound
from blindmatch.validation import FloatArray, IntArray

_GUROBI = Dependency("gurobipy", "pip install 'blindmatch[gurobi]'")
_TOO_LARGE = 10010  # GRB.Error.SIZE_LIMIT_EXCEEDED
_NO_LICENCE = 10009


@dataclass(frozen=True)
class Gurobi:
    """Branch and bound by Gurobi: n^2 binary variables, a quadratic objective, the assignment constraints.

    Parameters
    ----------
    gap
        Stop when bound and cost are this close, relatively.
    """

    gap: float = 0.0

    name: ClassVar[str] = "gurobi"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True, exact=True, forbidden=True, requires=_GUROBI, note="commercial; without a licence up to n = 14"
    )

    def __post_init__(self) -> None:
        if not self.gap >= 0:
            raise ValueError(f"gap={self.gap!r}; expected a number of at least 0")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Build the model and let Gurobi solve it."""
        gurobi = _GUROBI.load(self.name)
        try:
            with gurobi.Env(params={"OutputFlag": 0}) as env, gurobi.Model(env=env) as model:
                return self._solve(gurobi, model, problem, budget, int(rng.integers(2**31)))
        except gurobi.GurobiError as error:
            if error.errno in (_TOO_LARGE, _NO_LICENCE):
                raise SolverUnavailable(
                    f"solver='gurobi' needs a licence for n={problem.n} (without one it takes n <= 14): {error}. "
                    "Academic licences are free: https://www.gurobi.com/academia"
                ) from error
            raise

    def _solve(self, gurobi: Any, model: Any, problem: QAP, budget: Budget, seed: int) -> Outcome:
        n, form = problem.n, problem.normal_form
        x = model.addMVar((n, n), vtype=gurobi.GRB.BINARY)
        if form.forbidden is not None:
            x.UB = 1.0 - form.forbidden
        model.addConstr(x.sum(axis=0) == 1)
        model.addConstr(x.sum(axis=1) == 1)
        flat = x.reshape(-1)
        # vec(P)^T (A kron B) vec(P) = <A, P B P^T>, rows first.
        Q = sum(np.kron(A, B) for A, B in form.factors)
        model.setObjective(flat @ Q @ flat + form.linear.reshape(-1) @ flat + form.constant)
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
        watcher = _Watcher(gurobi.GRB.Callback, problem, budget, x)
        model.optimize(watcher)
        permutation = round_matrix(x.X) if model.SolCount else start
        bound = safe_bound(problem, model.ObjBound)
        if model.Status == gurobi.GRB.INTERRUPTED and not budget.stopped:
            budget.interrupted = True  # Gurobi caught Ctrl-C itself
        if model.Status == gurobi.GRB.OPTIMAL:
            return Outcome(permutation, "optimal", lower_bound=bound)
        return Outcome(permutation, budget.stop_status, lower_bound=bound, message=f"Gurobi status {model.Status}")


class _Watcher:
    """Gurobi's callback: passes solutions and bounds on to the budget, and its wish to stop back."""

    def __init__(self, where: Any, problem: QAP, budget: Budget, x: Any) -> None:
        self.where, self.problem, self.budget, self.x = where, problem, budget, x
        self.reported = 0.0

    def __call__(self, model: Any, where: int) -> None:
        if where == self.where.MIPSOL:
            self.offer(model.cbGetSolution(self.x))
        if where == self.where.MIP:
            self.report(model.cbGet(self.where.MIP_OBJBND), int(model.cbGet(self.where.MIP_NODCNT)))
        if self.budget.stopped:
            model.terminate()

    def offer(self, values: FloatArray) -> None:
        permutation: IntArray = round_matrix(values)
        self.budget.offer(permutation, self.problem.objective(permutation))

    def report(self, bound: float, nodes: int) -> None:
        if self.budget.seconds - self.reported >= 0.05:
            self.reported = self.budget.seconds
            self.budget.report(safe_bound(self.problem, bound), None, nodes)
