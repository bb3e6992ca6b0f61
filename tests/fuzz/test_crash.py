"""Random problems in a process of its own: a crash of the core is a failed test that names the problem.

BLINDMATCH_FUZZ is how many problems there are, BLINDMATCH_SEED the number of the first.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("crash.py")
COUNT = int(os.environ.get("BLINDMATCH_FUZZ", "28"))
FIRST = int(os.environ.get("BLINDMATCH_SEED", "1"))
BATCH = 500

REPORTED = """
import numpy as np, blindmatch as bm
for n, seed in ((10, 10), (10, 22), (12, 3)):
    rng = np.random.default_rng([n, seed, 1024])
    X, Y = rng.normal(size=(n, 1024)), rng.normal(size=(n, 1024))
    problem = bm.InnerProduct(standardize=False, normalize=True).problem(X, Y)
    result = bm.solve(problem, "dual-ascent", rng=seed, threads=1)
    assert result.lower_bound <= result.cost
"""

ABSURD_DUALS = """
import numpy as np, blindmatch as bm
from blindmatch import _core
from blindmatch.solvers.base import Budget
from blindmatch.solvers.core_problem import RescaledProblem
from blindmatch.solvers.core_problem import root_proof
rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 7, 7))
problem = bm.QAP(A + A.T, B + B.T)
scaled = RescaledProblem.of(problem)
best = bm.solve(problem, "brute-force").cost
for value in (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, 1e29, -1e20):
    for share in (0.01, 0.5, 1.0):
        U, V = (np.where(rng.random((7, 7, 7)) < share, value, 0.1).astype(np.float32) for _ in "UV")
        start = rng.permutation(7).astype(np.int32)
        options = _core.DualAscentOptions(target=scaled.target, memory_limit=1 << 30, seed=0, threads=1)
        duals = _core.Stage.from_certificate(U, V)
        found = _core.dual_ascent(scaled.core, options, start, duals, scaled.budget(Budget(10)))
        assert sorted(found.permutation) == list(range(7)), value
        certificate = root_proof(7, scaled.exponent, found.stages).make(None)
        assert bm.verify(problem, certificate) <= best + 1e-9, value
        assert all(np.isfinite(stage.U).all() for stage in certificate.nodes[0].stages), value
"""


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_random_problems_do_not_crash(first: int) -> None:
    count = min(BATCH, FIRST + COUNT - first)
    done = subprocess.run([sys.executable, SCRIPT, str(first), str(count)], capture_output=True, text=True, check=False)
    number = (done.stdout.split() or ["none"])[-1]
    assert done.returncode == 0, f"exit {done.returncode} in problem {number}\n{done.stderr[-3000:]}"


def test_unrelated_vectors_do_not_crash() -> None:
    """The primal weight of the relaxation went to zero here, and its duals to NaN."""
    done = subprocess.run([sys.executable, "-c", REPORTED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-3000:]}"


def test_absurd_duals_to_start_from_do_not_crash() -> None:
    """Neither NaN nor numbers beyond what stands for "never" in the assignment problems."""
    done = subprocess.run([sys.executable, "-c", ABSURD_DUALS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-3000:]}"
