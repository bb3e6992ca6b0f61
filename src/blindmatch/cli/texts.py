"""Sentences and tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from blindmatch.cli.console import UNBOUNDED, plain, plain_table
from blindmatch.demo import Demo
from blindmatch.report import Match, proof_sentence, verdict
from blindmatch.report.belief import UNTESTED, belief
from blindmatch.report.html import truth_sentence
from blindmatch.report.verdict import ENDED, gap_sentence, lower_number, number, pairs_are, percent
from blindmatch.trust import Assessment
from blindmatch.validation import FloatArray

_LOCATIONS = 40  # locations in the line of an assignment
_LISTED = 20  # items that are listed by name
_SHORT = 12  # columns of a narrow terminal that a name gets before columns of the table are left out
_BETWEEN = 3  # columns between two columns of a table


def match_text(match: Match) -> list[object]:
    """The answer, the pairs, then what is proved."""
    result = match.result
    right = _right(match)
    headline = belief(match).headline
    answer = right[:1] or [Text(f"{headline}{': --assess' if headline == UNTESTED else ''}.", style="bold")]
    pairs = [_pairs(match)] if result.pairs else []
    return [*answer, *pairs, *_unmatched_text(match), *right[1:], *_proof(match)]


def _proof(match: Match) -> list[Text]:
    """Sentences about the proof."""
    result = match.result
    claims = verdict(result), proof_sentence(result), gap_sentence(result), plain(result.message)
    return [Text(text) for text in claims if text]


def assignment_text(match: Match, rows: bool = False) -> list[object]:
    """The assignment of a quadratic assignment problem, in the words of that field; as a table with `rows`."""
    result, n = match.result, len(match.result.pairs)
    whole = f"{n} facilit{'y' if n == 1 else 'ies'}"
    cost, bound, seconds = number(result.cost), lower_number(result.lower_bound), f"{result.seconds:.2f} s"
    if result.status == "optimal":
        found = f"Optimal assignment of {whole}: cost {cost}, proved by {result.bound_name} in {seconds}."
    elif result.gap is None:
        found = f"Assignment of {whole}: cost {cost}, no bound; {seconds}, {ENDED[result.status]}."
    else:
        found = (
            f"Assignment of {whole}: cost {cost}, lower bound {bound} ({result.bound_name}), gap "
            f"{percent(result.gap)}; {seconds}, {ENDED[result.status]}."
        )
    if result.maximum is not None:
        found = found.replace("lower bound", "upper bound").replace(f"bound {bound}", f"bound {number(result.maximum)}")
    numbered = Text("Facilities and locations are numbered from 0; .sln files count from 1.")
    listed = [str(j) for j in result.permutation[:_LOCATIONS].tolist()]
    more = f" ... ({n} in all: --rows or --json)" if n > _LOCATIONS else ""
    assignment = Text(f"Locations of the facilities: {' '.join(listed)}{more}")
    lines = [
        _pairs(match, "facility", "location") if rows else assignment,
        Text(found, style="bold"),
        *([Text(repr(result.pool))] if result.pool is not None and len(result.pool) > 1 else []),
        numbered,
    ]
    return [*lines, Text(plain(result.message))] if result.message else [*lines]


def _right(match: Match) -> list[Text]:
    """The number of true pairs and the cost of the true pairing, if the truth is known."""
    if match.truth is None:
        return []
    if match.result.left_out:
        kept = len(match.result.pairs)
        text = f"{match.right} of {kept} kept {'pair is' if kept == 1 else 'pairs are'} right."
        return [Text(text, style="bold")] if kept else []
    known, cost = sum(j >= 0 for j in match.truth), match.cost_of(match.truth)
    right = Text(f"{match.right} of {pairs_are(known)} right (chance: {known / max(match.sizes):.2g}).", style="bold")
    return [right] if cost is None else [right, Text(truth_sentence(cost, match))]


def unmatched_items(match: Match) -> dict[str, list[int]]:
    """The items of each side that have no partner."""
    sources, targets = ([], []) if match.assignment else match.left
    return {"unmatched_sources": sources, "unmatched_targets": targets}


def _unmatched_text(match: Match) -> list[Text]:
    """The items of each side without a partner; of many, the first ones and how many there are."""
    lines, names = [], {"source": match.source_name, "target": match.target_name}
    for (side, name), items in zip(names.items(), unmatched_items(match).values(), strict=True):
        more = f" and {len(items) - _LISTED} more ({len(items)} in all)" if len(items) > _LISTED + 1 else ""
        shown = ", ".join(map(name, items[:_LISTED] if more else items))
        lines += [Text(f"{side}, unmatched: {plain(shown + more)}")] if items else []
    return lines


def trust_text(trust: Assessment, match: Match, width: int = UNBOUNDED, *, evidence: bool = False) -> list[object]:
    """The answer, a table of the pairs and their confidence that fits into this width, the reasons, and the proof.

    With `evidence`, the table also has what the confidence is from.
    """
    columns: list[tuple[str, FloatArray | None, Callable[[float], str]]] = [
        ("confidence", trust.confidence, as_percent),
        ("stability", trust.stability, as_percent),
        ("consensus", trust.consensus, as_percent),
        ("agreement", trust.agreement, lambda value: "-" if math.isnan(value) else f"{value:.2f}"),
        ("regret (proved)", trust.regret, _regret),
    ]
    named = [(plain(source), plain(target)) for _, _, source, target in match.named_pairs]
    cells = {
        title: [show(values[pair[0]]) for pair in match.named_pairs]
        for title, values, show in (columns if evidence else columns[:1])
        if values is not None
    }
    marks = ["?" if trust.doubtful[pair[0]] else " " for pair in match.named_pairs]
    cells["confidence"] = [f"{cell} {mark}" for cell, mark in zip(cells["confidence"], marks, strict=True)]
    for title in _fewer(named, cells, width):
        del cells[title]
    heads = (title if width >= UNBOUNDED else title.replace(" ", "\n") for title in cells)
    table = plain_table("source", "target", *(f"{head}>|" for head in heads))
    for names_of_pair, *row in zip(named, *cells.values(), strict=True):
        table.add_row(*map(Text, names_of_pair), *row)
    names = None if match.source_names is None else [plain(name) for name in match.source_names]
    lines = trust.ambiguities(names)
    if evidence and trust.whole_agreement is not None:
        chance = "" if trust.chance_agreement is None else f"; unrelated spaces reach {trust.chance_agreement:.2f}"
        lines = [f"Agreement of all relations: {trust.whole_agreement:.2f}{chance}.", *lines]
    right = _right(match)
    answer = [Text(f"{trust.judgement.headline}.", style="bold"), *right]
    shown = [table, *([Text("?: doubtful")] if "?" in marks else [])] if match.result.pairs else []
    return [*answer, *shown, *_unmatched_text(match), Text(trust.judgement.text), *map(Text, lines), *_proof(match)]


def _fewer(named: list[tuple[str, str]], cells: dict[str, list[str]], width: int) -> list[str]:
    """The columns to leave out so that the others and short names fit into this width, the least important first."""
    widest = [max(map(cell_len, side)) for side in zip(("source", "target"), *named, strict=True)]
    room = width - sum(min(most, _SHORT) for most in widest) - _BETWEEN
    needed = {title: max(len(text) for text in (*title.split(), *column)) + _BETWEEN for title, column in cells.items()}
    left_out = []
    for title in ("agreement", "consensus", "stability"):
        if sum(needed.values()) > room and needed.pop(title, None) is not None:
            left_out.append(title)
    return left_out


def as_percent(value: float) -> str:
    """A probability for people; a dash if it is not known."""
    return "-" if math.isnan(value) else f"{100 * value:.0f} %"


def _regret(value: float) -> str:
    # Below zero nothing is proved: a cheaper match is not ruled out.
    return "given" if value == math.inf else lower_number(value if value >= 0 else None)


def demo_text(match: Match, demo: Demo, proved: float | None, truth_cost: float) -> list[object]:
    """The match of bundled data, and the plain truth about it."""
    result, n = match.result, len(match.result.pairs)
    if proved is None or not math.isfinite(proved):
        check = "There is no certificate to check."
    else:
        check = f"Verified: the independent checker recomputed the bound {lower_number(min(proved, result.cost))}."
    if truth_cost > result.cost:
        honest = (
            f"The true pairing costs {number(truth_cost)}, more than this one: in these data the cheapest "
            "pairing is not the true one, and no solver can change that."
        )
    elif match.right == n:
        honest = "The true pairing is the cheapest one here: the two geometries agree well enough."
    else:
        honest = f"The true pairing costs {number(truth_cost)}."
    return [
        Text(f"Data: {demo.about}; {n} each, shuffled, not one pair known."),
        Text(f"  source: {demo.source_model}"),
        Text(f"  target: {demo.target_model}\n"),
        _pairs(match),
        Text(f"{match.right} of {n} pairs are right (chance: 1).", style="bold"),
        Text(verdict(result)),
        Text(" ".join(filter(None, [proof_sentence(result), gap_sentence(result), check]))),
        Text(honest),
        *([Text(demo.why)] if demo.why else []),
    ]


def _pairs(match: Match, source: str = "source", target: str = "target") -> Table:
    table = plain_table(source, target, *([] if match.truth is None else ["right?"]))
    for i, j, source, target in match.named_pairs:
        row = [Text(plain(source)), Text(plain(target))]
        if match.truth is not None:
            row.append(Text("✓", style="green") if match.truth[i] == j else Text("✗", style="red"))
        table.add_row(*row)
    return table
