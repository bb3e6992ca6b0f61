"""The check of one set of duals on several threads: the same numbers, and a way out when it has to stop."""

import _thread
import concurrent.futures
import math
import threading
import time

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.proof.stage_check import Effort, OutOfTimeError

BLOCKS = [np.array([k]) for k in range(40)]


def test_threads_prove_the_same():
    rng = np.random.default_rng(0)
    problem = bm.GromovWasserstein().problem(rng.standard_normal((40, 5)), rng.standard_normal((40, 5)))
    result = bm.solve(problem, bm.SOLVERS["factorized-hahn-grant"](max_sweeps=2, primal_heuristic=False), rng=0)
    bounds = {bm.verify(problem, result.certificate, threads=threads) for threads in (1, 2, 5, None)}
    assert bounds == {result.lower_bound}
    assert math.isfinite(result.lower_bound)
    with pytest.raises(ValueError, match="threads=0"):
        bm.verify(problem, result.certificate, threads=0)


@pytest.mark.parametrize("threads", [1, 3])
def test_every_block_is_done(threads):
    seen, names = [], set()

    def work(block):
        seen.append(int(block[0]))
        names.add(threading.current_thread().name)
        time.sleep(0.001)

    Effort(threads=threads).spend(work, BLOCKS)
    assert sorted(seen) == list(range(40))
    assert len(names) == threads


def test_without_a_thread_it_goes_on_alone(monkeypatch):
    def submit(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "submit", submit)
    seen = []
    Effort(threads=2).spend(lambda block: seen.append(int(block[0])), BLOCKS)
    assert seen == list(range(40))


def test_a_deadline_ends_it():
    seen = []

    def work(block):
        seen.append(int(block[0]))
        while time.thread_time() < start + 0.01 * len(seen):
            pass

    start = time.thread_time()
    with pytest.raises(OutOfTimeError):
        Effort(deadline=start + 0.05, threads=2).spend(work, BLOCKS)
    assert 0 < len(seen) < 40


def test_ctrl_c_does_not_wait_for_the_rest():
    seen = []

    def work(block):
        seen.append(int(block[0]))
        if block[0] == 3:
            _thread.interrupt_main()
        time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        Effort(threads=2).spend(work, BLOCKS)
    assert len(seen) < 40
    assert not any("ThreadPool" in thread.name for thread in threading.enumerate())
