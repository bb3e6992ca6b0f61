"""Read tables from text, parquet, Excel, JSON and SQLite files; `columns` decides what each column is for."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sqlite3
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from blindmatch.errors import shown, unknown_name
from blindmatch.io.columns import UNNAMED, Table, has_titles
from blindmatch.io.files import RATIO, UNPACKED, missing_package, reading, refuse_bomb, refuse_endless, text_of

EXCEL, DATABASES = (".xlsx", ".xlsm"), (".db", ".sqlite", ".sqlite3")
_SEPARATOR = re.compile(r"sep=([,;\t])\r?\n", re.IGNORECASE)  # Excel reads such a first line, and does not show it
_PAGE = re.compile(r"\s*<(!doctype html|html)\b", re.IGNORECASE)
_CELLS = UNPACKED // 8  # that a table may have
_LINES = 1 << 20  # that Excel can show
_LONGEST = 1 << 20  # bytes of a cell in a database


def split_part(path: str | Path) -> tuple[Path, str | None]:
    """The file and the sheet or table of ``file.xlsx:Sheet`` and ``file.db:table``; None if there is none."""
    file, colon, part = str(path).rpartition(":")
    return (Path(file), part) if colon and Path(file).suffix.lower() in (*EXCEL, *DATABASES) else (Path(path), None)


def read_table(path: Path, part: str | None = None) -> Table:
    """The cells of a file; `part` is the sheet or the table of a file that has several."""
    suffix = path.suffixes[-2] if path.suffix.lower() == ".gz" and len(path.suffixes) > 1 else path.suffix
    if suffix.lower() in EXCEL:
        return _excel(path, part)
    if suffix.lower() in DATABASES:
        return _database(path, part)
    if suffix.lower() == ".parquet":
        return arrow_cells(parquet_table(path))
    return _json_lines(path) if suffix.lower() == ".jsonl" else _text(path)


def _text_of(path: Path) -> str:
    try:
        if path.suffix.lower() != ".gz":
            text = text_of(path)
        else:
            with reading(path, ".gz"), gzip.open(path) as file:
                limit = max(UNPACKED, RATIO * path.stat().st_size)
                packed = file.read(limit + 1)
                if len(packed) > limit:
                    raise ValueError(f"it unpacks to more than {limit:,} bytes")
            text = packed.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(f"{path}: not a text file in UTF-8; save it with that encoding (Excel: 'CSV UTF-8')")
    return text


def _text(path: Path) -> Table:
    text = _text_of(path)
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
    return _with_titles(path, rows, delimiter)


def _with_titles(path: Path, rows: Sequence[tuple[int, Sequence[Any]]], delimiter: str = ",") -> Table:
    try:
        words = [["" if cell is None else str(cell).strip() for cell in row] for _, row in rows]
        titles = words[0] if rows and has_titles(words) else None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    kept = rows if titles is None else rows[1:]
    if not kept:
        raise ValueError(f"{path}: it is empty: no row of numbers in it")
    columns = [list(column) for column in zip(*(row for _, row in kept), strict=True)]
    return Table(titles, columns, [line for line, _ in kept], delimiter=delimiter)


def _excel(path: Path, part: str | None) -> Table:
    """A sheet of a spreadsheet: the named one, or the only one with something in it."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise missing_package(path, "openpyxl", "tables") from None
    with reading(path, path.suffix):
        refuse_endless(path)
        with zipfile.ZipFile(path) as archive:
            refuse_bomb(sum(member.file_size for member in archive.infolist()), path.stat().st_size)
        with closing(load_workbook(path, read_only=True, data_only=True)) as book:
            sheets = {sheet.title: sheet for sheet in book.worksheets}
            name = _choose(path, part, list(sheets), "sheet")
            sheets[name].reset_dimensions()  # what the file announces may be absurd
            rows = _filled_rows(sheets[name].iter_rows(values_only=True))
    width = max((len(row) for _, row in rows), default=0)
    return _with_titles(path, [(line, [*row, *[None] * (width - len(row))]) for line, row in rows])


def _filled_rows(rows: Iterable[Sequence[Any]]) -> list[tuple[int, list[Any]]]:
    """The rows that are not empty, without empty cells at their end, and their numbers."""
    kept, cells = [], 0
    for line, row in enumerate(rows, 1):
        last = max((place for place, cell in enumerate(row) if cell not in (None, "")), default=-1)
        cells += 1 + last
        if cells > _CELLS or line > _LINES:
            raise ValueError(f"it has more than {_CELLS:,} cells, or more than {_LINES:,} lines")
        if last >= 0:
            kept.append((line, [_strip(cell) for cell in row[: last + 1]]))
    return kept


def _database(path: Path, part: str | None) -> Table:
    """A table of an SQLite database: the named one, or the only one."""
    with reading(path, "SQLite"):
        path.open("rb").close()
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            base.execute("PRAGMA trusted_schema=OFF")
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)  # a column can be computed by the database
            known = base.execute("SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite%'")
            name = _choose(path, part, [str(row[0]) for row in known], "table")
            found = base.execute('SELECT * FROM "{}"'.format(name.replace('"', '""')))  # nosec B608: it has this table
            titles = [str(column[0]) for column in found.description]
            rows, total = [], 0
            for row in found:
                rows.append(row)
                total += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
                if len(rows) * len(titles) > _CELLS:
                    break
                refuse_bomb(total, path.stat().st_size)
    if not rows or len(rows) * len(titles) > _CELLS:
        raise ValueError(f"{path}: {name!r} has {len(rows)} rows; expected up to {_CELLS // len(titles):,}, and one")
    return Table(titles, [list(column) for column in zip(*rows, strict=True)], range(1, len(rows) + 1))


def _choose(path: Path, part: str | None, known: list[str], kind: str) -> str:
    if part is not None and part not in known:
        raise ValueError(f"{path}: {unknown_name(kind, part, known)}")
    if part is None and len(known) != 1:
        some = f"; choose one, as in {path.name}:{known[0]}" if known else ""
        raise ValueError(f"{path}: it has {len(known)} {kind}s ({', '.join(known)[:200]}){some}")
    return known[0] if part is None else part


def _json_lines(path: Path) -> Table:
    with reading(path, ".jsonl"):
        lines = [(line, text) for line, text in enumerate(_text_of(path).splitlines(), 1) if text.strip()]
        rows = [(line, json.loads(text)) for line, text in lines]
    for line, row in rows:
        if not isinstance(row, dict):
            raise ValueError(f"{path}: line {line} holds {shown(row, 60)}; expected an object such as {{'x': 1}}")
    if not rows:
        raise ValueError(f"{path}: it is empty")
    titles = {title for _, row in rows for title in row}
    if len(titles) * len(rows) > _CELLS:
        raise ValueError(f"{path}: {len(rows)} rows with {len(titles)} different keys; expected up to {_CELLS:,} cells")
    return record_cells([row for _, row in rows], [line for line, _ in rows])


def record_cells(records: Sequence[dict[Any, Any]], lines: Sequence[int] | None = None) -> Table:
    """The cells of dictionaries, one for each row; what a row lacks is missing."""
    titles = list(dict.fromkeys(title for record in records for title in record))
    cells = [[_strip(record.get(title)) for record in records] for title in titles]
    return Table([str(title) for title in titles], cells, lines)


def _strip(cell: Any) -> Any:
    return cell.strip() if isinstance(cell, str) else cell


def frame_cells(frame: Any) -> Table | None:
    """The cells of a data frame of pandas, polars, pyarrow or any other library that exports Arrow; None if it is none.

    The libraries convert their own types to numbers and to objects of Python.
    """
    package = type(frame).__module__.partition(".")[0]
    if package == "pandas" and hasattr(frame, "columns"):
        indices = [frame.index.get_level_values(level) for level in range(frame.index.nlevels)]
        titles = ["" if name is None else str(name) for name in frame.index.names]
        columns = [*indices, *(frame.iloc[:, place] for place in range(frame.shape[1]))]
        titles += [str(title) for title in frame.columns]
        return Table(titles, [_pandas_cells(column) for column in columns], None, range(len(indices)))
    if package == "polars" and hasattr(frame, "collect"):
        frame = frame.collect()
    if package == "polars" and hasattr(frame, "columns"):
        numeric = [series.dtype.is_numeric() and not series.dtype.is_decimal() for series in frame]
        cells = [
            series.cast(float).to_numpy() if number else series.to_list()
            for series, number in zip(frame, numeric, strict=True)
        ]
        return Table(list(frame.columns), cells)
    if package == "pyarrow" and hasattr(frame, "column_names"):
        return arrow_cells(frame, file=False)
    if hasattr(frame, "__arrow_c_stream__") and hasattr(frame, "columns"):
        from pyarrow import table

        return arrow_cells(table(frame), file=False)
    return None


def _pandas_cells(column: Any) -> Any:
    kind = getattr(column.dtype, "numpy_dtype", column.dtype)
    if isinstance(kind, np.dtype) and kind.kind in "biuf":
        gaps = bool(column.isna().any())
        return column.to_numpy(dtype=np.float64, na_value=np.nan) if gaps else column.to_numpy(dtype=kind)
    missing = column.isna()
    return [None if gone else _strip(cell) for cell, gone in zip(column.tolist(), missing, strict=True)]


def parquet_table(path: Path) -> Any:
    """The pyarrow table of a parquet file, which may not unpack to an absurd size."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise missing_package(path, "pyarrow") from None
    with reading(path, ".parquet"):
        path.open("rb").close()  # raises the usual error if the file is missing
        file = parquet.ParquetFile(str(path))
        size, groups = path.stat().st_size, [file.metadata.row_group(at) for at in range(file.num_row_groups)]
        columns = [group.column(at) for group in groups for at in range(group.num_columns)]
        # Run-length encoding can hide any number of values, and a dictionary any number of copies of a text.
        refuse_bomb(sum(max(8 * each.num_values, each.total_uncompressed_size) for each in columns), size)
        texts = sorted({each.path_in_schema for each in columns if each.physical_type == "BYTE_ARRAY"})
        if texts:
            coded = parquet.ParquetFile(str(path), read_dictionary=texts).read(columns=texts)
            refuse_bomb(sum(_text_bytes(chunk) for column in coded.columns for chunk in column.chunks), size)
        return file.read()


def _text_bytes(array: Any) -> int:
    """The size of the texts of an Arrow array, each as often as it occurs."""
    from pyarrow import compute, types

    kind = array.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _text_bytes(array.flatten())
    if types.is_struct(kind):
        return sum(map(_text_bytes, array.flatten()))
    if not types.is_dictionary(kind) or str(kind.value_type).removeprefix("large_") not in ("string", "binary"):
        return 0
    lengths = compute.binary_length(array.dictionary).take(array.indices)
    return int(compute.sum(compute.cast(lengths, "int64")).as_py() or 0)


def arrow_cells(table: Any, *, file: bool = True) -> Table:
    """The cells of an Arrow table, with the index if pandas wrote it."""
    from pyarrow import types

    metadata = table.schema.pandas_metadata or {}
    indices = metadata.get("index_columns", [])
    titles = list(table.column_names)
    numeric = [types.is_integer(field.type) or types.is_floating(field.type) for field in table.schema]
    cells: list[Any] = [
        column.to_numpy(zero_copy_only=False) if number else column.to_pylist()
        for column, number in zip(table.columns, numeric, strict=True)
    ]
    index = [place for place, title in enumerate(titles) if title in indices or UNNAMED.fullmatch(title)]
    for span in (index for index in indices if isinstance(index, dict)):  # pandas stores a range as its ends
        counted = range(span["start"], span["stop"], span["step"])
        if len(counted) == table.num_rows:
            index.append(len(titles))
            titles.append(str(span["name"] or ""))
            cells.append(counted)
    return Table(titles, cells, range(1, table.num_rows + 1) if file else None, index)
