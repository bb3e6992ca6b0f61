"""The match in sentences and figures. `belief.py` says whether to believe it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from blindmatch.report.content import given_pairs, hints
from blindmatch.report.match import Match
from blindmatch.report.verdict import assignment_verdict, number, percent, quality, verdict
from blindmatch.trust.report import HIGH, Assessment

_EXAMPLES = 3  # names shown for each side
_LONG = 24  # characters of a name
_COST = "The cost says how much the two sets still disagree about what is near what: less is better."


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


def about(match: Match) -> str:
    """A description of the two sets and of the hints."""
    n, m = match.sizes
    if match.assignment:
        what = f"{n} facilities (the rows of the first matrix) were assigned to {m} locations (the rows of the second)"
        return (
            f"{what} so that the total cost is as small as possible. Both are numbered from 0; .sln files count from 1."
        )
    if match.clusters is not None:
        return f"{match.clusters.about} {_COST}"
    known = hints(match)
    how = "only by what is near what inside each set. No pair was given."
    if known:
        how = f"by what is near what inside each set. Also given: {', '.join(known)}."
    source = f"{n} sources{_examples(n, match.source_name) if match.source_names is not None else ''}"
    target = f"{m} targets{_examples(m, match.target_name) if match.target_names is not None else ''}"
    return f"{source} and {target} were paired {how} {_COST}"


def _examples(count: int, name: Callable[[int], str]) -> str:
    """The first names, in brackets."""
    shown = [
        text if len(text) <= _LONG else f"{text[: _LONG - 1]}…" for text in map(name, range(min(count, _EXAMPLES)))
    ]
    between = "; " if any("," in text for text in shown) else ", "
    return f" ({between.join([*shown, *(['…'] if count > _EXAMPLES else [])])})"


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


def random_sentence(match: Match, drawn: dict[str, Any]) -> str:
    """The cost of the match beside that of random pairings."""
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
