"""JSON that every parser accepts, and tables as CSV that a spreadsheet shows and does not calculate."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# U+202A to U+202E and U+2066 to U+2069 reorder the text around them, also in the next cells. Half a surrogate pair,
# which an array of text may hold, cannot be written in UTF-8.
REPLACED = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)), "\ufffd")
# A spreadsheet takes such a cell for a formula; the full-width signs too, in East Asia.
_FORMULA = re.compile(r"[=+\-@\t\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def read_json(path: Path) -> Any:
    """A JSON file, or a ValueError with its name."""
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError:
        raise ValueError(f"{path}: not a JSON file") from None


def json_finite(value: Any) -> Any:
    """Copy a value for JSON: numpy values become Python's, and numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): json_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_finite(item) for item in value]
    if hasattr(value, "tolist"):
        return json_finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV; cells that a spreadsheet could take for formulas begin with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_as_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text.getvalue()


def _as_cell(cell: str) -> str:
    """A cell that is text."""
    cell = re.sub(r"\r\n?", "\n", cell.translate(REPLACED))  # csv.writer may not quote \r, which ends a line
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell
