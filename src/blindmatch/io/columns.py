"""Tables: which columns form the embedding, which describe the rows, and whether the first row is a header."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from blindmatch.errors import shown
from blindmatch.io.values import NOTHING, STARTS_AS_NUMBER, Writing, as_number, numbers_of
from blindmatch.validation import FloatArray

# Titles that decide what a column is for, in lower case.
ROLES = {
    **dict.fromkeys(("name", "names"), "name"),
    **dict.fromkeys(("label", "labels", "class"), "label"),
    **dict.fromkeys(("id", "index", "nr", "nr.", "no.", "#"), "id"),  # "no" may be an answer
}
_OTHER = "empty, or of a type that is not used"
UNNAMED = re.compile(r"__index_level_\d+__|Unnamed: 0(\.\d+)?")  # pandas' names for an unnamed index


@dataclass(frozen=True, eq=False)
class TableColumn:
    """One column of a table."""

    title: str  # in lower case; empty if there is none
    cells: Any  # a sequence: as they are in the file
    numbers: FloatArray | None  # the cells as numbers, nan where one is missing; None if they are not numeric
    text: bool  # whether it holds text: it may name the rows and is not a dimension of the embedding
    index: bool = False  # whether pandas wrote it as the index of a data frame
    fault: str = ""  # why a column that should be numeric is not
    heading: str = ""  # its title as it is in the file

    @property
    def role(self) -> str:
        """The role of the column: "name", "label", "id", "text", "number" or "other"."""
        if self.fault == _OTHER:
            return "other"
        return ROLES.get(self.title) or ("text" if self.text else "id" if self.index else "number")

    @property
    def counts_rows(self) -> bool:
        """True for an unnamed index that only counts the rows: 0, 1, 2, ..."""
        counted = [str(row) for row in range(len(self.cells))]
        return self.index and not self.title and [str(cell) for cell in self.cells] == counted

    @property
    def tells_rows_apart(self) -> bool:
        """True if no cell is empty and no two cells are equal."""
        return len({str(cell) for cell in self.cells if cell not in (None, "")}) == len(self.cells)


@dataclass(frozen=True, eq=False)
class Table:
    """The cells of a table, before anything is decided about its columns."""

    titles: Sequence[str] | None
    columns: Sequence[Any]  # of each, its cells: text, values of Python, or an array of numbers
    lines: Sequence[Any] | None = None  # where each row is in its file; None: rows are counted from 0
    index: Collection[int] = ()  # the columns that pandas wrote as the index of a data frame
    delimiter: str = ","  # between the cells: a comma between commas groups thousands

    def place(self, row: int, column: int) -> str:
        """The place of a cell, in words."""
        title = "" if self.titles is None else self.titles[column]
        if self.lines is None:
            return f"row {row}, column {title!r}"
        return f"line {self.lines[row]}, column {column + 1}{f' ({title})' if title else ''}"


@dataclass(frozen=True, eq=False)
class NamedRows:
    """The names, classes and embedding of the rows of a table."""

    names: list[str] | None
    labels: list[Any] | None
    values: FloatArray  # nan where a cell is missing
    used: tuple[str, ...]  # the columns of the embedding
    ignored: tuple[str, ...]  # what became of the others: "continent (text)"
    categories: int = 0  # how many columns, the last ones, are codes of text
    missing: str = ""  # where the first missing cell is


def rows_of(table: Table, *, categories: bool = False, gaps: bool = False) -> NamedRows:
    """Separate the embedding from the columns that describe the rows.

    The names are `name`, or else the first of these that is different in every row: a column of text, a text `label`,
    `id` or `index`, the index of a data frame. If there are columns called 0, 1, 2, ..., the other numeric columns are
    not dimensions. With `categories`, columns of text that repeats are dimensions too; with `gaps`, empty columns are.
    """
    texts = (cell for column in table.columns for cell in column if isinstance(cell, str))
    writing = Writing.of(texts, table.delimiter)
    columns = [_column(table, place, writing, gaps) for place in range(len(table.columns))]
    found: dict[str, list[TableColumn]] = {role: [] for role in ("name", "label", "id", "text", "number", "other")}
    for column in sorted(columns, key=lambda column: not column.index):  # the index comes first, as in text files
        if not column.counts_rows:
            found[column.role].append(column)
    candidates = [*found["text"], *(column for column in found["label"] if column.text), *found["id"]]
    distinct = (column for column in candidates if column.tells_rows_apart)
    names = next(iter((*found["name"], *distinct, *candidates)), None)
    labels = next(iter(found["label"]), None)
    dimensions = _dimensions(found["number"])
    for column in dimensions:
        if column.numbers is None:
            raise ValueError(column.fault)
    repeated = [column for column in found["text"] if categories and not column.tells_rows_apart]
    used = [*dimensions, *repeated]
    vectors = [_codes(column) if column.numbers is None else column.numbers for column in used]
    if not vectors:
        titles = ", ".join(column.title or "?" for column in columns)[:200]
        advice = "" if categories else "; metric='gower' compares columns of text that repeats"
        raise ValueError(f"it has no numeric column; it holds {titles}{advice}")
    lists = vectors[0].ndim == 2
    values = vectors[0] if lists else np.stack(vectors, axis=1)
    why = {"number": "beside lists" if lists else "beside numbered columns", "id": "an index", "other": _OTHER}
    holes = np.argwhere(np.isnan(values)).tolist()
    first = table.place(holes[0][0], columns.index(used[holes[0][1]])) if holes and not lists else ""
    return NamedRows(
        None if names is None else [_name(cell, row) for row, cell in enumerate(names.cells)],
        None if labels is None else list(labels.cells),
        values,
        tuple(column.heading or str(place) for place, column in enumerate(used)),
        tuple(
            f"{column.heading or '?'} ({why.get(column.role, column.role)})"
            for column in columns
            if column not in (names, labels, *used) and not column.counts_rows
        ),
        len(repeated),
        first,
    )


@dataclass(frozen=True, eq=False)
class DataColumn:
    """A column as data: numbers, or codes of its texts, nan where a cell is missing."""

    title: str
    values: FloatArray
    text: bool
    examples: tuple[str, ...]  # the first few different cells


def data_columns(table: Table) -> list[DataColumn]:
    """Every column of a table but an index that counts its rows; a column that is not all numbers is text."""
    texts = (cell for column in table.columns for cell in column if isinstance(cell, str))
    writing, found = Writing.of(texts, table.delimiter), []
    for place, cells in enumerate(table.columns):
        column = _column(table, place, writing, gaps=True, dates=True)
        if column.counts_rows or (column.index and place in table.index):
            continue
        text = column.numbers is None or column.numbers.ndim != 1
        filled = (str(cell) for cell in cells if cell is not None and str(cell).lower() not in NOTHING)
        some = tuple(islice(dict.fromkeys(filled), 3))
        values = _codes(column) if text or column.numbers is None else column.numbers
        found.append(DataColumn(column.heading or str(place), values, text, some))
    return found


def _column(table: Table, place: int, writing: Writing, gaps: bool, dates: bool = False) -> TableColumn:
    """One column: what its cells stand for, and what is wrong if they should be numbers and are not."""
    cells, heading = table.columns[place], "" if table.titles is None else table.titles[place]
    unnamed = UNNAMED.fullmatch(heading) is not None
    index = place in table.index or (table.titles is not None and (unnamed or (place == 0 and not heading)))
    title = "" if unnamed else heading.strip().lower()
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        return _of_numbers(table, place, TableColumn(title, cells, cells.astype(np.float64), False, index, "", heading))
    if lists := [cell for cell in cells if isinstance(cell, list | tuple | np.ndarray)]:
        return TableColumn(title, (), _stack(heading, lists, len(cells)), False, heading=heading)
    other = TableColumn(title, cells, None, False, fault=_OTHER, heading=heading)
    # Dates in the first column tell the rows apart, as in a time series.
    values = numbers_of(cells, writing, dates=dates or place > 0)
    bad = [row for row, value in enumerate(values) if value is None]
    if bad and not any(isinstance(cells[row], str) for row in bad) and title not in ROLES and not (place == 0 or index):
        return other
    if title in ROLES:
        text = bool(bad)
    elif place == 0 or index:
        text = 2 * len(bad) > len(cells)  # a single bad cell in a numeric column is an error, not a name
    else:
        # "1,5" or "3 kg" is a malformed number, and must not be skipped as text.
        filled = [row for row, value in enumerate(values) if value is None or not math.isnan(value)]
        text = bool(bad) and len(bad) == len(filled) and not any(STARTS_AS_NUMBER.match(str(cells[row])) for row in bad)
    fault = ""
    if bad:
        only_first = bad == [0] and table.titles is not None and len(cells) > 1  # all cells below it are numbers
        advice = "write plain numbers, such as 1234.5, or remove the column"
        if only_first and not STARTS_AS_NUMBER.match(str(cells[0])):
            advice = "if it belongs to a second row of titles, remove that row"
        fault = f"{table.place(bad[0], place)}: {shown(cells[bad[0]], 80)} is not a number; {advice}"
    numbers = None if bad else np.array(values, dtype=np.float64)
    made = TableColumn(title, cells, numbers, text, index, fault, heading)
    if numbers is not None and len(numbers) and np.isnan(numbers).all() and not gaps and made.role == "number":
        return other
    return _of_numbers(table, place, made)


def _of_numbers(table: Table, place: int, column: TableColumn) -> TableColumn:
    infinite = [] if column.numbers is None else np.flatnonzero(np.isinf(column.numbers)).tolist()
    if not infinite:
        return column
    cell = f"{table.place(infinite[0], place)}: {shown(column.cells[infinite[0]], 80)}"
    fault = f"{cell} is not a finite number; replace it, or remove the row or the column"
    return replace(column, numbers=None, fault=fault)


def _stack(heading: str, lists: list[Any], count: int) -> FloatArray:
    try:
        rows = np.array(lists, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.empty(0)
    if rows.ndim != 2 or len(rows) != count:
        raise ValueError(f"column {heading!r} holds lists of lists, or of different lengths; expected one for each row")
    return rows


def _codes(column: TableColumn) -> FloatArray:
    """A number for each text of a column, nan where there is none."""
    texts = ["" if cell is None or str(cell).lower() in NOTHING else str(cell) for cell in column.cells]
    known = {text: code for code, text in enumerate(sorted(set(texts) - {""}))}
    return np.array([known.get(text, math.nan) for text in texts])


def _dimensions(columns: list[TableColumn]) -> list[TableColumn]:
    """The columns that form the embedding: the only column of lists, those called 0, 1, 2, ..., or all."""
    lists = [column for column in columns if column.numbers is not None and column.numbers.ndim == 2]
    if len(lists) > 1:
        raise ValueError(f"it holds {len(lists)} columns of lists; expected columns of numbers, or one of lists")
    if lists:
        return lists
    numbered = [column for column in columns if column.title.isdecimal()]
    counted = {column.title for column in numbered} == {str(k) for k in range(len(numbered))}
    return numbered if counted and len(numbered) > 1 else columns


def _name(cell: Any, row: int) -> str:
    """The name of a row; a row without a name is called by its position."""
    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else "" if cell is None else str(cell)
    return text or str(row)


def has_titles(rows: list[list[str]]) -> bool:
    """True if the first row of a text table is a header.

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
    cells = [first[place] for place in places]
    numbers = [as_number(cell) or 0.0 for cell in cells]
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
