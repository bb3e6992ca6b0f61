"""A steady-state sweep of the factorised solver at N=40 against the assignment problems alone, solved by scipy.

    python -m pytest benchmarks/test_sweep.py -s -o addopts=

The instance is the paper's ablation: distances of normalised Gaussian vectors, d=1024, negative inner product. A sweep
gathers and solves 40 * 40 assignment problems of size 39 and updates the duals; scipy gets the same 1600 matrices ready
made. Both on one thread, in turns, in the same run.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import linear_sum_assignment

import blindmatch as bm
from blindmatch import _core
from blindmatch.geometry.kernels import distances, unit_rows
from blindmatch.solvers.base import Budget
from blindmatch.solvers.core_problem import core_problem

N, DIMENSION = 40, 1024
WARM_UP, ROUNDS = 10, 5


def ablation_problem(seed: int = 0) -> bm.QAP:
    rng = np.random.default_rng(seed)
    K, G = (distances(unit_rows(rng.standard_normal((N, DIMENSION)))) for _ in range(2))
    return bm.QAP(-K, G)


def subproblem_matrices(problem: bm.QAP, U: np.ndarray, V: np.ndarray) -> list[np.ndarray]:
    """The matrices of all subproblems: 2 A_ik B_jl - U_ijk - V_ijl - U_kli - V_klj (Alg. 2, l. 12)."""
    ((A, B),) = problem.normal_form.factors
    matrices = []
    for i in range(N):
        rows = np.arange(N) != i
        for j in range(N):
            columns = np.arange(N) != j
            matrix = 2 * np.outer(A[i], B[j]) - U[i, j][:, None] - V[i, j][None, :] - U[:, :, i] - V[:, :, j]
            matrices.append(np.ascontiguousarray(matrix[np.ix_(rows, columns)]))
    return matrices


def seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(lap: str = "jonker-volgenant", evaluate_laps: bool = True) -> tuple[float, float]:
    """Median seconds of a sweep and of scipy's 1600 assignment problems."""
    problem = ablation_problem()
    ascent = _core.HahnGrant(core_problem(problem), factorized=True, lap=lap, evaluate_laps=evaluate_laps, threads=1)
    for _ in range(WARM_UP):
        ascent.sweep(Budget())
    U, V, _ = ascent.duals()
    matrices = subproblem_matrices(problem, U, V)

    def by_scipy() -> None:
        for matrix in matrices:
            linear_sum_assignment(matrix)

    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(seconds(lambda: ascent.sweep(Budget())))
        theirs.append(seconds(by_scipy))
    return float(np.median(ours)), float(np.median(theirs))


def test_a_sweep_costs_less_than_its_assignment_problems_by_scipy() -> None:
    print()
    for lap in ("jonker-volgenant", "hungarian", "auction"):
        sweep, scipy_laps = measure(lap)
        ratio = sweep / scipy_laps
        print(f"N={N} {lap:>16}: sweep {sweep * 1e3:7.1f} ms, scipy {scipy_laps * 1e3:7.1f} ms, ratio {ratio:.2f}")
        if lap == "jonker-volgenant":  # the paper's setting
            assert ratio < 1.0
