"""The table of pairs, which scripts make sortable and searchable, and the items without a partner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from blindmatch.geometry.correlation import pair_agreement
from blindmatch.report.content import pair_costs
from blindmatch.report.match import Match
from blindmatch.report.pictures import addresses
from blindmatch.report.verdict import lower_number, number

LONGEST = 120  # characters of a name in the table
_OTHERS = 3  # other partners of an item that are named
_PRICED = 400  # items on both sides together, up to which a price is suggested
_TIED = ("have the same relations as another one", "are all equally far apart")


@dataclass(frozen=True)
class Cell:
    """One cell of the table."""

    text: str
    kind: Literal["name", "note", "right", "wrong", "figure"]  # its CSS class
    order: str | None = None  # the number to sort by; None where the text is sorted
    title: str | None = None  # the whole name where the text is cut
    image: str | None = None  # the data address of a picture
    bar: str | None = None  # the length of a bar


@dataclass(frozen=True)
class Column:
    """A column: its title, what it means, and the cell of each pair."""

    title: str
    hint: str
    cells: Sequence[Cell]


def ties(match: Match) -> list[str]:
    """The notes of the result about items that cannot be told apart."""
    return [note for note in match.result.notes if any(words in note for words in _TIED)]


def price_advice(match: Match) -> str:
    """Advice to set a price where items may have no partner, with the exact command; empty where it is of no use."""
    (n, m), task = match.sizes, match.task
    priced = task is None or match.clusters is not None or task.hints.unmatched_cost is not None
    if priced or n + m > _PRICED or (n == m and not ties(match)):
        return ""
    command = match.result.settings.get("command")
    how = 'unmatched_cost="auto"' if command is None else f"{command} --unmatched-cost auto"
    why = "some items cannot be told apart" if n == m else f"there are {n} sources and {m} targets"
    return f"{why}. If items may have no partner: {how}"


def columns(match: Match) -> list[Column]:
    """The columns of the table."""
    pairs, trust = match.named_pairs, match.trust
    found = []
    both = 1 + (match.source_images is not None and match.target_images is not None)
    sides = [
        (match.words[0], "source_images", match.source_images, [(i, name) for i, _, name, _ in pairs]),
        (match.words[1], "target_images", match.target_images, [(j, name) for _, j, _, name in pairs]),
    ]
    for word, option, given, items in sides:
        images = addresses(given, [item for item, _ in items], option, both)
        cells = [Cell(shorten(name), "name", title=_whole(name), image=images.get(item)) for item, name in items]
        found.append(Column(word, f"Sort by {word}", cells))
    if match.clusters is not None:
        counts, contents = match.clusters.counts, match.clusters.contents
        hint = "How many images the cluster holds"
        found.append(Column("images", hint, [_number(counts[i]) for i, *_ in pairs]))
        if contents is not None:
            inside = [Cell(contents[i], "note") for i, *_ in pairs]
            found.append(Column("what is in it", "The most frequent classes, by the labels", inside))
    if match.truth is not None:
        found.append(Column("right?", "Whether this is the true partner", [_truth(match, i, j) for i, j, *_ in pairs]))
    if match.confidence is not None:
        hint = "The probability that this pair is right"
        shares = match.confidence[match.pairs[0]].tolist()
        found.append(Column("confidence", hint, [_bar(share, f"{100 * share:.0f} %") for share in shares]))
    if trust is not None and trust.regret is not None:
        hint = "Proved: any match without this pair costs at least this much more"
        found.append(Column("regret", hint, [_regret(float(trust.regret[i])) for i, *_ in pairs]))
    ranking = match.result.ranking
    if match.result.support is not None and ranking is not None:
        best, hint = (
            match.result.candidates(min(_OTHERS + 1, ranking.most)),
            "The next best partners, by their similarity after the rotation",
        )
        others = [[int(k) for k in best[i] if k != j][:_OTHERS] for i, j, *_ in pairs]
        cells = [Cell(", ".join(shorten(match.target_name(k)) for k in row), "note") for row in others]
        found.append(Column("or else", hint, cells))
    if match.kernels is not None and len(pairs) >= 4:
        agreed = pair_agreement(match.kernels, np.asarray(match.result.permutation))[match.pairs[0]].tolist()
        hint = "How alike the relations of this item to all others are in both sets: 1 is the same, 0 is unrelated"
        found.append(Column("agreement", hint, [_bar(value, f"{value:.2f}") for value in agreed]))
    costs = pair_costs(match)
    if costs is not None:
        found.append(Column("cost", "Its share of the cost", [_number(value) for value in costs]))
    return found


def shorten(name: str, most: int = LONGEST) -> str:
    """A name that leaves room for others."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _whole(name: str) -> str | None:
    return None if len(name) <= LONGEST else name


def _truth(match: Match, i: int, j: int) -> Cell:
    true = -1 if match.truth is None else match.truth[i]
    if true == j:
        return Cell("right", "right", "1")
    if true < 0:
        return Cell("has none", "wrong", "0")
    name = match.target_name(true)
    return Cell(f"is {shorten(name)}", "wrong", "0", _whole(name))


def _bar(share: float, text: str) -> Cell:
    if not math.isfinite(share):
        return Cell("-", "figure", "-2")
    return Cell(text, "figure", f"{share:.6g}", bar=f"{100 * min(max(share, 0.0), 1.0):.1f}%")


def _regret(value: float) -> Cell:
    if value == math.inf:
        return Cell("given", "figure", "1e+300")
    # Below zero a cheaper match is not ruled out: nothing is proved.
    return Cell(lower_number(value), "figure", f"{value:.9g}") if value >= 0 else Cell("-", "figure", "-1e+300")


def _number(value: float) -> Cell:
    return Cell(number(value), "figure", f"{value:.9g}")
