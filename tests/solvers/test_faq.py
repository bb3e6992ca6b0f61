"""Starting points of FAQ."""

import numpy as np

import blindmatch as bm
from blindmatch.solvers.faq import by_sorted_rows


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


def test_sorted_rows_tell_who_is_who():
    problem, partners = copies(20)
    start = by_sorted_rows(problem.normal_form)
    assert np.allclose(start.sum(axis=0), 1)
    assert np.allclose(start.sum(axis=1), 1)
    assert np.array_equal(start.argmax(axis=1), partners)


def test_many_items_start_from_sorted_rows():
    problem, partners = copies(310)
    one, two = (bm.solve(problem, bm.SOLVERS["faq"](restarts=k, max_iterations=1, polish=False), rng=0) for k in (1, 2))
    assert not np.array_equal(one.permutation, partners)
    assert np.array_equal(two.permutation, partners)
