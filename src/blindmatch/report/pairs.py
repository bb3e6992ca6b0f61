"""The pairs as an HTML table, which scripts make sortable and searchable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from blindmatch.report.images import addresses
from blindmatch.report.match import Match
from blindmatch.report.measures import pair_agreement, pair_costs
from blindmatch.report.verdict import number

LONGEST = 120  # characters of a name in the table


@dataclass(frozen=True)
class Column:
    """A column: its title, what it means, and the cell of each pair."""

    title: str
    hint: str
    cells: Sequence[str]


def pairs_table(match: Match) -> str:
    """The whole table."""
    columns = _columns(match)
    head = "".join(
        f'<th scope="col" aria-sort="none"><button type="button" title="{escape(column.hint)}">{escape(column.title)}'
        '<span class="arrow" aria-hidden="true"></span></button></th>'
        for column in columns
    )
    right = [None if match.truth is None else match.truth[i] == j for i, j in match.result.pairs]
    rows = "\n".join(
        f'<tr data-pair="{a}" data-ids="{i},{j}"{" class=miss" if right[a] is False else ""}>{"".join(cells)}</tr>'
        for a, ((i, j), cells) in enumerate(
            zip(match.result.pairs, zip(*(column.cells for column in columns), strict=True), strict=True)
        )
    )
    return f'<table id="pairs-table"><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>'


def left_over(match: Match) -> str:
    """What has no partner, folded away."""
    parts = []
    names: tuple[Callable[[int], str], ...] = (match.source_name, match.target_name)
    sides = zip(("source", "target"), match.words, match.plurals, match.sizes, match.pairs, names, strict=True)
    for kind, word, words, size, used, name in sides:
        left = np.setdiff1d(np.arange(size), used).tolist()
        if left:
            chips = "".join(
                f'<li class="{kind}"{_whole(name(item))}>{escape(_short(name(item)) + _fate(match, kind, item))}</li>'
                for item in left
            )
            what = f"{len(left)} {words + ' have' if len(left) > 1 else word + ' has'} no partner"
            parts.append(f'<details class="left"><summary>{what}</summary><ul class="chips">{chips}</ul></details>')
    return "".join(parts)


def _fate(match: Match, kind: str, item: int) -> str:
    """What became of an item without a partner, where something did."""
    return f": {match.clusters.adopted(item)}" if match.clusters is not None and kind == "source" else ""


def _columns(match: Match) -> list[Column]:
    pairs = match.named_pairs
    both = 1 + (match.source_images is not None and match.target_images is not None)
    source_images = addresses(match.source_images, match.pairs[0].tolist(), "source_images", both)
    target_images = addresses(match.target_images, match.pairs[1].tolist(), "target_images", both)
    source, target = match.words
    columns = [
        Column(source, f"Sort by {source}", [_named(i, name, source_images) for i, _, name, _ in pairs]),
        Column(target, f"Sort by {target}", [_named(j, name, target_images) for _, j, _, name in pairs]),
        *_cluster_columns(match),
    ]
    if match.truth is not None:
        columns.append(
            Column("right?", "Whether this is the true partner", [_truth(match, i, j) for i, j, *_ in pairs])
        )
    if match.trust is not None:
        hint = "How sure this pair is, from 0 to 100 %"
        columns.append(Column("confidence", hint, [_bar(float(match.trust.confidence[i])) for i, *_ in pairs]))
        if match.trust.regret is not None:
            hint, regret = "Proved: any match without this pair costs so much more at least", match.trust.regret
            columns.append(Column("regret", hint, [_number(float(regret[i])) for i, *_ in pairs]))
    agreement, costs = pair_agreement(match), pair_costs(match)
    if agreement is not None:
        hint = "How alike the relations of this item to all others are in both sets: 1 is the same, 0 is unrelated"
        columns.append(Column("agreement", hint, [_agreement(value) for value in agreement]))
    if costs is not None:
        columns.append(Column("cost", "Its share of the cost", [_number(value) for value in costs]))
    return columns


def _cluster_columns(match: Match) -> list[Column]:
    """How large each cluster is, and what is in it if that is known."""
    if match.clusters is None:
        return []
    counts, contents = match.clusters.counts, match.clusters.contents
    items = [i for i, _ in match.result.pairs]
    columns = [Column("images", "How many are in the cluster", [_number(counts[i]) for i in items])]
    if contents is not None:
        inside = [f'<td class="note">{escape(contents[i])}</td>' for i in items]
        columns.append(Column("what is in it", "The most frequent classes, by the labels", inside))
    return columns


def _named(item: int, name: str, images: dict[int, str]) -> str:
    picture = f'<img src="{images[item]}" alt="" loading="lazy" decoding="async">' if item in images else ""
    return f'<td class="name"><span{_whole(name)}>{picture}{escape(_short(name))}</span></td>'


def _short(name: str) -> str:
    """A name that leaves room for others."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _whole(name: str) -> str:
    """The attribute that shows all of a name that was cut."""
    return "" if len(name) <= LONGEST else f' title="{escape(name)}"'


def _truth(match: Match, i: int, j: int) -> str:
    true = -1 if match.truth is None else match.truth[i]
    if true == j:
        return '<td data-v="1" class="right"><span aria-hidden="true">✓</span> <span class="word">right</span></td>'
    name = "" if match.truth is None or true < 0 else match.target_name(true)
    told = "has none" if true < 0 else f"is {escape(_short(name))}"
    return f'<td data-v="0" class="wrong"{_whole(name)}><span aria-hidden="true">✗</span> {told}</td>'


def _bar(value: float) -> str:
    """A share as a bar and in figures."""
    if not math.isfinite(value):
        return '<td data-v="-1" class="figure">-</td>'
    wide = 100 * min(max(value, 0.0), 1.0)
    bar = f'<svg class="bar" aria-hidden="true"><rect width="{wide:.1f}%" height="100%" rx="3"/></svg>'
    return f'<td data-v="{value:.6g}" class="figure">{bar}{wide:.0f} %</td>'


def _agreement(value: float | None) -> str:
    if value is None:
        return '<td data-v="-2" class="figure">-</td>'
    bar = f'<svg class="bar" aria-hidden="true"><rect width="{100 * max(value, 0.0):.1f}%" height="100%" rx="3"/></svg>'
    return f'<td data-v="{value:.6g}" class="figure">{bar}{value:.2f}</td>'


def _number(value: float) -> str:
    if not math.isfinite(value):  # a regret without limit: the pair was given
        word, place = ("given", 1e300) if value > 0 else ("-", -1e300)
        return f'<td data-v="{place:g}" class="figure">{word}</td>'
    return f'<td data-v="{value:.9g}" class="figure">{number(value)}</td>'
