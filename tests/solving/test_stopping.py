"""What a time limit, Ctrl-C or an exception leaves of a run of `bm.solve`."""

import importlib
import inspect
import math
import signal
import subprocess
import sys
import textwrap
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from clock import in_time
from proofs import branching_certificate
from sampled import sampled
from solving.liar import QUICK
from strategies import gw_problem, optimum, random_problem, rng_of, slack

import blindmatch as bm
from blindmatch.problem.fingerprint import fingerprint
from blindmatch.proof.checker import verify_in_time
from blindmatch.solvers.base import Proof, Solver


@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "faq", "two-opt"])
@pytest.mark.parametrize("limit", [0.05, 1.0])
def test_a_time_limit_is_honoured(solver, limit):
    options = {} if solver == "factorized-hahn-grant" else {"restarts": 10**7}
    problem = gw_problem(0, 40, noise=1.0)
    run = partial(bm.solve, problem, bm.SOLVERS[solver](**options), time_limit=limit, rng=0)
    result = in_time(limit, run)
    assert result.status == "time_limit"
    assert result.cost == problem.objective(result.permutation)


def test_a_run_cut_short_has_a_valid_bound():
    problem = gw_problem(3, 7, noise=1.0)
    for limit in (1e-6, 1e-3, 0.01):
        result = bm.solve(problem, QUICK, time_limit=limit, rng=0)
        assert result.lower_bound <= optimum(problem) + slack(problem)
        assert result.lower_bound == min(bm.verify(problem, result.certificate), result.cost)


INTERRUPTED = """
    import os, signal, sys, threading, time
    import numpy as np, blindmatch as bm

    rng = np.random.default_rng(0)
    n = int(sys.argv[2])
    X = rng.standard_normal((n, 8))
    problem = bm.GromovWasserstein().problem(X, rng.standard_normal((n, 8)))
    options = dict(primal_heuristic=False) if sys.argv[1] == "factorized-hahn-grant" else dict(restarts=10**8)
    solver = bm.SOLVERS[sys.argv[1]](**options)
    bm.solve(problem, solver, time_limit=0.01)  # everything is imported now
    bounded = threading.Event()
    def press():
        if sys.argv[1] == "factorized-hahn-grant":
            bounded.wait()  # however slow the machine, there is a bound to keep
        time.sleep(0.3)
        global pressed
        pressed = time.process_time()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=press).start()
    seen = lambda progress: progress.lower_bound is not None and bounded.set()
    result = bm.solve(problem, solver, rng=0, callback=seen)
    waited = time.process_time() - pressed  # not the clock: the machine may be busy
    print(result.status, waited, result.cost == problem.objective(result.permutation), result.lower_bound)
"""


@sampled(("solver", "n"), [("factorized-hahn-grant", 60), ("two-opt", 60)], quick=1)
def test_ctrl_c_returns_the_incumbent(solver, n):
    """A real SIGINT, while the C++ core (or numpy) runs."""
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), solver, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    status, waited, scored, bound = done.stdout.split()
    assert status == "interrupted"
    assert float(waited) < 2.0
    assert scored == "True"
    assert solver != "factorized-hahn-grant" or math.isfinite(float(bound))


def test_ctrl_c_in_a_callback_is_an_interrupt():
    problem = gw_problem(3, 7, noise=1.0)

    def callback(progress):
        if progress.lower_bound is not None:
            signal.raise_signal(signal.SIGINT)

    result = bm.solve(problem, QUICK, callback=callback, rng=0)
    assert result.status == "interrupted"
    assert math.isfinite(result.lower_bound)
    assert result.lower_bound <= optimum(problem) + slack(problem)


def test_ctrl_c_while_the_proof_is_checked_keeps_the_result(monkeypatch):
    """The run is over, only the check is not: the match and its proof are kept, with what has been checked."""
    module = importlib.import_module("blindmatch.proof.stage_check")
    problem = gw_problem(3, 7, noise=1.0)
    whole = bm.solve(problem, QUICK, rng=0)

    def press(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "_charges", press)
        result = bm.solve(problem, QUICK, rng=0)
    assert result.status == "interrupted"
    assert (result.permutation == whole.permutation).all()
    assert result.lower_bound < whole.lower_bound
    assert "result.verify()" in result.message
    assert bm.verify(problem, result.certificate) == whole.lower_bound
    monkeypatch.setattr(module, "_charges", press)
    with pytest.raises(KeyboardInterrupt):  # whoever asks for the check alone hears of it
        bm.verify(problem, result.certificate)


PACKAGE = str(Path(bm.__file__).parent)


class Pressed(Solver):
    """Presses Ctrl-C when the `count`-th function after the end of its run is called."""

    name, capabilities = QUICK.name, QUICK.capabilities

    def __init__(self, count):
        self.count, self.files = count, []

    def __call__(self, problem, *, budget, rng):
        outcome = QUICK(problem, budget=budget, rng=rng)
        sys.settrace(self._trace)
        return outcome

    def _trace(self, frame, event, argument):
        file = frame.f_code.co_filename
        generator = frame.f_code.co_flags & inspect.CO_GENERATOR  # Python swallows what is raised where it closes one
        if file.startswith(PACKAGE) and not generator and not file.endswith("limits.py"):
            self.files.append(file)
            if len(self.files) == self.count:
                raise KeyboardInterrupt


def test_ctrl_c_after_the_search_keeps_the_match_wherever_it_falls():
    problem = gw_problem(3, 5, noise=1.0)
    whole = bm.solve(problem, QUICK, rng=0)
    count = -2
    while True:
        count += 3
        solver = Pressed(count)
        try:
            result = bm.solve(problem, solver, rng=0)
        finally:
            sys.settrace(None)
        assert result.cost == whole.cost, solver.files
        assert result.lower_bound <= whole.lower_bound
        if len(solver.files) < count:
            break
    assert count > 50  # functions were called, and each was interrupted once


@pytest.mark.parametrize("error", [ValueError, FloatingPointError, MemoryError])
def test_an_exception_in_a_solver_propagates_with_the_best_so_far(error):
    problem, best = gw_problem(0, 9, noise=1.0), []

    class Broken(Solver):
        name, capabilities = QUICK.name, QUICK.capabilities

        def __call__(self, problem, *, budget, rng):
            best.append(QUICK(problem, budget=budget, rng=rng))
            raise error("broken")

    with pytest.raises(error, match="broken") as caught:
        bm.solve(problem, Broken(), rng=0)
    assert caught.value.result.status == "interrupted"
    assert caught.value.result.cost == bm.solve(problem, QUICK, rng=0).cost


def test_a_check_that_is_cut_short_proves_what_it_has_seen():
    problem = random_problem(5, 7, "symmetric", integer=True)
    result = bm.solve(problem, "branch-and-bound", rng=0)
    proof = branching_certificate(problem, np.random.default_rng(0))
    best = optimum(problem)
    for seconds in (-1.0, 0.0, 1e-4, 1e-3, 1e-2):
        for certificate in (result.certificate, proof):
            bound, complete = verify_in_time(problem, certificate, seconds)
            assert bound <= best + slack(problem)
            assert bound <= bm.verify(problem, certificate)
            assert not complete or bound == bm.verify(problem, certificate)
    assert verify_in_time(problem, result.certificate, math.inf) == (result.lower_bound, True)


class StopError(Exception):
    pass


@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "faq", "two-opt"])
def test_an_exception_in_the_callback_propagates_with_the_result(solver):
    problem = gw_problem(0, 9, noise=1.0)

    def callback(progress):
        raise StopError("enough")

    with pytest.raises(StopError, match="enough") as caught:
        bm.solve(problem, solver, callback=callback, rng=0)
    result = caught.value.result
    assert result.status == "interrupted"
    assert result.cost == problem.objective(result.permutation)
    assert result.lower_bound is None or result.lower_bound <= result.cost


@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "faq", "two-opt"])
def test_a_callback_that_raised_is_not_called_again(solver):
    calls = []

    def callback(progress):
        calls.append(progress)
        raise StopError("enough")

    with pytest.raises(StopError):
        bm.solve(gw_problem(0, 9, noise=1.0), solver, callback=callback, rng=0)
    assert len(calls) == 1


@pytest.mark.parametrize("hints", [{}, {"unmatched_cost": 1.0}])
def test_an_exception_in_the_callback_of_a_match_has_the_callers_items(hints):
    rng = rng_of(0)

    def callback(progress):
        raise RuntimeError("enough")

    for n, m in ((5, 8), (8, 5)):
        X, Y = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
        with pytest.raises(RuntimeError, match="enough") as caught:
            bm.match(X, Y, solver=QUICK, callback=callback, rng=0, **hints)
        permutation = caught.value.result.permutation
        assert permutation.shape == (n,)
        assert -1 <= permutation.min() <= permutation.max() < m


def test_the_callback_sees_the_trace():
    seen = []
    result = bm.solve(gw_problem(0, 8), QUICK, callback=seen.append, rng=0)
    assert tuple(seen) == result.trace
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)
    costs = [p.cost for p in seen]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(result.cost, rel=1e-12)
    assert result.seconds >= seen[-1].seconds


def test_solving_in_another_thread():
    problem = gw_problem(0, 7)
    results = []
    thread = threading.Thread(target=lambda: results.append(bm.solve(problem, QUICK, rng=0)))
    thread.start()
    thread.join(60)
    assert results[0].cost == bm.solve(problem, QUICK, rng=0).cost


def test_a_certificate_that_is_built_later_knows_its_problem(monkeypatch):
    run = importlib.import_module("blindmatch.solving.run")
    monkeypatch.setattr(run, "_BYTES_A_SECOND", 0.0)  # as if it took long to build

    def press(_moment):
        raise KeyboardInterrupt

    problem = random_problem(3, 7)
    result = bm.solve(problem, QUICK, rng=0, callback=press)
    assert isinstance(result.proof, Proof)
    assert result.certificate.fingerprint == fingerprint(problem)
