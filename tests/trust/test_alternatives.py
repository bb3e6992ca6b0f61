"""Other matches, ties and symmetries, judged by enumeration."""

import numpy as np
import pytest
from hypothesis import given
from strategies import all_costs, gw_problem, problems, rng_of, slack

import blindmatch as bm
from blindmatch.problem.qap import swap_costs
from blindmatch.trust.alternatives import find_alternatives, interchangeable, swapped, without_pair
from blindmatch.trust.regret import proved_regret
from blindmatch.trust.search import Part


@given(problem=problems(min_size=2))
def test_swap_costs_are_differences_of_costs(problem: bm.QAP) -> None:
    match = rng_of(problem.n).permutation(problem.n)
    cost, swaps = problem.objective(match), swap_costs(problem, match)
    for i in range(problem.n):
        for k in range(problem.n):
            expected = np.inf if i == k else problem.objective(swapped(match, i, k)) - cost
            assert swaps[i, k] == pytest.approx(expected, abs=1e-9 * problem.scale)


def test_swaps_of_forbidden_pairs_are_ruled_out() -> None:
    problem = bm.QAP(np.ones((3, 3)), np.ones((3, 3)), forbidden=np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], bool))
    assert np.isinf(swap_costs(problem, np.arange(3))).tolist() == [
        [True, True, False],
        [True, True, False],
        [False] * 2 + [True],
    ]


@pytest.mark.parametrize("seed", range(4))
def test_the_best_match_without_each_pair_is_found_and_proved(seed: int) -> None:
    problem = gw_problem(seed, 7)
    result = bm.solve(problem, rng=0, threads=1)
    rows, rng = np.arange(7), rng_of(seed)
    found = find_alternatives(problem, result.permutation, rows, Part(rng))
    proved = proved_regret(problem, found, rows, result.lower_bound, Part(rng))
    matches, costs = all_costs(problem)
    for i in rows:
        true = costs[matches[:, i] != result.permutation[i]].min() - result.cost
        assert proved[i] <= true + slack(problem)  # a bound is a bound
        assert proved[i] == pytest.approx(true, abs=2e-6 * costs.max())
        assert found.without[i] - found.cost == pytest.approx(true, abs=1e-9 * problem.scale)


def test_regret_of_a_match_that_is_not_optimal_claims_no_more_than_is_true() -> None:
    problem = gw_problem(1, 7)
    result = bm.solve(problem, "random", rng=5)
    matches, costs = all_costs(problem)
    found = find_alternatives(problem, result.permutation, np.arange(7), Part(rng_of(0)))
    proved = proved_regret(problem, found, np.arange(7), result.lower_bound, Part(rng_of(0)))
    true = [costs[matches[:, i] != result.permutation[i]].min() - result.cost for i in range(7)]
    assert (proved <= np.array(true) + slack(problem)).all()
    assert proved.min() < 0  # a cheaper match exists


def test_a_pair_without_alternative_has_no_problem_without_it() -> None:
    problem = gw_problem(0, 4).with_known_pairs([(1, 2)])
    assert without_pair(problem, 1, 2) is None
    assert without_pair(problem, 0, 0) is not None


def groups_of(X: np.ndarray, Y: np.ndarray) -> list[list[int]]:
    problem = bm.GromovWasserstein().problem(X, Y)
    match = bm.solve(problem, rng=0, threads=1).permutation
    rows = np.arange(len(X))
    return interchangeable(find_alternatives(problem, match, rows, Part(rng_of(0))), rows, 1e-9 * problem.scale)


def test_duplicates_are_interchangeable() -> None:
    X = rng_of(0).standard_normal((7, 3))
    X[5] = X[2]
    assert groups_of(X, X[::-1]) == [[2, 5]]


def test_mirror_images_are_interchangeable_two_by_two() -> None:
    X = np.array([[-4.0], [-1.5], [1.5], [4.0], [0.0]])
    # A far point on the axis of the mirror stays where it is.
    X = np.hstack([X, [[0.0], [0.0], [0.0], [0.0], [7.0]]])
    assert groups_of(X, X[[3, 1, 4, 0, 2]]) == [[0, 3], [1, 2]]


def test_corners_of_a_square_are_all_interchangeable() -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert groups_of(X, X) == [[0, 1, 2, 3]]


def test_points_without_symmetry_are_not_interchangeable() -> None:
    X = rng_of(3).standard_normal((8, 3))
    assert groups_of(X, X[::-1]) == []
