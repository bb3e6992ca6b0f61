"""The verdict on a match, in words for readers who do not know assignment problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from blindmatch.report.content import hints
from blindmatch.report.match import Clusters, Match
from blindmatch.report.verdict import at_most, pairs_are
from blindmatch.trust.report import FEW, Judgement, judge_support

if TYPE_CHECKING:
    from blindmatch.matching.classifier import ClassifierScores

UNTESTED = "Matched; whether it is right was not tested"
MOSTLY = 0.9  # a match with at least this share of right pairs is called true


def belief(match: Match) -> Judgement:
    """The answer from the best evidence that there is: the truth, then a trust report, then none."""
    if match.assignment:
        return _about_cost(match)
    if match.clusters is not None and match.clusters.scores is not None:
        return _by_labels(match, match.clusters, match.clusters.scores)
    if match.truth is not None and any(j >= 0 for j in match.truth):
        return _by_truth(match)
    judged = None if match.trust is None else match.trust.judgement
    support, confidence = match.result.support, match.result.confidence
    if judged is None and support is not None:
        unknown = np.full(match.sizes[0], np.nan)
        sure = (unknown if confidence is None else confidence)[match.pairs[0]]
        judged = judge_support(support, sure, len(sure), match.result.left_out)
    if judged is not None:
        return judged
    return _not_assessed(match.agreement)


def _by_truth(match: Match) -> Judgement:
    truth, right, left_out = match.truth or (), match.right or 0, match.result.left_out
    known = len(match.result.pairs) if left_out else sum(j >= 0 for j in truth)
    if not known:
        return Judgement("no", "No pair is kept", f"None of the {left_out} pairs reaches the required confidence.")
    chance = known / max(match.sizes)
    counted = f"{right} of {pairs_are(known)} right; pairing at random gets about {chance:.2g}."
    why = (
        "The true pairs are known here."
        if hints(match)
        else "The true pairs are known here; the matching never saw them."
    )
    headline = f"{right} of {pairs_are(known)} right"
    if right >= MOSTLY * known:
        return Judgement("yes", headline, f"{counted} {why}")
    if _at_least(right, chance) < 0.01 and right < FEW * known:
        text = f"{counted} That is more than chance, but most pairs are wrong. {why}"
        return Judgement("no", f"Most pairs are wrong: only {headline}", text)
    if _at_least(right, chance) < 0.01:
        return Judgement(
            "care", headline, f"{counted} That is far more than chance, but do not rely on a single pair. {why}"
        )
    end = "The two sets are not alike enough, or the search ended too early."
    if match.result.status == "optimal":
        end = "No pairing fits better, so the two sets are not alike enough."
    return Judgement("no", f"Hardly better than chance: {headline}", f"{counted} {why} {end}")


def _by_labels(match: Match, clusters: Clusters, scores: ClassifierScores) -> Judgement:
    """Of a classification whose images have labels: the names may be wrong, or the clusters already."""
    known = sum(j >= 0 for j in match.truth or ())
    text = f"{clusters.sentence()} The labels are known here; neither the clustering nor the matching saw them."
    if scores.accuracy >= MOSTLY * scores.ceiling:
        if scores.accuracy >= 0.5:
            return Judgement("yes", "Yes: checked against the labels", text)
        return Judgement("care", "The names fit, but the clusters are not the classes", text)
    if _at_least(match.right or 0, known / max(match.sizes)) < 0.01:
        if scores.accuracy < FEW * scores.ceiling:
            return Judgement("no", "No: most names are wrong", text)
        headline = "For the most part" if 2 * scores.accuracy >= scores.ceiling else "In part"
        return Judgement("care", headline, text)
    return Judgement("no", "No: the names are hardly better than chance", text)


def _at_least(right: int, chance: float) -> float:
    """The share of random pairings with at least `right` right pairs: their number is nearly a Poisson variable."""
    from scipy.stats import poisson  # takes a while to import, and only reports need it

    return float(poisson.sf(right - 1, chance))


def _not_assessed(agreement: float | None) -> Judgement:
    text = (
        "A pairing that was searched for always fits better than chance, even between sets with nothing in common: a "
        "good fit alone says little. To test it, use --assess on the command line, result.assess() in Python."
    )
    if agreement is not None:
        text = f"{text} Here the agreement is {agreement:.2f} (1: the same relations, 0: a random pairing)."
    return Judgement("open", UNTESTED, text)


def _about_cost(match: Match) -> Judgement:
    """For a plain problem only the cost matters."""
    result = match.result
    checked = "There is no certificate to check that with."
    if result.certificate is not None:
        checked = "The bound was recomputed from its certificate without the solver; 'blindmatch verify' does it again."
    if result.status == "optimal":
        return Judgement("yes", "Yes: proved", f"No other assignment costs less. {checked}")
    if result.gap is not None:
        text = f"A better assignment may exist, within the gap that is left. {checked}"
        return Judgement("care", f"At most {at_most(result.gap)} of the cost could be saved", text)
    text = "Nothing is proved about the best possible cost; use a solver that proves a bound ('blindmatch solvers')."
    return Judgement("open", "Not known", text)
