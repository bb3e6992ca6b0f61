"""Starting points of FAQ."""

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.solvers.base import Budget
from blindmatch.solvers.faq import FAQ
from blindmatch.solvers.relaxation import Relaxation, by_samples, by_sorted_rows, halfway, relaxations


def copies(n: int) -> tuple[bm.QAP, np.ndarray]:
    """A matrix and its shuffled negative: the cost is least at the partners that are returned.

    All of its rows sum to zero, so the barycentre sees nothing.
    """
    rng = np.random.default_rng(n)
    A = np.triu(rng.random((n, n)), 1)
    A += A.T
    sums = A.sum(axis=1)
    A -= (sums[:, None] + sums) / (n - 2) - sums.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(A, 0.0)
    order = rng.permutation(n)
    return bm.QAP(A, -A[np.ix_(order, order)]), np.argsort(order)


def blobs(n: int) -> tuple[bm.QAP, np.ndarray, np.ndarray]:
    """Two unrelated samples of the same four blobs, and the blob of each item.

    Two blobs are equally large, so that sorted rows confuse them.
    """
    rng = np.random.default_rng(n)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 9.0], [14.0, 3.0]])
    labels = np.repeat(np.arange(4), [n // 2, n // 5, n // 5, n - n // 2 - 2 * (n // 5)])
    sides = [centres[labels] + 0.3 * rng.standard_normal((n, 2)) for _ in range(2)]
    order = rng.permutation(n)
    return bm.Task(sides[0], sides[1][order]).problem, labels, labels[order]


def test_sorted_rows_tell_who_is_who():
    problem, partners = copies(20)
    assert np.array_equal(by_sorted_rows(problem.normal_form), partners)


def test_halfway_is_doubly_stochastic():
    start = halfway(np.array([2, 0, 1]))
    assert np.allclose(start.sum(axis=0), 1)
    assert np.allclose(start.sum(axis=1), 1)
    assert start.argmax(axis=1).tolist() == [2, 0, 1]


def test_many_items_start_from_sorted_rows():
    problem, partners = copies(310)
    blind = bm.solve(problem, FAQ(restarts=2, max_iterations=1, polish=False, informed=False), rng=0)
    informed = bm.solve(problem, FAQ(restarts=2, max_iterations=1, polish=False), rng=0)
    assert not np.array_equal(blind.permutation, partners)
    assert np.array_equal(informed.permutation, partners)


def test_samples_lay_one_set_on_the_other():
    problem, sources, targets = blobs(600)
    [relaxation] = relaxations(problem.normal_form, centre=True)
    match = by_samples(relaxation, FAQ().descend, Budget(), np.random.default_rng(0))
    assert np.array_equal(np.sort(match), np.arange(600))
    assert (sources == targets[match]).mean() > 0.99


@pytest.mark.slow
def test_samples_heed_linear_costs():
    problem, sources, targets = blobs(600)
    away = 1e3 * problem.scale / 600 * (sources[:, None] == targets[None, :])  # no item may stay in its blob
    form = bm.QAP(*problem.factors[0], linear=away).normal_form
    [relaxation] = relaxations(form, centre=False)
    match = by_samples(relaxation, FAQ().descend, Budget(), np.random.default_rng(0))
    assert (sources == targets[match]).mean() < 0.01


def test_a_stopped_run_still_has_a_start():
    problem, _, _ = blobs(600)
    [relaxation] = relaxations(problem.normal_form, centre=True)
    match = by_samples(relaxation, FAQ().descend, Budget(time_limit=1e-9), np.random.default_rng(0))
    assert np.array_equal(np.sort(match), np.arange(600))


def test_a_step_of_tiny_curvature_raises_no_warning():
    relaxation = Relaxation([(np.array([[1e-154]]), np.array([[1e-155]]))], np.zeros((1, 1)))
    assert relaxation.best_steps(np.array([[[-1e3]]]), np.ones((1, 1, 1))) == 1.0


def test_auto_ends_with_few_items_that_it_may_not_branch_on():
    problem, _ = copies(3)
    assert bm.solve(problem, bm.SOLVERS["auto"](largest=1), rng=0).cost == bm.solve(problem, rng=0).cost
