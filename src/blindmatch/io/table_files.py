"""Read tables from text and parquet files; `columns` has the rules that decide what each column is for."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from blindmatch.io.columns import ROLES, UNNAMED, NamedRows, TableColumn, as_number, has_titles, named_rows
from blindmatch.io.files import missing_package, reading, refuse_bomb, text_of

_STARTS_AS_NUMBER = re.compile(r"[+-]?[$€£¥]? ?[.,]?\d")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # or three decimals
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
_SEPARATOR = re.compile(r"sep=([,;\t])\r?\n", re.IGNORECASE)  # Excel reads such a first line, and does not show it
_PAGE = re.compile(r"\s*<(!doctype html|html)\b", re.IGNORECASE)
_NOTHING = ("", "-", "?", "na", "n/a", "null", "none", "#n/a")


def read_text(path: Path, *, gaps: bool = False) -> NamedRows:
    """Read a text table separated by commas, semicolons or tabs; with `gaps`, an empty cell is a missing number.

    Between semicolons, numbers may have a decimal comma if none has a decimal point: spreadsheets export them like this
    where the comma is the decimal sign.
    """
    try:
        text = text_of(path)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(f"{path}: not a text file in UTF-8; save it with that encoding (Excel: 'CSV UTF-8')")
    if _PAGE.match(text):
        raise ValueError(f"{path}: a web page, not a table; download the table itself")
    with reading(path, path.suffix):
        told = _SEPARATOR.match(text)
        delimiter = told[1] if told else max(",;\t", key=text.partition("\n")[0].count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        if told:
            next(reader)
        cells = ((reader.line_num, [cell.strip() for cell in row]) for row in reader)
        rows = [(line, row) for line, row in cells if len(row) > 1 or any(row)]
    width = len(rows[0][1]) if rows else 0
    for line, row in rows:
        if len(row) != width:
            raise ValueError(f"{path}: line {line} has {len(row)} cells, the first has {width}")
    plain = _with_points([row for _, row in rows]) if delimiter == ";" else [row for _, row in rows]
    try:
        titles = rows[0][1] if rows and has_titles(plain) else None
        if titles is not None:
            rows, plain = rows[1:], plain[1:]
        if not rows:
            raise ValueError("it is empty: no row of numbers in it")
        lines = [line for line, _ in rows]
        columns = zip(zip(*(row for _, row in rows), strict=True), zip(*plain, strict=True), strict=True)
        return named_rows(
            [
                _text_column(place, None if titles is None else titles[place], both, lines, gaps)
                for place, both in enumerate(columns)
            ]
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _with_points(rows: list[list[str]]) -> list[list[str]]:
    """The cells with a decimal point for each decimal comma.

    They stay as they are if some number has a point already, and if all commas may separate thousands.
    """
    commas = [cell for row in rows for cell in row if _DECIMAL_COMMA.fullmatch(cell)]
    if any(_DECIMAL_POINT.fullmatch(cell) for row in rows for cell in row) or all(map(_THOUSANDS.fullmatch, commas)):
        return rows
    return [[cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in row] for row in rows]


def _text_column(
    place: int, title: str | None, both: tuple[Sequence[str], Sequence[str]], lines: list[int], gaps: bool
) -> TableColumn:
    """A column of text cells; `both` are the cells as in the file, and with decimal points."""
    cells, plain = both
    values = [math.nan if gaps and not cell else as_number(cell) for cell in plain]
    bad = [row for row, value in enumerate(values) if value is None]
    filled = [cells[row] for row in bad if cells[row]]
    if (title or "").lower() in ROLES:
        text = bool(filled)
    elif place == 0:
        text = 2 * len(filled) > len(cells)  # a single bad cell in a numeric column is an error, not a name
    else:
        # "1,5" or "3 kg" is a malformed number, and must not be skipped as text.
        text = bool(filled) and len(bad) == len(cells) and not any(_STARTS_AS_NUMBER.match(cell) for cell in filled)
    index = title is not None and (UNNAMED.fullmatch(title) is not None or (place == 0 and not title))
    fault = ""
    if bad:
        fault = f"{_where(bad[0], place, title, cells, lines)} is not a number; "
        fault += _advice(cells[bad[0]], bad == [0] and title is not None and len(cells) > 1)
    infinite = [row for row, value in enumerate(values) if value is not None and not (gaps or math.isfinite(value))]
    if infinite and not bad:
        fault = f"{_where(infinite[0], place, title, cells, lines)} is not a finite number; "
        fault += "replace it, or remove the row or the column"
    numbers = None if bad or infinite else np.array(values, dtype=np.float64)
    return TableColumn("" if index else (title or "").lower(), cells, numbers, text, index, fault, title or "")


def _where(row: int, place: int, title: str | None, cells: Sequence[str], lines: list[int]) -> str:
    """A cell, and where it is."""
    called = f" ({title})" if title else ""
    return f"line {lines[row]}, column {place + 1}{called}: {cells[row][:80]!r}"


def _advice(cell: str, only_first: bool) -> str:
    """What to do about a cell that is not a number; `only_first`: all cells below it are numbers."""
    if cell.lower() in _NOTHING:
        return "fill it in, or remove the row or the column"
    if _STARTS_AS_NUMBER.match(cell) or not only_first:
        return "write plain numbers, such as 1234.5, or remove the column"
    return "if it belongs to a second row of titles, remove that row"


def parquet_table(path: Path) -> Any:
    """The pyarrow table of a parquet file, which may not unpack to an absurd size."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise missing_package(path, "pyarrow") from None
    with reading(path, ".parquet"):
        path.open("rb").close()  # raises the usual error if the file is missing
        file = parquet.ParquetFile(str(path))
        refuse_bomb(_decoded_bytes(file.metadata), path.stat().st_size)
        return file.read()


def read_parquet(path: Path) -> NamedRows:
    """Read numeric columns or one column of lists, with the index if pandas wrote the file."""
    table = parquet_table(path)
    with reading(path, ".parquet"):
        indices = (table.schema.pandas_metadata or {}).get("index_columns", [])
        columns = [
            _arrow_column(title, table.column(place), title in indices or UNNAMED.fullmatch(title) is not None)
            for place, title in enumerate(table.column_names)
        ]
        columns += [_range_column(index, table.num_rows) for index in indices if isinstance(index, dict)]
    # As in text files, the index comes first. A column of lists is the embedding; other numeric columns are dropped.
    ordered = sorted((column for column in columns if column is not None), key=lambda column: not column.index)
    lists = [column for column in ordered if column.numbers is not None and column.numbers.ndim == 2]
    if len(lists) > 1:
        raise ValueError(
            f"{path}: it holds {len(lists)} columns of lists; expected columns of numbers, or one of lists"
        )
    dropped = [f"{title} (type)" for title, column in zip(table.column_names, columns, strict=False) if column is None]
    if lists:
        beside = [column for column in ordered if column not in lists and column.role == "number"]
        dropped += [f"{column.heading} (beside lists)" for column in beside]
        ordered = [column for column in ordered if column not in beside]
    try:
        rows = named_rows(ordered)
        return replace(rows, ignored=(*rows.ignored, *dropped))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _arrow_column(title: str, column: Any, index: bool) -> TableColumn | None:
    """A column of a parquet file; None for a type that is not used here, such as a date."""
    from pyarrow import float64, types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    text = any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_boolean))
    called = "" if UNNAMED.fullmatch(title) else title.strip().lower()
    if text or index or called in ROLES:
        return TableColumn(called, column.to_pylist(), None, text, index, heading=title)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        rows = np.array(column.to_pylist(), dtype=np.float64)
        if rows.ndim != 2:
            raise ValueError(f"column {title!r} holds lists of lists, or nothing; expected one list for each row")
        return TableColumn(called, (), rows, False, heading=title)
    if types.is_decimal(kind) or types.is_null(kind):
        column = column.cast(float64())
    elif not types.is_integer(kind) and not types.is_floating(kind):
        return None
    return TableColumn(called, (), column.to_numpy(zero_copy_only=False).astype(np.float64), False, heading=title)


def _range_column(index: dict[str, Any], rows: int) -> TableColumn | None:
    """The index that pandas stores only as a range; None if its length does not fit the table."""
    span = range(index["start"], index["stop"], index["step"])
    return None if len(span) != rows else TableColumn(str(index["name"] or "").lower(), span, None, False, index=True)


def _decoded_bytes(metadata: Any) -> int:
    """The decoded size of a parquet file at 8 bytes per value: run-length encoding can hide any number of values."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    return sum(8 * group.column(index).num_values for group in groups for index in range(group.num_columns))
