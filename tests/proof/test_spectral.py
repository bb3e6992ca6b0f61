"""The projection bound."""

from itertools import permutations

import numpy as np
import pytest
from qaplib import needs_qaplib, qaplib

import blindmatch as bm
from blindmatch.proof.certificate import Node
from blindmatch.proof.spectral import cheap_bound, gilmore_lawler_bound, projection_bound


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


@pytest.mark.parametrize("seed", range(60))
def test_the_gilmore_lawler_bound_is_never_above_the_optimum(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    factors = [rng.normal(size=(2, n, n)) * 10.0 ** rng.integers(-4, 5) for _ in range(1 + seed % 3)]
    if seed % 2:
        factors = [[np.rint(M + M.T) for M in pair] for pair in factors]
    forbidden = rng.random((n, n)) < 0.2 if seed % 5 == 0 else None
    problem = bm.QAP.from_factors(factors, rng.normal(size=(n, n)), rng.normal(), forbidden=forbidden)
    costs = [problem.objective(np.array(p)) for p in permutations(range(n)) if problem.allows(p)]
    assert gilmore_lawler_bound(problem) <= min(costs, default=np.inf)
    assert cheap_bound(problem)[0] == max(gilmore_lawler_bound(problem), projection_bound(problem))


@needs_qaplib
def test_the_gilmore_lawler_bound_is_the_published_one_and_a_proof():
    problem = qaplib("tai20a")  # the projection bound is 575,830
    assert gilmore_lawler_bound(problem) == pytest.approx(580674, abs=1)
    assert cheap_bound(problem) == (gilmore_lawler_bound(problem), "Gilmore-Lawler")
    assert bm.verify(problem, bm.Certificate(20, (Node(spectral=True),))) == 580674
    # Of a directed graph, a vertex is compared with its edges in both directions.
    rng = np.random.default_rng(0)
    A, B = rng.poisson(0.2, (2, 12, 12)).astype(float)
    loss = bm.QAP(-2 * A, B, constant=float((A**2).sum() + (B**2).sum()))
    assert 0 < gilmore_lawler_bound(loss) <= bm.solve(loss, "two-opt", rng=0).cost


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
    assert bm.verify(problem, certificate) == pytest.approx(cheap_bound(problem)[0], rel=1e-12)
    assert bm.verify(problem, bm.Certificate(8)) == -np.inf
