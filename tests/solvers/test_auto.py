"""The search of the default solver before its bound."""

from __future__ import annotations

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.solvers import auto
from blindmatch.solvers.base import Budget, Solver
from blindmatch.solvers.faq import FAQ
from blindmatch.solvers.tabu import Tabu


def _random_problem(n: int, seed: int) -> bm.QAP:
    A, B = np.random.default_rng(seed).integers(0, 100, (2, n, n)).astype(float)
    return bm.QAP(A + A.T, B + B.T)


def _found(problem: bm.QAP) -> float:
    budget = Budget(threads=2)
    auto.find_incumbent(problem, budget, np.random.default_rng(0))
    assert budget.best is not None
    assert problem.objective(budget.best[1]) == budget.best[0]
    return budget.best[0]


@pytest.mark.slow
def test_where_no_proof_is_in_reach_the_match_is_as_good_as_that_of_tabu() -> None:
    problem = _random_problem(45, seed=1)
    short = Tabu(iterations=auto.SWAPS * problem.n, streams=2)
    costs = {s: bm.solve(problem, solver, rng=0).cost for s, solver in (("short", short), ("tabu", Tabu()))}
    assert _found(problem) <= 1.001 * costs["tabu"] < costs["short"]


def test_the_search_is_short_where_short_searches_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("a long search")

    monkeypatch.setattr(FAQ, "__call__", fail)
    X = np.random.default_rng(2).normal(size=(30, 4))
    problem = bm.Task(X, X[::-1]).problem
    assert _found(problem) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(AssertionError, match="a long search"):
        _found(_random_problem(45, seed=1))


def test_a_descent_comes_first_where_few_relations_differ_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[str] = []

    def noting(solver: Solver, *arguments: object) -> float:
        searches.append(solver.name)
        return float(len(searches))  # the short searches disagree

    monkeypatch.setattr(auto, "_run", noting)
    rng = np.random.default_rng(3)
    sparse, other, dense = ((rng.random((60, 60)) < share).astype(float) for share in (0.08, 0.1, 0.5))
    for matrix, expected in ((other, ["tabu", "tabu", "faq", "tabu", "faq"]), (dense, ["tabu", "tabu", "tabu", "faq"])):
        searches.clear()
        auto.find_incumbent(bm.QAP(-sparse, matrix), Budget(threads=1), rng)
        assert searches == expected
