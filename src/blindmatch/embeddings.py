"""Embeddings from files: numbers, and the names and labels that may come with them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindmatch.files import Arrays, read_npy, read_npz, reading, refuse_bomb
from blindmatch.validation import FloatArray, as_floats

NAME_COLUMNS = ("name", "names", "id", "index", "")
LABEL_COLUMNS = ("label", "labels", "class")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """One set of embeddings.

    Attributes
    ----------
    values
        (n, d) float64, all finite.
    names
        What each row is, for people.
    labels
        (n,) the class of each row.
    """

    values: FloatArray
    names: tuple[str, ...] | None = None
    labels: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.values)


def load_embeddings(path: str | Path) -> Embeddings:
    """Read embeddings from a file; what is wrong with it is told in a ValueError that names the file.

    Parameters
    ----------
    path
        ``.npy``: an (n, d) array. ``.npz`` and ``.safetensors``: the array ``embeddings`` or the only one with two
        axes, with ``names`` and ``labels`` beside it. ``.csv``, ``.tsv`` and ``.parquet``: a row for each item, numeric
        columns, and columns called ``name`` and ``label`` if there are such; in a table of text the first column may
        hold the names without being called so. ``.parquet`` may hold one column of lists instead.
    """
    readers = {
        ".npy": lambda file: _checked(file, read_npy(file)),
        ".npz": lambda file: _from_arrays(file, read_npz(file)),
        ".safetensors": _read_safetensors,
        ".parquet": _read_parquet,
        ".csv": _read_text,
        ".tsv": _read_text,
    }
    suffix = Path(path).suffix.lower()
    if suffix not in readers:
        raise ValueError(f"{path}: unknown kind of file {suffix!r}; expected {', '.join(readers)}")
    return readers[suffix](Path(path))


def _checked(path: Path, values: ArrayLike, names: Any = None, labels: Any = None) -> Embeddings:
    """Put together what a file holds; each part is checked."""
    numbers = as_floats(values, str(path))
    for what, column in (("names", names), ("labels", labels)):
        if column is not None and np.shape(column) != (len(numbers),):
            raise ValueError(
                f"{path}: {what} has shape {np.shape(column)}; expected one for each of {len(numbers)} rows"
            )
    texts = None if names is None else tuple(_text(name) for name in names)
    return Embeddings(numbers, texts, None if labels is None else np.asarray(labels))


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _from_arrays(path: Path, arrays: Arrays) -> Embeddings:
    if "embeddings" in arrays:
        values = arrays["embeddings"]
    else:
        candidates = [name for name, array in arrays.items() if array.ndim == 2]
        if len(candidates) != 1:
            found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
            raise ValueError(f"{path}: expected an array 'embeddings' or a single one with two axes; it holds {found}")
        values = arrays[candidates[0]]
    return _checked(path, values, arrays.get("names"), arrays.get("labels"))


def _read_safetensors(path: Path) -> Embeddings:
    """Tensors by name; names of rows as a JSON list in the file's metadata, for tensors hold no text."""
    try:
        from safetensors import safe_open
    except ImportError:
        raise _missing_package(path, "safetensors") from None
    with reading(path, ".safetensors"):
        path.open("rb").close()  # for the error of a file that is missing
        with safe_open(str(path), framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
            metadata = file.metadata() or {}
        if "names" in metadata:
            arrays["names"] = np.array(json.loads(metadata["names"]), dtype=str)
    return _from_arrays(path, arrays)


def _read_parquet(path: Path) -> Embeddings:
    try:
        from pyarrow import parquet, types
    except ImportError:
        raise _missing_package(path, "pyarrow") from None
    with reading(path, ".parquet"):
        path.open("rb").close()
        file = parquet.ParquetFile(str(path))
        refuse_bomb(_decoded_bytes(file.metadata), path.stat().st_size)
        table = file.read()
        kinds = {name: table.schema.field(name).type for name in table.column_names}
        lists = [name for name, kind in kinds.items() if types.is_list(kind) or types.is_fixed_size_list(kind)]
        texts = [name for name, kind in kinds.items() if types.is_string(kind) or types.is_large_string(kind)]
        names = [name for name in kinds if name.lower() in NAME_COLUMNS] or texts[:1]
        labels = [name for name in kinds if name.lower() in LABEL_COLUMNS]
        used = {*names, *labels}
        numeric = [name for name, kind in kinds.items() if _is_number(types, kind) and name not in used]
        if len(lists) == 1:
            values = np.array(table.column(lists[0]).to_pylist(), dtype=np.float64)
        elif numeric and not lists:
            columns = [table.column(name).to_numpy(zero_copy_only=False) for name in numeric]
            values = np.stack(columns, axis=1).astype(np.float64)
        else:
            raise ValueError(
                f"expected numeric columns or one column of lists; it holds {', '.join(kinds) or 'nothing'}"
            )
        chosen = [table.column(column[0]).to_pylist() if column else None for column in (names, labels)]
    return _checked(path, values, *chosen)


def _decoded_bytes(metadata: Any) -> int:
    """What the values of a parquet file take, at 8 bytes each: run lengths may stand for any number of them."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    return sum(8 * group.column(index).num_values for group in groups for index in range(group.num_columns))


def _is_number(types: Any, kind: Any) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _missing_package(path: Path, package: str) -> ImportError:
    return ImportError(f"{path}: this kind of file needs the package {package}: pip install 'blindmatch[files]'")


def _read_text(path: Path) -> Embeddings:
    """A table of text, separated by commas, semicolons or tabs."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
    with reading(path, path.suffix):
        delimiter = max(",;\t", key=text.partition("\n")[0].count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    width = len(rows[0][1]) if rows else 0
    for line, row in rows:
        if len(row) != width:
            raise ValueError(f"{path}: line {line} has {len(row)} cells, the first has {width}")
    header = rows.pop(0)[1] if rows and _is_header([row for _, row in rows]) else [None] * width
    if not rows:
        raise ValueError(f"{path}: empty, no row of numbers in it")
    return _from_columns(path, header, rows)


def _from_columns(path: Path, header: Sequence[str | None], rows: list[tuple[int, list[str]]]) -> Embeddings:
    special: dict[str, int] = {}
    for index, title in enumerate(header):
        if title is not None and title.lower() in NAME_COLUMNS and (title or index == 0):
            special.setdefault("names", index)
        elif title is not None and title.lower() in LABEL_COLUMNS:
            special.setdefault("labels", index)
    if "names" not in special and 0 not in special.values() and not all(_is_numeric(row[0]) for _, row in rows):
        special["names"] = 0
    columns = [index for index in range(len(header)) if index not in special.values()]
    if not columns:
        raise ValueError(f"{path}: no column of numbers in it")
    values = np.empty((len(rows), len(columns)))
    for at, (line, row) in enumerate(rows):
        for to, index in enumerate(columns):
            try:
                values[at, to] = float(row[index])
            except ValueError:
                cell = row[index][:80]
                raise ValueError(f"{path}: line {line}, column {index + 1}: {cell!r} is not a number") from None
    extras = {what: [row[index] for _, row in rows] for what, index in special.items()}
    return _checked(path, values, **extras)


def _is_header(rows: list[list[str]]) -> bool:
    """Whether the first row names the columns: it has no number, or is the ",0,1,2" that data frames write."""
    first = rows[0]
    if first[0] == "" and first[1:] == [str(index) for index in range(len(first) - 1)]:
        return True
    if len(first) == 1:
        return not _is_numeric(first[0])
    return not any(_is_numeric(cell) for cell in first[1:])


def _is_numeric(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
