"""How a time limit is shared between the solver and the check of its proof."""

import math
import time
from typing import Any

import numpy as np
import pytest
from strategies import gw_problem

import blindmatch as bm
from blindmatch import _core
from blindmatch.proof.duration import check_seconds, stage_work
from blindmatch.solvers.base import Budget, Proof
from blindmatch.solvers.core_problem import RescaledBudget
from blindmatch.solving.run import _checking_time


def test_a_check_gets_what_is_left_of_the_limit_and_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = gw_problem(0, 16)
    monkeypatch.setattr(Budget, "seconds", 8.0)

    def given(check: float, limit: float | None) -> float:
        work = check / check_seconds(1.0, 2, threads=1)
        return _checking_time(problem, Proof(lambda count: None, work, 0), Budget(7.0, threads=4), limit)

    assert given(2.9, 10.0) == math.inf  # it will be done in time, so nothing looks at the clock
    assert given(3.1, 10.0) == pytest.approx(3.0)
    assert given(1e6, 5.0) == pytest.approx(0.5)  # the limit is over
    assert given(1e6, None) == math.inf


@pytest.mark.parametrize("solver", ["dual-ascent", "branch-and-bound"])
def test_a_run_that_is_over_does_not_prepare_its_duals(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At n = 600 that takes seconds."""
    problem = gw_problem(0, 120)
    result = bm.solve(problem, solver, time_limit=1e-3, rng=0)
    assert result.status == "time_limit"
    assert result.cost == problem.objective(result.permutation)
    assert -math.inf < result.lower_bound <= result.cost
    assert not result.certificate.nodes[0].stages

    def never(*arguments: object) -> None:
        raise AssertionError

    monkeypatch.setattr(_core, solver.replace("-", "_"), never)
    assert bm.solve(problem, solver, time_limit=1e-3, rng=0).status == "time_limit"


def test_small_stages_count_too() -> None:
    """A tree of few items has thousands of them: what each takes beside its pairs is most of the check."""
    assert stage_work(1, 2) > 100 * (stage_work(5, 2) - stage_work(1, 2))


def test_a_run_knows_how_busy_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "seconds", 4.0)
    for computed, slowness in ((8.0, 1.0), (4.0, 1.0), (2.0, 2.0), (0.5, 4.0)):
        budget = Budget(10.0)
        budget.cpu_start = time.process_time() - computed
        assert budget.slowness == pytest.approx(slowness, rel=0.1)


def test_a_run_keeps_time_for_the_check_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit leaves room for the check of one stage on free cores; on busy ones the core ends earlier."""
    monkeypatch.setattr(Budget, "seconds", 4.0)
    for slowness, remaining in ((1.0, 96.0), (2.0, 86.0), (50.0, 46.0)):
        monkeypatch.setattr(Budget, "slowness", slowness)
        assert RescaledBudget(Budget(100.0), 0, 10, check_seconds=10.0).remaining == remaining


@pytest.mark.parametrize("number", [np.float32(60), np.float64(60), np.int64(60), np.float16(60)])
def test_limits_are_numbers_of_any_kind(number: Any) -> None:
    assert bm.solve(gw_problem(0, 5), time_limit=number, rng=0).status == "optimal"
    assert bm.solve(gw_problem(0, 5), "tabu", time_limit=number, rng=0).status == "heuristic"
    assert bm.best_subsets(cost=np.eye(5), size=2, time_limit=number, rng=0).status == "heuristic"
