"""Tables for notebooks, which show what an object's ``_repr_html_`` returns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice

ROWS = 10  # rows that a notebook shows


def html_table(columns: Mapping[str, Sequence[object]], most: int = ROWS) -> str:
    """The first rows of a table as HTML; a line says how many there are if some are left out.

    >>> html_table({"source": ["<a>"], "confidence": [0.25]})
    '<table><tr><th>source</th><th>confidence</th></tr><tr><td>&lt;a&gt;</td><td>0.25</td></tr></table>'
    """
    count = max((len(column) for column in columns.values()), default=0)
    rows = [_row("th", columns), *(_row("td", row) for row in islice(zip(*columns.values(), strict=True), most))]
    more = f"<p>{count} rows, of which {most} are shown</p>" if count > most else ""
    return f"<table>{''.join(rows)}</table>{more}"


def _row(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(_text(cell))}</{tag}>' for cell in cells)}</tr>"


def _text(cell: object) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return "-"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
