"""Pools of matches, maxima, and problems with more targets than sources: all compared with enumeration."""

import itertools

import numpy as np
import pytest
from strategies import gw_problem, random_problem, rng_of

import blindmatch as bm
from blindmatch.solving.pool import Finds, _neighbours


def rectangular(seed: int, n: int, m: int) -> bm.QAP:
    rng = rng_of(seed)
    return bm.QAP(rng.integers(0, 9, (n, n)), rng.integers(0, 9, (m, m)), rng.integers(0, 9, (n, m)), 3.0)


def all_costs(problem: bm.QAP) -> list[float]:
    """By the definition, without the problem's own arithmetic."""
    A, B, L = problem.source_cost, problem.target_cost, problem.linear
    n, m = problem.sources, problem.n
    return sorted(
        sum(A[i, k] * B[p[i], p[k]] for i in range(n) for k in range(n))
        + sum(L[i, p[i]] for i in range(n))
        + problem.constant
        for p in itertools.permutations(range(m), n)
    )


@pytest.mark.parametrize(("n", "m"), [(5, 5), (4, 6), (1, 3), (6, 6), (2, 5)])
def test_the_pool_holds_the_best_of_all(n, m):
    problem, size = rectangular(n, n, m), 3 if n == 1 else 9
    costs = all_costs(problem)
    result = bm.solve(problem, rng=0, pool_size=size)
    assert result.pool.complete
    assert result.pool.costs.tolist() == costs[:size]
    assert [problem.objective(one) for one in result.pool] == costs[:size]
    assert len({tuple(one.tolist()) for one in result.pool}) == size
    assert result.permutation.shape == (n,)
    assert result.cost == costs[0]


@pytest.mark.parametrize(("n", "m"), [(5, 5), (4, 6)])
def test_a_maximum_is_bounded_from_above(n, m):
    problem = rectangular(n, n, m)
    costs = all_costs(problem)[::-1]
    result = bm.solve(problem, rng=0, maximize=True, pool_size=4)
    assert result.status == "optimal"
    assert result.cost == result.lower_bound == result.upper_bound == costs[0]
    assert result.verify() == costs[0]
    assert result.gap == 0.0
    assert result.pool.costs.tolist() == costs[:4]
    assert "more" in repr(result)
    assert result.rechecked().upper_bound == costs[0]
    weak = bm.solve(problem, "dual-ascent", rng=0, maximize=True)
    assert weak.lower_bound <= costs[0] <= weak.upper_bound
    seen = []
    bm.solve(problem, rng=0, maximize=True, callback=seen.append)
    assert all(now.cost <= costs[0] for now in seen)


@pytest.mark.parametrize("name", ["tabu", "two-opt", "faq", "dual-ascent", "brute-force", "branch-and-bound"])
def test_more_targets_than_sources(name):
    problem = rectangular(7, 4, 6)
    costs = all_costs(problem)
    result = bm.solve(problem, name, rng=0, start=[5, 0, 1, 2], pool_size=4)
    assert result.permutation.shape == (4,)
    assert result.cost == problem.objective(result.permutation) == costs[0]
    assert result.lower_bound is None or result.lower_bound <= costs[0]
    assert len(result.pool) == 4
    assert (np.diff(result.pool.costs) >= 0).all()


@pytest.mark.parametrize("answer", [True, "nonsense", KeyboardInterrupt(), RuntimeError("enough")])
def test_a_callback_can_end_the_proof_of_a_pool(answer):
    problem = random_problem(4, 7)

    def callback(now):
        if now.phase == "pool" and isinstance(answer, BaseException):
            raise answer
        return answer if now.phase == "pool" else None

    try:
        result = bm.solve(problem, rng=0, pool_size=40, callback=callback)
        assert answer is True or isinstance(answer, KeyboardInterrupt)
    except (RuntimeError, ValueError) as error:
        assert not isinstance(answer, bool | KeyboardInterrupt)
        result = error.result
    assert result.status == "optimal"
    assert len(result.pool) == 40
    assert not result.pool.complete
    assert (result.pool[0] == result.permutation).all()


def test_forbidden_pairs_hold_in_the_whole_pool():
    problem = random_problem(7, 6, forbidden=0.4)
    pool = bm.solve(problem, rng=0, pool_size=5).pool
    assert all(problem.allows(one) for one in pool)
    allowed = [p for p in itertools.permutations(range(6)) if problem.allows(p)]
    assert pool.costs == pytest.approx(sorted(map(problem.objective, allowed))[:5], rel=1e-6)


def test_swaps_are_costed_as_the_objective_does():
    problem = random_problem(3, 7, "asymmetric", linear=True)
    p = rng_of(0).permutation(7)
    neighbours = list(_neighbours(problem, p, 1000))
    assert len(neighbours) == 21
    costs = [problem.objective(one) for one in neighbours]
    assert costs == pytest.approx(sorted(costs))


def test_a_heuristic_pool_claims_nothing():
    problem = gw_problem(0, 9, noise=1.0)
    pool = bm.solve(problem, "tabu", rng=0, pool_size=6).pool
    assert len(pool) == 6
    assert not pool.complete
    assert "found" in repr(pool)
    limited = bm.solve(problem, rng=0, pool_size=6, node_limit=1).pool
    assert len(limited) == 6


@pytest.mark.parametrize(
    ("size", "message"),
    [(0, "at least 1"), (-3, "at least 1"), (1.5, "integer"), (7, "6 permutations"), (10**9, "at most")],
)
def test_impossible_pools_are_refused(size, message):
    with pytest.raises(ValueError, match=f"pool_size={size}.*{message}"):
        bm.solve(random_problem(0, 3), pool_size=size)


def test_limits_that_contradict_each_other():
    with pytest.raises(ValueError, match=r"solution_limit=2 .* pool_size=5"):
        bm.solve(random_problem(0, 5), solution_limit=2, pool_size=5)
    with pytest.raises(ValueError, match="maximize=1; expected True or False"):
        bm.solve(random_problem(0, 5), maximize=1)
    with pytest.raises(ValueError, match="at least as many targets"):
        bm.QAP(np.ones((4, 4)), np.ones((3, 3)))


def test_a_match_has_a_pool_too():
    rng = rng_of(1)
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    result = bm.match(X, Y, rng=0, pool_size=4)
    problem = result.task.problem
    everything = sorted(map(problem.objective, itertools.permutations(range(6))))
    assert result.pool.costs == pytest.approx(everything[:4], rel=1e-6)
    assert result.pool.complete
    assert (result.pool[0] == result.permutation).all()
    fewer = bm.match(X[:4], Y, rng=0, pool_size=3)
    assert len({tuple(one.tolist()) for one in fewer.pool}) == 3
    assert fewer.pool.permutations.shape == (3, 4)
    assert bm.match(X, Y, rng=0, node_limit=1, solver="branch-and-bound").status in ("node_limit", "optimal")


@pytest.mark.parametrize(("n", "m", "price"), [(4, 4, 0.3), (3, 5, 1.0), (5, 3, 1.0), (4, 4, 3.0)])
def test_items_without_a_partner_are_the_same_whichever_dummy_they_have(n, m, price):
    rng = rng_of(n)
    result = bm.match(rng.normal(size=(n, 3)), rng.normal(size=(m, 3)), rng=0, pool_size=8, unmatched_cost=price)
    task = result.task
    partial = [p for p in itertools.product(range(-1, m), repeat=n) if len({*p} - {-1}) == sum(j >= 0 for j in p)]
    everything = sorted(task.problem.objective(task.completed(np.array(p))) for p in partial)
    assert result.pool.complete
    assert result.pool.costs == pytest.approx(everything[:8], rel=1e-9)
    assert len({tuple(one) for one in result.pool.permutations.tolist()}) == 8
    assert (result.pool[0] == result.permutation).all()


def test_finds_keep_the_cheapest():
    problem = random_problem(2, 4)
    finds = Finds(problem, 3)
    for p in itertools.permutations(range(4)):
        finds.add(np.array(p))
    assert [cost for cost, _ in finds.sorted] == sorted(map(problem.objective, itertools.permutations(range(4))))[:3]


@pytest.mark.parametrize("maximize", [False, True])
def test_maxima_and_unequal_sizes_can_be_saved(maximize, tmp_path):
    problem = rectangular(3, 4, 6)
    result = bm.solve(problem, rng=0, maximize=maximize)
    again = bm.load(result.save(tmp_path / "r.npz"))
    assert (again.status, again.cost, again.upper_bound) == ("optimal", result.cost, result.upper_bound)
    assert (again.permutation == result.permutation).all()
    assert again.verify() == result.cost
