"""Result.assess as a user calls it, and min_confidence in bm.match."""

import dataclasses
import json
from dataclasses import replace

import numpy as np
import pytest
from clock import in_time
from strategies import embeddings, rng_of

import blindmatch as bm
from blindmatch.demo import load_demo
from blindmatch.trust.confidence import FEATURES, WITHOUT_PRIOR, probability

QUICK = {"draws": 39, "resamples": 10, "rng": 0, "threads": 1}


@pytest.fixture(scope="module")
def related() -> tuple[np.ndarray, np.ndarray, bm.Result]:
    X, Y = embeddings(0, 9, noise=0.05, dimension=6)
    return X, Y, bm.match(X, Y, rng=0, threads=1)


def test_a_good_match_is_believed(related) -> None:
    X, Y, result = related
    before = X.copy(), Y.copy()
    parts = []
    trust = result.assess(**QUICK, callback=lambda part, share: parts.append((part, share)))
    assert trust.p_value == 1 / 40
    assert trust.confidence.shape == (9,)
    assert trust.confidence.min() > 0.8
    assert trust.stability.min() > 0.7
    assert 0.5 < trust.consensus.min() < 1
    assert 0.9 < trust.agreement.min() <= trust.whole_agreement <= 1
    assert 0.2 < trust.chance_agreement < 0.8
    assert (trust.regret > 0).all()
    assert (trust.regret <= trust.found_regret * (1 + 1e-9)).all()
    assert trust.ambiguous == []
    assert trust.better == 0.0
    assert (
        "The two spaces probably have structure in common: unrelated ones match as well in only 2.5 % of cases"
        in trust.verdict
    )
    assert list(dict.fromkeys(part for part, _ in parts)) == [
        "resampling",
        "unrelated spaces",
        "alternatives",
        "regret",
    ]
    assert all(0 <= share <= 1 for _, share in parts)
    assert (before[0] == X).all()
    assert (before[1] == Y).all()
    again = result.assess(**QUICK).to_dict()
    told = trust.to_dict()
    assert {**again, "seconds": 0} == {**told, "seconds": 0}
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_unrelated_spaces_are_not_believed() -> None:
    rng = rng_of(4)
    X, Y = rng.standard_normal((9, 20)), rng.standard_normal((9, 20))
    trust = bm.match(X, Y, rng=0, threads=1).assess(**QUICK)
    assert trust.p_value > 0.05
    assert trust.confidence.max() < 0.8
    assert trust.verdict.startswith("Do not believe this match: unrelated data match as well. Not enough evidence")


def test_interchangeable_pairs_are_named_and_not_believed(related) -> None:
    X = related[0].copy()
    X[4] = X[7]
    trust = bm.match(X, X[::-1], rng=0, threads=1).assess(**QUICK)
    assert trust.ambiguous == [[4, 7]]
    assert trust.confidence[[4, 7]].max() <= 0.5
    assert trust.confidence[0] > 0.8
    assert trust.ambiguities([f"item {i}" for i in range(9)]) == ["item 4 and item 7 are interchangeable."]
    assert trust.regret[4] == pytest.approx(0.0, abs=1e-6)


def test_a_bad_match_is_found_out(related) -> None:
    X, Y, _ = related
    trust = bm.match(X, Y, solver="random", rng=3).assess(**QUICK, regret=False)
    assert trust.better > 0
    assert "a cheaper one exists" in trust.verdict
    assert trust.regret is None


@pytest.mark.parametrize("swap", [False, True])
def test_sets_of_unequal_sizes(related, swap: bool) -> None:
    X, Y, _ = related
    X, Y = (Y, X[:6]) if swap else (X[:6], Y)
    result = bm.match(X, Y, rng=0, threads=1)
    trust = result.assess(**QUICK)
    matched = result.permutation >= 0
    assert matched.sum() == 6
    for values in (
        trust.confidence,
        trust.stability,
        trust.consensus,
        trust.agreement,
        trust.regret,
        trust.found_regret,
    ):
        assert (np.isfinite(values) == matched).all()


def test_known_pairs_are_given(related) -> None:
    X, Y, result = related
    known = [(0, int(result.permutation[0]))]
    trust = bm.match(X, Y, known_pairs=known, rng=0, threads=1).assess(**QUICK)
    assert trust.confidence[0] == 1.0
    assert trust.regret[0] == np.inf
    assert np.isfinite(trust.regret[1:]).all()
    assert trust.to_dict()["regret"][0] is None


@pytest.mark.parametrize("distortion", ["gw", "cka", "kl", "inner-product", bm.MutualKNN(k=3)])
def test_every_distortion_and_kernels(related, distortion) -> None:
    X, Y, _ = related
    chosen = bm.GromovWasserstein() if distortion == "gw" else distortion
    result = bm.match(X, Y, distortion=chosen, rng=0, threads=1)
    by_points = result.assess(**QUICK, regret=False)
    assert by_points.p_value <= 0.1
    if isinstance(chosen, str) or distortion == "gw":
        kernel = bm.CKA().kernel if distortion == "cka" else bm.GromovWasserstein().kernel
        kernels = kernel(X), kernel(Y)
        by_kernels = bm.match(kernels=kernels, distortion=chosen, rng=0, threads=1).assess(**QUICK, regret=False)
        assert by_kernels.p_value <= 0.1
        assert by_kernels.confidence.min() > 0.3


def test_samples_and_background(related) -> None:
    X, _, result = related
    rng = rng_of(8)
    samples = [x + 0.01 * rng.standard_normal((6, X.shape[1])) for x in X]
    trust = result.assess(source_samples=samples, background=rng.standard_normal((40, 6)), **QUICK)
    assert trust.stability.mean() > 0.9
    assert trust.p_value < 0.1
    with pytest.raises(ValueError, match=r"source_samples has 3 groups; expected 9"):
        result.assess(source_samples=samples[:3])
    with pytest.raises(ValueError, match=r"target_samples must have 6 dimensions"):
        result.assess(target_samples=[np.ones((2, 5))] * 9)
    with pytest.raises(ValueError, match=r"background has shape \(4, 6\); expected at least 9 rows of 6"):
        result.assess(background=np.ones((4, 6)))


def test_no_time_gives_less_but_nothing_wrong(related) -> None:
    result = related[2]
    trust = result.assess(time_limit=1e-6, rng=0)
    assert trust.p_value is None
    assert trust.stability is None
    assert np.isnan(trust.confidence).all()
    assert np.isnan(trust.regret).all()  # nothing was proved, not even 0
    assert "The test for structure in common was not made" in trust.verdict
    assert json.dumps(trust.to_dict(), allow_nan=False)


@pytest.mark.parametrize(("things", "views", "limit"), [(400, 1, 1.0), (100, 2, 3.0)])
def test_a_time_limit_holds_for_hundreds_of_items(things: int, views: int, limit: float) -> None:
    rng, n = rng_of(0), things * views
    X = np.repeat(rng.standard_normal((things, 50)), views, axis=0) + 0.01 * rng.standard_normal((n, 50))
    result = bm.Result(np.arange(n)[::-1].copy(), 0.0, None, "heuristic", "x", 0.0, bm.Task(X, X[::-1]))
    trust = in_time(limit, lambda: result.assess(time_limit=limit, rng=0, threads=1))
    assert np.isnan(trust.confidence).all() or trust.draws > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": 0}, "draws=0"),
        ({"resamples": 0}, "resamples=0"),
        ({"time_limit": 0}, "time_limit=0"),
        ({"rng": "x"}, "rng='x'"),
    ],
)
def test_bad_arguments_are_named(related, change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        related[2].assess(**change)


def test_min_confidence_keeps_what_can_be_believed(related) -> None:
    X, Y, result = related
    assert (bm.match(X, Y, min_confidence=0.8, rng=0, threads=1).permutation == result.permutation).all()
    rng = rng_of(4)
    unrelated = rng.standard_normal((9, 20)), rng.standard_normal((9, 20))
    kept = bm.match(*unrelated, min_confidence=0.8, rng=0, threads=1)
    assert (kept.permutation == -1).all()
    assert kept.pairs == []
    assert "0 of 9 pairs have a confidence of at least 0.8" in kept.message
    for bad in (-0.1, 1.5, True, "high"):
        with pytest.raises(ValueError, match="min_confidence"):
            bm.match(X, Y, min_confidence=bad)


def test_confidence_follows_the_coefficients() -> None:
    values = np.zeros((6, len(FEATURES)))
    values[1:, FEATURES.index("stability")] = 1.0
    values[2:, FEATURES.index("agreement")] = 100.0
    values[3:, FEATURES.index("p")] = 0.05, 0.1, 1.0
    low, high, best, likely, doubted, chance = probability(values)
    assert low == pytest.approx(1 / (1 + np.exp(-WITHOUT_PRIOR.intercept)))
    assert high == pytest.approx(1 / (1 + np.exp(-WITHOUT_PRIOR.intercept - WITHOUT_PRIOR.stability)))
    assert low < high < best == likely
    assert doubted == pytest.approx(0.615, abs=1e-3)  # the test does not reject
    assert chance == pytest.approx(0.4 * best)  # where all unrelated spaces match as well


def test_real_data_in_seconds() -> None:
    demo = load_demo("cifar10")
    trust = bm.match(demo.source, demo.target, rng=0).assess(rng=0)
    assert 0 < trust.p_value < 0.3
    assert 0.1 < trust.confidence.mean() < 0.95
    assert (trust.regret > 0).all()


def test_a_cheaper_match_is_no_tie_and_long_groups_are_cut_short() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 5))
    right = bm.match(X, X, rng=0)
    wrong = dataclasses.replace(right, permutation=np.roll(right.permutation, 1))
    trust = wrong.assess(rng=0, draws=1, resamples=1, regret=False)
    assert trust.better > 0
    assert all(len(group) < 4 for group in trust.ambiguous)  # swaps may tie by chance; the right match is no tie
    equal = dataclasses.replace(trust, ambiguous=[list(range(12))])
    assert equal.ambiguities() == ["0, 1, 2, 3, 4, 5, 6 and 5 others are interchangeable."]


@pytest.mark.parametrize("seed", range(3))
def test_inner_products_given_as_distances_are_not_tested(seed: int) -> None:
    """No points have such distances, so unrelated spaces with the same geometry cannot be drawn."""
    rng = rng_of(seed)
    A, B = rng.normal(size=(12, 5)), rng.normal(size=(12, 6))
    kernels = (A @ A.T, B @ B.T)
    trust = bm.match(kernels=kernels, rng=0).assess(rng=0, draws=19, regret=False)
    assert trust.p_value is None
    distances = tuple(np.linalg.norm(side[:, None] - side, axis=2) for side in (A, B))
    trust = bm.match(kernels=distances, rng=0).assess(rng=0, draws=19, regret=False)
    assert trust.p_value > 0.05


def test_a_problem_has_no_spaces_to_assess() -> None:
    with pytest.raises(ValueError, match="an assessment compares two sets"):
        bm.solve(bm.QAP([[0, 1], [1, 0]], [[0, 2], [2, 0]]), rng=0).assess()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence": np.full(9, 7.0)}, "confidence=.*expected numbers from 0 to 1"),
        ({"p_value": 1.5}, "p_value=1.5; expected numbers from 0 to 1"),
        ({"p_value": float("nan")}, "p_value is nan"),
        ({"draws": -1}, "draws=-1; expected a number of at least 0"),
        ({"stability": np.ones(3)}, r"stability has shape \(3,\); expected \(9,\)"),
        ({"ambiguous": [[0, 9]]}, "expected groups of sources below 9"),
    ],
)
def test_impossible_values_are_refused_by_name(related, change: dict, message: str) -> None:
    trust = related[2].assess(**QUICK, regret=False)
    with pytest.raises(ValueError, match=message):
        replace(trust, **change)
