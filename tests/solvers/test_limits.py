"""The limits of a run besides the clock, and callbacks that steer it."""

import math
import time

import numpy as np
import pytest
from strategies import optimum, random_problem

import blindmatch as bm
from blindmatch.solvers.progress import Limits


@pytest.fixture(scope="module")
def hard() -> bm.QAP:
    """Level 1 leaves a gap at the root, so there is a tree."""
    rng = np.random.default_rng(1)
    matrices = rng.integers(0, 10, (2, 10, 10))
    return bm.QAP(*(np.triu(matrix, 1) + np.triu(matrix, 1).T for matrix in matrices))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gap_limit", math.nan),
        ("gap_limit", -0.1),
        ("gap_limit", 8),
        ("gap_limit", "small"),
        ("cost_limit", math.inf),
        ("cost_limit", True),
        ("bound_limit", math.nan),
        ("node_limit", 0),
        ("node_limit", 1.5),
        ("solution_limit", -1),
        ("work_limit", 0),
        ("work_limit", math.nan),
        ("work_limit", math.inf),
        ("time_limit", math.nan),
        ("time_limit", -1),
    ],
)
def test_impossible_limits_are_named(name, value, hard):
    with pytest.raises(ValueError, match=f"^{name}="):
        bm.solve(hard, **{name: value})


@pytest.mark.parametrize("name", ["gap_limit", "bound_limit", "node_limit"])
def test_a_search_refuses_the_limits_of_a_bound(name, hard):
    with pytest.raises(ValueError, match=f"solver='tabu' proves no bound, so {name} would never end it"):
        bm.solve(hard, "tabu", **{name: 1})


@pytest.mark.parametrize("solver", ["tabu", "two-opt", "dual-ascent", "branch-and-bound"])
def test_a_work_limit_ends_every_kind_of_run_in_the_same_state(solver, hard):
    one, other = (bm.solve(hard, solver, rng=0, work_limit=1e-4, threads=threads) for threads in (1, 2))
    assert one.status == other.status == "work_limit"
    assert (one.permutation == other.permutation).all()
    assert (one.cost, one.lower_bound) == (other.cost, other.lower_bound)


def test_a_slow_callback_is_not_called_after_the_time_limit(hard):
    called = []

    def slow(now):
        called.append(now.seconds)
        time.sleep(0.2)

    assert bm.solve(hard, "branch-and-bound", rng=0, time_limit=0.1, callback=slow).status == "time_limit"
    assert len(called) == 1


def test_a_gap_limit_saves_nodes_and_keeps_its_word(hard):
    exact = bm.solve(hard, rng=0)
    seen = [bm.solve(hard, rng=0, gap_limit=gap) for gap in (0.02, 0.1)]
    for result, gap in zip(seen, (0.02, 0.1), strict=True):
        assert result.status in ("gap_limit", "optimal")
        assert result.gap <= gap
        assert result.lower_bound <= exact.cost
        assert result.verify() == result.lower_bound
    assert exact.status == "optimal"
    assert seen[1].status == "gap_limit"


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_a_node_limit_is_exact(hard, limit):
    result = bm.solve(hard, "branch-and-bound", rng=0, node_limit=limit)
    assert result.status == "node_limit"
    assert f"{limit} node" in result.message
    assert result.lower_bound <= bm.solve(hard, rng=0).cost


def test_a_decision_problem_needs_no_optimum(hard):
    """Is there a permutation that costs at most this? One limit or the other says."""
    best = bm.solve(hard, rng=0).cost
    for asked in (best - 2, best + 40):
        result = bm.solve(hard, rng=0, cost_limit=asked, bound_limit=asked + 1)
        assert result.status == ("cost_limit" if asked >= best else "bound_limit") or result.status == "optimal"
        assert (result.cost <= asked) == (asked >= best)
        assert result.cost <= asked or result.lower_bound > asked


def test_the_checked_bound_decides_not_the_reported_one():
    limits = Limits(gap_limit=0.1, cost_limit=5.0, bound_limit=-3.0)
    assert limits.reached(4.4, 5.0, 0) == "cost_limit"
    assert limits.reached(-2.0, 6.0, 0) == "bound_limit"
    assert Limits(gap_limit=0.1).reached(9.0, 10.0, 0) == "gap_limit"
    assert Limits(gap_limit=0.1).reached(8.9, 10.0, 0) is None
    assert Limits(gap_limit=0.1).reached(-11.0, -10.0, 0) == "gap_limit"
    assert Limits(solution_limit=2).reached(None, None, 1) is None
    assert limits.negated() == Limits(gap_limit=0.1, cost_limit=-5.0, bound_limit=3.0)


def test_a_callback_that_answers_nonsense_is_told_so(hard):
    for answer in ("stop", 1, [True], np.array([True, False])):
        with pytest.raises(ValueError, match="callback returned") as caught:
            bm.solve(hard, rng=0, callback=lambda now, answer=answer: answer)
        assert caught.value.result.cost == hard.objective(caught.value.result.permutation)
    assert bm.solve(hard, rng=0, callback=lambda now: np.False_).status == "optimal"


def test_progress_tells_nodes_and_gap(hard):
    seen = []
    result = bm.solve(hard, "branch-and-bound", rng=0, callback=seen.append)
    assert {"search", "root", "tree"} <= {now.phase for now in seen}
    assert max(now.iteration for now in seen if now.phase == "root") > 0
    assert seen[-1].nodes > 1
    assert seen[-1].open == 0
    assert seen[-1].gap == pytest.approx(0.0, abs=0.02)
    costs = [now.cost for now in seen if now.cost is not None]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == result.cost


def test_a_solution_limit_stops_at_an_improvement():
    problem = random_problem(5, 8)
    result = bm.solve(problem, "branch-and-bound", rng=0, solution_limit=1)
    assert result.status in ("solution_limit", "optimal")
    assert result.cost >= optimum(problem) - 1e-9
