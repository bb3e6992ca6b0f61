"""How the command line behaves: help, examples, pipes, colours, completion, progress, exit codes."""

import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import typer
from sampled import sampled
from typer.testing import CliRunner

from blindmatch.cli.app import PANELS, app
from blindmatch.cli.console import plain
from blindmatch.cli.options import EXIT_CODES
from blindmatch.cli.progress import ProgressLine
from blindmatch.solvers.progress import Progress

COMMAND = (sys.executable, "-c", "from blindmatch.cli import main; main()")
PROBLEM = "4\n\n0 1 2 3\n1 0 1 2\n2 1 0 1\n3 2 1 0\n\n0 5 2 4\n5 0 3 0\n2 3 0 1\n4 0 1 0\n"
QUICK = ("--solver", "two-opt")


def leaves(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every command and group with the words that lead to it."""
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from leaves(command.get_command(None, name), (*path, name))


COMMANDS = dict(leaves(typer.main.get_command(app)))
BY_NAME = pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "blindmatch")


def examples(path: tuple[str, ...]) -> list[list[str]]:
    """The words of each example in a help text, without comments and redirections."""
    lines = (COMMANDS[path].epilog or "").replace("[/bold]", "[bold]").splitlines()
    commands = [line.split("[bold]")[1] for line in lines if "[bold]blindmatch" in line]
    return [shlex.split(command.partition(">")[0]) for command in commands]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    Path("p.dat").write_text(PROBLEM)
    rng = np.random.default_rng(0)
    for name in ("a.npz", "b.npz"):
        np.savez(name, embeddings=rng.normal(size=(6, 4)), names=[f"{name} {i} {'x' * 200}" for i in range(6)])


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    variables = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, timeout=600, env=variables | environment, check=False
    )


def on_terminal(*arguments: str, **environment: str) -> tuple[int, bytes]:
    """Exit code and all that is shown with stdout and stderr on one terminal."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
    process = subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, stdin=theirs, env=variables)
    os.close(theirs)
    shown = read_all(ours)
    return process.wait(timeout=600), shown


def read_all(terminal: int) -> bytes:
    shown = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # the other side was closed
            chunk = b""
        if not chunk:
            os.close(terminal)
            return shown
        shown += chunk


@BY_NAME
def test_every_help_text_has_examples_that_parse(path: tuple[str, ...]) -> None:
    assert COMMANDS[path].help
    found = examples(path)
    assert any(tuple(words[1 : len(path) + 1]) == path for words in found), f"no example of {' '.join(path)}"
    for words in found:
        leaf = max((known for known in COMMANDS if tuple(words[1 : len(known) + 1]) == known), key=len)
        COMMANDS[leaf].make_context("blindmatch", words[len(leaf) + 1 :])  # raises on what the command does not know


@BY_NAME
def test_every_help_text_shows_its_examples_line_by_line(path: tuple[str, ...], capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["blindmatch", *path, "--help"])
    with pytest.raises(SystemExit):
        app()
    shown = capsys.readouterr().out.partition("Examples:")[2]
    lines = [line.split() for line in shown.splitlines()]
    for words in examples(path):
        assert any(line[: len(words)] == words for line in lines) or any("'" in word or " " in word for word in words)


@BY_NAME
def test_options_with_known_words_complete_to_them(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    if hasattr(command, "list_commands"):
        return
    context = command.make_context("blindmatch", [], resilient_parsing=True)
    known = {"solver": "auto", "distortion": "gw", "scale": "none", "metric": "euclidean", "data": "cifar10"}
    for option in command.params:
        if option.name in known:
            words = [item.value for item in option.shell_complete(context, known[option.name][:2])]
            assert known[option.name] in words, option.name


def test_every_command_is_in_a_panel() -> None:
    named = set(PANELS)
    assert {path[0] for path in COMMANDS if path} <= named


def test_every_command_that_prints_a_result_speaks_json() -> None:
    silent = [path for path, command in COMMANDS.items() if not hasattr(command, "list_commands")]
    without = {path[0] for path in silent if all(option.name != "json" for option in COMMANDS[path].params)}
    assert without <= {"report"}  # it writes a page and prints where


def test_help_names_the_exit_codes() -> None:
    shown = run("--help").stdout.decode()
    for code, meaning in EXIT_CODES.items():
        assert f"{code:<4} {meaning}" in shown


@sampled(
    ("arguments", "code"),
    [
        (("solve", "p.dat", *QUICK), 0),
        (("verify", "p.dat", "weak.npz"), 1),
        (("solve", "nothing.dat"), 2),
        (("solve", "p.dat", "--no-such-option"), 2),
        (("sovle", "p.dat"), 2),
        ((), 2),
    ],
    quick=3,
)
def test_exit_codes(arguments: tuple[str, ...], code: int) -> None:
    if "weak.npz" in arguments:
        run("solve", "p.dat", "--solver", "factorized-hahn-grant", "--certificate", "good.npz")
        arrays = dict(np.load("good.npz", allow_pickle=False))
        broken = {key: np.full_like(a, np.nan) if a.dtype.kind == "f" else a for key, a in arrays.items()}
        np.savez("weak.npz", **broken)
        code = run(*arguments).returncode
        assert code in (1, 2)  # refused as damaged, or proves nothing: never a bound
        return
    assert run(*arguments).returncode == code


def test_a_misspelt_command_or_file_is_told_what_may_be_meant() -> None:
    assert b"solve" in run("sovle", "p.dat").stderr
    done = run("match", "aa.npz", "b.npz", *QUICK)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"blindmatch: aa.npz: no such file or directory; did you mean 'a.npz'?\n"
    assert b"there is no folder sub" in run("match", "sub/a.npz", "b.npz", *QUICK).stderr


def test_a_pipe_gets_whole_lines_and_no_codes() -> None:
    done = run("match", "a.npz", "b.npz", *QUICK)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout
    rows = [line for line in done.stdout.decode().splitlines() if line.startswith("a.npz")]
    assert len(rows) == 6
    assert all(row.count("x" * 200) == 2 for row in rows)
    narrow = run("match", "a.npz", "b.npz", *QUICK, COLUMNS="60").stdout.decode()
    assert max(len(line) for line in narrow.splitlines()) <= 60


def test_no_color_is_honoured_on_a_terminal() -> None:
    for environment, coloured in (({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)):
        code, shown = on_terminal("demo", "--solver", "brute-force", **environment)
        assert code == 0
        assert (b"\x1b[32m" in shown) is coloured  # the ticks are green


def test_a_locale_that_knows_no_ticks_is_no_reason_to_fail() -> None:
    done = run("demo", "--solver", "brute-force", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"8 of 10 pairs are right" in done.stdout


def test_a_reader_that_goes_away_early() -> None:
    process = subprocess.Popen([*COMMAND, "solvers"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait(timeout=600)


@sampled(
    ("words", "expected"),
    [
        ("blindmatch ver", ["verify"]),
        ("blindmatch match --solver branch", ["branch-and-bound"]),
        ("blindmatch match --distortion mut", ["mutual-knn"]),
        ("blindmatch demo --data col", ["colours"]),
        ("blindmatch experiment abl", ["ablation"]),
    ],
    quick=2,
)
def test_the_shell_completes_names(words: str, expected: list[str]) -> None:
    asked = {"_BLINDMATCH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    code = "import sys; sys.argv[0] = 'blindmatch'; from blindmatch.cli.app import app; app(prog_name='blindmatch')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env={**os.environ, **asked}
    )
    assert done.stdout.split() == expected


def hard_problem() -> None:
    A, B = np.triu(np.random.default_rng(3).integers(0, 100, size=(2, 22, 22)), 1)
    np.savez("hard.npz", source_cost=A + A.T, target_cost=B + B.T)


def started(*arguments: str) -> tuple[subprocess.Popen, bytes, int]:
    """A run with stderr on a terminal that has shown a cost; what it showed, and the terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    shown, end = b"", time.monotonic() + 600
    while b"cost " not in shown and time.monotonic() < end:
        if select.select([ours], [], [], 1)[0]:
            shown += os.read(ours, 65536)
    return process, shown, ours


@pytest.mark.slow
def test_progress_tells_the_time_that_is_left() -> None:
    hard_problem()
    process, shown, terminal = started("solve", "hard.npz", "--json", "--time-limit", "3")
    out, _ = process.communicate(timeout=600)
    shown += read_all(terminal)
    assert json.loads(out)["status"] == "time_limit"
    for word in (b"bound ", b"cost ", b"gap ", b" left"):
        assert word in shown


def test_progress_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.progress import Progress as Bar

    now = [100.0]
    monkeypatch.setattr("blindmatch.cli.progress.time.monotonic", lambda: now[0])
    with Bar(disable=True) as bar:
        bar.add_task("", total=None, left=str)
        task, line = bar.tasks[0], ProgressLine(bar, (), 60.0)
        line.step("clustering", 0, 4)
        assert (task.description, task.completed, task.fields["left"]()) == ("clustering, 1 of 4", 0, "")
        now[0] += 5
        line.step("clustering", 1, 4)
        assert (task.description, task.completed) == ("clustering, 2 of 4", 0.25)
        now[0] += 1  # the clock goes on where nothing is told
        assert task.fields["left"]() == "about 0:14 left of this step"
        line.share("unrelated spaces", 0.5)
        now[0] += 2
        line.share("unrelated spaces", 1.0)
        assert (task.description, task.fields["left"]()) == ("unrelated spaces, 100 %", "about 0:00 left of this step")
        assert not task.finished  # its clock would stand still
        line.step("matching", 0, 1)
        assert (task.description, task.total, task.fields["left"]()) == ("matching", None, "")
        line.moment(Progress(10.0, 0, 9.0, 10.0))
        now[0] += 20
        assert task.description == "bound 9  cost 10  gap 10 %"
        assert task.fields["left"]() == "at most 0:30 left"


@pytest.mark.slow
def test_steps_are_shown_on_a_terminal_alone() -> None:
    rng = np.random.default_rng(0)
    np.save("images.npy", np.repeat(rng.normal(size=(6, 4)), 50, axis=0) + rng.normal(size=(300, 4)))
    arguments = ("classify", "images.npy", "b.npz", "--starts", "60", "--threads", "1")
    code, shown = on_terminal(*arguments, NO_COLOR="1")
    assert code == 0
    assert b" of 60" in shown
    assert b"\x1b[3" not in shown.replace(b"\x1b[39m", b"")  # no colours
    piped = run(*arguments)
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert b"of 60" not in piped.stdout


@pytest.mark.slow
def test_json_stays_json_when_gurobi_is_interrupted() -> None:
    """Gurobi prints a line on stdout at Ctrl-C, past all of Python's streams."""
    pytest.importorskip("gurobipy")
    hard_problem()
    process, shown, terminal = started(
        "solve", "hard.npz", "--json", "--solver", "gurobi", "--threads", "1", "--time-limit", "none"
    )
    assert b"cost " in shown
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=600)
    read_all(terminal)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"


USAGE = {
    ("match",): "blindmatch: missing argument 'SOURCE'; see 'blindmatch match --help'",
    ("match", "a.npz", "b.npz", "--sede", "3"): "no such option: --sede",
    ("match", "a.npz", "b.npz", "--seed", "x"): "invalid value for '--seed'",
    ("mtch",): "no such command 'mtch'",
    ("embed", "image"): "no such command 'image'",
    ("models", "dinno"): "'dinno' and these options; did you mean 'dino",
    ("experiment", "ablation", "--quick", "--only", "sed=0", "--status"): "did you mean 'seed'?",
    ("verify", "a", "b", "c", "d"): "4 files given; expected",
    ("verify", "a"): "a: no such file",
}


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_every_mistake_is_told_in_one_line(arguments: tuple[str, ...]) -> None:
    done = CliRunner(env={"NO_COLOR": "1"}).invoke(app, list(arguments), prog_name="blindmatch")
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert USAGE[arguments] in done.stderr


def test_joined_letters_stay_joined() -> None:
    for name in ("\U0001f469\u200d\U0001f680", "\u0645\u06cc\u200c\u062e"):  # an astronaut; Persian
        assert plain(name) == name
    assert plain("a\u202eb\x1b") == "a\ufffdb\ufffd"


@pytest.mark.slow
def test_one_is_no_plural() -> None:
    Path("one.dat").write_text("1\n0\n0\n")
    done = run("solve", "one.dat").stdout.decode()
    assert "assignment of 1 facility:" in done
    assert "1 nodes" not in run("solve", "p.dat", "--solver", "branch-and-bound").stdout.decode()


def test_the_gap_of_a_proved_match_that_costs_nothing() -> None:
    points = np.random.default_rng(0).normal(size=(8, 4))
    np.save("x.npy", points)
    np.save("y.npy", points[::-1] @ np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0])
    found = json.loads(run("match", "x.npy", "y.npy", "--json").stdout)
    assert (found["status"], found["gap"]) == ("optimal", 0.0)
    assert abs(found["cost"]) < 1e-9
    assert "Gap 0 %." in run("match", "x.npy", "x.npy").stdout.decode()


def test_rarely_used_options_are_shown_on_demand() -> None:
    short, whole = run("match", "--help").stdout.decode(), run("match", "--help-all").stdout.decode()
    assert len(short.splitlines()) < 100 < len(whole.splitlines())
    assert "match --help-all" in short
    assert "--similarity-weight" in whole
    assert "--similarity-weight" not in short.partition("Examples:")[0]
    assert "--unmatched-cost" in short


def test_doctor_tells_what_a_report_of_a_fault_needs() -> None:
    import json

    found = json.loads(run("doctor", "--json").stdout)
    assert {"blindmatch", "Python", "numpy", "processors", "AVX2", "free memory", "BLAS (threads)", "GPU"} <= set(found)
    assert found["extra files"] in ("installed", "lacks pyarrow", "lacks safetensors", "lacks safetensors, pyarrow")
