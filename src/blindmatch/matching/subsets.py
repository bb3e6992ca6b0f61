"""The best matchable subsets of paired items (the paper's Sec. 4.2, "Finding optimal matching problems")."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from blindmatch import _core
from blindmatch.errors import SolverUnavailable, unknown_name
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Budget
from blindmatch.validation import FloatArray, IntArray, as_generator, as_square, at_least, positive

SubsetStatus = Literal["optimal", "heuristic", "time_limit", "interrupted"]


@dataclass(frozen=True, eq=False)
class Subsets:
    """The cheapest subsets of one size.

    Attributes
    ----------
    subsets
        Arrays of sorted indices, cheapest first, all different.
    costs
        ``cost[np.ix_(s, s)].sum()`` of each: all ordered pairs, including the diagonal.
    lower_bound
        No subset costs less. None if the engine proves nothing.
    status
        "optimal": proved that no subset outside the list is cheaper than its last one (by more than the rounding of the
        sums; "gurobi" and "scip" add their own tolerance). "heuristic": no claim. "time_limit" and "interrupted": the
        run was stopped early, and the list may be shorter than requested.
    engine
        The engine that found them.
    """

    subsets: tuple[IntArray, ...]
    costs: FloatArray
    lower_bound: float | None
    status: SubsetStatus
    engine: str

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        return {
            "subsets": [subset.tolist() for subset in self.subsets],
            "costs": self.costs.tolist(),
            "lower_bound": self.lower_bound,
            "status": self.status,
            "engine": self.engine,
        }


_TOLERANCE = 1e-9  # of Gurobi and SCIP
_MARGIN = 2e-9  # share of the scale of a sum that is subtracted from their bounds


@dataclass(frozen=True)
class _Task:
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

    def bound(self, scaled: float) -> float | None:
        """Convert a bound on the scaled costs to the caller's costs, minus the tolerances; None if there is none."""
        if not abs(scaled) < 1e19:  # SCIP's infinity is 1e20
            return None
        return math.ldexp(scaled - _MARGIN * self.size**2, -self.exponent)


# One subset per row in any order, a lower bound or None, and whether the run was completed.
_Found = tuple[ArrayLike, float | None, bool]


def best_subsets(
    source: ArrayLike | None = None,
    target: ArrayLike | None = None,
    *,
    size: int,
    k: int = 10,
    cost: ArrayLike | None = None,
    distortion: str | Distortion = "gw",
    scale: str = "none",
    engine: str = "search",
    time_limit: float | None = None,
    rng: int | np.random.Generator | None = None,
    threads: int | None = None,
) -> Subsets:
    """Find the k subsets of `size` paired items whose relations in the two spaces agree best.

    Parameters
    ----------
    source, target
        (n, d) and (n, e) embeddings of the same n items: row i belongs to row i. The cost of a pair of items is the
        distortion's loss between its relation in the source and in the target.
    size, k
        Items in each subset (1 to n), and the number of subsets. If fewer than k exist, all of them are returned.
    cost
        Instead of embeddings: an (n, n) matrix that is summed over each subset. It may be asymmetric or negative.
    distortion
        "gw", "gaussian", "cka", "mutual-knn", "kl", "inner-product", or a configured object. Its kernels are computed
        (and standardised) over all n items.
    scale
        How to scale the columns of each side, as in ``bm.match``.
    engine
        "search": tabu search from many starts, no proof. "exact": branch and bound, proves the whole list; suitable for
        some tens of items, or small subsets of about a hundred. "gurobi", "scip": third-party solvers.
    time_limit
        Seconds. When they run out, the best result so far is returned.
    rng
        A seed or a generator, for "search" and for the start of "exact".
    threads
        Maximum number of threads; all cores by default. It does not change the result. ("exact" and "scip" use one.)

    Examples
    --------
    >>> import numpy as np
    >>> cost = np.array([[0, 1, 5, 2], [1, 0, 4, 3], [5, 4, 0, 6], [2, 3, 6, 0]])
    >>> found = best_subsets(cost=cost, size=2, k=3, engine="exact", rng=0)
    >>> [subset.tolist() for subset in found.subsets], found.costs.tolist(), found.status
    ([[0, 1], [0, 3], [1, 3]], [2.0, 4.0, 6.0], 'optimal')
    """
    matrix = _pair_costs(source, target, cost, distortion, scale)
    n = len(matrix)
    at_least(size, 1, "size")
    if size > n:
        raise ValueError(f"size={size}; expected at most {n}, the number of items")
    at_least(k, 1, "k")
    if engine not in _ENGINES:
        raise unknown_name("engine", engine, _ENGINES)
    if time_limit is not None:
        positive(time_limit, "time_limit")
    if threads is not None:
        at_least(threads, 1, "threads")
    budget = Budget(time_limit, threads)
    task = _Task(matrix, int(size), min(int(k), math.comb(n, int(size))), as_generator(rng), budget)
    rows, bound, completed = _ENGINES[engine](task)
    if budget.error is not None:
        raise budget.error
    return _scored(task, rows, bound, completed, engine)


def _pair_costs(
    source: ArrayLike | None,
    target: ArrayLike | None,
    cost: ArrayLike | None,
    distortion: str | Distortion,
    scale: str,
) -> FloatArray:
    if cost is not None:
        if source is not None or target is not None:
            raise ValueError("cost is given together with embeddings; pass one or the other")
        matrix = as_square(cost, "cost")
    else:
        task = Task.of(source, target, distortion=distortion, scale=scale)
        K, G = task.kernels
        if len(K) != len(G):
            raise ValueError(f"source has {len(K)} items and target has {len(G)}; expected row i to belong to row i")
        matrix = task.distortion.loss(K, G)
    largest = float(np.abs(matrix).max())
    if not largest * len(matrix) ** 2 < 1e300:
        raise ValueError(f"cost holds {largest:g}; sums of such values overflow float64")
    return matrix


def _scored(task: _Task, rows: ArrayLike, bound: float | None, completed: bool, engine: str) -> Subsets:
    """Score the subsets on the caller's own matrix and sort them; the engine's costs are not trusted."""
    subsets = [np.sort(row) for row in np.asarray(rows, dtype=np.intp).reshape(-1, task.size)]
    scored = sorted((float(task.cost[np.ix_(s, s)].sum()), s.tolist()) for s in subsets)
    costs = np.array([value for value, _ in scored])
    if bound is not None:
        bound = min(bound, float(costs[0])) if len(costs) else bound
    status: SubsetStatus = "heuristic" if bound is None else "optimal"
    if not completed:
        status = "interrupted" if task.budget.interrupted else "time_limit"
    return Subsets(tuple(np.array(s, dtype=np.intp) for _, s in scored), costs, bound, status, engine)


def _search(task: _Task, restarts: int = 32) -> _Found:
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


def _exact(task: _Task) -> _Found:
    known, _, completed = _search(task, restarts=8)
    found = _core.exact_subsets(task.cost, size=task.size, k=task.k, known=np.asarray(known), budget=task.budget)
    return found.subsets, found.lower_bound, completed and found.completed


def _gurobi(task: _Task) -> _Found:
    try:
        import gurobipy as gp
    except ImportError as error:
        raise SolverUnavailable("engine='gurobi' needs gurobipy: pip install 'blindmatch[gurobi]'") from error
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


def _scip(task: _Task) -> _Found:
    try:
        import pyscipopt as scip
    except ImportError as error:
        raise SolverUnavailable("engine='scip' needs PySCIPOpt: pip install 'blindmatch[scip]'") from error
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


_ENGINES: dict[str, Callable[[_Task], _Found]] = {
    "search": _search,
    "exact": _exact,
    "gurobi": _gurobi,
    "scip": _scip,
}
