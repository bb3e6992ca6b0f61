"""Sets that are too large for an assignment problem, and what is matched in haste: by coordinates alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from matching.mixtures import mixture, relations

import blindmatch as bm
from blindmatch.alignment.crew import Crew
from blindmatch.alignment.pairing import Given
from blindmatch.alignment.rotation import Pairs
from blindmatch.geometry.correlation import pair_agreement
from blindmatch.matching.coordinate_matches import Spaces, matches
from blindmatch.matching.match_large import in_haste, without_outliers
from blindmatch.problem import task as module


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sets of more than 100 items count as too large for an assignment problem."""
    monkeypatch.setattr(module, "QUADRATIC", 100)
    monkeypatch.setattr(module, "UNEQUAL", 100)


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

    def test_the_matcher_builds_no_assignment_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        X, Y, truth = mixture(300, 0.2)
        monkeypatch.setattr(bm.Task, "problem", property(lambda task: pytest.fail("it was built")))
        matcher = bm.BlindMatcher(random_state=0).fit(X, Y)
        np.testing.assert_array_equal(matcher.permutation_, truth)
        np.testing.assert_array_equal(matcher.transform(X[:3]), Y[truth[:3]])

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
        problem = bm.Task(X, Y).problem
        full = bm.Task(X, Y).completed(result.permutation)
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
        task = bm.Task(X, Y, unmatched_cost=price * n)
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
        task = bm.Task(X, Y)
        result = bm.match(task, rng=0)
        trust = result.assess(rng=0)
        assert trust.support == result.support
        np.testing.assert_array_equal(trust.confidence, result.confidence)
        assert trust.judgement.level == "yes"
        exact = pair_agreement(task.kernels, result.permutation)
        np.testing.assert_allclose(trust.agreement, exact, atol=1e-6)  # fewer than 512 pairs: nothing is left out
        assert json.dumps(trust.to_dict(), allow_nan=False)
        rng = np.random.default_rng(0)
        unrelated = bm.Task(X, rng.normal(size=(300, 10)))
        trust = bm.match(unrelated, rng=0).assess(rng=0)
        assert trust.judgement.level == "no"
        assert not trust.significant

    def test_the_report_shows_support_and_what_to_believe(self, tmp_path: Path) -> None:
        X, Y, _ = mixture(300, 0.2)
        result = bm.match(X, Y, rng=0)
        page = result.report(tmp_path / "r.html").read_text()
        assert "About 300 of 300 pairs are right" in page
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
    sides, hints = (len(X), len(Y)), bm.Task(X, Y).hints
    assert in_haste(sides, bm.GromovWasserstein(), hints, 0.1)
    assert not in_haste(sides, bm.GromovWasserstein(), hints, 10.0)
    assert not in_haste(sides, bm.GromovWasserstein(), hints, None)
    assert not in_haste(sides, bm.CKA(), hints, 0.1)  # needs the matrices
    result = bm.match(X, Y, rng=0, time_limit=0.1)
    assert result.solver == "alignment"
    assert result.lower_bound is None
    assert sorted(result.permutation.tolist()) == list(range(400))
