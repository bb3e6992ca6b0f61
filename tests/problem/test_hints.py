"""Unequal sizes, known and forbidden pairs, similarities, items left unmatched: against all partial injections."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from strategies import embeddings, rng_of, seeds

import blindmatch as bm
from blindmatch.matching.match import SolveOptions, quick_search, small_problem
from blindmatch.problem.distortion import Layer
from blindmatch.problem.distortions import DISTORTIONS
from blindmatch.problem.hints import Hints


def partial_injections(n, m, most_unmatched):
    """Every way to match at least min(n, m) - most_unmatched items: permutations with -1 for none."""
    for matched in range(min(n, m) - most_unmatched, min(n, m) + 1):
        for rows in combinations(range(n), matched):
            for columns in permutations(range(m), matched):
                p = np.full(n, -1)
                p[list(rows)] = columns
                yield p


def cost_of(p, loss, K, G, similarity, weight, price):
    """The definition in the docstring of bm.match, term by term."""
    rows = np.flatnonzero(p >= 0)
    columns = p[rows]
    total = float(loss(K[np.ix_(rows, rows)], G[np.ix_(columns, columns)]).sum()) if len(rows) else 0.0
    total -= weight * float(similarity[rows, columns].sum())
    return total + (price or 0.0) * (len(K) + len(G) - 2 * len(rows))


def allowed(p, known, forbidden):
    rows = np.flatnonzero(p >= 0)
    return all(p[i] == j for i, j in known) and not any((i, p[i]) in forbidden for i in rows)


@st.composite
def cases(draw):
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    rng = rng_of(draw(seeds))
    priced = draw(st.booleans())
    known = [(int(rng.integers(n)), int(rng.integers(m)))] if draw(st.booleans()) else []
    options = {
        "known_pairs": known,
        "forbidden_pairs": [(i, j) for i in range(n) for j in range(m) if rng.random() < 0.15 and (i, j) not in known],
        "similarity": rng.standard_normal((n, m)),
        "similarity_weight": draw(st.sampled_from([0.0, 1.0, 5.0])),
        "unmatched_cost": draw(st.sampled_from([0.0, 0.3, 1.0, 4.0, 50.0])) if priced else None,
        "max_unmatched": draw(st.sampled_from([None, 0, 1, 3, 9])) if priced else None,
    }
    name = (
        draw(st.sampled_from(sorted(set(DISTORTIONS) - {"mutual-knn"})))
        if min(n, m) < 2
        else draw(st.sampled_from(sorted(DISTORTIONS)))
    )
    extra = {"k": 1} if name == "mutual-knn" else {}
    distortion = DISTORTIONS[name](standardize=draw(st.booleans()), **extra)
    return rng.standard_normal((n, 3)), rng.standard_normal((m, 2)), distortion, options


TERMS = ("similarity", "similarity_weight", "unmatched_cost")


@pytest.mark.slow
@settings(max_examples=150)
@given(cases(), st.sampled_from(["auto", "dual-ascent", "tabu"]))
def test_the_optimum_over_all_partial_injections(case, solver):
    X, Y, distortion, options = case
    K, G = distortion.kernels(X, Y)
    known, forbidden, terms = options["known_pairs"], options["forbidden_pairs"], [options[term] for term in TERMS]
    hints = Hints.of((len(X), len(Y)), **options)
    costs = [
        cost_of(p, distortion.loss, K, G, *terms)
        for p in partial_injections(len(X), len(Y), hints.max_unmatched)
        if allowed(p, known, forbidden)
    ]
    if not costs:
        with pytest.raises(ValueError, match="no permutation"):
            bm.match(X, Y, distortion=distortion, solver=solver, rng=0, **options)
        return
    result = bm.match(X, Y, distortion=distortion, solver=solver, rng=0, **options)
    problem = hints.problem([Layer(distortion, K, G)])
    margin = 1e-12 * problem.scale
    assert len(result.permutation) == len(X)
    assert allowed(result.permutation, known, forbidden)
    assert min(len(X), len(Y)) - hints.max_unmatched <= len(result.pairs)
    assert result.cost == pytest.approx(cost_of(result.permutation, distortion.loss, K, G, *terms), abs=margin)
    assert result.cost >= min(costs) - margin
    if solver != "tabu":
        assert result.lower_bound <= min(costs) + margin
    if solver == "auto":
        assert result.status == "optimal"
        assert result.cost <= min(costs) + 1e-6 * abs(min(costs)) + margin


@settings(max_examples=60)
@given(cases(), st.integers(0, 4))
def test_what_fewer_dummies_leave_out_costs_at_least_what_is_said(case, dummies):
    X, Y, distortion, options = case
    K, G = distortion.kernels(X, Y)
    hints = Hints.of((len(X), len(Y)), **options)
    beyond = hints.cost_beyond(distortion.least_loss, dummies, hints.problem([Layer(distortion, K, G)]).scale)
    if dummies >= hints.max_unmatched:
        assert beyond == math.inf
        return
    terms = [options[term] for term in TERMS]
    left_out = [
        cost_of(p, distortion.loss, K, G, *terms)
        for p in partial_injections(len(X), len(Y), hints.max_unmatched)
        if min(len(X), len(Y)) - (p >= 0).sum() > dummies
    ]
    assert beyond <= min(left_out)
    assert math.isfinite(beyond) == math.isfinite(distortion.least_loss)


def with_outliers(seed, n=14, outliers=2, noise=0.1):
    """Noisy copies of the same points; the first few sources are elsewhere."""
    rng = rng_of(seed)
    X = rng.standard_normal((n, 6))
    Y = X + noise * rng.standard_normal((n, 6))
    X[:outliers] = rng.standard_normal((outliers, 6))
    return X, Y


@pytest.mark.parametrize("seed", range(3))
def test_fewer_dummies_have_the_same_optimum(seed):
    X, Y = with_outliers(seed, n=9)
    task = bm.Task(X, Y, unmatched_cost=4.0)
    whole, small = task.problem, small_problem(task, quick_search(task, SolveOptions(rng=0)))
    assert whole.n == 18
    assert small.n < whole.n
    costs = [bm.solve(problem, rng=0, time_limit=60).cost for problem in (whole, small)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-6)


def test_outliers_stay_alone_for_a_price_and_only_then():
    X, Y = with_outliers(0, n=12)
    assert (bm.match(X, Y, rng=0).permutation >= 0).all()
    result = bm.match(X, Y, unmatched_cost=0.3 * 12, rng=0, time_limit=60)
    assert result.permutation.tolist() == [-1, -1, *range(2, 12)]
    assert result.status == "optimal"
    assert len(bm.match(X, Y, unmatched_cost=0.0, rng=0).pairs) <= 1  # one pair has no relations, so it is free too
    limited = bm.match(X, Y, unmatched_cost=0.3 * 12, max_unmatched=1, rng=0, time_limit=60)
    assert (limited.permutation < 0).sum() == 1


def test_the_papers_solver_proves_a_bound_with_a_price():
    X, Y = with_outliers(1, n=8)
    result = bm.match(X, Y[:6], unmatched_cost=3.0, solver="factorized-hahn-grant", rng=0)
    exact = bm.match(X, Y[:6], unmatched_cost=3.0, rng=0)
    assert exact.status == "optimal"
    assert result.lower_bound <= exact.cost + 1e-9


@pytest.mark.parametrize("sizes", [(9, 9), (9, 7), (6, 9)])
def test_the_certificate_is_for_the_problem_that_anyone_can_build(sizes):
    X, Y = with_outliers(2, n=9)
    X, Y = X[: sizes[0]], Y[: sizes[1]]
    options = {"unmatched_cost": 4.0, "similarity": rng_of(0).random(sizes), "forbidden_pairs": [(3, 3)]}
    result = bm.match(X, Y, rng=0, **options)
    dummies = result.certificate.size - max(sizes)
    assert 0 <= dummies < min(sizes)
    problem = bm.Task(X, Y, max_unmatched=dummies, **options).problem
    assert bm.verify(problem, result.certificate) == pytest.approx(result.lower_bound, rel=1e-12)
    assert result.status == "optimal"


def test_similarity_counts_in_units_of_the_cost():
    X, Y = embeddings(2, 7, noise=1.0)
    similarity = rng_of(0).random((7, 7))
    problem = bm.GromovWasserstein().problem(X, Y)
    for weight in (0.0, 1.0, 30.0, 1e5):
        result = bm.match(X, Y, similarity=similarity, similarity_weight=weight, rng=0)
        gained = similarity[np.arange(7), result.permutation].sum()
        assert result.cost == pytest.approx(problem.objective(result.permutation) - weight * gained, rel=1e-9)
    rows, columns = linear_sum_assignment(similarity, maximize=True)  # so large a weight decides alone
    assert (result.permutation[rows] == columns).all()


def test_forbidden_pairs_as_a_list_or_a_matrix():
    X, Y = embeddings(4, 6)
    free = bm.match(X, Y, rng=0).permutation
    pairs = list(enumerate(free.tolist()))[:2]
    mask = np.zeros((6, 6), dtype=bool)
    mask[tuple(zip(*pairs, strict=True))] = True
    results = [bm.match(X, Y, forbidden_pairs=given, rng=0) for given in (pairs, np.array(pairs), mask, mask.tolist())]
    for result in results:
        assert all(result.permutation[i] != j for i, j in pairs)
        assert result.permutation.tolist() == results[0].permutation.tolist()
    assert (bm.match(X, Y, forbidden_pairs=np.zeros((6, 6), dtype=bool), rng=0).permutation == free).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity": np.ones((3, 4))}, r"^similarity has shape \(3, 4\); expected \(4, 4\)"),
        ({"similarity": np.full((4, 4), np.nan)}, r"^similarity holds nan"),
        ({"similarity_weight": -1.0}, r"^similarity_weight=-1.0"),
        ({"similarity_weight": 5}, r"^similarity_weight=5 needs a similarity$"),
        ({"similarity_weight": "much"}, r"^similarity_weight='much'"),
        ({"forbidden_pairs": [(0, 4)]}, r"^forbidden_pairs holds \(0, 4\)"),
        ({"forbidden_pairs": np.ones((4, 3), dtype=bool)}, r"^forbidden_pairs has shape \(4, 3\)"),
        ({"forbidden_pairs": 7}, r"^forbidden_pairs=7"),
        ({"forbidden_pairs": np.ones((4, 4), dtype=bool)}, "no permutation"),
        ({"forbidden_pairs": [(1, 2)], "known_pairs": [(1, 2)]}, r"contradicts"),
        ({"unmatched_cost": -0.1}, r"^unmatched_cost=-0.1"),
        ({"unmatched_cost": 1e308}, r"^unmatched_cost=1e\+308; expected at most"),
        ({"unmatched_cost": "aut"}, r"^unmatched_cost='aut'; expected a number of at least 0, or 'auto'$"),
        ({"unmatched_cost": np.inf}, r"^unmatched_cost=inf"),
        ({"unmatched_cost": True}, r"^unmatched_cost=True"),
        ({"unmatched_cost": 10**400}, r"^unmatched_cost=1000"),
        ({"start": [-1, -1, -1, -1]}, r"^start leaves 4 sources unmatched"),
        ({"standardize": "no"}, r"^standardize='no'"),
        ({"max_unmatched": 2}, r"^max_unmatched=2 needs an unmatched_cost"),
        ({"unmatched_cost": 1.0, "max_unmatched": -1}, r"^max_unmatched=-1"),
        ({"unmatched_cost": 1.0, "time_limit": 0}, r"^time_limit=0"),
    ],
)
def test_bad_input_is_named(options, message):
    X, Y = embeddings(1, 4)
    with pytest.raises(ValueError, match=message):
        bm.match(X, Y, solver="tabu", **options)


def test_the_estimator_refuses_a_weight_without_a_similarity():
    X, Y = embeddings(1, 4)
    with pytest.raises(ValueError, match=r"^similarity_weight=5 needs a similarity$"):
        bm.BlindMatcher(similarity_weight=5).fit(X, Y)
    bm.BlindMatcher(similarity_weight=5).fit(X, Y, similarity=np.eye(4))


def test_everything_forbidden_is_no_error_if_it_may_stay_unmatched():
    X, Y = embeddings(1, 4)
    result = bm.match(X, Y, forbidden_pairs=np.ones((4, 4), dtype=bool), unmatched_cost=2.0, rng=0)
    assert (result.pairs, result.cost) == ([], 16.0)
    assert result.lower_bound == pytest.approx(16.0)


def test_a_price_that_nearly_vanishes():
    X, Y = embeddings(1, 4)
    result = bm.match(X, Y, unmatched_cost=5e-324, rng=0)  # any cost over this price is beyond float64
    assert (result.status, len(result.pairs) <= 1) == ("optimal", True)


def test_inputs_are_not_written_to():
    X, Y = embeddings(1, 5)
    S, mask = rng_of(0).random((5, 5)), np.eye(5, dtype=bool)
    before = S.copy(), mask.copy()
    bm.match(X, Y, similarity=S, similarity_weight=3.0, forbidden_pairs=mask, unmatched_cost=2.0, rng=0)
    assert (before[0] == S).all()
    assert (mask == before[1]).all()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_data_frames_of_pairs(package):
    frame = pytest.importorskip(package).DataFrame({"source": [0, 1], "target": [2, 3]})
    X, Y = embeddings(0, 5)
    assert bm.match(X, Y, known_pairs=frame).permutation[:2].tolist() == [2, 3]
    hints = Hints.of((5, 5), forbidden_pairs=frame)
    assert np.argwhere(hints.forbidden).tolist() == [[0, 2], [1, 3]]


def test_a_mask_of_pandas_booleans():
    mask = np.eye(3, dtype=bool)
    frame = pytest.importorskip("pandas").DataFrame(mask).convert_dtypes()
    assert np.array_equal(Hints.of((3, 3), forbidden_pairs=frame).forbidden, mask)
