"""The table of pairs, which scripts make sortable and searchable, and the items without a partner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from blindmatch.geometry.correlation import pair_agreement
from blindmatch.report.content import pair_costs
from blindmatch.report.images import addresses
from blindmatch.report.match import Match
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


def rows(match: Match, columns: Sequence[Column]) -> list[tuple[str, bool, tuple[Cell, ...]]]:
    """The rows of the table: the indices of a pair, whether it is known to be wrong, and its cells."""
    wrong = [match.truth is not None and match.truth[i] != j for i, j in match.result.pairs]
    ids = [f"{i},{j}" for i, j in match.result.pairs]
    return list(zip(ids, wrong, zip(*(column.cells for column in columns), strict=True), strict=True))


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
    pairs = match.named_pairs
    both = 1 + (match.source_images is not None and match.target_images is not None)
    source_images = addresses(match.source_images, match.pairs[0].tolist(), "source_images", both)
    target_images = addresses(match.target_images, match.pairs[1].tolist(), "target_images", both)
    source, target = match.words
    found = [
        Column(source, f"Sort by {source}", [_name_cell(name, source_images.get(i)) for i, _, name, _ in pairs]),
        Column(target, f"Sort by {target}", [_name_cell(name, target_images.get(j)) for _, j, _, name in pairs]),
        *_cluster_columns(match),
    ]
    if match.truth is not None:
        found.append(Column("right?", "Whether this is the true partner", [_truth(match, i, j) for i, j, *_ in pairs]))
    if match.confidence is not None:
        hint = "The probability that this pair is right"
        shares = match.confidence[match.pairs[0]].tolist()
        found.append(Column("confidence", hint, [_bar(share, f"{100 * share:.0f} %") for share in shares]))
    if match.trust is not None and match.trust.regret is not None:
        hint, regret = "Proved: any match without this pair costs at least this much more", match.trust.regret
        found.append(Column("regret", hint, [_regret(float(regret[i])) for i, *_ in pairs]))
    found += _candidate_columns(match)
    costs = pair_costs(match)
    if match.kernels is not None and len(pairs) >= 4:
        agreed = pair_agreement(match.kernels, np.asarray(match.result.permutation))[match.pairs[0]].tolist()
        hint = "How alike the relations of this item to all others are in both sets: 1 is the same, 0 is unrelated"
        found.append(Column("agreement", hint, [_bar(value, f"{value:.2f}") for value in agreed]))
    if costs is not None:
        found.append(Column("cost", "Its share of the cost", [_number(value) for value in costs]))
    return found


def _candidate_columns(match: Match) -> list[Column]:
    """Of a large match: who else could be the partner."""
    ranking = match.result.ranking
    if match.result.support is None or ranking is None:
        return []
    best = match.result.candidates(min(_OTHERS + 1, ranking.most))
    others = [[int(j) for j in best[i] if j != partner][:_OTHERS] for i, partner in match.result.pairs]
    cells = [Cell(", ".join(shortened(match.target_name(j)) for j in row), "note") for row in others]
    return [Column("or else", "The next best partners, by their similarity after the rotation", cells)]


def _cluster_columns(match: Match) -> list[Column]:
    """The size of each cluster, and its contents if they are known."""
    if match.clusters is None:
        return []
    counts, contents = match.clusters.counts, match.clusters.contents
    items = [i for i, _ in match.result.pairs]
    found = [Column("images", "How many images the cluster holds", [_number(counts[i]) for i in items])]
    if contents is not None:
        inside = [Cell(contents[i], "note") for i in items]
        found.append(Column("what is in it", "The most frequent classes, by the labels", inside))
    return found


def _name_cell(name: str, image: str | None) -> Cell:
    return Cell(shortened(name), "name", title=_whole(name), image=image)


def shortened(name: str, most: int = LONGEST) -> str:
    """A name that leaves room for others."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _whole(name: str) -> str | None:
    """All of a name that is cut."""
    return None if len(name) <= LONGEST else name


def _truth(match: Match, i: int, j: int) -> Cell:
    true = -1 if match.truth is None else match.truth[i]
    if true == j:
        return Cell("right", "right", "1")
    if true < 0:
        return Cell("has none", "wrong", "0")
    name = match.target_name(true)
    return Cell(f"is {shortened(name)}", "wrong", "0", _whole(name))


def _bar(value: float | None, text: str) -> Cell:
    """A share as a bar and in figures."""
    if value is None or not math.isfinite(value):
        return Cell("-", "figure", "-2")
    return Cell(text, "figure", f"{value:.6g}", bar=f"{100 * min(max(value, 0.0), 1.0):.1f}%")


def _regret(value: float) -> Cell:
    if value == math.inf:
        return Cell("given", "figure", "1e+300")
    # Below zero a cheaper match is not ruled out: nothing is proved.
    return Cell(lower_number(value), "figure", f"{value:.9g}") if value >= 0 else Cell("-", "figure", "-1e+300")


def _number(value: float) -> Cell:
    return Cell(number(value), "figure", f"{value:.9g}")
