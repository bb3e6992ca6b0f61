"""A stated prior: the share of right pairs that is expected before looking at a match."""

import json
from dataclasses import replace

import numpy as np
import pytest
from strategies import embeddings, rng_of

import blindmatch as bm
from blindmatch.report import Match, render
from blindmatch.trust.confidence import FEATURES, WITH_PRIOR, probability

QUICK = {"draws": 39, "resamples": 10, "regret": False, "rng": 0, "threads": 1}
PRIORS = (0.01, 0.1, 0.5, 0.9, 0.99)


@pytest.fixture(scope="module")
def unrelated() -> tuple[np.ndarray, np.ndarray, bm.Result]:
    rng = rng_of(4)
    X, Y = rng.standard_normal((9, 20)), rng.standard_normal((9, 20))
    return X, Y, bm.match(X, Y, rng=0, threads=1)


def rows(**features: float) -> np.ndarray:
    return np.array([[features.get(name, 0.0) for name in FEATURES]])


def log_odds(share: float) -> float:
    return float(np.log(share / (1 - share)))


def test_the_odds_of_the_level_change_as_those_of_the_prior() -> None:
    clear = rows(stability=1.0, prediction=2.0, agreement=0.5)
    shifts = [log_odds(probability(clear, prior)[0]) - WITH_PRIOR.prior * log_odds(prior) for prior in PRIORS]
    shift = WITH_PRIOR.intercept + WITH_PRIOR.stability + 2 * WITH_PRIOR.prediction + 0.5 * WITH_PRIOR.agreement
    assert shifts == pytest.approx([shift] * len(PRIORS))


def test_p_is_no_bound_once_a_prior_is_stated() -> None:
    clear = {"stability": 1.0, "regret": 100.0}
    with_prior, without = ([probability(rows(**clear, p=p), prior)[0] for p in (0.01, 1.0)] for prior in (0.5, None))
    assert with_prior[0] == with_prior[1] > 0.5
    assert without[1] == pytest.approx(0.4 * without[0])


def test_only_confidence_and_verdict_depend_on_the_prior(unrelated) -> None:
    result = unrelated[2]
    none = result.assess(**QUICK)
    found = [result.assess(prior=prior, **QUICK) for prior in (0.01, 0.5, 0.99)]
    assert none.prior is None
    assert [trust.prior for trust in found] == [0.01, 0.5, 0.99]
    means = [trust.confidence.mean() for trust in found]
    assert means == sorted(means)
    assert means[0] < 0.02 < 0.5 < means[-1]
    assert "prior" not in none.verdict
    assert found[1].verdict.endswith(f"about {9 * means[1]:.0f} should be right, given a prior of 0.5.")
    told = [{**trust.to_dict(), "seconds": 0} for trust in (none, *found)]
    assert [one["prior"] for one in told] == [None, 0.01, 0.5, 0.99]
    changed = {key for key in told[0] if any(one[key] != told[0][key] for one in told[1:])}
    assert changed - {"headline"} == {"prior", "confidence", "verdict"}
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_no_pair_is_green_by_the_prior_alone(unrelated) -> None:
    result = unrelated[2]
    trust = result.assess(prior=0.999, **QUICK)
    assert trust.p_value > 0.05
    assert trust.confidence.max() > 0.8
    assert trust.judgement.headline == "Do not believe this match: unrelated data match as well"
    page = render(Match(result, trust=trust))
    assert 'class="key chance"' in page
    assert 'class="high"' not in page
    assert "for a prior of 0.999: that share of right pairs was expected beforehand" in page
    assert "for a prior of" not in render(Match(result, trust=replace(trust, prior=None)))


def test_ties_and_known_pairs_stay_what_they_are() -> None:
    X, _ = embeddings(0, 9, noise=0.05, dimension=6)
    X[4] = X[7]
    given = {"known_pairs": [(0, 8)], "rng": 0, "threads": 1}
    trust = bm.match(X, X[::-1], **given).assess(prior=0.99, **QUICK)
    assert trust.confidence[[4, 7]].max() <= 0.5
    assert bm.match(X, X[::-1], **given).assess(prior=0.01, **QUICK).confidence[0] == 1.0


def test_match_keeps_pairs_by_the_prior(unrelated) -> None:
    X, Y, _ = unrelated
    kept = [
        len(bm.match(X, Y, min_confidence=0.5, prior=prior, rng=0, threads=1).pairs) for prior in (None, 0.01, 0.9999)
    ]
    assert kept[:2] == [0, 0]
    assert kept[2] > 4


@pytest.mark.parametrize(
    "bad",
    [0, 1, 0.0, 1.0, -0.1, 1.5, float("nan"), float("inf"), True, "0.5", "high", [0.5], 0.5j, np.array([0.5, 0.5])],
)
def test_a_bad_prior_is_named(unrelated, bad: object) -> None:
    X, Y, result = unrelated
    for call in (lambda: result.assess(prior=bad), lambda: bm.match(X, Y, min_confidence=0.5, prior=bad)):
        with pytest.raises(
            ValueError, match=r"^prior=.*; expected a number above 0 and below 1, or two arrays$"
        ) as error:
            call()
        assert repr(bad) in str(error.value)


def test_a_prior_that_nothing_uses_is_refused(unrelated) -> None:
    X, Y, result = unrelated
    with pytest.raises(ValueError, match=r"^prior=0.5 needs a min_confidence$"):
        bm.match(X, Y, prior=0.5)
    large = replace(result, solver="alignment", support=3)
    with pytest.raises(ValueError, match=r"^prior=0.5 cannot be used for 9 items: large matches have a confidence"):
        large.assess(prior=0.5)
    many = rng_of(0).standard_normal((9000, 3))

    def never(_progress: object) -> None:
        raise AssertionError("the match was started")

    with pytest.raises(ValueError, match=r"^prior=0.5 cannot be used for 9000 items"):
        bm.match(many, many, min_confidence=0.5, prior=0.5, callback=never)
