"""The command line, as a user meets it."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import blindmatch as bm

pytestmark = pytest.mark.usefixtures("hidden")
SOLVER = ("--solver", "factorized-hahn-grant")
COMMAND = (sys.executable, "-c", "from blindmatch.cli import main; main()")


def test_match_finds_the_hidden_pairs(run, hidden: np.ndarray) -> None:
    done = run("match", "a.npy", "b.npy", "--json", *SOLVER)
    assert done.code == 0
    assert done.err == ""
    assert done.json["permutation"] == hidden.tolist()
    assert done.json["pairs"] == [{"source": i, "target": int(j)} for i, j in enumerate(hidden)]
    assert done.json["status"] == "optimal"
    assert {"cost", "lower_bound", "gap", "solver", "seconds", "message"} <= done.json.keys()


def test_match_prints_names(run) -> None:
    done = run("match", "named_a.npz", "named_b.npz", *SOLVER)
    assert done.code == 0
    for i in range(9):
        assert any(f"thing {i}" in line and f"chose {i}" in line for line in done.out.splitlines())
    assert "proved optimal" in done.out
    pairs = run("match", "named_a.npz", "named_b.npz", "--json", *SOLVER).json["pairs"]
    assert all(pair["source_name"][-1] == pair["target_name"][-1] for pair in pairs)


def test_names_cannot_steer_the_terminal(run) -> None:
    np.savez("evil.npz", embeddings=np.load("a.npy"), names=["\x1b[2J[red]x[/red]"] * 9)
    done = run("match", "evil.npz", "b.npy", *SOLVER)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "[red]x[/red]" in done.out


def test_unequal_sizes_leave_some_over(run) -> None:
    np.save("few.npy", np.load("b.npy")[:6])
    done = run("match", "a.npy", "few.npy", "--json", "--solver", "two-opt").json
    assert len(done["permutation"]) == 9
    assert done["permutation"].count(-1) == 3
    assert sorted(pair["target"] for pair in done["pairs"]) == list(range(6))


@pytest.mark.parametrize("known", [("--known", "3:0"), ("--known", "thing 3:0"), ("--known-pairs", "known.csv")])
def test_known_pairs_are_kept(run, known: tuple[str, str]) -> None:
    Path("known.csv").write_text("source,target\nthing 3,0\n")
    done = run("match", "named_a.npz", "named_b.npz", "--json", "--solver", "two-opt", *known)
    assert done.code == 0, done.err
    assert done.json["permutation"][3] == 0


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (("--known", "3"), "expected SOURCE:TARGET"),
        (("--known", "9:0"), "source must be below 9"),
        (("--known", "x:0"), "no item is called 'x'"),
        (("--known", "-1:0"), "no item is called '-1'"),
        (("--known", "0:1", "--known", "0:2"), "contradicts"),
        (("--known-pairs", "none.csv"), "none.csv: no such file"),
        (("--known-pairs", "three.csv"), "three.csv: line 1 has 3 cells"),
        (("--known-pairs", "a.npy"), "a.npy: not a text file"),
    ],
)
def test_bad_known_pairs(run, known: tuple[str, ...], message: str) -> None:
    Path("three.csv").write_text("0,1,2\n")
    done = run("match", "named_a.npz", "named_b.npz", *known, *SOLVER)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_solve_and_verify(run) -> None:
    done = run("solve", "p.dat", "--json", "--certificate", "c.npz", *SOLVER)
    problem = bm.QAP.from_qaplib("p.dat")
    assert done.json["status"] == "optimal"
    assert done.json["cost"] == problem.objective(done.json["permutation"]) == 38.0
    checked = run("verify", "p.dat", "c.npz", "--json")
    assert (checked.code, checked.json["lower_bound"]) == (0, 38.0)
    assert "at least 38.0" in run("verify", "p.dat", "c.npz").out


def test_verify_the_match_of_two_files(run) -> None:
    options = ("--distortion", "cka", "--seed", 3)
    bound = run("match", "a.npy", "b.npy", "--json", "-c", "c.npz", *options, *SOLVER).json["lower_bound"]
    checked = run("verify", "a.npy", "b.npy", "c.npz", "--distortion", "cka", "--json").json["lower_bound"]
    assert checked == pytest.approx(bound, rel=1e-12)
    # As a certificate of another problem it proves less, but nothing false.
    other = run("verify", "a.npy", "b.npy", "c.npz", "--json").json["lower_bound"]
    assert other <= bm.match(np.load("a.npy"), np.load("b.npy"), solver=SOLVER[1], rng=0).cost


def test_a_certificate_for_something_else(run) -> None:
    run("solve", "p.dat", "-c", "c.npz", *SOLVER)
    done = run("verify", "a.npy", "b.npy", "c.npz")
    assert (done.code, done.out) == (2, "")
    assert "c.npz: certificate is for n=4, the problem has n=9" in done.err
    assert run("verify", "p.dat", "named_a.npz").code == 2
    assert run("verify", "p.dat").code == 2


def test_solve_takes_npz(run) -> None:
    A, B = np.random.default_rng(0).normal(size=(2, 5, 5))
    np.savez("p.npz", source_cost=A, target_cost=B, linear=np.eye(5), constant=7.0)
    done = run("solve", "p.npz", "--json", "--solver", "two-opt", "--seed", 1).json
    problem = bm.QAP(A, B, np.eye(5), 7.0)
    assert done["cost"] == pytest.approx(problem.objective(done["permutation"]), rel=1e-12)
    assert done["lower_bound"] is None


def test_report_is_written(run) -> None:
    done = run("match", "named_a.npz", "named_b.npz", "--report", "r.html", *SOLVER)
    assert "r.html" in done.out
    page = Path("r.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "http:" not in page
    assert "chose 8" in page
    assert run("solve", "p.dat", "--report", "s.html", *SOLVER).code == 0
    assert "p.dat" in Path("s.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("match", "bad.npy", "b.npy"), "bad.npy"),
        (("match", "none.npy", "b.npy"), "none.npy: no such file"),
        (("match", "a.npy", "b.npy", "--distortion", "mutual-kn"), "did you mean 'mutual-knn'?"),
        (("match", "a.npy", "b.npy", "--time-limit", "-1"), "--time-limit"),
        (("match", "a.npy", "b.npy", "--seed", "-1"), "'--seed': '-1'; expected an integer"),
        (("match", "a.npy", "b.npy", "--threads", "0"), "--threads 0"),
        (("solve", "p.dat", "--solver", "two-op"), "--solver 'two-op' is not known; did you mean 'two-opt'?"),
        (("solve", "bad.dat"), "bad.dat"),
        (("solve", "p.dat", "--report", "no/such/folder/r.html"), "r.html"),
        (("solve", "p.dat", "--certificate", "p.dat"), "overwrite an input"),
        (("solve", "p.dat", "--certificate", "c.npz", "--solver", "faq"), "proves no bound"),
        (("demo", "--data", "colour"), "did you mean 'colours'?"),
    ],
)
def test_bad_input_is_told_in_one_line(run, arguments: tuple[str, ...], message: str) -> None:
    Path("bad.npy").write_bytes(b"not an array")
    Path("bad.dat").write_bytes(b"not a problem")
    before = sorted(path.name for path in Path().iterdir())
    solver = () if "--solver" in arguments else SOLVER
    done = run(*arguments, *solver)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert sorted(path.name for path in Path().iterdir()) == before


def test_a_solver_that_is_not_installed(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object, **__: object) -> None:
        raise bm.SolverUnavailable("solver='x' needs a package: pip install x")

    monkeypatch.setattr("blindmatch.solving.run.solve", absent)
    done = run("solve", "p.dat", *SOLVER)
    assert (done.code, done.out, done.err) == (1, "", "blindmatch: solver='x' needs a package: pip install x\n")


def test_solvers_lists_them_all(run) -> None:
    rows = run("solvers", "--json").json
    assert [row["name"] for row in rows] == list(bm.SOLVERS)
    assert all({"bound", "exact", "installed", "max_size", "note"} <= row.keys() for row in rows)
    table = run("solvers").out
    assert all(name in table for name in bm.SOLVERS)


@pytest.mark.parametrize("command", [(), ("demo",), ("match",), ("solve",), ("verify",), ("solvers",)])
def test_help_teaches_by_examples(run, command: tuple[str, ...]) -> None:
    done = run(*command, "--help")
    assert done.code == 0
    assert "Examples:" in done.out
    assert " ".join(("blindmatch", *command)) in done.out.partition("Examples:")[2]


def test_version(run) -> None:
    assert run("--version").out == f"blindmatch {bm.__version__}\n"


def test_a_bad_file_shows_no_traceback_and_pipes_get_no_colour() -> None:
    Path("bad.npy").write_bytes(b"not an array")
    bad = subprocess.run([*COMMAND, "match", "bad.npy", "b.npy", *SOLVER], capture_output=True, text=True, timeout=600)
    assert bad.returncode == 2
    assert "bad.npy" in bad.stderr
    assert "Traceback" not in bad.stderr
    good = subprocess.run([*COMMAND, "solve", "p.dat", *SOLVER], capture_output=True, text=True, timeout=600)
    assert (good.returncode, good.stderr) == (0, "")
    assert "\x1b" not in good.stdout


def long_run(*arguments: str) -> tuple[subprocess.Popen, int]:
    """A run that takes minutes if left alone, with stderr on a terminal; returns once it has shown progress."""
    np.save("x.npy", np.random.default_rng(1).normal(size=(60, 30)))
    np.save("y.npy", np.random.default_rng(2).normal(size=(60, 30)))
    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}
    command = [*COMMAND, "match", "x.npy", "y.npy", "--json", *SOLVER, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment)
    os.close(theirs)
    shown, end = b"", time.monotonic() + 600
    while b"cost " not in shown and time.monotonic() < end:
        if select.select([ours], [], [], 1)[0]:
            shown += os.read(ours, 4096)
    assert b"bound" in shown
    assert b"gap" in shown
    return process, ours


def drain(terminal: int) -> bytes:
    """The rest of what was shown; a closed terminal ends it."""
    shown = b""
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            return shown
        if not chunk:
            return shown
        shown += chunk


def test_progress_is_shown_and_ctrl_c_gives_the_best_so_far() -> None:
    process, terminal = long_run()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=600)
    shown = drain(terminal)
    os.close(terminal)
    assert process.returncode == 130
    assert b"Traceback" not in shown
    assert b"interrupted" in shown
    result = json.loads(out)
    assert result["status"] == "interrupted"
    assert sorted(result["permutation"]) == list(range(60))


def test_a_run_goes_on_from_its_checkpoint(run) -> None:
    rng = np.random.default_rng(3)
    A, B = np.triu(rng.integers(0, 100, size=(2, 14, 14)), 1)
    np.savez("hard.npz", source_cost=A + A.T, target_cost=B + B.T)
    first = run("solve", "hard.npz", "--json", "--checkpoint", "run.tree", "--time-limit", "0.4", "--threads", "1")
    assert first.json["status"] == "time_limit"
    assert Path("run.tree").exists()
    assert (
        run("solve", "hard.npz", "--json", "--checkpoint", "run.tree", "--time-limit", "none").json["status"]
        == "optimal"
    )
    assert not Path("run.tree").exists()
    refused = run("solve", "hard.npz", "--checkpoint", "run.tree", "--solver", "faq")
    assert (refused.code, refused.out) == (2, "")
    assert "--checkpoint" in refused.err
