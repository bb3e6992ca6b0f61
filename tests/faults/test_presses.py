"""Ctrl-C at every function that a run calls: the best match so far, or KeyboardInterrupt before the solver begins."""

import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults.presses import pressed
from sampled import sampled
from strategies import gw_problem
from threadpoolctl import threadpool_info, threadpool_limits

import blindmatch as bm
from blindmatch import _core
from blindmatch.machine import one_blas_thread
from blindmatch.solvers.base import Budget
from blindmatch.solvers.core_problem import core_problem


@pytest.fixture(autouse=True)
def _nobody_hears_what_python_ignores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python reports, but does not raise, exceptions of iterators and archives that it closes itself."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    yield
    gc.collect()


@sampled(
    ("solver", "step"),
    [
        ("branch-and-bound", 7),
        ("dual-ascent", 5),
        ("factorized-hahn-grant", 97),
        ("faq", 97),
        ("semidefinite", 41),
        ("tabu", 1),
        ("two-opt", 1),
    ],
    quick={("branch-and-bound", 7), ("tabu", 1)},
)
def test_a_run_ends_as_documented_wherever_ctrl_c_falls(solver: str, step: int) -> None:
    problem = gw_problem(3, 5, noise=1.0)
    whole = bm.solve(problem, solver, rng=0)
    count = 0
    for press in pressed(lambda: bm.solve(problem, solver, rng=0), step=step):
        count += 1
        result = press.outcome
        if isinstance(result, KeyboardInterrupt):
            assert not press.begun, press
            continue
        assert isinstance(result, bm.Result), press
        assert result.cost == problem.objective(result.permutation)
        assert result.lower_bound is None or result.lower_bound <= whole.cost
        assert threading.main_thread().is_alive(), press
    assert count > 20
    again = bm.solve(problem, solver, rng=0)
    assert (again.status, again.cost, again.lower_bound) == (whole.status, whole.cost, whole.lower_bound)


@sampled(
    ("kind", "step"),
    [("views", 23), ("views", 83), ("crossed", 29), ("crossed", 61)],
    quick={("views", 83), ("crossed", 61)},
)
def test_a_match_that_was_found_is_kept(kind: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from Ctrl-C after the solver, when the match is completed with notes, a bound and a ranking."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr("blindmatch.problem.task.MOST_CROSSED", 4)
    monkeypatch.setattr("blindmatch.matching.match_crossed._RESTARTS", 1)
    A, B, there, back = (rng.random((6, 6)) for _ in range(4))
    X, Y = rng.standard_normal((2, 6, 3))
    task = bm.Task(kernels=(A, B), crossed=(there, back)) if kind == "crossed" else bm.Task(bm.Views(X, X**2), Y)
    bm.match(task, rng=0, threads=1)  # modules are loaded here
    kept = []
    for press in pressed(lambda: bm.match(task, rng=0, threads=1), step=step):
        kept.append(isinstance(press.outcome, bm.Result))
        assert kept[-1] or isinstance(press.outcome, KeyboardInterrupt), press
        assert kept[-1] or not (press.begun or any(kept)), press
    assert any(kept)


def test_blas_has_its_threads_again_wherever_ctrl_c_fell() -> None:
    def counts() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    def briefly() -> None:
        with one_blas_thread():
            pass

    briefly()  # the libraries are found here
    with threadpool_limits(2, user_api="blas"):
        for press in pressed(briefly):
            press.outcome = None  # its traceback keeps what was interrupted
            gc.collect()
        assert press.count > 40
        briefly()
        assert set(counts()) == {2}


def test_ctrl_c_while_a_budget_is_asked_leaves_the_main_thread_alive() -> None:
    """At every line: asked by the main thread, `Thread.is_alive` would mark it as ended for good."""
    budget = Budget()
    presses = list(pressed(lambda: budget.stopped, "line"))
    assert len(presses) > 3
    assert all(isinstance(press.outcome, KeyboardInterrupt) for press in presses)
    assert not budget.stopped
    assert threading.main_thread().is_alive()
    assert bm.solve(gw_problem(3, 5), rng=0).status == "optimal"


@pytest.mark.parametrize("name", ["remaining", "interrupted", "orphaned"])
def test_ctrl_c_in_a_property_that_the_core_reads_is_an_interrupt(name: str) -> None:
    """It read as a missing attribute: a TypeError about the types of the arguments."""

    def press(_: Any) -> bool:
        raise KeyboardInterrupt

    problem = core_problem(gw_problem(3, 60, noise=1.0))
    budget = type("Pressed", (Budget,), {name: property(press, lambda *_: None)})()
    start = np.arange(60, dtype=np.int32)
    options: dict[str, Any] = {"seed": 0, "streams": 1, "iterations": 10**9, "threads": 1, "target": -1e300}
    if name == "orphaned":  # asked during the run, which ends with what it has
        found = _core.tabu(problem, **options, initial=[start], budget=budget)
        assert budget.interrupted
        assert not found.completed
        assert sorted(found.permutation) == list(range(60))
    else:
        with pytest.raises(KeyboardInterrupt):
            _core.tabu(problem, **options, initial=[start], budget=budget)


def test_ctrl_c_while_a_certificate_is_saved_keeps_the_old_file(tmp_path: Path) -> None:
    """An archive that is interrupted amid a member cannot be closed: that error must not hide the Ctrl-C."""
    certificate = bm.solve(gw_problem(3, 4, noise=1.0), "dual-ascent", rng=0).certificate
    path = tmp_path / "proof.npz"
    certificate.save(path)
    content, count = path.read_bytes(), 0
    for press in pressed(lambda: certificate.save(path)):
        count += 1
        assert press.outcome is None or isinstance(press.outcome, KeyboardInterrupt), press
        assert list(tmp_path.iterdir()) == [path], press
        assert bm.Certificate.load(path).size == 4
    assert count > 100
    assert len(content) == path.stat().st_size
