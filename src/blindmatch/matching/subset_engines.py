"""The engines that find subsets: search and branch and bound in the core, and third-party solvers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from blindmatch import _core
from blindmatch.errors import SolverUnavailable
from blindmatch.proof.rounding import EPS, TINY
from blindmatch.solvers.base import Budget
from blindmatch.solvers.gurobi import GUROBI
from blindmatch.solvers.scip import PYSCIPOPT
from blindmatch.validation import FloatArray, IntArray

_TOLERANCE = 1e-9  # of Gurobi and SCIP
_MARGIN = 2e-9  # share of the scale of a sum that is subtracted from their bounds


@dataclass(frozen=True)
class SubsetTask:
    """The input of an engine: a finite square matrix, the size of the subsets and how many are wanted."""

    cost: FloatArray
    size: int
    k: int
    rng: np.random.Generator
    budget: Budget

    @cached_property
    def exponent(self) -> int:
        """The power of two that makes the largest cost about one, because third-party tolerances are absolute."""
        return -math.frexp(float(np.abs(self.cost).max()))[1]

    @property
    def scaled(self) -> FloatArray:
        """Symmetric costs of about one."""
        return np.asarray(np.ldexp((self.cost + self.cost.T) / 2, self.exponent))

    @property
    def rounding(self) -> float:
        """The rounding error of the sum of a subset; sums of integers are exact."""
        sizes = np.abs(self.cost)
        total = min(float(sizes.sum()), self.size**2 * float(sizes.max()))
        if total < 2.0**52 and (self.cost == np.rint(self.cost)).all():
            return 0.0
        return 4 * self.size**2 * (EPS * total + TINY)

    def bound(self, scaled: float) -> float | None:
        """Convert a bound on the scaled costs to the caller's costs, minus the tolerances; None if there is none."""
        if not abs(scaled) < 1e19:  # SCIP's infinity is 1e20
            return None
        return math.ldexp(scaled - _MARGIN * self.size**2, -self.exponent)


# One subset per row in any order, a lower bound or None, and whether the run was completed.
FoundSubsets = tuple[ArrayLike, float | None, bool]


def _search(task: SubsetTask, restarts: int = 32) -> FoundSubsets:
    # For a hundred items, 1000 moves per restart find the best many times over; for thousands, each move is expensive.
    iterations = min(1000, max(200, 40_000_000 // (len(task.cost) * task.size)))
    found = _core.search_subsets(
        task.cost,
        size=task.size,
        k=task.k,
        seed=int(task.rng.integers(2**63)),
        restarts=restarts,
        iterations=iterations,
        threads=task.budget.threads,
        budget=task.budget,
    )
    return found.subsets, None, found.completed


def _exact(task: SubsetTask) -> FoundSubsets:
    known, _, completed = _search(task, restarts=8)
    found = _core.exact_subsets(task.cost, size=task.size, k=task.k, known=np.asarray(known), budget=task.budget)
    return found.subsets, found.lower_bound - task.rounding, completed and found.completed


def _gurobi(task: SubsetTask) -> FoundSubsets:
    gp = GUROBI.load("gurobi", "engine")
    n = len(task.cost)
    try:
        with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
            chosen = model.addMVar(n, vtype=gp.GRB.BINARY)
            model.setObjective(chosen @ task.scaled @ chosen)
            model.addConstr(chosen.sum() == task.size)
            model.Params.MIPGap = model.Params.MIPGapAbs = 0.0
            model.Params.IntFeasTol = model.Params.FeasibilityTol = model.Params.OptimalityTol = _TOLERANCE
            model.Params.Threads = task.budget.threads
            model.Params.Seed = int(task.rng.integers(2**31 - 1))
            rows: list[IntArray] = []
            bound: float | None = None
            while len(rows) < task.k:
                if math.isfinite(task.budget.remaining):
                    model.Params.TimeLimit = max(task.budget.remaining, 0.0)
                model.optimize()
                if not rows:
                    bound = task.bound(model.ObjBound)
                if model.SolCount > 0:
                    rows.append(np.flatnonzero(chosen.X > 0.5))
                if model.Status != gp.GRB.OPTIMAL:
                    task.budget.interrupted |= model.Status == gp.GRB.INTERRUPTED  # it caught Ctrl-C itself
                    return rows, bound, False
                # Exclude this one. (On 14 items Gurobi's pool of the 10 best did not finish in 20 s; cuts took 2 s.)
                model.addConstr(chosen[rows[-1].tolist()].sum() <= task.size - 1)
            return rows, bound, True
    except gp.GurobiError as error:
        raise SolverUnavailable(
            f"engine='gurobi' cannot run: {error}. Without a licence gurobipy accepts up to 200 items; "
            "see https://www.gurobi.com/free-trial"
        ) from error


def _scip(task: SubsetTask) -> FoundSubsets:
    scip = PYSCIPOPT.load("scip", "engine")
    n, cost = len(task.cost), task.scaled
    model = scip.Model()
    model.hideOutput()
    x = [model.addVar(vtype="B") for _ in range(n)]
    y = {(i, j): model.addVar(lb=0.0, ub=1.0) for i in range(n) for j in range(i)}  # y_ij = x_i x_j, linearised
    model.addCons(scip.quicksum(x) == task.size)
    for (i, j), both in y.items():
        model.addCons(both <= x[i])
        model.addCons(both <= x[j])
        model.addCons(both >= x[i] + x[j] - 1)
    for i in range(n if n > 1 else 0):  # each chosen item meets size - 1 others
        model.addCons(scip.quicksum(y[max(i, j), min(i, j)] for j in range(n) if j != i) == (task.size - 1) * x[i])
    pairs = scip.quicksum(2 * float(cost[i, j]) * both for (i, j), both in y.items())
    model.setObjective(pairs + scip.quicksum(float(cost[i, i]) * x[i] for i in range(n)))
    model.setParam("limits/gap", 0.0)
    model.setParam("numerics/feastol", _TOLERANCE)
    model.setParam("numerics/dualfeastol", _TOLERANCE)
    rows: list[IntArray] = []
    bound: float | None = None
    while len(rows) < task.k:
        if math.isfinite(task.budget.remaining):
            model.setParam("limits/time", max(task.budget.remaining, 0.0))
        model.optimize()
        if not rows:
            bound = task.bound(model.getDualbound())
        task.budget.interrupted |= model.getStatus() == "userinterrupt"  # it caught Ctrl-C itself
        if model.getNSols() == 0:
            return rows, bound, False
        best = model.getBestSol()
        rows.append(np.array([i for i in range(n) if model.getSolVal(best, x[i]) > 0.5]))
        if model.getStatus() != "optimal":
            return rows, bound, False
        model.freeTransform()
        model.addCons(scip.quicksum(x[i] for i in rows[-1]) <= task.size - 1)  # exclude this one
    return rows, bound, True


ENGINES: dict[str, Callable[[SubsetTask], FoundSubsets]] = {
    "search": _search,
    "exact": _exact,
    "gurobi": _gurobi,
    "scip": _scip,
}
