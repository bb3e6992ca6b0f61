"""min_confidence never loses a match: neither nothing matched, nor Ctrl-C, nor too little time."""

import dataclasses
import signal

import numpy as np
import pytest
from strategies import embeddings, rng_of

import blindmatch as bm
from blindmatch.report import Match, render, verdict
from blindmatch.report.belief import belief
from blindmatch.trust import assessment
from blindmatch.trust.abstention import abstained, abstained_by, assessed_or_kept


@pytest.fixture(scope="module")
def related() -> tuple[np.ndarray, np.ndarray, bm.Result]:
    X, Y = embeddings(0, 9, noise=0.05, dimension=6)
    return X, Y, bm.match(X, Y, rng=0, threads=1)


@pytest.fixture(scope="module")
def out_of_time(related) -> bm.Assessment:
    return related[2].assess(time_limit=1e-6, rng=0, threads=1)


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


def test_where_all_pairs_are_kept_nothing_is_left_out(related) -> None:
    sure = dataclasses.replace(related[2], confidence=np.full(9, 0.9), support=3)
    kept = abstained_by(sure, 0.5)
    assert kept.left_out == 0
    assert kept.message.endswith("All 9 pairs have a confidence of at least 0.5")


def test_ctrl_c_in_the_assessment_keeps_the_match(related, monkeypatch) -> None:
    X, Y, result = related
    monkeypatch.setattr(assessment, "gather", lambda *_: signal.raise_signal(signal.SIGINT))
    kept = bm.match(X, Y, min_confidence=0.8, rng=0, threads=1)
    assert kept.status == "interrupted"
    assert (kept.permutation == result.permutation).all()
    assert (kept.cost, kept.lower_bound) == (result.cost, result.lower_bound)
    assert "The assessment was cut short by Ctrl-C: min_confidence=0.8 left out no pair" in kept.message


def test_after_ctrl_c_in_the_match_nothing_is_assessed(related, monkeypatch) -> None:
    X, Y, _ = related

    def press(_progress: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("blindmatch.matching.match.assess_result", never)
    kept = bm.match(X, Y, min_confidence=0.8, rng=0, threads=1, callback=press)
    assert kept.status == "interrupted"
    assert len(kept.pairs) == 9
    assert "The match was not assessed after Ctrl-C: min_confidence=0.8 left out no pair" in kept.message


@pytest.mark.parametrize(("wanted", "kept"), [(0.0, 9), (0.5, 0)])
def test_without_time_no_confidence_is_claimed(related, wanted: float, kept: int) -> None:
    X, Y, result = related
    found = bm.match(X, Y, solver="two-opt", min_confidence=wanted, time_limit=1e-3, rng=0, threads=1)
    told = abstained(result, result.assess(time_limit=1e-6, rng=0), wanted)
    for answer in (found, told):
        assert len(answer.pairs) == kept
        assert "Time ran out before the confidence of 9 of 9 pairs was known" in answer.message
        assert "have a confidence" not in answer.message


def test_the_verdict_says_that_time_ran_out(out_of_time: bm.Assessment) -> None:
    assert out_of_time.verdict == (
        "Matched; whether it is right could not be tested. The test for structure in common was not made: "
        "too little time, or kernels that are not distances between points. "
        "Time ran out before the confidence of any pair was known."
    )
    tested = dataclasses.replace(out_of_time, p_value=0.01, p_value_error=0.01, z=3.0, draws=99)
    assert tested.verdict.endswith("Time ran out before the confidence of any pair was known.")
    given = dataclasses.replace(out_of_time, confidence=np.array([1.0] * 2 + [np.nan] * 7))
    assert given.verdict.endswith(" Time ran out before the confidence of 7 of 9 pairs was known.")


@pytest.mark.parametrize(("p", "share"), [(1.0, "100 %"), (0.504, "50 %"), (0.06, "6 %")])
def test_shares_are_plain_numbers(out_of_time: bm.Assessment, p: float, share: str) -> None:
    trust = dataclasses.replace(out_of_time, p_value=p, p_value_error=0.1, confidence=np.full(9, 1 - p))
    assert f"unrelated ones match as well in {share} of cases." in trust.verdict
    better = dataclasses.replace(trust, z=2.0, draws=99)
    assert better.judgement.level == ("open" if p > 0.05 else "care")
    assert better.verdict.endswith(f"of all 9, about {9 * (1 - p):.0f} should be right.")


@pytest.mark.parametrize(
    ("p_value", "draws", "level"),
    [(1 / 3, 2, "open"), (1 / 2, 1, "open"), (2 / 3, 2, "no"), (1 / 20, 19, "care"), (10 / 11, 11, "no")],
)
def test_few_draws_do_not_speak_against_a_match(
    out_of_time: bm.Assessment, p_value: float, draws: int, level: str
) -> None:
    judgement = dataclasses.replace(out_of_time, p_value=p_value, p_value_error=0.1, z=0.5, draws=draws).judgement
    assert judgement.level == level
    assert ("too few to tell" in judgement.text) == (level == "open")
    assert ("Allow more time or draws." in judgement.text) == (level == "open")


def test_the_verdict_is_about_the_pairs_that_are_kept(related, out_of_time: bm.Assessment) -> None:
    result = related[2]
    confidence = np.array([0.9, 0.85, 0.3, *[0.1] * 6])
    tested = dataclasses.replace(out_of_time, p_value=0.005, p_value_error=0.005, confidence=confidence)
    tested = dataclasses.replace(tested, ambiguous=[[0, 1, 2], [3, 4]])
    assert "2 of 9 pairs have a confidence of at least 80 %" in tested.verdict
    some, trust = assessed_or_kept(result, lambda: tested, 0.25)
    assert (some.left_out, some.to_dict()["left_out"]) == (6, 6)
    assert trust is not None
    assert trust.verdict.endswith(" 3 of 9 pairs are kept; about 2 of these should be right.")
    assert trust.judgement.headline == "About 2 of 3 pairs are right; 1 is doubtful"
    assert trust.ambiguous == [[0, 1, 2]]
    assert verdict(some).startswith("3 of 9 pairs kept; all 9 were matched, proved optimal")
    none, trust = assessed_or_kept(result, lambda: tested, 0.95)
    assert trust is not None
    assert (none.pairs, none.left_out) == ([], 9)
    assert trust.verdict.endswith(" None of 9 pairs is kept.")
    page = render(Match(some, trust=trust.keeping(some.permutation >= 0)))
    assert "kept of 9 that were matched" in page
    assert "2 with 80 % confidence or more" in page
    right = Match(none, truth=result.permutation.tolist())
    assert belief(right).headline == "No pair is kept"
    assert belief(dataclasses.replace(right, result=some)).text.startswith("3 of 3 pairs are right")


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("time_limit", "Within the time limit no other start of the search led to this match, so hardly any pair can"),
        ("heuristic", "No other start of the search led to this match, so hardly any pair can be believed."),
    ],
)
def test_a_large_match_without_support_says_why_nothing_is_kept(related, status: str, told: str) -> None:
    lone = dataclasses.replace(related[2], support=0, confidence=np.full(9, 0.2), status=status)
    kept = abstained_by(lone, 0.8)
    assert (kept.pairs, kept.left_out) == ([], 9)
    assert told.removesuffix(".") in kept.message
    assert "start" not in abstained_by(dataclasses.replace(lone, support=1), 0.8).message
