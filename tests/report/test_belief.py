"""What a report says about whether to believe a match."""

import json
from dataclasses import replace

import numpy as np
import pytest
from report.pages import Doubt, shown
from report.parsing import RESULT, Page, square

import blindmatch as bm
from blindmatch.cli.texts import trust_text
from blindmatch.report import proof_sentence, render, verdict
from blindmatch.report.belief import belief


@pytest.mark.parametrize(
    ("status", "bound", "words"),
    [
        ("optimal", 10.0, ["proved optimal"]),
        ("time_limit", 9.0, ["by more than 10 %", "time limit"]),
        ("interrupted", None, ["no proof", "interrupted"]),
        ("heuristic", None, ["no proof", "proves nothing"]),
        ("stalled", float("-inf"), ["no proof", "rises no further"]),
    ],
)
def test_sentences_claim_what_is_proved(status: str, bound: float | None, words: list[str]) -> None:
    result = replace(RESULT, status=status, lower_bound=bound)
    text = f"{verdict(result)} {proof_sentence(result)}"
    assert all(word in text for word in words)
    assert ("optimal" in text) == (status == "optimal")
    assert "inf" not in text
    page = Page(render(shown(result)))
    assert ("optimal" in page.text.partition("Pairs")[0]) == (status == "optimal")


@pytest.mark.parametrize(
    ("wrong", "headline"),
    [
        (200, "300 of 500 pairs are right"),
        (300, "200 of 500"),
        (450, "Most pairs are wrong: only 50"),
        (499, "Hardly better"),
    ],
)
def test_belief_by_truth_of_many_pairs(wrong: int, headline: str) -> None:
    permutation = np.arange(500)
    permutation[:wrong] = np.roll(permutation[:wrong], 1)
    match = shown(replace(RESULT, permutation=permutation), (np.eye(500), np.eye(500)), truth=list(range(500)))
    assert belief(match).headline.startswith(headline)


def test_truth_of_some_sources_is_counted_among_those() -> None:
    match = shown(RESULT, (square(3), square(3)), source_names=["a, b", "c" * 30, "d"], truth=[2, -1, -1])
    text = Page(render(match)).text
    assert "1 of 1" in text
    assert "1 of 3" not in text
    assert f"3 sources (a, b; {'c' * 23}…; d) and 3 targets were paired only by what is near what" in text


@pytest.mark.parametrize(
    ("wrong", "level"), [(0, "yes"), (2, "yes"), (5, "care"), (15, "care"), (19, "no"), (20, "no")]
)
def test_belief_by_truth(wrong: int, level: str) -> None:
    permutation = np.arange(20)
    permutation[:wrong] = np.roll(permutation[:wrong], 1)
    match = shown(replace(RESULT, permutation=permutation), (square(20), square(20)), truth=list(range(20)))
    right = 20 - wrong if wrong != 1 else 20
    assert f"{right} of 20" in belief(match).text
    assert belief(match).level == level


@pytest.mark.parametrize(
    ("p", "confidence", "level"), [(0.001, 0.99, "yes"), (0.001, 0.4, "care"), (0.03, 0.99, "care"), (0.2, 0.99, "no")]
)
def test_belief_by_trust(p: float, confidence: float, level: str) -> None:
    trust = Doubt(np.full(3, confidence), p_value=p, ambiguous=[[0, 2]])
    match = shown(RESULT, (square(3), square(3)), source_names="abc", trust=trust)
    assert belief(match).level == level
    page = Page(render(match))
    assert "a, c" in page.text
    assert [row[2] for row in page.rows if len(row) == 3] == [f"{100 * confidence:.0f} %"] * 3


def test_terminal_page_and_json_have_one_verdict() -> None:
    ones = np.ones(3)
    trust = bm.Assessment(0.03, 0.01, 2.0, 99, 0.97 * ones, None, ones, ones, ones, ones, 0.8, 0.7, [], 0.0, 1.0)
    match = shown(RESULT, (square(3), square(3)), trust=trust)
    told = [str(part) for part in trust_text(trust, match, evidence=True)]
    headline, text = belief(match).headline, belief(match).text
    assert headline == "Probably about 3 of 3 pairs are right"
    assert text.startswith(
        "The two spaces probably have structure in common: unrelated ones match as well in only 3 % of cases."
    )
    assert told[0] == f"{headline}."
    assert text in told
    assert "Agreement of all relations: 0.80; unrelated spaces reach 0.70." in told
    assert trust.verdict == f"{headline}. {text}" == trust.to_dict()["verdict"]
    assert (trust.to_dict()["headline"], trust.to_dict()["level"]) == (headline, "care")
    assert Page(render(match)).text.index(headline) < Page(render(match)).text.index("costs less")


def test_trust_without_a_single_confidence_is_not_counted() -> None:
    believed = belief(shown(RESULT, (square(3), square(3)), trust=Doubt(np.full(3, np.nan))))
    assert believed.level == "care"
    assert "0 of 0" not in believed.text
    assert "Time ran out before the confidence of any pair was known" in believed.text


def test_long_names_are_cut_in_the_table_and_whole_elsewhere() -> None:
    name = "long " * 120
    text = render(shown(RESULT, source_names=[name, "b", "c"]))
    assert f'title="{name}"' in text
    assert f"<span>{name}</span>" not in text
    assert json.loads(Page(text).data)["source"][0] == name


def test_belief_without_evidence_claims_nothing() -> None:
    match = shown(replace(RESULT, status="optimal"), (square(3), square(3)))
    assert belief(match).level == "open"
    unsure = Doubt(np.array([0.5, np.nan, 0.5]), p_value=None)
    assert belief(replace(match, trust=unsure)).level == "open"
    beaten = Doubt(np.ones(3), better=0.5)
    assert belief(replace(match, trust=beaten)).level == "no"


@pytest.mark.parametrize(("p_value", "kind"), [(0.01, "high"), (0.4, "chance"), (None, "chance")])
def test_no_pair_is_green_in_a_match_that_could_be_chance(p_value: float | None, kind: str) -> None:
    trust = Doubt(np.full(3, 0.9), p_value=p_value)
    page = render(shown(RESULT, (square(3), square(3)), trust=trust))
    assert ('class="high"' in page, 'class="key high"' in page) == (kind == "high",) * 2
    assert 'class="key middling"' in page


def test_regret_of_given_pairs() -> None:
    trust = Doubt(np.ones(3), regret=np.array([np.inf, 0.25, np.nan]))
    page = Page(render(shown(RESULT, (square(3), square(3)), trust=trust)))
    assert [row[3] for row in page.rows if len(row) == 4] == ["given", "0.25", "-"]
