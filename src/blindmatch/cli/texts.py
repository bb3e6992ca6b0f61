"""Sentences and tables for the terminal; the columns that were used, for JSON and the report too."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from blindmatch.cli.console import UNBOUNDED, complain, plain, plain_table
from blindmatch.demo import Demo
from blindmatch.geometry.column_scaling import ColumnScaling, UnitsWarning, outweighing
from blindmatch.io.embeddings import Embeddings
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
    right, headline = _right(match), belief(match).headline
    answer = right[:1] or [Text(f"{headline}{': --assess' if headline == UNTESTED else ''}.", style="bold")]
    pairs = [_pairs(match)] if match.result.pairs else []
    return [*answer, *pairs, *_unmatched_text(match), *right[1:], *_proof(match)]


def _proof(match: Match) -> list[Text]:
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
    more = f" ... ({n} in all: --rows or --json)" if n > _LOCATIONS else ""
    listed = " ".join(map(str, result.permutation[:_LOCATIONS].tolist()))
    lines = [
        repr(result.pool) if result.pool is not None and len(result.pool) > 1 else "",
        "Facilities and locations are numbered from 0; .sln files count from 1.",
        plain(result.message),
    ]
    return [
        _pairs(match, "facility", "location") if rows else Text(f"Locations of the facilities: {listed}{more}"),
        Text(found, style="bold"),
        *(Text(line) for line in lines if line),
    ]


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
        ("stability", trust.stability, as_percent),
        ("consensus", trust.consensus, as_percent),
        ("agreement", trust.agreement, lambda value: "-" if math.isnan(value) else f"{value:.2f}"),
        ("regret (proved)", trust.regret, _regret),
    ]
    named = [(plain(source), plain(target)) for _, _, source, target in match.named_pairs]
    sources = match.pairs[0].tolist()
    marks = ["?" if trust.doubtful[i] else " " for i in sources]
    cells = {"confidence": [f"{as_percent(trust.confidence[i])} {m}" for i, m in zip(sources, marks, strict=True)]}
    for title, values, show in columns if evidence else ():
        if values is not None:
            cells[title] = [show(values[i]) for i in sources]
    # The columns that leave no room for short names are left out, the least important first.
    widest = [max(map(cell_len, side)) for side in zip(("source", "target"), *named, strict=True)]
    room = width - sum(min(most, _SHORT) for most in widest) - _BETWEEN
    needed = {title: max(len(text) for text in (*title.split(), *column)) + _BETWEEN for title, column in cells.items()}
    for title in ("agreement", "consensus", "stability"):
        if sum(needed.values()) > room and needed.pop(title, None) is not None:
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


_SHOWN = 12  # columns that are listed by name
_WORDS = {"columns of": "columns", "ignored of": "ignored", "scale of": "scaled"}


@dataclass(frozen=True, eq=False)
class Tables:
    """Two files of embeddings, and the scalings of their columns (None if they were not scaled)."""

    sides: tuple[Embeddings, Embeddings]
    scalings: tuple[ColumnScaling, ColumnScaling] | None = None
    names: tuple[str, str] = ("source", "target")
    relations: bool = False  # whether the tables hold relations between items, whose columns have no scale

    @classmethod
    def scaled(cls, one: Embeddings, other: Embeddings, scale: str) -> Tables:
        """These two, scaled as ``scale=`` does it."""
        found = ColumnScaling.pair(one.values, other.values, scale)
        return cls((one, other), None if scale == "none" else found)

    def _facts(self) -> Iterator[tuple[str, dict[str, str]]]:
        for side, read, scaling in zip(self.names, self.sides, self.scalings or (None, None), strict=True):
            titles = read.columns or ()
            titles = () if all(title.isdecimal() for title in titles) else titles  # 0, 1, 2, ... tell nothing
            more = f" and {len(titles) - _SHOWN} more" if len(titles) > _SHOWN else ""
            facts = {
                "columns of": ", ".join(titles[:_SHOWN]) + more,
                "ignored of": ", ".join(read.ignored),
                "scale of": "" if scaling is None else scaling.described(read.columns),
                "missing in": read.gaps,
            }
            yield side, {what: text for what, text in facts.items() if text}

    @property
    def settings(self) -> dict[str, str]:
        """Columns, scales and missing cells, for the report."""
        return {f"{what} the {side}": text for side, facts in self._facts() for what, text in facts.items()}

    @property
    def texts(self) -> list[Text]:
        """The same in a line for each side, for the terminal."""
        lines = []
        for side, facts in self._facts():
            gaps = facts.pop("missing in", "")
            parts = [f"{_WORDS[what]}: {text}" for what, text in facts.items()]
            lines += [Text(plain(f"{side}, {'; '.join(parts)}"))] if parts else []
            lines += [Text(f"{side}, missing: {gaps}")] if gaps else []
        return lines

    @contextmanager
    def warn_of_units(self) -> Iterator[None]:
        """Warn on stderr, and not once more as Python does, if a column outweighs the others and no scale is chosen."""
        if self.scalings is None and not self.relations:
            sides = zip(self.names, self.sides, strict=True)
            heavy = outweighing((side, read.values, read.columns) for side, read in sides)
            if heavy:
                complain(f"warning: {heavy}. Try --scale auto")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnitsWarning)
            yield

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        return {
            side: {
                "used": list(read.columns) if read.columns is not None else read.values.shape[1],
                "ignored": list(read.ignored),
                "scaled": None if scaling is None else scaling.described(read.columns),
            }
            for side, read, scaling in zip(self.names, self.sides, self.scalings or (None, None), strict=True)
        }
