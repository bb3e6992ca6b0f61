"""The projection bound."""

from itertools import permutations

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.proof.certificate import Node
from blindmatch.proof.spectral import projection_bound


def enumerated_optimum(problem):
    return min(problem.objective(np.array(p)) for p in permutations(range(problem.n)))


@pytest.mark.parametrize("seed", range(40))
def test_never_above_the_optimum(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    A, B, L = rng.normal(size=(3, n, n))
    if seed % 2:
        A, B = A + A.T, B + B.T
    problem = bm.QAP(A, B, linear=L * (seed % 3 > 0), constant=1.0)
    assert projection_bound(problem) <= enumerated_optimum(problem)


def test_tight_where_only_the_linear_term_matters():
    L = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    problem = bm.QAP(np.zeros((3, 3)), np.zeros((3, 3)), linear=L)
    assert projection_bound(problem) == pytest.approx(5.0)


def test_forbidden_pairs_are_not_used():
    L = np.array([[0.0, 1.0], [1.0, 0.0]])
    problem = bm.QAP(np.zeros((2, 2)), np.zeros((2, 2)), linear=L, forbidden=np.eye(2, dtype=bool))
    assert projection_bound(problem) == pytest.approx(2.0)


def test_a_certificate_may_rest_on_it_alone():
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(2, 8, 8))
    problem = bm.QAP(A + A.T, B + B.T)
    certificate = bm.Certificate(8, (Node(spectral=True),))
    assert bm.verify(problem, certificate) == pytest.approx(projection_bound(problem), rel=1e-12)
    assert bm.verify(problem, bm.Certificate(8)) == -np.inf
