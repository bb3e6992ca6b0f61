"""Branch and bound that is stopped, killed and taken up again."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sampled import sampled

import blindmatch as bm
from blindmatch.solvers.branch_and_bound import BranchAndBound

SCRIPT = """
import sys
sys.path[:0] = {folders!r}
from test_checkpoint import hard_problem
import blindmatch as bm
from blindmatch.solvers.branch_and_bound import BranchAndBound
print("go", flush=True)
bm.solve(hard_problem(), BranchAndBound(checkpoint={path!r}, checkpoint_interval=0.05), rng=0, threads=1)
"""


def hard_problem(seed=3, n=14):
    """Unrelated random sides: the root does not close, the tree has some hundred nodes."""
    rng = np.random.default_rng(seed)
    A, B = np.triu(rng.integers(0, 100, size=(2, n, n)), 1).astype(float)
    return bm.QAP(A + A.T, B + B.T)


@pytest.fixture(scope="module")
def optimum():
    result = bm.solve(hard_problem(), BranchAndBound(semidefinite=False), rng=0)
    assert result.status == "optimal"
    assert len(result.certificate.nodes) > 50
    return result.cost


@pytest.mark.slow
def test_stopped_runs_add_up_to_the_whole(tmp_path, optimum):
    problem, path = hard_problem(), tmp_path / "run.tree"
    solver = BranchAndBound(checkpoint=path, semidefinite=False)
    nodes, bounds, runs, limit = [], [], 0, 0.1
    while runs < 100:
        runs += 1
        result = bm.solve(problem, solver, rng=0, time_limit=limit, threads=1)
        limit *= 1.2  # however slow the machine, runs get somewhere in the end
        nodes.append(len(result.certificate.nodes))
        bounds.append(result.lower_bound)
        if result.status == "optimal":
            break
        assert result.status == "time_limit"
        assert path.exists()
    assert runs > 1
    assert result.status == "optimal"
    assert result.cost == optimum
    assert nodes == sorted(nodes)
    assert bm.verify(problem, result.certificate) == optimum
    assert not path.exists()  # nothing is left to go on with


def test_a_check_that_is_cut_short_keeps_the_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.tree"
    with monkeypatch.context() as patch:
        patch.setattr("blindmatch.solving.run._checking_time", lambda *arguments: 1.0)
        patch.setattr("blindmatch.solving.run.verify_in_time", lambda *arguments: (-np.inf, False))
        result = bm.solve(hard_problem(n=8), BranchAndBound(checkpoint=path), rng=0, time_limit=60)
    assert result.status == "time_limit"
    assert path.exists()
    assert bm.solve(hard_problem(n=8), BranchAndBound(checkpoint=path), rng=0).status == "optimal"
    assert not path.exists()


@sampled("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_goes_on(tmp_path, optimum, how):
    path = tmp_path / "run.tree"
    script = SCRIPT.format(folders=[str(folder) for folder in Path(__file__).parents[:2]], path=str(path))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with process:
        process.stdout.readline()
        deadline = time.monotonic() + 30
        while process.poll() is None and not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(how)
        process.wait(timeout=600)
    if process.returncode == 0:
        pytest.skip("the run ended before it could be killed")
    assert process.returncode in (128 + signal.SIGTERM, -signal.SIGKILL)
    assert path.exists()
    result = bm.solve(hard_problem(), BranchAndBound(checkpoint=path), rng=0)
    assert (result.status, result.cost) == ("optimal", optimum)
    assert bm.verify(hard_problem(), result.certificate) == optimum


def stopped(path, time_limit=0.1):
    result = bm.solve(hard_problem(), BranchAndBound(checkpoint=path), rng=0, time_limit=time_limit, threads=1)
    assert result.status == "time_limit"
    return path.read_bytes()


@pytest.mark.slow
def test_a_root_cut_short_keeps_its_duals(tmp_path):
    stopped(tmp_path / "run.tree", time_limit=0.01)
    result = bm.solve(hard_problem(), BranchAndBound(checkpoint=tmp_path / "run.tree"), rng=0)
    assert result.status == "optimal"


def test_another_problem_or_seed_is_refused(tmp_path):
    path = tmp_path / "run.tree"
    before = stopped(path)
    for problem, seed in ((hard_problem(seed=4), 0), (hard_problem(), 1)):
        with pytest.raises(ValueError, match="belongs to another problem"):
            bm.solve(problem, BranchAndBound(checkpoint=path), rng=seed)
    assert path.read_bytes() == before


@pytest.mark.parametrize("fault", ["empty", "cut", "flip", "text"])
def test_a_damaged_file_is_refused_and_kept(tmp_path, fault):
    path = tmp_path / "run.tree"
    good = stopped(path)
    middle = len(good) // 2
    bad = {
        "empty": b"",
        "cut": good[:middle],
        "flip": good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
        "text": b"not a checkpoint",
    }[fault]
    path.write_bytes(bad)
    with pytest.raises(ValueError, match=r"run\.tree.*(damaged|not a checkpoint)"):
        bm.solve(hard_problem(), BranchAndBound(checkpoint=path), rng=0)
    assert path.read_bytes() == bad


def test_a_folder_that_is_missing_is_told_at_once(tmp_path):
    with pytest.raises(ValueError, match=r"^checkpoint=.*folder does not exist"):
        BranchAndBound(checkpoint=tmp_path / "none" / "run.tree")


@pytest.mark.slow
def test_a_proof_that_is_too_large_is_dropped_but_not_its_bound(optimum):
    result = bm.solve(hard_problem(), BranchAndBound(proof_limit=100_000), rng=0)
    assert result.certificate is None
    assert "dropped" in result.message
    assert (result.status, result.cost) == ("optimal", optimum)
    assert optimum - hard_problem().granularity < result.lower_bound <= optimum
