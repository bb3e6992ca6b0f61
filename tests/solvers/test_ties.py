"""Where several matches cost the same, the seed chooses among them, and not the number of threads."""

import os

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.solvers import auto
from blindmatch.solvers.base import Budget
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant
from blindmatch.solvers.two_opt import TwoOpt

ROUNDS = int(os.environ.get("BLINDMATCH_FUZZ", "2"))


def _integers(rng: np.random.Generator, n: int) -> bm.QAP:
    A, B = rng.integers(0, 3, size=(2, n, n))
    return bm.QAP(A + A.T, B + B.T)


def _constant(rng: np.random.Generator, n: int) -> bm.QAP:
    A = np.full((n, n), 1 / 3)
    np.fill_diagonal(A, 0.0)
    return bm.QAP(A, 0.1 + rng.integers(0, 2, size=(n, n)))


def _low_rank(rng: np.random.Generator, n: int) -> bm.QAP:
    a, b = rng.normal(size=(2, n)).round(1)
    return bm.QAP(np.outer(a, a), np.outer(b, b))


def _neighbours(rng: np.random.Generator, n: int) -> bm.QAP:
    X = rng.normal(size=(n, 3))
    return bm.MutualKNN(k=2).problem(X, X[rng.permutation(n)] + 0.3 * rng.normal(size=(n, 3)))


def _mirrored(rng: np.random.Generator, n: int) -> bm.QAP:
    """Points on a line: each match and its mirror image cost the same, but for rounding."""
    X = np.linspace(0.0, 0.7, n)[:, None]
    return bm.GromovWasserstein().problem(X, X[rng.permutation(n)] * 1.1)


KINDS = [_integers, _constant, _low_rank, _neighbours, _mirrored]
# Fewer restarts than usual: what is asked here does not depend on how many there are.
FAST = {"factorized-hahn-grant": FactorizedHahnGrant(restarts=20), "two-opt": TwoOpt(restarts=20)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
@pytest.mark.parametrize("solver", ["auto", "dual-ascent", "factorized-hahn-grant", "two-opt", "brute-force"])
def test_threads_do_not_choose_among_ties(solver: str, kind) -> None:
    for seed in range(ROUNDS):
        rng = np.random.default_rng([seed, 7])
        problem = kind(rng, int(rng.integers(4, 9)))
        found = [bm.solve(problem, FAST.get(solver, solver), rng=seed, threads=threads) for threads in (1, 2, 3)]
        for other in found[1:]:
            assert other.permutation.tolist() == found[0].permutation.tolist(), f"seed {seed}"
            assert (other.cost, other.lower_bound, other.status) == (
                found[0].cost,
                found[0].lower_bound,
                found[0].status,
            ), f"seed {seed}"


def test_threads_do_not_choose_beyond_branch_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "_TABU_WORK", 3e4)  # too little to find the optimum, so that more streams find more
    for seed in range(4):
        A, B = np.random.default_rng(seed).normal(size=(2, 25, 25))
        problem = bm.QAP(A + A.T, B + B.T)
        found = [bm.solve(problem, auto.Auto(largest=10), rng=seed, threads=threads) for threads in (1, 2, 5)]
        assert [other.permutation.tolist() for other in found[1:]] == [found[0].permutation.tolist()] * 2
        assert len({(other.cost, other.lower_bound, other.status) for other in found}) == 1


@pytest.mark.parametrize("solver", ["auto", "dual-ascent", "semidefinite"])
def test_what_searches_report_on_their_way_does_not_choose(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock decides what is reported. So matches that seem to be better by a last digit are reported here."""
    for seed in range(4):
        rng = np.random.default_rng([seed, 11])
        problem = _neighbours(rng, 9)
        undisturbed = bm.solve(problem, solver, rng=seed, threads=1)

        def report_another(budget: Budget, permutation: np.ndarray, cost: float) -> None:
            budget.kept = (cost - 1e-15, np.roll(permutation, 1).astype(np.intp))

        with monkeypatch.context() as patch:
            patch.setattr(Budget, "keep", report_another)
            disturbed = bm.solve(problem, solver, rng=seed, threads=1)
        assert disturbed.permutation.tolist() == undisturbed.permutation.tolist(), f"seed {seed}"
        assert disturbed.lower_bound == undisturbed.lower_bound, f"seed {seed}"


def test_a_tree_on_several_threads_is_the_same_tree() -> None:
    """Flows on a grid, with many nodes and ties: the proof has the same nodes in the same order."""
    rng = np.random.default_rng(1)
    places = np.array([(i, j) for i in range(3) for j in range(4)])
    distance = np.abs(places[:, None] - places[None]).sum(axis=-1)
    flow = np.triu(rng.integers(0, 6, size=(12, 12)) * (rng.random((12, 12)) < 0.7), 1)
    problem = bm.QAP(flow + flow.T, distance)
    solver = bm.BranchAndBound(semidefinite=False)
    one, two, three = (bm.solve(problem, solver, rng=0, threads=threads) for threads in (1, 2, 3))
    assert len(one.certificate.nodes) > 40
    for other in (two, three):
        assert other.permutation.tolist() == one.permutation.tolist()
        assert [(node.parent, node.pair) for node in other.certificate.nodes] == [
            (node.parent, node.pair) for node in one.certificate.nodes
        ]
