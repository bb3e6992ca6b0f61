"""Tables: which columns form the embedding, which describe the rows, and whether the first row is a header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from blindmatch.validation import FloatArray

# Titles that decide what a column is for, in lower case.
ROLES = {
    **dict.fromkeys(("name", "names"), "name"),
    **dict.fromkeys(("label", "labels", "class"), "label"),
    **dict.fromkeys(("id", "index", "nr", "nr.", "no.", "#"), "id"),  # "no" may be an answer
}
UNNAMED = re.compile(r"__index_level_\d+__|Unnamed: 0(\.\d+)?")  # pandas' names for an unnamed index


@dataclass(frozen=True, eq=False)
class TableColumn:
    """One column of a table."""

    title: str  # in lower case; empty if there is none
    cells: Sequence[Any]  # as they are in the file
    numbers: FloatArray | None  # the cells as numbers; None if they are not numeric
    text: bool  # whether it holds text: it may name the rows and is not a dimension of the embedding
    index: bool = False  # whether pandas wrote it as the index of a data frame
    fault: str = ""  # why a column that should be numeric is not
    heading: str = ""  # its title as it is in the file

    @property
    def role(self) -> str:
        """The role of the column: "name", "label", "id", "text" or "number"."""
        return ROLES.get(self.title) or ("text" if self.text else "id" if self.index else "number")

    @property
    def counts_rows(self) -> bool:
        """Whether it is an unnamed index that only counts the rows: 0, 1, 2, ..."""
        counted = [str(row) for row in range(len(self.cells))]
        return self.index and not self.title and [str(cell) for cell in self.cells] == counted

    @property
    def tells_rows_apart(self) -> bool:
        """Whether no cell is empty and no two cells are equal."""
        return len({str(cell) for cell in self.cells if cell not in (None, "")}) == len(self.cells)


@dataclass(frozen=True, eq=False)
class NamedRows:
    """The names, classes and embedding of the rows of a table."""

    names: list[str] | None
    labels: list[Any] | None
    values: FloatArray
    used: tuple[str, ...]  # the columns of the embedding
    ignored: tuple[str, ...]  # what became of the others: "continent (text)"


def named_rows(columns: Sequence[TableColumn]) -> NamedRows:
    """Separate the embedding from the columns that describe the rows.

    The names are `name`, or else the first of these that is different in every row: a column of text, a text `label`,
    `id` or `index`, the index of a data frame. If there are columns called 0, 1, 2, ..., the other numeric columns are
    not dimensions.
    """
    found: dict[str, list[TableColumn]] = {"name": [], "label": [], "id": [], "text": [], "number": []}
    for column in columns:
        if not column.counts_rows:
            found[column.role].append(column)
    candidates = [*found["text"], *(column for column in found["label"] if column.text), *found["id"]]
    distinct = (column for column in candidates if column.tells_rows_apart)
    names = next(iter((*found["name"], *distinct, *candidates)), None)
    dimensions = _numbered(found["number"])
    for column in dimensions:
        if column.numbers is None:
            raise ValueError(column.fault)
    vectors = [column.numbers for column in dimensions if column.numbers is not None]
    if not vectors:
        raise ValueError(f"it has no numeric column; it holds {', '.join(c.title or '?' for c in columns)[:200]}")
    labels = next(iter(found["label"]), None)
    read = {id(column) for column in (names, labels, *dimensions)}
    why = {"number": "beside numbered columns", "id": "an index"}
    return NamedRows(
        None if names is None else [_name(cell, row) for row, cell in enumerate(names.cells)],
        None if labels is None else list(labels.cells),
        vectors[0] if vectors[0].ndim == 2 else np.stack(vectors, axis=1),
        tuple(column.heading or str(place) for place, column in enumerate(dimensions)),
        tuple(
            f"{column.heading or '?'} ({why.get(column.role, column.role)})"
            for column in columns
            if id(column) not in read
        ),
    )


def _numbered(columns: list[TableColumn]) -> list[TableColumn]:
    """The columns called 0, 1, 2, ... if there are any; the other columns then describe the row."""
    numbered = [column for column in columns if column.title.isdecimal()]
    counted = {column.title for column in numbered} == {str(k) for k in range(len(numbered))}
    return numbered if counted and len(numbered) > 1 else columns


def _name(cell: Any, row: int) -> str:
    """The name of a row; a row without a name is called by its position."""
    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else "" if cell is None else str(cell)
    return text or str(row)


def has_titles(rows: list[list[str]]) -> bool:
    """Whether the first row of a text table is a header.

    It is a header if none of its cells is a number. If it contains a column name such as "name", it is also a header if
    its numbers ascend or are distinct integers. Otherwise it is a header if its numbers are 0, 1, 2, ... or ascending
    integers with no integer below them. A word followed by other numbers is an item with its values.

    >>> has_titles([["word", "0", "1", "2"], ["cat", "3", "1", "5"]])
    True
    >>> has_titles([["cat", "3", "1", "5"], ["dog", "2", "7", "1"]])
    False
    """
    first, below = rows[0], rows[1:]
    places = [place for place, cell in enumerate(first) if as_number(cell) is not None]
    cells, numbers = [first[place] for place in places], [float(first[place]) for place in places]
    ascending = all(a < b for a, b in pairwise(numbers))
    integers = all(_is_integer(cell) for cell in cells)
    if not places:
        return True
    if first[0] == "" or any(cell.lower() in ROLES for cell in first):
        return ascending or (integers and len(set(cells)) == len(cells))
    if not below or not integers or not ascending:
        return False
    counting = cells == [str(k) for k in range(len(cells))]
    integers_below = any(_is_integer(row[place]) for row in below for place in places)
    if len(cells) > 2:
        return counting or not integers_below
    if not counting or (len(cells) == 1 and len(first) > 1):
        return False
    if len(cells) == 2 and not integers_below:
        return True
    points = ",".join(f"{cell}.0" for cell in cells)
    advice = "may be a header or an item; use titles that are words, or write the item's numbers as"
    raise ValueError(f"line 1 ({','.join(first)}) {advice} {points}")


def _is_integer(cell: str) -> bool:
    return cell.isascii() and cell.lstrip("+-").isdecimal()


def as_number(cell: str) -> float | None:
    """The number in a cell, or None."""
    try:
        return float(cell)
    except ValueError:
        return None
