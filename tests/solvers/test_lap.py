"""The assignment solvers of the core against scipy, with the proof (duals) checked each time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from strategies import rng_of, seeds

from blindmatch import _core

METHODS = ("jonker-volgenant", "hungarian", "auction")
EXACT = METHODS[:2]


def normal(rng, n):
    return rng.standard_normal((n, n))


def integers(rng, n):
    return rng.integers(-20, 20, (n, n)).astype(float)


def tied(rng, n):
    return rng.integers(0, 3, (n, n)).astype(float)


def products(rng, n):
    """Rank one: what the first sweep on factored costs solves."""
    return np.outer(rng.standard_normal(n), rng.standard_normal(n))


def sums(rng, n):
    """u_i + v_j: every assignment is optimal, up to rounding."""
    return rng.standard_normal((n, 1)) + rng.standard_normal((1, n))


def machol_wien(rng, n):
    """(i + 1) * (j + 1): the classical hard case of augmenting paths."""
    return np.outer(np.arange(1.0, n + 1), np.arange(1.0, n + 1))


def repeated(rng, n):
    return np.tile(rng.standard_normal(n), (n, 1))


def spread(rng, n):
    return rng.standard_normal((n, n)) * 10.0 ** rng.integers(-8, 8, (n, n))


def nearly_equal(rng, n):
    return 1.0 + 1e-15 * rng.integers(0, 4, (n, n))


KINDS = (normal, integers, tied, products, sums, machol_wien, repeated, spread, nearly_equal)


def solved(cost, *args, **options):
    lap = _core.solve_lap(cost, *args, **options)
    return lap.columns, lap.u, lap.v, lap.feasible


def check_duals(cost, columns, u, v, tight=True):
    """Feasible to rounding; for the exact methods also tight on the chosen pairs."""
    n = len(cost)
    assert sorted(columns) == list(range(n))
    finite = np.isfinite(cost)
    size = max(np.abs(cost[finite]).max(), np.abs(u).max(), np.abs(v).max())
    reduced = np.where(finite, cost - u[:, None] - v[None, :], np.inf)
    assert reduced.min() >= -4e-16 * size
    assert np.isfinite(u).all()
    assert np.isfinite(v).all()
    if tight:
        assert np.abs(reduced[np.arange(n), columns]).max() <= 1e-13 * size * n


def check_optimal(cost, columns):
    rows, best = linear_sum_assignment(cost)
    size = np.abs(cost[np.isfinite(cost)]).max()
    assert cost[rows, columns].sum() == pytest.approx(cost[rows, best].sum(), abs=1e-13 * size * len(cost))


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("kind", KINDS)
def test_against_scipy(method, kind):
    rng = rng_of(7)
    for n in [*range(1, 13), 16, 17, 31, 40] * 6:  # 96 matrices of each kind, by both methods: 1728 in all
        cost = kind(rng, n)
        columns, u, v, feasible = solved(cost, method)
        assert feasible
        check_optimal(cost, columns)
        check_duals(cost, columns, u, v)


@given(seeds, st.integers(1, 24), st.sampled_from(KINDS), st.sampled_from([0.0, 1e-300, 1e-9, 1e-3, 0.1, 10.0, 1e300]))
@settings(max_examples=400)
def test_the_auction_ends_within_n_epsilon_and_its_duals_are_feasible(seed, n, kind, epsilon):
    cost = kind(rng_of(seed), n)
    columns, u, v, feasible = solved(cost, "auction", epsilon)
    assert feasible
    check_duals(cost, columns, u, v, tight=False)
    rows, best = linear_sum_assignment(cost)
    optimum = cost[rows, best].sum()
    size = np.abs(cost).max() * n
    assert u.sum() + v.sum() <= optimum + 1e-13 * size
    assert cost[rows, columns].sum() <= optimum + n * min(epsilon, np.ptp(cost)) * (1 + 1e-9) + 1e-12 * size


@pytest.mark.parametrize("epsilon", [-1.0, np.nan, np.inf, -np.inf])
def test_the_auction_survives_any_epsilon(epsilon):
    cost = normal(rng_of(0), 12)
    columns, u, v, feasible = solved(cost, "auction", epsilon)
    assert feasible
    check_duals(cost, columns, u, v, tight=False)


@given(seeds, st.integers(1, 20), st.sampled_from(KINDS))
@settings(max_examples=300)
def test_warm_starts_never_change_the_value(seed, n, kind):
    rng = rng_of(seed)
    cost = kind(rng, n)
    warm = _core.solve_lap(cost).columns
    wrong = rng.integers(-3, n + 3, n)
    for start in (warm, rng.permutation(n), wrong, np.full(n, -1), np.zeros(n), np.full(n, 2**31 - 1)):
        columns, u, v, feasible = solved(cost, warm=start.astype(np.int32))
        assert feasible
        check_optimal(cost, columns)
        check_duals(cost, columns, u, v)


def test_a_warm_start_after_a_small_change():
    rng = rng_of(3)
    cost = normal(rng, 30)
    columns = _core.solve_lap(cost).columns
    for _ in range(50):
        cost = cost + 0.05 * normal(rng, 30)
        columns, u, v, _ = solved(cost, warm=columns)
        check_optimal(cost, columns)
        check_duals(cost, columns, u, v)


@pytest.mark.parametrize("method", METHODS)
def test_sizes_zero_and_one(method):
    columns, u, v, feasible = solved(np.zeros((0, 0)), method)
    assert feasible
    assert len(columns) == len(u) == len(v) == 0
    columns, u, v, feasible = solved(np.array([[-7.5]]), method)
    assert feasible
    assert columns.tolist() == [0]
    assert u[0] + v[0] == -7.5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.25, 1e-300, 5e-324, 1e290, -1e290])
@pytest.mark.parametrize("n", [1, 2, 5, 33])
def test_constant_matrices(method, value, n):
    cost = np.full((n, n), value)
    columns, u, v, feasible = solved(cost, method, 0.1)
    assert feasible
    check_duals(cost, columns, u, v, tight=method in EXACT)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-30, 1e30, 1e200, 1e290])
def test_huge_and_tiny(method, scale):
    cost = normal(rng_of(1), 15) * scale
    columns, u, v, feasible = solved(cost, method, 0.0)
    assert feasible
    check_duals(cost, columns, u, v, tight=scale > 1e-300)
    check_optimal(cost / scale, columns)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [np.nan, -np.inf, 1.7e308, -1.7e308])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_what_is_no_cost_is_refused(method, value, n):
    cost = np.zeros((n, n))
    cost[n // 2, n - 1] = value
    with pytest.raises(ValueError, match=r"^cost\[\d\]\[\d\] is"):
        _core.solve_lap(cost, method)


@given(seeds, st.integers(1, 14), st.floats(0.1, 0.9), st.sampled_from(METHODS), st.sampled_from(KINDS))
@settings(max_examples=400)
def test_forbidden_pairs(seed, n, share, method, kind):
    rng = rng_of(seed)
    cost = np.where(rng.random((n, n)) < share, np.inf, kind(rng, n))
    columns, u, v, feasible = solved(cost, method, 1e-3)
    try:
        rows, _ = linear_sum_assignment(cost)
    except ValueError:
        assert not feasible
        assert (columns == -1).all()
        return
    assert feasible
    assert np.isfinite(cost[rows, columns]).all()
    check_duals(cost, columns, u, v, tight=method in EXACT)
    if method in EXACT:
        check_optimal(cost, columns)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_allowed(method):
    columns, _, _, feasible = solved(np.full((3, 3), np.inf), method)
    assert not feasible
    assert (columns == -1).all()


@pytest.mark.parametrize("method", METHODS)
def test_hall_violations_are_found(method):
    """Three rows share two columns: every row and column has partners, but no assignment exists."""
    cost = np.zeros((6, 6))
    cost[:3, 2:] = np.inf
    assert not _core.solve_lap(cost, method, 0.1).feasible
    cost[2, 5] = 1.0
    assert _core.solve_lap(cost, method, 0.1).feasible


def test_bad_arguments():
    with pytest.raises(ValueError, match="cost"):
        _core.solve_lap(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="unknown LAP method"):
        _core.solve_lap(np.zeros((2, 2)), "simplex")
    with pytest.raises(ValueError, match="warm"):
        _core.solve_lap(np.zeros((2, 2)), warm=np.zeros(3, dtype=np.int32))


@pytest.mark.parametrize("method", METHODS)
def test_deterministic_and_inputs_untouched(method):
    cost = tied(rng_of(5), 20)
    before = cost.copy()
    first, second = (solved(cost, method, 0.01) for _ in range(2))
    assert (cost == before).all()
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b)
