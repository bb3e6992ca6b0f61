"""Matches by coordinates: starts for the solvers, and sets that are too large for an assignment problem."""

import json
from pathlib import Path

import numpy as np
import pytest
from sampled import sampled

import blindmatch as bm
from blindmatch.alignment import pairing
from blindmatch.alignment.coordinates import scaled_points
from blindmatch.alignment.crew import Crew
from blindmatch.alignment.learn import Pairs, learn
from blindmatch.alignment.pairing import Given
from blindmatch.geometry.correlation import pair_agreement
from blindmatch.matching import match_large as module
from blindmatch.matching.large import Spaces, matches
from blindmatch.matching.outliers import without_outliers
from blindmatch.matching.relations import KernelSide, PointSide, Relations
from blindmatch.solvers.two_opt import TwoOpt
from blindmatch.validation import FloatArray, IntArray


def mixture(n: int, noise: float, seed: int = 0) -> tuple[FloatArray, FloatArray, IntArray]:
    """A mixture in 20 dimensions, its turned copy in 30 with noise, and the hidden match."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20)) * np.geomspace(2, 0.3, 20) + 2 * rng.normal(size=(12, 20))[rng.integers(12, size=n)]
    Y = X @ np.linalg.qr(rng.normal(size=(30, 20)))[0].T
    Y += noise * Y.std() * rng.normal(size=Y.shape)
    order = rng.permutation(n)
    return X, Y[order], np.argsort(order)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sets of more than 100 items count as too large for an assignment problem."""
    monkeypatch.setattr(module, "QUADRATIC", 100)
    monkeypatch.setattr(module, "_UNEQUAL", 100)


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
    problem = bm.matching_problem(X, Y)
    assert result.cost == pytest.approx(problem.objective(result.permutation))
    assert result.certificate is not None
    assert bm.verify(problem, result.certificate) == pytest.approx(result.lower_bound)


def test_a_match_that_starts_agree_on_is_kept_although_wrong_pairs_cost_less() -> None:
    X, Y, truth = mixture(320, 0.6, seed=1)
    result = bm.match(X, Y, rng=0)
    solver = TwoOpt(restarts=1, kicks=0)
    cheaper = bm.solve(bm.matching_problem(X, Y), solver, rng=0, starts=[result.permutation])
    assert cheaper.cost < result.cost
    assert (result.permutation == truth).mean() > (cheaper.permutation == truth).mean()


def test_the_search_after_a_match_that_starts_agree_on_is_brief(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_match(problem: bm.QAP, budget: object, rng: object, swaps: int) -> None:
        raise RuntimeError(f"{swaps} swaps")

    monkeypatch.setattr("blindmatch.solvers.branch_and_bound.first_match", first_match)
    for n, swaps in ((110, 10), (90, 200)):  # of fewer items, the cheapest match is the result
        with pytest.raises(RuntimeError, match=f"^{swaps} swaps"):
            bm.match(*mixture(n, 0.2)[:2], rng=0)
    with pytest.raises(ValueError, match="swaps=0"):
        bm.BranchAndBound(swaps=0)


def test_a_match_without_confidence_gives_way_to_a_cheaper_one() -> None:
    X, Y, _ = mixture(130, 0.8, seed=1)
    problem = bm.matching_problem(X, Y)
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


def test_a_start_is_never_made_worse() -> None:
    X, Y, truth = mixture(30, 0.3)
    problem = bm.matching_problem(X, Y)
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
    problem = bm.matching_problem(X, Y, known_pairs=[(3, int(truth[3])), (9, int(truth[9]))])
    result = bm.solve(problem, "random", rng=0, starts=[truth])
    np.testing.assert_array_equal(result.permutation, truth)


@pytest.mark.usefixtures("small")
class TestTooLarge:
    """Sets whose assignment problem is not built."""

    def test_the_match_its_cost_and_what_is_said(self) -> None:
        X, Y, truth = mixture(300, 0.2)
        phases = []
        result = bm.match(X, Y, rng=0, callback=lambda progress: phases.append(progress.phase))
        np.testing.assert_array_equal(result.permutation, truth)
        assert result.cost == pytest.approx(bm.GromovWasserstein().evaluate(X, Y, truth), rel=1e-9)
        assert result.lower_bound is None
        assert result.gap is None
        assert result.status == "heuristic"
        assert "without a bound" in result.message
        assert {"principal axes", "starts", "assignment", "cost"} <= set(phases)
        written = json.loads(json.dumps(result.to_dict()))
        assert written["support"] >= 1
        assert len(written["confidence"]) == 300

    def test_the_same_seed_gives_the_same_match(self) -> None:
        X, Y, _ = mixture(300, 0.8)
        one, two = (bm.match(X, Y, rng=4, threads=threads) for threads in (1, 2))
        np.testing.assert_array_equal(one.permutation, two.permutation)
        assert one.cost == two.cost

    def test_kernels_and_other_scales(self) -> None:
        X, Y, truth = mixture(250, 0.1)
        K, G = (np.linalg.norm(side[:, None] - side[None], axis=-1) for side in (X, Y))
        result = bm.match(kernels=(K, G), distortion="inner-product", standardize=False, rng=0)
        assert (result.permutation == truth).mean() > 0.98
        Z = G[np.ix_(result.permutation, result.permutation)]
        assert result.cost == pytest.approx(-(K * Z).sum(), rel=1e-9)

    @pytest.mark.parametrize("sizes", [(200, 260), (260, 200)])
    def test_unequal_sizes(self, sizes: tuple[int, int]) -> None:
        X, Y, truth = mixture(260, 0.2)
        X, Y = X[: sizes[0]], Y[: sizes[1]]
        result = bm.match(X, Y, rng=0)
        assert len(result.pairs) == 200
        there = truth[: sizes[0]] < sizes[1]
        assert (result.permutation[there] == truth[: sizes[0]][there]).mean() > 0.9
        problem = bm.matching_problem(X, Y)
        full = bm.Task.of(X, Y).completed(result.permutation)
        assert result.cost == pytest.approx(problem.objective(full), rel=1e-9)

    def test_items_without_a_partner_stay_unmatched_for_a_price(self) -> None:
        X, Y, truth = mixture(300, 0.1)
        n = 250  # the last 50 sources and 50 other targets have no partner
        partners = truth[:200].tolist()
        others = truth[250:].tolist()
        chosen = np.array(partners + others)
        order = np.random.default_rng(0).permutation(n)
        Y = Y[chosen][order]
        right = np.argsort(order)[:200]
        result = bm.match(X[:n], Y, unmatched_cost=0.05 * n, rng=0)
        found = result.permutation[:200] == right
        assert found.mean() > 0.9
        assert (result.permutation[200:] < 0).mean() > 0.8
        without = result.permutation < 0
        assert without.sum() == n - len(result.pairs)

    @pytest.mark.parametrize("price", [0.05, 0.3])
    def test_mutual_neighbours_that_are_worth_their_price_are_never_cheaper(self, price: float) -> None:
        X, Y, truth = mixture(300, 0.2)
        X, Y = X[:220], Y[np.concatenate([truth[:140], truth[220:]])]
        n, total = 220, 0.0
        task = bm.Task.of(X, Y, unmatched_cost=price * n)
        result = bm.match(task, rng=0)
        found = matches(
            Spaces.of((X, Y), task.distortion, False),
            Given(),
            rng=np.random.default_rng(0),
            threads=1,
            remaining=lambda: 9e9,
        )
        both = relations(X, Y)
        partners = without_outliers(both, found.mutual(found.all[0], Crew()), price * n, n, kept=np.arange(0))
        total = both.cost(partners).value + price * n * (sum(task.sizes) - 2 * (partners >= 0).sum())
        assert result.cost <= total + 1e-6

    def test_mutual_neighbours_keep_to_what_is_known(self) -> None:
        X, Y, truth = mixture(200, 0.1)
        given = Given(Pairs(np.array([0]), truth[[1]]), np.array([[2, truth[2]]]))
        spaces = Spaces.of((X, Y), bm.GromovWasserstein(), False)
        found = matches(spaces, given, rng=np.random.default_rng(0), threads=1, remaining=lambda: 9e9)
        partners = found.mutual(truth, Crew())
        assert partners[0] == truth[1]
        assert partners[1] == partners[2] == -1
        assert (partners[3:] == truth[3:]).mean() > 0.9

    def test_an_assessment_tells_support_and_confidence(self) -> None:
        X, Y, _ = mixture(300, 0.2)
        task = bm.Task.of(X, Y)
        result = bm.match(task, rng=0)
        trust = bm.assess(result, task, rng=0)
        assert trust.support == result.support
        np.testing.assert_array_equal(trust.confidence, result.confidence)
        assert trust.judgement.level == "yes"
        exact = pair_agreement(task.kernels, result.permutation)
        np.testing.assert_allclose(trust.agreement, exact, atol=1e-6)  # fewer than 512 pairs: nothing is left out
        assert json.dumps(trust.to_dict(), allow_nan=False)
        rng = np.random.default_rng(0)
        unrelated = bm.Task.of(X, rng.normal(size=(300, 10)))
        trust = bm.assess(bm.match(unrelated, rng=0), unrelated, rng=0)
        assert trust.judgement.level == "no"
        assert not trust.significant

    def test_the_report_shows_support_and_what_to_believe(self, tmp_path: Path) -> None:
        X, Y, _ = mixture(300, 0.2)
        result = bm.match(X, Y, rng=0)
        page = bm.write_report(tmp_path / "r.html", result, X, Y).read_text()
        assert "Yes: other starts agree" in page
        assert "other starts of the search led to the same match" in page

    def test_known_and_forbidden_pairs(self) -> None:
        X, Y, truth = mixture(250, 0.2)
        forbidden = [(i, int(truth[i])) for i in range(5)]
        known = [(i, int(truth[i])) for i in range(10, 20)]
        result = bm.match(X, Y, known_pairs=known, forbidden_pairs=forbidden, rng=0)
        assert (result.permutation[:5] != truth[:5]).all()
        assert (result.permutation[10:20] == truth[10:20]).all()
        assert result.confidence is not None
        assert (result.confidence[10:20] == 1).all()

    def test_min_confidence_leaves_out_doubtful_pairs(self) -> None:
        rng = np.random.default_rng(0)
        result = bm.match(rng.normal(size=(150, 20)), rng.normal(size=(150, 25)), min_confidence=0.8, rng=0)
        assert result.support == 0
        assert (result.permutation == -1).all()
        X, Y, truth = mixture(150, 0.1)
        result = bm.match(X, Y, min_confidence=0.8, rng=0)
        assert (result.permutation == truth).mean() > 0.95

    def test_what_needs_matrices_is_refused(self) -> None:
        X, Y, _ = mixture(120, 0.1)
        with pytest.raises(ValueError, match="distortion=CKA"):
            bm.match(X, Y, distortion="cka")
        with pytest.raises(ValueError, match="similarity"):
            bm.match(X, Y, similarity=np.zeros((120, 120)))

    def test_ctrl_c_keeps_the_best(self) -> None:
        X, Y, truth = mixture(300, 0.1)

        def callback(progress: bm.Progress) -> None:
            if progress.phase == "cost":
                raise KeyboardInterrupt

        result = bm.match(X, Y, rng=0, callback=callback)
        assert result.status == "interrupted"
        assert (result.permutation == truth).mean() > 0.98

    def test_a_failing_callback_hands_over_the_result(self) -> None:
        X, Y, _ = mixture(200, 0.1)

        def callback(progress: bm.Progress) -> None:
            raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more") as caught:
            bm.match(X, Y, rng=0, callback=callback)
        assert sorted(caught.value.result.permutation.tolist()) == list(range(200))

    def test_candidates(self) -> None:
        X, Y, truth = mixture(200, 0.1)
        result = bm.match(X, Y, rng=0)
        best = result.candidates(4)
        assert best.shape == (200, 4)
        assert (best[:, 0] == truth).mean() > 0.95
        with pytest.raises(ValueError, match="k=0"):
            result.candidates(0)


def test_with_little_time_no_assignment_problem_is_built() -> None:
    X, Y, _ = mixture(400, 0.1)
    sides, hints = (len(X), len(Y)), bm.Task.of(X, Y).hints
    assert module.in_haste(sides, bm.GromovWasserstein(), hints, 0.1)
    assert not module.in_haste(sides, bm.GromovWasserstein(), hints, 10.0)
    assert not module.in_haste(sides, bm.GromovWasserstein(), hints, None)
    assert not module.in_haste(sides, bm.CKA(), hints, 0.1)  # needs the matrices
    result = bm.match(X, Y, rng=0, time_limit=0.1)
    assert result.solver == "alignment"
    assert result.lower_bound is None
    assert sorted(result.permutation.tolist()) == list(range(400))


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


def relations(X: FloatArray, Y: FloatArray, **options: object) -> Relations:
    sides = PointSide(X), PointSide(Y)
    return Relations(bm.GromovWasserstein(), *sides, crew=Crew(), rng=np.random.default_rng(0), **options)


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
