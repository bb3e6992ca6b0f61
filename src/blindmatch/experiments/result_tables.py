"""Render tables as text, CSV and LaTeX from one description; the page shows them as HTML."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from blindmatch.experiments import TABLES
from blindmatch.experiments.protocol import Row
from blindmatch.io.exchange import csv_text


@dataclass(frozen=True)
class Spread:
    """A mean and its standard deviation."""

    mean: float
    deviation: float


Cell = str | int | float | Spread | None


@dataclass(frozen=True)
class Table:
    """A table with sentences below it; `name` is that of its files, such as ``table-5``."""

    name: str
    title: str
    columns: tuple[str, ...]
    digits: tuple[int, ...]  # decimals of the numbers in each column
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]

    def texts(self) -> list[list[str]]:
        """The cells as text."""
        return [[cell_text(cell, d) for cell, d in zip(row, self.digits, strict=True)] for row in self.rows]

    @property
    def numeric(self) -> list[bool]:
        """True for each column of numbers."""
        return [not any(isinstance(row[c], str) for row in self.rows) for c in range(len(self.columns))]

    def classes(self) -> list[str | None]:
        """The CSS classes of each column, for the page: columns of numbers, columns with the paper's values."""
        kinds = zip(self.numeric, self.columns, strict=True)
        return [" ".join(["number"] * number + ["paper"] * head.startswith("paper")) or None for number, head in kinds]

    def cells(self) -> list[list[tuple[str, float | None]]]:
        """Text of each cell, and the number that the page sorts it by."""
        orders = [[cell.mean if isinstance(cell, Spread) else cell for cell in row] for row in self.rows]
        return [
            [(text, None if isinstance(order, str) else order) for text, order in zip(*each, strict=True)]
            for each in zip(self.texts(), orders, strict=True)
        ]


def make_table(
    name: str,
    rows: Iterable[Sequence[Cell]],
    *notes: str,
    columns: Sequence[tuple[str, int]] = (),
    kind: str = "",
    **words: object,
) -> Table:
    """A table that `studies.toml` describes, under its name or its kind; `words` fill the title."""
    entry = TABLES[kind or name]
    heads, digits = zip(*(columns or entry["columns"]), strict=True)
    told = tuple(filter(None, (*entry.get("notes", ()), *notes)))
    return Table(name, entry["title"].format(**words), heads, digits, tuple(map(tuple, rows)), told)


def spread(values: Iterable[float | None]) -> Spread | None:
    """Mean and standard deviation of the values that are not None; None if there are none."""
    kept = [value for value in values if value is not None]
    if not kept:
        return None
    return Spread(statistics.fmean(kept), statistics.stdev(kept) if len(kept) > 1 else 0.0)


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are not None."""
    found = spread(values)
    return None if found is None else found.mean


def percent(rows: Iterable[Row], name: str = "accuracy") -> Spread | None:
    """Mean and standard deviation of a share, in percent."""
    return spread(100 * row[name] for row in rows)


def proved_share(rows: Iterable[Row]) -> float | None:
    """The percentage of the matches that were proved optimal."""
    return mean(100.0 * (row["status"] == "optimal") for row in rows)


def group_by(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of each combination of these parameters, in the order of their first rows."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def cell_text(cell: Cell, digits: int) -> str:
    """One cell as text."""
    if cell is None:
        return "-"
    if isinstance(cell, Spread):
        return f"{cell.mean:.{digits}f} ± {cell.deviation:.{digits}f}"
    return f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)


def as_text(item: Table) -> str:
    """Columns of text with a rule below the headers."""
    cells = [list(item.columns), *item.texts()]
    widths = [max(len(row[c]) for row in cells) for c in range(len(item.columns))]
    cells.insert(1, ["-" * width for width in widths])
    places = [(">" if number else "<") + str(width) for number, width in zip(item.numeric, widths, strict=True)]
    lines = ["  ".join(map(format, row, places)).rstrip() for row in cells]
    return "\n".join([item.title, *lines, *item.notes]) + "\n"


def as_csv(item: Table) -> str:
    """CSV with all digits; a spread takes two columns."""
    columns: list[list[object]] = []
    for c, head in enumerate(item.columns):
        cells = [row[c] for row in item.rows]
        columns.append([head, *(repr(x.mean) if isinstance(x, Spread) else "" if x is None else x for x in cells)])
        if any(isinstance(x, Spread) for x in cells):
            columns.append([f"{head} deviation", *(repr(x.deviation) if isinstance(x, Spread) else "" for x in cells)])
    return csv_text(zip(*columns, strict=True))


def as_latex(item: Table) -> str:
    """A LaTeX tabular with booktabs rules."""
    kinds = "".join("r" if number else "l" for number in item.numeric)
    heads = " & ".join(_tex(head) for head in item.columns)
    body = "\n".join(" & ".join(_tex(text) for text in row) + r" \\" for row in item.texts())
    caption = _tex(" ".join([item.title, *item.notes]))
    return (
        f"\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{@{{}}{kinds}@{{}}}}\n\\toprule\n{heads} \\\\\n\\midrule\n"
        f"{body}\n\\bottomrule\n\\end{{tabular}}\n\\caption{{{caption}}}\n\\end{{table}}\n"
    )


FORMATS: dict[str, Callable[[Table], str]] = {"txt": as_text, "csv": as_csv, "tex": as_latex}


def table_json(item: Table) -> dict[str, Any]:
    """Plain values, all digits."""
    rows = [
        {
            head: {"mean": cell.mean, "deviation": cell.deviation} if isinstance(cell, Spread) else cell
            for head, cell in zip(item.columns, row, strict=True)
        }
        for row in item.rows
    ]
    return {"name": item.name, "title": item.title, "rows": rows, "notes": list(item.notes)}


_TEX = {character: f"\\{character}" for character in "&%_#${}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "<": r"$<$",
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(character, character) for character in text)
