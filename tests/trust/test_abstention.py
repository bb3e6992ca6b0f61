"""min_confidence never loses a match: neither nothing matched, nor Ctrl-C, nor too little time."""

import dataclasses
import signal

import numpy as np
import pytest
from strategies import embeddings, rng_of

import blindmatch as bm
from blindmatch.trust import assessment
from blindmatch.trust.abstention import abstained


@pytest.fixture(scope="module")
def related() -> tuple[np.ndarray, np.ndarray, bm.Result]:
    X, Y = embeddings(0, 9, noise=0.05, dimension=6)
    return X, Y, bm.match(X, Y, rng=0, threads=1)


@pytest.fixture(scope="module")
def out_of_time(related) -> bm.Trust:
    X, Y, result = related
    return bm.assess(result, X, Y, time_limit=1e-6, rng=0, threads=1)


def never(*_args: object, **_options: object) -> None:
    raise AssertionError("the assessment was started")


def test_a_match_of_nothing_stays_one() -> None:
    rng = rng_of(1)
    X, Y = rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
    given = {"unmatched_cost": 1.0, "forbidden_pairs": np.ones((4, 4), dtype=bool), "rng": 0, "threads": 1}
    alone = bm.match(X, Y, **given)
    assert (alone.permutation == -1).all()
    again = bm.match(X, Y, **given, min_confidence=0.5)
    assert (again.permutation == -1).all()
    assert (again.status, again.cost, again.message) == (alone.status, alone.cost, alone.message)


def test_ctrl_c_in_the_assessment_keeps_the_match(related, monkeypatch) -> None:
    X, Y, result = related
    monkeypatch.setattr(assessment, "gather", lambda *_: signal.raise_signal(signal.SIGINT))
    kept = bm.match(X, Y, min_confidence=0.8, rng=0, threads=1)
    assert kept.status == "interrupted"
    assert (kept.permutation == result.permutation).all()
    assert (kept.cost, kept.lower_bound) == (result.cost, result.lower_bound)
    assert "The assessment was cut short by Ctrl-C: min_confidence=0.8 left out no pair." in kept.message


def test_after_ctrl_c_in_the_match_nothing_is_assessed(related, monkeypatch) -> None:
    X, Y, _ = related

    def press(_progress: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("blindmatch.matching.match.assess_task", never)
    kept = bm.match(X, Y, min_confidence=0.8, rng=0, threads=1, callback=press)
    assert kept.status == "interrupted"
    assert len(kept.pairs) == 9
    assert "The match was not assessed after Ctrl-C: min_confidence=0.8 left out no pair." in kept.message


@pytest.mark.parametrize(("wanted", "kept"), [(0.0, 9), (0.5, 0)])
def test_without_time_no_confidence_is_claimed(related, wanted: float, kept: int) -> None:
    X, Y, result = related
    found = bm.match(X, Y, solver="two-opt", min_confidence=wanted, time_limit=1e-3, rng=0, threads=1)
    told = abstained(result, bm.assess(result, X, Y, time_limit=1e-6, rng=0), wanted)
    for answer in (found, told):
        assert len(answer.pairs) == kept
        assert "Time ran out before the confidence of 9 of 9 pairs was known" in answer.message
        assert "have a confidence" not in answer.message


def test_the_verdict_says_that_time_ran_out(out_of_time: bm.Trust) -> None:
    assert out_of_time.verdict == (
        "The test for structure in common was not made: "
        "too little time, or kernels that are not distances between points. "
        "Time ran out before the confidence of any pair was known."
    )
    tested = dataclasses.replace(out_of_time, p_value=0.01, p_value_error=0.01, z=3.0, draws=99)
    assert tested.verdict.endswith("Time ran out before the confidence of any pair was known.")
    given = dataclasses.replace(out_of_time, confidence=np.array([1.0] * 2 + [np.nan] * 7))
    assert given.verdict.endswith(" Time ran out before the confidence of 7 of 9 pairs was known.")


@pytest.mark.parametrize(("p", "share"), [(1.0, "100 %"), (0.504, "50 %"), (0.06, "6 %")])
def test_shares_are_plain_numbers(out_of_time: bm.Trust, p: float, share: str) -> None:
    trust = dataclasses.replace(out_of_time, p_value=p, p_value_error=0.1, confidence=np.full(9, 1 - p))
    assert f"unrelated ones match as well in {share} of cases." in trust.verdict
    assert trust.verdict.endswith(f"of all 9, about {9 * (1 - p):.0f} should be right.")
