"""Everything that runs on threads, at sizes that the thread sanitizer can bear; also what happens when threads fail."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from strategies import embeddings, gw_problem

import blindmatch as bm
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solvers.dual_ascent import DualAscent
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant
from blindmatch.solvers.tabu import Tabu
from blindmatch.solvers.two_opt import TwoOpt

CASES = {
    "tabu": (Tabu(iterations=200, streams=4), 12),
    "two-opt": (TwoOpt(restarts=8), 12),
    "brute-force": ("brute-force", 7),
    "factorized-hahn-grant": (FactorizedHahnGrant(primal_heuristic=False, max_sweeps=2), 12),
    "relaxation": (DualAscent(), 25),  # from 24 rows on the pool has threads
    "sweeps in batches": (DualAscent(relaxation=False), 64),
    "branch-and-bound": (BranchAndBound(), 9),
}


def unrelated(n: int, seed: int = 3) -> bm.QAP:
    rng = np.random.default_rng(seed)
    A, B = np.triu(rng.integers(0, 100, size=(2, n, n)), 1).astype(float)
    return bm.QAP(A + A.T, B + B.T)


def problem_of(case: str) -> bm.QAP:
    n = CASES[case][1]
    return unrelated(n) if case in ("branch-and-bound", "tabu", "two-opt") else gw_problem(0, n, noise=0.2)


@pytest.mark.parametrize("case", CASES)
def test_threads_change_nothing(case: str) -> None:
    problem, solver = problem_of(case), CASES[case][0]
    alone, many = (bm.solve(problem, solver, rng=1, threads=threads) for threads in (1, 3))
    assert (alone.permutation == many.permutation).all()
    assert (alone.cost, alone.status) == (many.cost, many.status)


def kinds_of_runs(threads: int) -> list[bm.Result]:
    """Runs that end at other limits than the clock, a pool, a maximum, layers and edges between the sides."""
    K = np.random.default_rng(0).random((6, 10, 10))
    X, Y = embeddings(0, 12, noise=0.6)
    plain = {"rng": 1, "threads": threads}
    return [
        bm.solve(unrelated(10), pool_size=4, **plain),
        bm.solve(unrelated(12), node_limit=5, **plain),
        bm.solve(unrelated(14), work_limit=0.05, **plain),
        bm.solve(bm.QAP(K[0, :7, :7], K[1]), maximize=True, **plain),
        bm.match(kernels=[(K[0], K[1]), (K[2], K[3])], weights=[1, 0.3], gap_limit=0.2, time_limit=None, **plain),
        bm.match(kernels=(K[0], K[1]), crossed=(K[4], K[5]), work_limit=0.01, time_limit=None, **plain),
        bm.match(X, Y[:11], unmatched_cost=5.0, work_limit=0.05, time_limit=None, **plain),
    ]


def test_threads_change_no_kind_of_run() -> None:
    for one, other in zip(kinds_of_runs(1), kinds_of_runs(3), strict=True):
        assert one.permutation.tolist() == other.permutation.tolist()
        assert (one.cost, one.lower_bound, one.status) == (other.cost, other.lower_bound, other.status)
        assert one.pool.costs.tolist() == other.pool.costs.tolist()


def test_more_threads_than_the_core_can_count() -> None:
    assert bm.solve(unrelated(5), rng=0, threads=10**20).status == "optimal"


def test_a_pool_of_python_threads() -> None:
    """Concurrent matches do not disturb each other."""
    pairs = [embeddings(seed, 6) for seed in range(12)]
    alone = [bm.match(X, Y, rng=0, threads=1) for X, Y in pairs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda pair: bm.match(*pair, rng=0, threads=2), pairs))
    for one, other in zip(alone, together, strict=True):
        assert (one.permutation == other.permutation).all()
        assert (one.cost, one.lower_bound, one.status) == (other.cost, other.lower_bound, other.status)


def test_stopping_from_another_thread() -> None:
    """A callback that raises ends the run wherever it was started; its threads end with it."""
    before = threading.active_count()

    def stop(progress: object) -> None:
        raise RuntimeError("enough")

    def run() -> str:
        with pytest.raises(RuntimeError, match="enough") as caught:
            bm.solve(unrelated(14), BranchAndBound(), rng=0, threads=3, callback=stop)
        return caught.value.result.status

    with ThreadPoolExecutor(2) as pool:
        assert [future.result() for future in (pool.submit(run), pool.submit(run))] == ["interrupted"] * 2
    assert threading.active_count() == before


FEW_THREADS = """
import os, resource, sys
import numpy as np, blindmatch as bm
from blindmatch.solvers.dual_ascent import DualAscent
rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
problem = bm.GromovWasserstein().problem(X, X[::-1] + 0.1 * rng.normal(size=(30, 4)))
tree = bm.QAP(*np.round(rng.random((2, 9, 9)) * 100))
bm.solve(bm.QAP(np.eye(3), np.eye(3)), rng=0, threads=1)  # all is imported; somebody else may not read our files
os.setresuid(65534, 65534, 65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
for what, solver in ((problem, DualAscent()), (problem, "tabu"), (tree, "branch-and-bound")):
    print(bm.solve(what, solver, rng=0, threads=8, time_limit=20).cost)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody whose threads are limited")
def test_a_system_without_threads_to_give() -> None:
    """Eight are asked for, none is granted: the run goes on alone."""
    done = subprocess.run([sys.executable, "-c", FEW_THREADS], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 3
