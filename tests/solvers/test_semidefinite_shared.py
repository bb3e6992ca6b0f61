"""The tree of semidefinite bounds on an executor: the same optimum and a proof, whatever becomes of the nodes."""

from concurrent.futures import CancelledError, ProcessPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info
from unreliable import unreliable_executors

import blindmatch as bm
from blindmatch.solvers.semidefinite_node import children_elsewhere

OPTIMUM = 1233628


def hard_problem() -> bm.QAP:
    rng = np.random.default_rng(3)
    A, B = rng.integers(0, 100, (2, 12, 12))
    return bm.QAP(A + A.T, B + B.T, linear=rng.integers(0, 50, (12, 12)))


@pytest.fixture(autouse=True)
def _all_nodes_go_out(monkeypatch):
    """The tree of level 1 gives up at once, and no node but the root is bounded here."""
    for name in ("_LOOK_NODES", "_LOOK_SHARE", "_HERE"):
        monkeypatch.setattr(f"blindmatch.solvers.strengthened.{name}", 0.0)


@pytest.fixture
def unreliable():
    """Makes executors that spoil nodes."""
    with unreliable_executors(children_elsewhere) as make:
        yield make


def solved(executor, **options) -> bm.Result:
    return bm.solve(hard_problem(), bm.BranchAndBound(executor=executor), rng=0, threads=1, **options)


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def check(result: bm.Result) -> None:
    assert (result.status, result.cost, result.lower_bound) == ("optimal", OPTIMUM, OPTIMUM)
    nodes = result.certificate.nodes
    assert f"semidefinite bound at {len(nodes)} nodes" in result.message
    assert any(stage.factor is not None for node in nodes[1:] for stage in node.stages)
    assert bm.verify(hard_problem(), result.certificate) == OPTIMUM


def test_the_optimum_is_that_of_level_1_alone():
    assert bm.solve(hard_problem(), bm.BranchAndBound(semidefinite=False), rng=0).cost == OPTIMUM


def test_nodes_that_are_lost_are_bounded_again(unreliable):
    before = blas_threads()

    def spoil(number, nodes):
        if number % 3 == 0:
            raise CancelledError
        return nodes

    pool = unreliable(spoil)
    result = solved(pool)
    check(result)
    assert pool.tasks >= 3
    assert f"{pool.tasks // 3} groups of nodes were lost and done again" in result.message
    assert blas_threads() == before


def test_processes_bound_and_check_the_nodes():
    with ProcessPoolExecutor(2) as pool:
        result = solved(pool)
        check(result)
        assert bm.verify(hard_problem(), result.certificate, executor=pool) == OPTIMUM


@pytest.mark.parametrize(("error", "after"), [(KeyboardInterrupt, 1), (CancelledError, 0)])
def test_a_run_that_ends_early_keeps_its_bound(error, after, unreliable):
    def spoil(number, nodes):
        if number > after:
            raise error
        return nodes

    pool = unreliable(spoil)
    if error is KeyboardInterrupt:
        result = solved(pool)
        assert result.status == "interrupted"
    else:
        with pytest.raises(CancelledError) as caught:
            solved(pool)
        result = caught.value.result
    assert 0 < result.lower_bound <= OPTIMUM <= result.cost == hard_problem().objective(result.permutation)
    assert bm.verify(hard_problem(), result.certificate) <= OPTIMUM


def test_a_short_tree_stays_here(monkeypatch, unreliable):
    monkeypatch.setattr("blindmatch.solvers.strengthened._HERE", 100.0)
    pool = unreliable(lambda number, nodes: nodes)
    check(solved(pool))
    assert pool.tasks == 0
