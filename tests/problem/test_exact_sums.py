"""Costs are never below the exact ones, whatever cancels or vanishes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from strategies import rng_of

import blindmatch as bm
from blindmatch.problem.exact_sums import sum_of_products


def exact_cost(problem: bm.QAP, p: np.ndarray) -> Fraction:
    terms = [Fraction(float(problem.linear[i, j])) for i, j in enumerate(p)] + [Fraction(problem.constant)]
    for A, B in problem.factors:
        terms += [
            Fraction(float(a)) * Fraction(float(b)) for a, b in zip(A.ravel(), B[np.ix_(p, p)].ravel(), strict=True)
        ]
    return sum(terms, Fraction(0))


@pytest.mark.parametrize("seed", range(60))
def test_a_cost_is_the_exact_one_or_just_above(seed: int) -> None:
    rng = rng_of(seed)
    n, scale = 1 + seed % 6, 10.0 ** rng.uniform(-150, 90)
    spread = 10.0 ** rng.integers(-8, 8, (n, n))
    A, B = rng.standard_normal((n, n)) * spread, scale * rng.standard_normal((n, n))
    p = rng.permutation(n)
    constant = -bm.QAP(A, B).objective(p) if seed % 3 else 1.0  # nearly all of it cancels
    problem = bm.QAP(A, B, linear=scale * rng.standard_normal((n, n)) * 1e-9, constant=constant)
    cost, exact = problem.objective(p), exact_cost(problem, p)
    assert exact <= Fraction(cost)
    assert Fraction(cost) - exact <= Fraction(math.ulp(cost)) + Fraction(1e-27 * problem.scale)


@pytest.mark.parametrize("seed", range(20))
def test_products_that_vanish_are_not_lost(seed: int) -> None:
    rng = rng_of(seed)
    for A, B in (
        (5e-324 * rng.integers(-9, 10, (3, 3)), 1e100 * rng.standard_normal((3, 3))),
        (1e-160 * rng.standard_normal((3, 3)), 1e-164 * rng.standard_normal((3, 3))),
    ):
        problem, p = bm.QAP(A, B), rng.permutation(3)
        assert exact_cost(problem, p) <= Fraction(problem.objective(p))


def test_what_float64_holds_is_exact() -> None:
    assert sum_of_products([], np.array([1e16, 1.0, -1e16])) == 1.0
    assert 1.5 <= sum_of_products([(np.array([1e8, 3.0]), np.array([1e8, 0.5]))], np.array([-1e16])) <= 1.5 + 1e-13
    assert sum_of_products([(np.zeros(4), np.ones(4))], np.zeros(1)) == 0.0


def test_optimum_and_cost_where_all_but_one_cancels() -> None:
    zero = np.zeros((3, 3))
    problem = bm.QAP(zero, zero, np.diag([1e16, 1.0, -1e16]), forbidden=~np.eye(3, dtype=bool))
    result = bm.solve(problem, rng=0)
    assert result.cost == 1.0  # float64 sums give 0
    assert result.lower_bound <= 1.0
