"""What a command leaves behind when something goes wrong: Ctrl-C in the assessment, full disks, locked folders."""

import ctypes
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from commands import run
from sampled import sampled

import blindmatch as bm
from blindmatch.cli.console import one_line_errors

COMMAND = (sys.executable, "-c", "from blindmatch.cli import main; main()")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Two sets of the same points with noise; images of their classes; a small problem."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 6))
    np.save("a.npy", X)
    np.save("b.npy", X[::-1] + 0.3 * rng.normal(size=X.shape))
    np.save("images.npy", np.repeat(X, 8, axis=0) + 0.05 * rng.normal(size=(96, 6)))
    np.savez("p.npz", source_cost=np.eye(4), target_cost=np.eye(4))


def interrupted_when(words: bytes, *arguments: str, by: signal.Signals = signal.SIGINT) -> tuple[int, bytes, bytes]:
    """Run with stderr on a terminal, send a signal once it shows some words: exit code, stdout, what was shown."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "150"}
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    shown, end = b"", time.monotonic() + 600
    while words not in shown and time.monotonic() < end:
        if select.select([ours], [], [], 1)[0]:
            shown += os.read(ours, 65536)
    assert words in shown
    process.send_signal(by)
    out, _ = process.communicate(timeout=600)
    while select.select([ours], [], [], 0)[0]:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    return process.returncode, out, shown


def test_ctrl_c_in_the_assessment_keeps_the_match():
    code, out, shown = interrupted_when(
        b"unrelated spaces", "match", "a.npy", "b.npy", "--json", "--min-confidence", "0.99",
        "--report", "r.html", "--certificate", "c.npz",
    )  # fmt: skip
    assert code == 130
    found = json.loads(out)
    assert found["status"] == "interrupted"  # as in Python
    assert "The assessment was cut short by Ctrl-C: min_confidence=0.99 left out no pair" in found["message"]
    assert -1 not in found["permutation"]
    assert "trust" not in found
    assert b"interrupted; the match is complete, but was not assessed and all its pairs are kept" in shown
    assert "proved optimal" in Path("r.html").read_text()
    problem = bm.GromovWasserstein().problem(np.load("a.npy"), np.load("b.npy"))
    assert bm.verify(problem, bm.Certificate.load("c.npz")) == pytest.approx(found["lower_bound"])


def test_sigterm_in_the_assessment_keeps_the_match():
    code, out, shown = interrupted_when(
        b"unrelated spaces", "match", "a.npy", "b.npy", "--json", "--assess", by=signal.SIGTERM
    )
    assert code == 143
    found = json.loads(out)
    assert (found["status"], len(found["pairs"])) == ("interrupted", 12)
    assert "trust" not in found
    assert b"interrupted; the match is complete, but was not assessed" in shown


def test_sigterm_in_the_match_keeps_the_best_so_far():
    rng = np.random.default_rng(1)
    np.save("x.npy", rng.normal(size=(60, 5)))
    np.save("y.npy", rng.normal(size=(60, 5)))
    code, out, shown = interrupted_when(b"bound", "match", "x.npy", "y.npy", "--json", by=signal.SIGTERM)
    assert code == 143
    assert sorted(json.loads(out)["permutation"]) == list(range(60))
    assert b"interrupted; this is the best so far" in shown


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_assessment_that_fails_does_not_cost_the_match(monkeypatch, options):
    def fail(*_):
        raise ValueError("no luck")

    monkeypatch.setattr("blindmatch.cli.answers.assess_result", fail)
    done = run("match", "a.npy", "b.npy", "--assess", "--certificate", "c.npz", *options)
    assert (done.exit_code, done.stderr) == (2, "blindmatch: no luck\n")
    if options:
        assert len(json.loads(done.stdout)["pairs"]) == 12
    else:
        assert "12 pairs matched" in done.stdout
    assert bm.Certificate.load("c.npz").size == 12


def test_the_match_is_printed_where_its_assessment_is_interrupted(monkeypatch):
    shown = []
    monkeypatch.setattr("blindmatch.cli.answers.print_all", lambda parts: shown.append([*map(str, parts)]))
    monkeypatch.setattr(
        "blindmatch.trust.assessment.gather", lambda *_: shown.append("gather") or signal.raise_signal(signal.SIGINT)
    )
    done = run("match", "a.npy", "b.npy", "--assess")
    assert done.exit_code == 130
    assert "was not assessed" in done.stderr
    assert [text == "gather" for text in shown] == [True, False]  # the answer to "is it right?" would come first
    assert any("12 pairs matched" in part for part in shown[1])


def test_ctrl_c_in_the_assessment_keeps_a_classification(monkeypatch):
    def cut(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("blindmatch.trust.assessment.gather", cut)
    options = ("--starts", "2", "--assess", "-o", "out.csv", "-r", "r.html")
    done = run("classify", "images.npy", "b.npy", *options, "--json")
    assert done.exit_code == 130
    assert len(json.loads(done.stdout)["predicted"]) == 96
    assert len(Path("out.csv").read_text().splitlines()) == 97
    assert Path("r.html").exists()
    assert "interrupted; the classification is complete, and the match was not assessed" in done.stderr


def test_a_match_that_ctrl_c_ended_is_not_assessed(monkeypatch):
    def ended(*arguments, **options):
        return replace(bm.solve(*arguments, **options), status="interrupted")

    monkeypatch.setattr("blindmatch.matching.match.solve", ended)
    monkeypatch.setattr("blindmatch.cli.answers.assess_result", None)  # calling it would fail
    done = run("match", "a.npy", "b.npy", "--assess", "--json")
    assert done.exit_code == 130
    assert "trust" not in json.loads(done.stdout)
    assert done.stderr == "blindmatch: interrupted; this is the best so far, and it was not assessed\n"


def test_a_saved_match_is_assessed_even_if_it_was_cut_short():
    cut = bm.match(np.load("a.npy"), np.load("b.npy"), solver="two-opt", rng=0)
    replace(cut, status="interrupted").save("m.npz")
    done = run("assess", "m.npz", "--draws", 2, "--assess-time", 1, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "trust" in json.loads(done.stdout)


SAME = [
    ("match", "a.npy", "b.npy", "--checkpoint", "x.npz", "--certificate", "x.npz"),
    ("match", "a.npy", "b.npy", "--checkpoint", "x.npz", "--certificate", "./x.npz"),
    ("match", "a.npy", "b.npy", "--checkpoint", "x.npz", "--certificate", "sub/../x.npz"),
    ("solve", "p.npz", "--checkpoint", "x.html", "--report", "x.html"),
    ("classify", "images.npy", "b.npy", "-o", "x.html", "-r", "x.html"),
    ("align", "a.npy", "b.npy", "--out", "x.npz", "--certificate", "./x.npz"),
]


@pytest.mark.parametrize("arguments", SAME)
def test_two_outputs_of_one_name(arguments):
    Path("sub").mkdir()
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "name the same file" in done.stderr
    assert not Path("x").exists()


def test_outputs_that_are_inputs_or_folders():
    Path("folder").mkdir()
    done = run("assess", "m.npz", "--background", "images.npy", "--report", "images.npy")
    assert "overwrite an input" in done.stderr
    assert "overwrite an input" in run("solve", "p.npz", "--checkpoint", "p.npz").stderr
    for option in ("--certificate", "--report", "--checkpoint"):
        done = run("match", "a.npy", "b.npy", option, "folder")
        assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert "it is a folder" in done.stderr


def test_a_background_that_is_not_there_is_told_before_the_assessment(monkeypatch):
    run("match", "a.npy", "b.npy", "--save", "m.npz")
    monkeypatch.setattr("blindmatch.cli.answers.assess_result", None)  # calling it would fail
    done = run("assess", "m.npz", "--background", "none.npy")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "none.npy: no such file" in done.stderr


def test_a_certificate_that_cannot_be_is_refused_before_the_run():
    Path("c.npz").write_bytes(b"old")
    done = run("solve", "p.npz", "--solver", "brute-force", "-c", "c.npz", "-r", "r.html")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--solver brute-force writes no certificate" in done.stderr
    assert Path("c.npz").read_bytes() == b"old"
    assert not Path("r.html").exists()


def test_a_pipe_is_written_to_and_stays_a_pipe():
    """In a folder of the test: no test may name a device of the machine, which a fault could replace."""
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    done = run("solve", "p.npz", "--certificate", "pipe")
    content = os.read(reader, 1 << 16)
    os.close(reader)
    assert done.exit_code == 0, done.stderr
    assert content.startswith(b"PK")
    assert Path("pipe").is_fifo()


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # which is how a full disk looks to a program
sys.dont_write_bytecode = True
sys.argv = ["blindmatch", *sys.argv[1:]]
from blindmatch.cli import main
main()
"""
FULL = [
    (("match", "a.npy", "b.npy", "-c", "out.npz", "-r", "out.html"), "12 pairs matched"),
    (("match", "a.npy", "b.npy", "--json", "-c", "out.npz", "-r", "out.html"), '"permutation"'),
    (("classify", "images.npy", "b.npy", "--starts", "2", "-r", "out.html"), "12 pairs matched"),
    (("align", "images.npy", "images.npy", "--clusters", "5", "--clusterings", "2", "-o", "out.npz"), "aligned with"),
]


@sampled(("arguments", "answer"), FULL, quick=1)
def test_a_full_disk_does_not_cost_the_answer(arguments, answer):
    before = sorted(Path().iterdir())
    command = [sys.executable, "-c", LIMITED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1, done.stderr
    assert answer in done.stdout
    written = [word for word in arguments if word.startswith("out")]
    assert done.stderr.splitlines() == [f"blindmatch: {name}: not written: file too large" for name in written]
    assert sorted(Path().iterdir()) == before
    assert "Report: out.html" not in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@sampled("arguments", [("match", "a.npy", "b.npy", "-r", "r.html"), ("solvers",), ("solvers", "--json")], quick=1)
def test_a_full_stdout_ends_with_code_1_and_does_not_cost_the_files(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600, check=False
        )
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "no space left on device" in done.stderr
    assert Path("r.html").exists() == ("r.html" in arguments)


def test_a_pipe_that_nobody_reads_does_not_cost_the_files():
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, "match", "a.npy", "b.npy", "-r", "r.html"]
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=600, check=False)
    os.close(writer)
    assert (process.returncode, process.stderr) == (1, b"")
    assert Path("r.html").exists()


@sampled("closed", [">&-", "2>&-", ">&- 2>&-"], quick=1)
def test_streams_that_are_closed(closed):
    script = f'"$0" -c "from blindmatch.cli import main; main()" match a.npy b.npy --report r.html {closed}'
    done = subprocess.run(["/bin/sh", "-c", script, sys.executable], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("r.html").read_text().startswith("<!DOCTYPE html>")


def without_privilege() -> None:
    """In a child, before its program starts: root may write where it is forbidden; here it may not."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH; 24 is PR_CAPBSET_DROP
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def unprivileged(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        preexec_fn=without_privilege,
    )


LOCKED = [
    ("match", "a.npy", "b.npy", "--report", "locked/r.html"),
    ("match", "a.npy", "b.npy", "--checkpoint", "locked/c.tree"),
    ("match", "a.npy", "b.npy", "--report", "old.html"),
    ("classify", "images.npy", "b.npy", "--output", "locked/o.csv"),
    ("align", "images.npy", "images.npy", "--out", "locked/o.npz"),
    ("report", "m.npz", "--out", "locked/r.html"),
    ("experiment", "ablation", "--quick", "--sizes", "5", "--seeds", "1", "--out", "locked"),
]


@sampled("arguments", LOCKED, quick=1)
def test_a_place_that_may_not_be_written_to_is_told_before_the_run(arguments):
    Path("locked").mkdir(mode=0o555)
    Path("old.html").write_text("old")
    Path("old.html").chmod(0o444)
    if unprivileged("import os; print(os.access('locked', os.W_OK))").stdout == "True\n":
        pytest.skip("this process may write anywhere, and cannot be kept from it")
    done = unprivileged("from blindmatch.cli import main; main()", *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "may not be written to" in done.stderr or "cannot be opened for writing" in done.stderr
    assert arguments[-1] in done.stderr
    assert not list(Path("locked").iterdir())
    assert Path("old.html").read_text() == "old"


def test_ctrl_c_while_a_class_is_made_is_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    """Python 3.11 tells of it as a RuntimeError; imports make many classes."""

    class Pressed:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended, one_line_errors():
        type("Made", (), {"field": Pressed()})
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "blindmatch: interrupted\n"
    with pytest.raises(RuntimeError, match="a bug"), one_line_errors():
        raise RuntimeError("a bug")
