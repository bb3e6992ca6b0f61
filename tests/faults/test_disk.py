"""Disks that are full, folders that cannot be written to, memory that is not there: told, and nothing half done."""

import os
import re
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from strategies import gw_problem

import blindmatch as bm
from blindmatch.io.files import write_atomically
from blindmatch.solvers.auto import Auto
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solvers.dual_ascent import DualAscent
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving import limits
from blindmatch.solving.limits import available_bytes
from blindmatch.solving.run import as_solver

LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.path.insert(0, {tests!r})
import numpy as np, blindmatch as bm
from blindmatch.solvers.branch_and_bound import BranchAndBound
from faults.test_disk import problem
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
{action}
"""
TESTS = str(Path(__file__).parent.parent)


def problem(n: int = 11) -> bm.QAP:
    """Unrelated sides: a tree of some dozen nodes."""
    rng = np.random.default_rng(0)
    A, B = np.triu(rng.integers(0, 100, size=(2, n, n)), 1).astype(float)
    return bm.QAP(A + A.T, B + B.T)


def run_limited(action: str, size: int = 1000) -> str:
    """Run with files limited to so many bytes, which is how a full disk looks to a program."""
    script = LIMITED.format(tests=TESTS, size=size, action=action)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_costs_the_checkpoint_but_not_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run.tree"
    action = f"""
solver = BranchAndBound(checkpoint={str(path)!r}, checkpoint_interval=1e-3)
result = bm.solve(problem(), solver, rng=0, threads=2)
print(result.status, result.cost)
print(result.message)
"""
    first, message = run_limited(action).splitlines()
    assert first == f"optimal {bm.solve(problem(), 'branch-and-bound', rng=0).cost}"
    assert f"cannot write the checkpoint {path}" in message
    assert not list(tmp_path.iterdir())


def test_the_last_good_checkpoint_stays_when_the_disk_fills_up(tmp_path: Path) -> None:
    path = tmp_path / "run.tree"
    bm.solve(problem(), BranchAndBound(checkpoint=path), rng=0, time_limit=0.05, threads=1)
    if not path.exists():
        pytest.skip("the run was too quick to be stopped")
    before = path.read_bytes()
    action = f"""
result = bm.solve(problem(), BranchAndBound(checkpoint={str(path)!r}), rng=0, time_limit=1e-3)
print(result.message)
"""
    assert "cannot write the checkpoint" in run_limited(action)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["run.tree"]
    assert bm.solve(problem(), BranchAndBound(checkpoint=path), rng=0).status == "optimal"


def test_a_full_disk_leaves_the_old_certificate(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    path.write_bytes(b"old")
    action = f"""
result = bm.solve(problem(), "dual-ascent", rng=0)
try:
    result.certificate.save({str(path)!r})
except OSError as error:
    print(type(error).__name__, error.errno)
"""
    assert run_limited(action).strip() == "OSError 27"
    assert path.read_bytes() == b"old"
    assert [item.name for item in tmp_path.iterdir()] == ["c.npz"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_on_a_full_disk(tmp_path: Path) -> None:
    """One line on stderr and an exit code, no traceback."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(5, 3)))
    script = "from blindmatch.cli import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", script, "match", "x.npy", "x.npy", "--json"],
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=600, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "blindmatch: standard output: no space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_costs_the_log_but_not_the_run(tmp_path: Path) -> None:
    """Files that were asked for are missing then, and named."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(5, 3)))
    (tmp_path / "p.dat").write_text("2\n0 1 1 0\n0 1 1 0\n", encoding="ascii")
    (tmp_path / "full.json").symlink_to("/dev/full")
    for options, code, told in (
        (["match", "x.npy", "x.npy", "--log", "/dev/full"], 0, ""),
        (["convert", "p.dat", "full.json"], 2, "blindmatch: full.json: no space left on device"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "blindmatch", *options],
            cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr.strip()) == (code, told)


NOBODY = """
import os, sys
from pathlib import Path
import blindmatch as bm
from blindmatch.io.files import write_atomically
from blindmatch.solvers.branch_and_bound import BranchAndBound
sys.path.insert(0, sys.argv[2])
from faults.test_disk import problem
bm.solve(problem(4), "branch-and-bound")  # everything is imported now: nobody may be kept out of Python's own folder
if os.getuid() == 0:
    os.setresuid(65534, 65534, 65534)
folder = Path(sys.argv[1])
try:
    write_atomically(folder / "out", lambda file: file.write(b"x"))
except PermissionError as error:
    print("PermissionError", error.filename is not None)
result = bm.solve(problem(), BranchAndBound(checkpoint=folder / "run.tree"), rng=0)
print(result.status, "cannot write the checkpoint" in result.message)
"""


def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and len(parent.parts) > 2:
            parent.chmod(parent.stat().st_mode | 0o055)
    command = [sys.executable, "-c", NOBODY, str(folder), TESTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["PermissionError True", "optimal True"]
    assert not list(folder.iterdir())


def test_a_checkpoint_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it is a folder; expected a file"):
        BranchAndBound(checkpoint=tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such device")
def test_a_checkpoint_that_never_ends() -> None:
    with pytest.raises(ValueError, match="it is a pipe or a device; expected a file"):
        BranchAndBound(checkpoint="/dev/zero")


@pytest.mark.parametrize(
    ("solver", "n", "word"),
    [
        ("hahn-grant", 200, "up to n=128; .* solver='auto' takes any size"),
        ("dual-ascent", 700, "up to n=600; .* solver='auto'"),
        ("branch-and-bound", 700, "up to n=600; .* solver='auto'"),
        ("brute-force", 13, "up to n=12; .* solver='auto'"),
    ],
)
def test_sizes_that_a_solver_does_not_take(solver: str, n: int, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        bm.solve(bm.QAP(np.eye(n), np.eye(n)), solver)


def test_auto_needs_the_memory_of_branch_and_bound_up_to_its_own_largest_size() -> None:
    problem = bm.QAP(np.eye(40), np.eye(40))
    needed = {largest: Auto(largest=largest).memory(problem) for largest in (39, 40)}
    assert needed[40] == BranchAndBound().memory(problem)
    assert needed[39] == Tabu().memory(problem)
    beyond = bm.QAP(np.eye(301), np.eye(301))  # the default ends at 300
    assert Auto(largest=301).memory(beyond) == BranchAndBound().memory(beyond) > 10 * Auto().memory(beyond)


@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "dual-ascent", "branch-and-bound", "faq"])
def test_too_little_memory_is_told_before_the_run(solver: str) -> None:
    """With the figure, and what to use instead. The limit is one on the address space of this very process."""
    n = 250 if solver != "faq" else 600
    large = bm.QAP(np.eye(n), np.eye(n))
    needed = as_solver(solver).memory(large)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + needed // 2, hard))
    try:
        assert available_bytes() < needed
        with pytest.raises(ValueError, match=rf"^solver='{solver}' needs about [\d.]+ GB .*; use ") as caught:
            bm.solve(large, solver)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert f"{needed / 1e9:.3g} GB" in str(caught.value)


def test_auto_takes_a_smaller_method_if_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = gw_problem(0, 40)
    needed, without = (solver.memory(problem) for solver in (Auto(), Auto(memory_limit=0)))
    figures = rf"needs about {needed / 1e9:.3g} GB of memory for n=40, and [\d.]+ GB is free"
    for free, method, lost in (
        (needed - 1, "branch-and-bound", r"a bound of n\^4 numbers"),
        (without - 1, "faq and tabu with the projection bound", "branch and bound"),
    ):
        monkeypatch.setattr(limits, "available_bytes", lambda free=free: free)
        result = bm.solve(problem, rng=0, time_limit=1)
        assert re.search(rf"^{method}.*; {lost} {figures}", result.message)
        assert result.lower_bound == bm.verify(problem, result.certificate) <= result.cost
    monkeypatch.setattr(limits, "available_bytes", lambda: needed)
    assert "of memory" not in bm.solve(problem, rng=0, time_limit=1).message
    monkeypatch.setattr(limits, "available_bytes", lambda: 1000)  # too little for any method
    with pytest.raises(ValueError, match=r"^solver='auto' needs about .* use fewer items"):
        bm.solve(problem, rng=0)


@pytest.mark.parametrize("solver", [DualAscent(), BranchAndBound(semidefinite=False)])
def test_the_first_order_method_counts_where_it_may_run(solver: DualAscent | BranchAndBound) -> None:
    problem = bm.QAP(np.eye(100), np.eye(100))
    swept = replace(solver, memory_limit=0).memory(problem)
    assert solver.memory(problem) == swept + 4 * (100**4 - 100**3)
    assert replace(solver, memory_limit=10**8).memory(problem) == swept
    few = problem.changed(forbidden=np.kron(np.eye(2), np.ones((50, 50))).astype(bool))
    assert solver.memory(few) == swept + 4 * ((100 * 50) ** 2 - 100 * 50**2)


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "n"), [("Semidefinite(rounds=2)", 20)])  # it ends by itself, whatever the clock
def test_the_prediction_is_right_within_a_factor_of_one_and_a_half(solver: str, n: int) -> None:
    script = f"""
import re, sys
from pathlib import Path
import numpy as np, blindmatch as bm
from blindmatch.solvers import *
points = np.random.default_rng(0).normal(size=(2, {n}, 8))  # unrelated: no pair is ruled out early
A, B = (np.linalg.norm(side[:, None] - side, axis=2) for side in points)
problem, solver = bm.QAP(-A, B), {solver}
bm.solve(bm.QAP(A[:5, :5], B[:5, :5]), solver)
problem.normal_form
status = lambda key: 1024 * int(re.search(key + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
before = status("VmRSS")
bm.solve(problem, solver, rng=0, threads=1)
print(status("VmHWM") - before, solver.memory(problem))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=900, check=True)
    taken, predicted = map(int, done.stdout.split())
    assert predicted / 1.5 < taken < 1.5 * predicted


def test_writing_over_a_link_replaces_the_link(tmp_path: Path) -> None:
    """A name that somebody turned into a link elsewhere: what it points to is left alone."""
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "out").symlink_to(tmp_path / "precious")
    write_atomically(tmp_path / "out", lambda file: file.write(b"new"))
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert (tmp_path / "out").read_bytes() == b"new"
