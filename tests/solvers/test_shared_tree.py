"""Branch and bound on an executor: the same optimum and a proof, whatever becomes of the pieces."""

from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from unreliable import unreliable_executors

import blindmatch as bm
from blindmatch.solvers import shared_tree


def hard_problem(n: int = 12, seed: int = 0) -> bm.QAP:
    rng = np.random.default_rng(seed)
    A, B = rng.integers(0, 100, (2, n, n))
    return bm.QAP(A + A.T, B + B.T, linear=rng.integers(0, 50, (n, n)))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """The tree of level 1 is handed out after its first node, and in many pieces."""
    monkeypatch.setattr("blindmatch.solvers.branch_and_bound.worth_a_try", lambda *_: False)
    monkeypatch.setattr("blindmatch.solvers.branch_and_bound.ROOT_NODES", 1)
    monkeypatch.setattr(shared_tree, "_SHORTEST", 0.01)
    monkeypatch.setattr(shared_tree, "_SHARE", 0.0)


@pytest.fixture(scope="module")
def optimum() -> float:
    result = bm.solve(hard_problem(), "branch-and-bound", rng=0)
    assert result.status == "optimal"
    return result.cost


@pytest.fixture
def threads():
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def unreliable():
    """Makes executors that spoil pieces."""
    with unreliable_executors(shared_tree.grow) as make:
        yield make


def check(problem: bm.QAP, result: bm.Result, optimum: float) -> None:
    assert result.status == "optimal"
    assert result.cost == optimum == problem.objective(result.permutation)
    assert bm.verify(problem, result.certificate) == optimum


def test_workers_prove_the_optimum(optimum, unreliable):
    problem = hard_problem()
    pool = unreliable(lambda number, piece: piece)
    result = bm.solve(problem, bm.BranchAndBound(executor=pool), rng=0)
    check(problem, result, optimum)
    assert pool.tasks > 3
    assert len(result.certificate.nodes) > 3
    assert bm.verify(problem, result.certificate, executor=pool) == optimum


def test_pieces_that_are_lost_are_done_again(optimum, unreliable):
    def spoil(number, piece):
        if number % 3 == 0:
            raise CancelledError
        return piece

    problem = hard_problem()
    result = bm.solve(problem, bm.BranchAndBound(executor=unreliable(spoil)), rng=0)
    check(problem, result, optimum)
    assert "done again" in result.message


@pytest.mark.parametrize("answer", [b"", b"blindmatch tree 1\nnonsense", None])
def test_what_is_no_piece_is_refused_and_the_match_is_kept(answer, unreliable):
    problem = hard_problem()
    spoil = lambda number, piece: piece if number < 3 else (answer if answer is not None else piece[:-7] + b"forgery")  # noqa: E731
    with pytest.raises(ValueError, match=r"the piece is (not a checkpoint|damaged)") as caught:
        bm.solve(problem, bm.BranchAndBound(executor=unreliable(spoil)), rng=0)
    result = caught.value.result
    assert result.lower_bound <= result.cost == problem.objective(result.permutation)


def test_an_executor_that_loses_everything_ends_with_its_error(unreliable):
    def spoil(number, piece):
        raise CancelledError

    with pytest.raises(CancelledError) as caught:
        bm.solve(hard_problem(), bm.BranchAndBound(executor=unreliable(spoil)), rng=0)
    assert caught.value.result.lower_bound <= caught.value.result.cost


def test_a_run_resumes_with_or_without_an_executor(tmp_path, optimum, unreliable, threads):
    problem, path = hard_problem(), tmp_path / "run.tree"

    def stop(number, piece):
        if number > 2:
            raise KeyboardInterrupt
        return piece

    pool = unreliable(stop)
    first = bm.solve(problem, bm.BranchAndBound(executor=pool, checkpoint=path), rng=0)
    assert first.status == "interrupted"
    assert first.lower_bound <= optimum
    kept = path.read_bytes()
    check(problem, bm.solve(problem, bm.BranchAndBound(checkpoint=path), rng=0), optimum)
    assert not path.exists()
    path.write_bytes(kept)
    good = bm.BranchAndBound(executor=threads, checkpoint=path)
    check(problem, bm.solve(problem, good, rng=0), optimum)
    assert not path.exists()


def test_a_dropped_proof_leaves_the_optimum(optimum, threads):
    solver = bm.BranchAndBound(executor=threads, proof_limit=100_000)
    result = bm.solve(hard_problem(), solver, rng=0)
    assert (result.status, result.cost, result.certificate) == ("optimal", optimum, None)
    assert "proof_limit" in result.message


def test_a_time_limit_keeps_the_bound(threads):
    result = bm.solve(hard_problem(25, 1), bm.BranchAndBound(executor=threads), time_limit=1, rng=0)
    assert result.status == "time_limit"
    assert 0 < result.lower_bound < result.cost


def test_processes_prove_and_check(optimum):
    problem = hard_problem()
    with ProcessPoolExecutor(2) as pool:
        result = bm.solve(problem, bm.BranchAndBound(executor=pool), rng=0)
        check(problem, result, optimum)
        assert bm.verify(problem, result.certificate, executor=pool) == optimum


def test_other_versions_and_silent_workers_are_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"a worker has blindmatch .* this process has 9\.9\.9"):
        shared_tree.refuse_version("9.9.9")

    class Silent(Executor):
        def submit(self, *arguments):
            return Future()

    monkeypatch.setattr(shared_tree, "_FIRST_ANSWER", 0.1)
    with pytest.raises(ValueError, match="no worker answered"):
        bm.solve(hard_problem(), bm.BranchAndBound(executor=Silent()), rng=0)


def test_an_executor_must_be_one():
    with pytest.raises(ValueError, match=r"executor=3: expected a concurrent\.futures\.Executor or a Dask client"):
        bm.BranchAndBound(executor=3)
    with pytest.raises(ValueError, match="executor='x'"):
        bm.verify(hard_problem(3), bm.solve(hard_problem(3), rng=0).certificate, executor="x")
    with pytest.raises(ValueError, match=r"executor=ThreadPoolExecutor is a class; .*executor=ThreadPoolExecutor\(\)"):
        bm.BranchAndBound(executor=ThreadPoolExecutor)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_that_was_shut_down_is_refused(kind):
    pool = kind(1)
    solver = bm.BranchAndBound(executor=pool)
    pool.shutdown()
    with pytest.raises(ValueError, match=r"^executor=<.*> was shut down"):
        bm.BranchAndBound(executor=pool)
    with pytest.raises(ValueError, match=r"^executor=<.*> was shut down"):
        bm.solve(hard_problem(3), solver, rng=0)
