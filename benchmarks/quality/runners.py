"""Our solvers and their peers behind one signature: a problem and a time limit in, a `Run` out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy.optimize import quadratic_assignment

import blindmatch as bm

RESTARTS = 20  # of every method that restarts, ours and theirs


@dataclass(frozen=True)
class Run:
    cost: float
    bound: float | None = None
    proved: bool = False
    seconds: float = 0.0


Runner = Callable[[bm.QAP, float], Run]


def ours(name: str) -> Runner:
    options = {"restarts": RESTARTS} if name in ("faq", "two-opt") else {}

    def run(problem: bm.QAP, limit: float) -> Run:
        result = bm.solve(problem, bm.SOLVERS[name](**options), time_limit=limit, rng=0)
        return Run(result.cost, result.lower_bound, result.status == "optimal", result.seconds)

    return run


def timed(permutations: Callable[[bm.QAP, float], list[np.ndarray]]) -> Runner:
    """A peer that gives permutations; their best is scored by us, outside of its time."""

    def run(problem: bm.QAP, limit: float) -> Run:
        if problem.linear.any() or len(problem.factors) > 1:
            raise ValueError("the peers take one factor pair and no linear term")
        start = time.perf_counter()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = permutations(problem, limit)
        seconds = time.perf_counter() - start
        return Run(min(problem.objective(p) for p in found), seconds=seconds)

    return run


def scipy_method(method: str) -> Callable[[bm.QAP, float], list[np.ndarray]]:
    def run(problem: bm.QAP, limit: float) -> list[np.ndarray]:
        A, B = problem.factors[0]
        rng, end = np.random.default_rng(0), time.perf_counter() + limit
        found = []
        for restart in range(RESTARTS):
            options: dict[str, object] = {"rng": rng}
            if method == "faq":
                options["P0"] = "randomized" if restart else "barycenter"
            found.append(quadratic_assignment(A, B, method=method, options=options).col_ind)
            if time.perf_counter() > end:
                break
        return found

    return run


def pot(method: str) -> Callable[[bm.QAP, float], list[np.ndarray]]:
    """POT as its users call it: on the two matrices, one value of epsilon or none, the plan rounded."""

    def run(problem: bm.QAP, limit: float) -> list[np.ndarray]:
        import ot
        from scipy.optimize import linear_sum_assignment

        A, B = problem.factors[0]
        source, target = -A, B
        if method == "entropic":
            scale = 2 * source.std() * target.std()
            plan = ot.gromov.entropic_gromov_wasserstein(
                source, target, epsilon=0.05 * max(scale, 1e-300), max_iter=200
            )
        else:
            plan = ot.gromov.gromov_wasserstein(source, target)
        return [linear_sum_assignment(-np.nan_to_num(plan))[1]]

    return run


def pygm(problem: bm.QAP, limit: float) -> list[np.ndarray]:
    """RRWM on the dense affinity matrix, rounded."""
    import pygmtools
    from scipy.optimize import linear_sum_assignment

    A, B = problem.factors[0]
    n = problem.n
    # Affinities are to be large and positive; pygmtools orders pairs target first.
    K = -np.kron(B.T, A.T)
    soft = pygmtools.rrwm(K - K.min(), n, n, backend="numpy")
    return [linear_sum_assignment(-np.asarray(soft))[1]]


def one_lap(module: str) -> Callable[[bm.QAP, float], list[np.ndarray]]:
    """The Gilmore-Lawler assignment (each pair with the best order of the others), solved by another LAP code."""

    def run(problem: bm.QAP, limit: float) -> list[np.ndarray]:
        from importlib import import_module

        A, B = problem.factors[0]
        off = ~np.eye(problem.n, dtype=bool)
        rows = [np.sort(matrix[off].reshape(problem.n, -1), axis=1) for matrix in (A, B)]
        cost = np.outer(np.diag(A), np.diag(B)) + rows[0] @ rows[1][:, ::-1].T
        answer = import_module(module).lapjv(cost)
        return [np.asarray(answer[1] if module == "lap" else answer[0])]

    return run


def runners() -> dict[str, Runner]:
    """All that is installed, ours first."""
    available = {name: ours(name) for name, solver in bm.SOLVERS.items() if solver.capabilities.installed}
    available["scipy faq"] = timed(scipy_method("faq"))
    available["scipy 2opt"] = timed(scipy_method("2opt"))
    if find_spec("ot"):
        available["POT entropic"] = timed(pot("entropic"))
        available["POT conditional gradient"] = timed(pot("conditional-gradient"))
    if find_spec("pygmtools"):
        available["pygmtools rrwm"] = timed(pygm)
    for module in ("lap", "lapjv"):
        if find_spec(module):
            available[f"{module} (one LAP)"] = timed(one_lap(module))
    return available
