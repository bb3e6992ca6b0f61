"""Sentences and figures for the parts of the page below its first screen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from blindmatch.report.match import Match
from blindmatch.report.measures import given_pairs, hints
from blindmatch.report.verdict import number
from blindmatch.trust.report import HIGH, Assessment


def shares(match: Match, trust: Assessment) -> list[dict[str, str]]:
    """How many pairs have a high, middling and low confidence; empty where no confidence is known.

    The kind "high" is green on the page. Where the match as a whole could be chance, no pair is.
    """
    values = np.asarray(trust.confidence, dtype=float)[match.pairs[0]]
    values = values[np.isfinite(values)]
    if not len(values):
        return []
    high, half = int((values >= HIGH).sum()), int((values >= 0.5).sum())
    counts = [high, half - high, len(values) - half]
    percent = f"{100 * HIGH:.0f} %"
    words = {
        "high" if trust.significant else "chance": f"with {percent} confidence or more",
        "middling": f"with 50 to {percent}",
        "low": "with less",
    }
    percents = [100 * count / len(values) for count in counts]
    return [
        {
            "kind": kind,
            "text": f"{count} {words[kind]}",
            "start": f"{sum(percents[:at]):.2f}%",
            "width": f"{percents[at]:.2f}%",
        }
        for at, (kind, count) in enumerate(zip(words, counts, strict=True))
    ]


def random_sentence(match: Match, drawn: dict[str, Any]) -> str:
    """How the cost of the match compares with that of random pairings."""
    name, pairing = match.nouns
    away = (drawn["mean"] - match.result.cost) / drawn["deviation"]
    truth = drawn["truth"]
    kept = " that keep the given pairs" if given_pairs(match) else ""
    if "forbidden pairs" in hints(match):
        kept += f"{' and' if kept else ' that'} use no forbidden pair"
    text = (
        f"The cost of {drawn['draws']} random {pairing}s{kept}. This {name} is {abs(away):.1f} standard deviations "
        f"{'below' if away >= 0 else 'above'} their mean."
    )
    if match.kernels is not None and away > 2:
        text += (
            " That shows that the search worked, not that the match is true: the best pairing of two sets with nothing "
            "in common also lies far below the mean."
        )
    if truth is not None:
        text += f" {truth_sentence(truth, match)}"
    return text


def truth_sentence(truth: float, match: Match) -> str:
    """What the true pairing costs, beside what the match costs."""
    return f"The true pairing costs {number(truth)}, {_beside(truth, match)}."


def _beside(truth: float, match: Match) -> str:
    cost = match.result.cost
    if math.isclose(truth, cost, rel_tol=1e-9, abs_tol=1e-12):
        return "the same as this match"
    if truth > cost:
        return "more than this match: the truth is not the best fit here, and no solver can change that"
    if match.problem is not None and match.problem.forbidden is not None:
        return "less than this match: the search missed it, or known or forbidden pairs exclude it"
    return "less than this match: the search missed it"
