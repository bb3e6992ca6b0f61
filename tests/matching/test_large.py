"""Matches by coordinates: starts for the solvers, costs by blocks and by estimates, outliers."""

import numpy as np
import pytest
from matching.mixtures import mixture, relations
from sampled import sampled

import blindmatch as bm
from blindmatch.alignment import pairing
from blindmatch.alignment.coordinates import scaled_points
from blindmatch.alignment.crew import Crew
from blindmatch.alignment.pairing import Given
from blindmatch.alignment.rotation import learn
from blindmatch.matching.coordinate_matches import Matches, Spaces, matches
from blindmatch.matching.large_costs import KernelSide, PointSide, Relations
from blindmatch.matching.match_large import without_outliers
from blindmatch.solvers.two_opt import TwoOpt


def test_400_items_are_matched_by_their_coordinates() -> None:
    X, Y, truth = mixture(400, 0.4)
    result = bm.match(X, Y, rng=0)
    assert (result.permutation == truth).mean() > 0.98
    assert result.support is not None
    assert result.support >= 1
    assert result.confidence is not None
    assert np.mean(result.confidence) > 0.9
    assert result.lower_bound is not None
    assert result.lower_bound <= result.cost
    problem = bm.Task(X, Y).problem
    assert result.cost == pytest.approx(problem.objective(result.permutation))
    assert result.certificate is not None
    assert bm.verify(problem, result.certificate) == pytest.approx(result.lower_bound)


def test_a_match_that_starts_agree_on_is_kept_although_wrong_pairs_cost_less() -> None:
    X, Y, truth = mixture(320, 0.6, seed=1)
    result = bm.match(X, Y, rng=0)
    solver = TwoOpt(restarts=1, kicks=0)
    cheaper = bm.solve(bm.Task(X, Y).problem, solver, rng=0, starts=[result.permutation])
    assert cheaper.cost < result.cost
    assert (result.permutation == truth).mean() > (cheaper.permutation == truth).mean()


def test_the_search_after_a_match_that_starts_agree_on_is_brief(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_match(problem: bm.QAP, budget: object, rng: object, swaps: int) -> None:
        raise RuntimeError(f"{swaps} swaps")

    def search(problem: bm.QAP, budget: object, rng: object) -> None:
        raise RuntimeError("a search")

    monkeypatch.setattr("blindmatch.solvers.branch_and_bound.first_match", first_match)
    monkeypatch.setattr("blindmatch.solvers.auto.find_incumbent", search)
    for n, what in ((110, "10 swaps"), (90, "a search")):  # of fewer items, the cheapest match is the result
        with pytest.raises(RuntimeError, match=f"^{what}"):
            bm.match(*mixture(n, 0.2)[:2], rng=0)
    with pytest.raises(ValueError, match="swaps=0"):
        bm.BranchAndBound(swaps=0)


def test_a_match_without_confidence_gives_way_to_a_cheaper_one() -> None:
    X, Y, _ = mixture(130, 0.8, seed=1)
    problem = bm.Task(X, Y).problem
    sides = X, Y
    found = matches(
        Spaces.of(sides, bm.GromovWasserstein(), False),
        Given(),
        rng=np.random.default_rng(0),
        threads=1,
        remaining=lambda: np.inf,
    )
    assert not found.believed(lambda: np.inf)
    result = bm.match(X, Y, rng=0, time_limit=1)
    assert result.cost <= min(problem.objective(partners) for partners in found.all)


def test_starts_that_agree_prove_little_in_two_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are four choices of signs: starts agree by chance, and the confidence does not count on them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * [3, 0.3]
    Y = X + 0.02 * rng.normal(size=X.shape)
    spaces = Spaces.of((X, Y), bm.GromovWasserstein(), False)
    found = matches(spaces, Given(), rng=rng, threads=1, remaining=lambda: np.inf)
    monkeypatch.setattr(Matches, "support", lambda *_: 1)
    assert not found.believed(lambda: np.inf)


def test_a_start_is_never_made_worse() -> None:
    X, Y, truth = mixture(30, 0.3)
    problem = bm.Task(X, Y).problem
    for solver in ("tabu", "two-opt", "faq", "random", "dual-ascent"):
        result = bm.solve(problem, solver, rng=0, time_limit=5, starts=[truth])
        assert result.cost <= problem.objective(truth) + 1e-9, solver


def test_starts_are_checked_and_forbidden_ones_not_used() -> None:
    problem = bm.QAP(np.ones((3, 3)), np.ones((3, 3)), forbidden=np.eye(3, dtype=bool))
    result = bm.solve(problem, "tabu", rng=0, starts=[[0, 1, 2], [1, 2, 0]])
    assert problem.allows(result.permutation)
    with pytest.raises(ValueError, match=r"starts\[0\]"):
        bm.solve(problem, "tabu", rng=0, starts=[[0, 0, 1]])


def test_starts_keep_their_meaning_with_known_pairs() -> None:
    X, Y, truth = mixture(40, 0.2)
    problem = bm.Task(X, Y, known_pairs=[(3, int(truth[3])), (9, int(truth[9]))]).problem
    result = bm.solve(problem, "random", rng=0, starts=[truth])
    np.testing.assert_array_equal(result.permutation, truth)


def test_ctrl_c_in_the_first_start_keeps_what_it_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y, truth = mixture(300, 0.05)
    spaces = Spaces.of((X, Y), bm.GromovWasserstein(), False)
    found: list[object] = []

    def pressed(*args: object, **options: object) -> object:
        better = options.pop("better")
        learned = learn(*args, **options, better=lambda rough: (found.append(rough), better(rough)))
        assert found
        assert learned
        raise KeyboardInterrupt

    monkeypatch.setattr(pairing, "learn", pressed)
    pairs = matches(spaces, Given(), rng=np.random.default_rng(0), threads=1, remaining=lambda: np.inf)
    assert pairs.found.ended == "interrupted"
    assert (pairs.all[0] == truth).mean() > 0.9


def test_small_results_have_no_candidates() -> None:
    X = np.random.default_rng(0).normal(size=(5, 3))
    with pytest.raises(ValueError, match="no candidates"):
        bm.match(X, X, rng=0).candidates(2)


def test_a_cost_by_blocks_is_the_cost() -> None:
    X, Y, truth = mixture(150, 0.3)
    both = relations(X, Y)
    assert both.cost(truth).value == pytest.approx(bm.GromovWasserstein().evaluate(X, Y, truth), rel=1e-9)
    assert both.cost(truth).error == 0
    assert both.items(truth).sum() == pytest.approx(both.cost(truth).value)
    kernels = [np.linalg.norm(side[:, None] - side[None], axis=-1) for side in (X, Y)]
    other = Relations(bm.GromovWasserstein(), *map(KernelSide, kernels), crew=Crew(), rng=np.random.default_rng(0))
    assert other.cost(truth).value == pytest.approx(both.cost(truth).value, rel=1e-9)


@sampled("standardize", [True, False], quick=1)
def test_an_estimated_cost_is_within_its_error(standardize: bool) -> None:
    X, Y, truth = mixture(300, 0.5)
    distortion = bm.GromovWasserstein(standardize=standardize)
    sides = PointSide(X), PointSide(Y)
    about = Relations(distortion, *sides, crew=Crew(), rng=np.random.default_rng(0), exact=False).cost(truth)
    exact = distortion.evaluate(X, Y, truth)
    assert 0 < about.error < 0.02 * exact
    assert abs(about.value - exact) < 5 * about.error


def test_outliers_are_found_by_an_estimate_too() -> None:
    X, Y, truth = mixture(700, 0.05)
    wrong = truth.copy()
    wrong[:70] = np.roll(truth[:70], 1)
    both = relations(X, Y, exact=False)
    pruned = without_outliers(both, wrong, 0.1 * 700, 700, kept=np.arange(0))
    assert set(np.flatnonzero(pruned < 0)) <= set(range(70))
    assert (pruned < 0).sum() >= 50


def test_outliers_are_given_up_only_as_far_as_allowed() -> None:
    X, Y, truth = mixture(120, 0.05)
    wrong = truth.copy()
    wrong[:12] = np.roll(truth[:12], 1)
    both = relations(X, Y)
    pruned = without_outliers(both, wrong, 0.1 * 120, 120, kept=np.arange(0))
    assert set(np.flatnonzero(pruned < 0)) <= set(range(12))
    assert (pruned < 0).sum() >= 8
    assert (without_outliers(both, wrong, 0.1 * 120, 3, kept=np.arange(0)) < 0).sum() == 3
    kept = without_outliers(both, wrong, 1.0 * 120, 120, kept=np.arange(12))
    np.testing.assert_array_equal(kept, wrong)


def test_the_solver_object_is_matched_like_its_name() -> None:
    """The command line passes the object."""
    X, Y, truth = mixture(320, 0.2)
    result = bm.match(X, Y, solver=bm.SOLVERS["auto"](), rng=0)
    assert result.support is not None
    assert (result.permutation == truth).mean() > 0.98
    with pytest.raises(ValueError, match=r"^k=321; there are 320 targets"):
        result.candidates(321)


@pytest.mark.parametrize(("offset", "scale"), [(1e8, 1.0), (0.0, 1e90), (0.0, 1e-45)])
def test_points_far_from_the_origin_and_odd_units(offset: float, scale: float) -> None:
    X, Y, truth = mixture(320, 0.1)
    result = bm.match(scale * X + offset, scale * Y - offset, rng=0)
    assert (result.permutation == truth).mean() > 0.98


def test_coordinates_of_many_items_from_distances_have_these_distances() -> None:
    X, _, _ = mixture(700, 0.0)
    distances = np.linalg.norm(X[:, None] - X[None], axis=-1)
    points = scaled_points(distances, 30, similarities=False)
    np.testing.assert_allclose(np.linalg.norm(points[:50, None] - points[None], axis=-1), distances[:50], atol=1e-6)


def test_a_believed_match_that_costs_twice_as_much_as_another_start_does_not_end_the_search():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(301, 5))
    turned = points @ np.linalg.qr(rng.normal(size=(5, 5)))[0] + 0.45 * rng.normal(size=(301, 5))
    task = bm.Task(points, turned)
    result = bm.match(task, time_limit=3, rng=0, threads=1)
    assert result.cost < 1.6 * task.problem.objective(np.arange(301))  # without a search: 3.2 times


def test_starts_from_coordinates_count_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def run(*args: object, **options: object) -> bm.Result:
        limits.append(options["work_limit"])
        return bm.solve(*args, **options)

    monkeypatch.setattr("blindmatch.matching.coordinate_matches.solve", run)
    X, Y, _ = mixture(60, 0.4)
    result = bm.match(X, Y, rng=0, work_limit=0.1, time_limit=None, solver="auto", gap_limit=0.9)
    assert 0 < limits.pop() < 0.1
    assert result.ranking is not None
    result = bm.match(X, Y, rng=0, work_limit=1e-3, time_limit=None)  # no room for starts
    assert limits.pop() == 1e-3
    assert (result.status, result.ranking) == ("work_limit", None)
