"""The match in sentences and figures. `belief.py` says whether to believe it."""

from __future__ import annotations

import math

import numpy as np

from blindmatch.report.match import Match
from blindmatch.report.verdict import assignment_verdict, number, percent, quality, verdict
from blindmatch.trust.report import HIGH, Assessment


def headline(match: Match) -> str:
    """One sentence: what was done, and how good it is known to be."""
    if match.assignment:
        return assignment_verdict(match.result)
    if match.clusters is None:
        return verdict(match.result)
    images, classes = len(match.clusters.members), len(set(match.clusters.classes))
    scores = match.clusters.scores
    how = quality(match.result) if scores is None else f"{100 * scores.accuracy:.1f} % of them right"
    return f"{images} images sorted into {classes} classes, {how}."


def tiles(match: Match) -> list[tuple[str, str, str]]:
    """The figures at a glance: title, value, what it means."""
    result, shown = match.result, _count_tiles(match)
    if result.status == "optimal":
        shown.append(("proof", "optimal", f"no other {match.nouns.pairing} costs less"))
    elif result.gap is not None:
        shown.append(("gap", percent(result.gap), "the most that could be saved"))
    else:
        shown.append(("proof", "none", "this run proves nothing"))
    if result.support is not None:
        shown.append(("support", str(result.support), "other starts of the search led to the same match"))
    if match.agreement is not None:
        shown.append(("agreement", f"{match.agreement:.2f}", beside_chance(match.trust)))
    seconds = f"{result.seconds:.2g} s" if result.seconds < 10 else f"{result.seconds:.0f} s"
    shown.append(("time", seconds, f"solver {result.solver}"))
    return shown


def beside_chance(trust: Assessment | None) -> str:
    """The agreement that unrelated sets reach, beside that of a match."""
    if trust is None or trust.chance_agreement is None:
        return "of relations; 0 is a random pairing, but the best pairing of unrelated sets is far above it"
    return f"of relations; unrelated sets, matched in the same way, reach {trust.chance_agreement:.2f}"


def _count_tiles(match: Match) -> list[tuple[str, str, str]]:
    """The numbers of pairs, of right ones and of those with a high confidence: title, value, meaning."""
    (n, m), pairs = match.sizes, len(match.result.pairs)
    every = "every item has a partner" if n == m == pairs else f"of {n} sources and {m} targets"
    if match.result.left_out:
        every = f"kept of {pairs + match.result.left_out} that were matched"
    if match.assignment:
        return [("facilities", str(pairs), "each has a location of its own")]
    shown = [("pairs", str(pairs), every)] if match.clusters is None else match.clusters.tiles()
    if match.right is not None and match.clusters is None:
        known = sum(j >= 0 for j in match.truth or ())
        what = "compared with the known truth" if known == n else "of the sources that have a true partner"
        if match.result.left_out:
            known, what = pairs, "of the pairs that are kept"
        shown.append(("right", f"{match.right} of {known}", what))
    if match.confidence is not None and match.truth is None:
        high = int((np.nan_to_num(match.confidence[match.pairs[0]]) >= HIGH).sum())
        shown.append(("confidence", f"{high} of {pairs}", f"pairs have a confidence of {100 * HIGH:.0f} % or more"))
    return shown


def shares(match: Match, trust: Assessment) -> list[dict[str, str]]:
    """The numbers of pairs with a high, middling and low confidence; empty where no confidence is known.

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


def truth_sentence(truth: float, match: Match) -> str:
    """The cost of the true pairing, beside that of the match."""
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
