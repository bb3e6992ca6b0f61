"""The parts of the page below its first screen: sentences and figures around what the scripts draw."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

from blindmatch.report.belief import chance_sentence
from blindmatch.report.match import Match, Trust
from blindmatch.report.measures import given_pairs, hints
from blindmatch.report.verdict import number
from blindmatch.trust.report import SURE

_MOST_GROUPS = 30


def trust_section(match: Match) -> str:
    """How far to believe it: chance, confidence of the pairs, what could be exchanged."""
    if match.trust is None:
        return ""
    groups = "".join(
        f"<li>{', '.join(escape(match.source_name(int(i))) for i in group)}</li>"
        for group in list(match.trust.ambiguous)[:_MOST_GROUPS]
    )
    more = len(match.trust.ambiguous) - _MOST_GROUPS
    groups += f"<li>and {more} groups more</li>" if more > 0 else ""
    if groups:
        groups = f"<p>The partners of these could be exchanged at little or no cost:</p><ul>{groups}</ul>"
    return (
        '<section id="trust" class="card"><h2>How far to believe it</h2>'
        f"<p>{escape(chance_sentence(match.trust))}</p>{_confidences(match.trust)}{groups}</section>"
    )


def _confidences(trust: Trust) -> str:
    """How many pairs are sure, likely and doubtful, as one bar."""
    values = np.asarray(trust.confidence, dtype=float)
    values = values[np.isfinite(values)]
    if not len(values):
        return ""
    counts = [(values >= SURE).sum(), ((values >= 0.5) & (values < SURE)).sum(), (values < 0.5).sum()]
    words = (f"sure ({100 * SURE:.0f} % or more)", "likely (50 % or more)", "doubtful")
    at, drawn, told = 0.0, "", []
    for kind, count, word in zip(("sure", "likely", "doubtful"), counts, words, strict=True):
        wide = 100 * int(count) / len(values)
        drawn += f'<rect class="{kind}" x="{at:.2f}%" width="{wide:.2f}%" height="100%"/>'
        told.append(f'<span class="key {kind}">{int(count)} {word}</span>')
        at += wide
    return f'<svg class="shares" aria-hidden="true">{drawn}</svg><p class="keys">{"".join(told)}</p>'


def _thinned(match: Match, drawn: dict[str, Any]) -> str:
    """A word of warning where not every pair is drawn."""
    count, pairs = len(drawn["drawn"]), len(match.pairs[0])
    return f" Of {pairs} pairs {count} are drawn, evenly spread." if count < pairs else ""


def matrices(match: Match, drawn: dict[str, Any] | None) -> str:
    """Room for both matrices and their comparison."""
    if drawn is None:
        return ""
    if drawn["mode"] == "difference":
        title, third = "What is near what, in both sets", "difference"
        text = (
            "Each row and column is a matched pair. Where the match is good, the first two pictures look alike and the "
            "third is pale. Point at a cell: the same two pairs light up everywhere."
        )
        names = (match.words[0], f"{match.words[1]}, in the order of the match")
    else:
        title, third = "The two matrices", "what each two cost"
        text = "Large numbers of one matrix should meet small numbers of the other. Point at a cell to see both."
        names = ("source", "target, in the order of the assignment")
    figures = "".join(
        f'<figure class="{kind}"><canvas tabindex="0" role="application" data-matrix="{kind}" '
        f'aria-describedby="readout" aria-label="{name}: matrix; arrow keys move from cell to cell"></canvas>'
        f'<figcaption><span>{name}</span><canvas class="scale" aria-hidden="true"></canvas></figcaption></figure>'
        for kind, name in zip(("source", "target", "third"), (*names, third), strict=True)
    )
    return (
        f'<section id="matrices" class="card"><h2>{title}</h2><p>{text}{_thinned(match, drawn)}</p>'
        '<p class="tools"><label>Order <select id="order"><option value="alike">similar next to each other</option>'
        '<option value="file">as given</option></select></label></p>'
        f'<div class="matrices">{figures}</div><p id="readout" class="readout" aria-live="polite">&nbsp;</p></section>'
    )


def plane(match: Match, drawn: dict[str, Any] | None) -> str:
    """Room for the two sets in the plane."""
    if drawn is None:
        return ""
    sources, targets = match.plurals
    shares = [f"{100 * share:.0f} %" for share in drawn["shares"]]
    keys = ["source", "target", *(["wrong"] if match.truth is not None else [])]
    keys += ["spare"] if drawn["leftSource"] or drawn["leftTarget"] else []
    words = dict(zip(("source", "target"), match.words, strict=True)) | {"wrong": "wrong pair", "spare": "no partner"}
    legend = "".join(f'<span class="key {key}">{words[key]}</span>' for key in keys)
    return (
        '<section id="plane" class="card"><h2>The two sets, one laid over the other</h2>'
        f"<p>Each set drawn flat (classical scaling of its relations), the {targets} turned, mirrored and scaled onto "
        f"the {sources} (Procrustes). Short links are good. Two axes show {shares[0]} of the spread of the {sources} "
        f"and {shares[1]} of that of the {targets}: this is a hint, the matrices tell more.{_thinned(match, drawn)}</p>"
        f'<p class="keys">{legend}</p>'
        '<div class="plot" id="plane-plot"></div></section>'
    )


def over_time(moments: list[Any], told_by: str | None) -> str:
    """Room for bound and cost against time."""
    body = '<div class="plot" id="trace-plot"></div>'
    if len({seconds for seconds, *_ in moments}) < 2:  # a single moment makes no line
        body = '<p class="none">The steps of this run were not recorded.</p>'
    source = "" if told_by is None else f" All of it is as {escape(told_by)} says; nothing of it was checked here."
    return (
        '<section id="time" class="card"><h2>Bound and cost against time</h2>'
        "<p>The cost of the best match so far falls, the proved lower bound rises. Where they meet, the match is "
        f'proved to be the best.{source}</p><p class="keys"><span class="key cost">cost of the match</span>'
        f'<span class="key bound">proved lower bound</span></p>{body}</section>'
    )


def random_pairings(match: Match, drawn: dict[str, Any] | None) -> str:
    """Room for the costs of random pairings."""
    if drawn is None:
        return ""
    away = (drawn["mean"] - match.result.cost) / drawn["deviation"]
    truth = drawn["truth"]
    kept = " that keep the given pairs" if given_pairs(match) else ""
    if "forbidden pairs" in hints(match):
        kept += f"{' and' if kept else ' that'} use no forbidden pair"
    text = (
        f"The cost of {drawn['draws']} random pairings{kept}. This match is {abs(away):.1f} standard deviations "
        f"{'below' if away >= 0 else 'above'} their mean."
    )
    if match.kernels is not None and away > 2:
        text += (
            " That shows that the search worked, not that the match is true: the best pairing of two sets with nothing "
            "in common lies far below the mean as well."
        )
    if truth is not None:
        text += f" The true pairing costs {number(truth)}, {_beside(truth, match.result.cost)}."
    return (
        f'<section id="random" class="card"><h2>Beside random pairings</h2><p>{escape(text)}</p>'
        '<div class="plot" id="random-plot"></div></section>'
    )


def _beside(truth: float, cost: float) -> str:
    if math.isclose(truth, cost, rel_tol=1e-9, abs_tol=1e-12):
        return "the same as this match"
    if truth > cost:
        return "more than this match: the truth is not the best fit here, and no solver can change that"
    return "less than this match: the search missed it"
