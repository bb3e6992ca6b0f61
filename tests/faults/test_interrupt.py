"""Ctrl-C, SIGTERM and kill -9 at any moment: an answer in time, and nothing that is wrong."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults.press import press, problem_of
from faults.press_commands import arguments_of
from faults.press_commands import press as press_command
from sampled import sampled

import blindmatch as bm
from blindmatch.solvers.tabu import Tabu

CASES = [
    ("auto", 400),
    ("branch-and-bound", 60),
    ("dual-ascent", 100),
    ("factorized-hahn-grant", 60),
    ("hahn-grant", 60),
    ("tabu", 300),
    ("faq", 200),
    ("two-opt", 300),
    ("brute-force", 12),
]


@sampled(("solver", "n"), CASES, quick={("auto", 400), ("branch-and-bound", 60), ("factorized-hahn-grant", 60)})
def test_ctrl_c_is_answered(solver: str, n: int) -> None:
    """Half a second of computing; what others do on this machine is not held against it."""
    row = press(solver, n, 1.0)
    assert row["status"] == "interrupted", row
    assert row["cpu"] / os.cpu_count() < 0.5, row
    assert row["right"]
    assert row["bound"] is None or row["bound"] <= row["cost"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["match-100", "classify-100", "align-2000"])
def test_ctrl_c_is_answered_by_a_command(name: str, tmp_path: Path) -> None:
    """Long before its time limit of a minute; `press_commands.py` measures how long.

    If the signal comes while Python executes a text, such as the methods of a dataclass in an import, Python ends
    itself by SIGINT once all is done. A shell shows 130 for both.
    """
    answer = press_command(arguments_of(name, tmp_path), 2.5)
    assert answer.cpu is not None, answer.output
    assert answer.code in (130, -signal.SIGINT), answer.output
    assert "interrupted" in answer.output
    assert "Traceback" not in answer.output
    assert answer.cpu / os.cpu_count() < 20, answer


def test_ctrl_c_while_the_certificate_is_built_keeps_the_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """This takes long for a large one. The proof stays, and is put in order when the certificate is asked for."""

    whole, presses = bm.Certificate.unshuffled, iter([True])

    def pressed(*arguments: Any) -> bm.Certificate:
        if next(presses, False):
            raise KeyboardInterrupt
        return whole(*arguments)

    problem = problem_of(8)
    monkeypatch.setattr(bm.Certificate, "unshuffled", pressed)
    result = bm.solve(problem, "dual-ascent", rng=0)
    assert result.status == "interrupted"
    assert result.cost == problem.objective(result.permutation)
    assert result.lower_bound <= bm.verify(problem, result.certificate) <= result.cost


def test_out_of_memory_in_the_middle_keeps_the_match() -> None:
    class Hungry(Tabu):
        def __call__(self, problem, *, budget, rng):
            found = super().__call__(problem, budget=budget, rng=rng).permutation
            budget.offer(found, problem.objective(found))
            raise MemoryError("no more")

    problem = problem_of(8)
    with pytest.raises(MemoryError, match="no more") as caught:
        bm.solve(problem, Hungry(), rng=0)
    assert caught.value.result.cost == bm.solve(problem, "tabu", rng=0).cost


THREAD = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
from faults.press import problem_of
import blindmatch as bm
from blindmatch.solvers.tabu import Tabu
problem = problem_of(60)
def run():
    result = bm.solve(problem, Tabu(iterations=10**10), rng=0)
    print(result.status, result.cost == problem.objective(result.permutation), flush=True)
thread = threading.Thread(target=run)
thread.start()
time.sleep(1)
print("go", flush=True)
while thread.is_alive():  # not join(): Python 3.11 forgets a thread whose join was interrupted
    time.sleep(0.05)
"""


def test_ctrl_c_ends_a_run_in_another_thread() -> None:
    """Python hands signals to the main thread alone; when that ends, runs in other threads end with it."""
    folder = str(Path(__file__).parent.parent)
    process = subprocess.Popen([sys.executable, "-c", THREAD, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        assert process.stdout.readline() == b"go\n"
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=600)
        assert time.monotonic() - start < 10
    assert output == b"interrupted True\n"
    assert b"KeyboardInterrupt" in errors


WRITER = """
import sys
from blindmatch.io.files import write_atomically
block = bytes(1 << 20)
print("go", flush=True)
while True:
    for letter in (b"a", b"b"):
        write_atomically(sys.argv[1], lambda file: [file.write(letter * (1 << 20)) for _ in range(4)])
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_file_is_whole_whenever_its_writer_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    rng = np.random.default_rng(0)
    for round_ in range(3):
        path = tmp_path / f"{round_}.bin"
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        with process:
            process.stdout.readline()
            while not path.exists():
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.05))
            process.send_signal(how)
        content = path.read_bytes()
        assert content in (b"a" * (4 << 20), b"b" * (4 << 20))


def test_clocks_that_are_set_back_matter_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No decision is taken by the clock on the wall: it may jump."""
    jumps = iter(np.cumsum(np.tile([1e6, -2e6], 10**4)))
    monkeypatch.setattr(time, "time", lambda: float(next(jumps)))
    problem = problem_of(10)
    start = time.perf_counter()
    result = bm.solve(problem, Tabu(iterations=None), time_limit=0.5, rng=0)
    assert 0.4 < time.perf_counter() - start < 10
    assert 0.4 < result.seconds < 10
    source = Path(bm.__file__).parent
    solving = [path for name in ("solvers", "solving", "proof", "matching") for path in (source / name).glob("*.py")]
    assert not [path.name for path in solving if "time.time()" in path.read_text() or "datetime" in path.read_text()]


def test_results_in_json_survive_the_end_of_a_pipe(tmp_path: Path) -> None:
    """`blindmatch ... | head -c 1`: no traceback."""
    X = np.random.default_rng(0).normal(size=(6, 3))
    np.save(tmp_path / "x.npy", X)
    command = f"{sys.executable} -m blindmatch match x.npy x.npy --json 2> errors | head -c 1"
    subprocess.run(["bash", "-c", command], cwd=tmp_path, timeout=600, check=True, capture_output=True)
    assert "Traceback" not in (tmp_path / "errors").read_text()
