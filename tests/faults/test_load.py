"""The small version of benchmarks/load.py: fork, spawn and threads give the results of a run alone."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "benchmarks" / "load.py"


@pytest.mark.slow
def test_many_matches_at_once() -> None:
    command = [sys.executable, str(SCRIPT), "--workers", "2", "--matches", "40"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [row[0].strip("| ") for row in rows] == ["fork", "spawn", "threads"]
    assert [row[2] for row in rows] == ["0"] * 3


FORKING = """
import multiprocessing, threading
import numpy as np
import blindmatch as bm

def problem(seed, n):
    X, Y = np.random.default_rng(seed).standard_normal((2, n, 4))
    return bm.GromovWasserstein().problem(X, Y)

def claims(result):
    return result.permutation.tolist(), result.cost, result.lower_bound, result.status

def solved():
    return claims(bm.solve(problem(0, 13), rng=0, threads=2, work_limit=0.05))

expected, over = solved(), threading.Event()

def keep_busy():
    while not over.is_set():
        bm.solve(problem(1, 12), rng=0, threads=2, work_limit=0.02)

def child(queue):
    queue.put(solved())

def forked():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    answers.append(queue.get(timeout=300))
    process.join()

answers, busy = [], [threading.Thread(target=keep_busy) for _ in range(2)]
for thread in busy:
    thread.start()
for _ in range(3):
    forked()
several = [threading.Thread(target=forked) for _ in range(3)]
for thread in several:
    thread.start()
for thread in several:
    thread.join()
over.set()
for thread in busy:
    thread.join()
print(len(answers), all(answer == expected for answer in answers))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_forks_while_threads_solve() -> None:
    """A child has none of the threads that its parent had, and the same answers."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout.strip() == "6 True", done.stderr
