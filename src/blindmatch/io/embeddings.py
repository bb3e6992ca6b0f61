"""Read embeddings from files, with their names and labels if there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindmatch.errors import unknown_name
from blindmatch.io.cells import read_cells, split_key
from blindmatch.io.columns import DataColumn, Table, data_columns, rows_of
from blindmatch.io.files import Arrays, read_arrays, read_npy
from blindmatch.io.table_files import DATABASES, EXCEL, frame_cells, read_table, record_cells, split_part
from blindmatch.validation import FloatArray, as_floats

Complete = Callable[[ArrayLike], ArrayLike]
_PACKED = (".csv.gz", ".tsv.gz", ".jsonl.gz")
SUFFIXES = (
    *(".npy", ".npz", ".safetensors", ".parquet", ".csv", ".tsv", ".jsonl", *_PACKED, ".h5ad"),
    *(*EXCEL, *DATABASES),
)
_VIEWS = ("views", "widths")  # in a file of several models: what each is called, and how many columns it has
MISSING = ("drop", "median", "distance")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """One set of embeddings."""

    values: FloatArray  # (n, d), all finite; nan where a cell is missing, if ``missing="distance"`` was asked for
    names: tuple[str, ...] | None = None  # for people, one for each row
    labels: NDArray[Any] | None = None  # (n,) the class of each row
    columns: tuple[str, ...] | None = None  # of a table: the titles of those that form the embedding
    ignored: tuple[str, ...] = ()  # of a table: the columns that were not used, and why
    categories: int = 0  # how many columns, the last ones, hold codes of text
    gaps: str = ""  # what was done about missing cells, in words; empty if there were none
    # Of several files about the same items, or models in one file: the name and the numbers of each. `values` has them
    # side by side.
    parts: tuple[tuple[str, FloatArray], ...] = ()

    def __len__(self) -> int:
        return len(self.values)


def as_embeddings(given: Any, name: str, *, missing: str | None = None, categories: bool = False) -> Embeddings:
    """One side of a match, whatever it is given as: the one reader of Python and of the command line.

    Parameters
    ----------
    given
        A path; a data frame of pandas, polars or pyarrow; a list of dictionaries, one for each row; an (n, d) array.
    name
        What messages call it.
    missing
        What to do about missing cells: None refuses them, "drop" leaves their rows out, "median" fills in the median of
        the column, "distance" keeps nan, for distances over the cells that both rows have.
    categories
        Whether columns of text that repeats are part of the embedding, as codes.
    """
    if missing is not None and missing not in MISSING:
        raise unknown_name("missing", missing, MISSING)
    if isinstance(given, Embeddings):
        return given
    if isinstance(given, str | Path):
        return load_embeddings(given, missing=missing, categories=categories)
    table = record_cells(given) if _is_records(given) else frame_cells(given)
    if table is not None:
        return _of_table(table, name, None, missing, categories)
    if isinstance(given, list | tuple) and given and all(getattr(one, "ndim", 0) == 2 for one in given):
        raise ValueError(f"{name} is a list of {len(given)} arrays; several models of a side are bm.Views(A, B)")
    return _complete(Embeddings(as_floats(given, name, finite=False)), name, missing, "")


def table_columns(given: Any, name: str) -> list[DataColumn]:
    """The columns of a table, whatever it is given as, in which nothing is left out but an index."""
    table = None
    if isinstance(given, str | Path):
        (path, part), name = split_part(given), str(given)
        arrays = path.suffix.lower() in (".npy", ".npz", ".safetensors", ".h5ad") or path.suffix.lower() not in SUFFIXES
        given, table = (load_embeddings(given).values, None) if arrays else (given, read_table(path, part))
    elif _is_records(given):
        table = record_cells(given)
    else:
        table = frame_cells(given)
    if table is None:
        table = Table(None, list(as_floats(given, name, finite=False).T), None)
    columns = data_columns(table)
    if not columns or len(columns[0].values) < 3:
        raise ValueError(f"{name} has {len(columns)} columns; expected a table with columns, and three rows or more")
    return columns


def _is_records(given: Any) -> bool:
    return isinstance(given, list | tuple) and len(given) > 0 and all(isinstance(row, dict) for row in given)


def load_embeddings(
    path: str | Path, complete: Complete | None = None, *, missing: str | None = None, categories: bool = False
) -> Embeddings:
    """Read embeddings from a file; a ValueError names the file and says what is wrong with it.

    Parameters
    ----------
    path
        ``.npy``: an (n, d) array. ``.npz`` and ``.safetensors``: the array ``embeddings`` or the only two-dimensional
        array, and optionally ``names`` and ``labels``; of several models, ``views`` and ``widths`` say what each is
        called and how many columns it has. Tables (``.csv``, ``.tsv``, ``.jsonl``, also packed as ``.gz``,
        ``.parquet``, ``.xlsx``, SQLite) have one row per item with numeric columns. Columns called ``name``,
        ``label``, ``class``, ``id`` or ``index``, text columns and the index of a data frame are not part of the
        embedding. The first of them names the items, with ``name`` before all others, and ``label`` or ``class`` is
        their class. In text files the first row may be a header (``docs/tables.md`` has the rules). There may be one
        column of lists instead. ``file.xlsx:Sheet`` and ``file.db:table`` choose a part of a file. ``.h5ad``
        (AnnData): ``cells.h5ad#X_pca`` is its ``obsm["X_pca"]``; without a key, the only matrix in ``obsm``, or ``X``.
        ``a.npy+b.npy``: several files about the same items, in the same order.
    complete
        Gets the numbers, nan where one is missing, and returns them without gaps, such as ``bm.fill_missing`` for
        relations.
    missing, categories
        As in ``as_embeddings``.
    """
    several = split_parts(path)
    if len(several) > 1:
        return _join(
            [(part, load_embeddings(part, complete, missing=missing, categories=categories)) for part in several]
        )
    (path, part), given = split_part(path), str(path)
    path, key = split_key(path)
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = "".join(path.suffixes[-2:]).lower()
    if path.is_dir() and suffix not in SUFFIXES:
        raise ValueError(f"{path}: it is a folder; expected a file ({', '.join(SUFFIXES)})")
    if suffix == ".dat":
        raise ValueError(f"{path}: a problem in QAPLIB format, not embeddings; 'blindmatch solve' and bm.solve take it")
    if suffix not in SUFFIXES:
        remedy = "save it as .xlsx" if path.suffix.lower() in (".ods", ".xls") else f"expected {', '.join(SUFFIXES)}"
        raise ValueError(f"{path}: unknown file type {suffix!r}; {remedy}")
    arrays: dict[str, Any] = {}
    if suffix == ".npy":
        values: Any = read_npy(path)
    elif suffix == ".h5ad":
        values, arrays["names"] = read_cells(path, key)
    elif suffix in (".npz", ".safetensors"):
        arrays = read_arrays(path)
        values = _main_array(path, arrays)
    else:
        return _of_table(read_table(path, part), given, complete, missing, categories)
    numbers = as_floats(values if complete is None else complete(values), str(path), finite=False)
    names, labels = arrays.get("names"), arrays.get("labels")
    for what, column in (("names", names), ("labels", labels)):
        if column is not None and np.shape(column) != (len(numbers),):
            expected = f"one for each of {len(numbers)} rows"
            raise ValueError(f"{path}: {what} has shape {np.shape(column)}; expected {expected}")
    texts = None if names is None else tuple(_text(name) for name in names)
    read = Embeddings(numbers, texts, None if labels is None else np.asarray(labels))
    read = _complete(read, str(path), missing, "")
    return replace(read, parts=views_in(path, read.values, arrays))


def _of_table(table: Table, name: str, complete: Complete | None, missing: str | None, categories: bool) -> Embeddings:
    try:
        rows = rows_of(table, categories=categories, gaps=complete is not None)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    values = rows.values if complete is None else as_floats(complete(rows.values), name)
    names, labels = rows.names, rows.labels
    read = Embeddings(
        as_floats(values, name, finite=False),
        None if names is None else tuple(names),
        None if labels is None else np.asarray(labels),
        rows.used if len(rows.used) == values.shape[1] else None,
        rows.ignored,
        rows.categories,
    )
    return _complete(read, name, missing, rows.missing)


def _complete(read: Embeddings, name: str, missing: str | None, first: str) -> Embeddings:
    """The embeddings with something done about missing cells; `first` says where the first one is."""
    holes = np.isnan(read.values)
    if np.isinf(read.values).any():
        as_floats(read.values, name)  # it says where
    if not holes.any():
        return read
    row, column = np.argwhere(holes)[0].tolist()
    many = f"{holes.sum()} of {holes.size} cells {'is' if holes.sum() == 1 else 'are'} missing"
    if missing is None:
        where = f"in {first}" if first else f"at [{row}, {column}]"
        raise ValueError(
            f"{name}: {many}, the first {where}; fill {'it' if holes.sum() == 1 else 'them'} in, or use "
            "missing='drop' (rows), 'median' (of the column) or 'distance' (over the cells that both rows have), which "
            "bm.match and bm.Task take, and the command match as --missing"
        )
    if missing == "distance":
        return replace(read, gaps=f"{many}: distances over the cells that both rows have")
    if missing == "drop":
        whole = ~holes.any(axis=1)
        if not whole.any():
            raise ValueError(f"{name}: {many}, at least one in each row; missing='drop' would leave nothing")
        kept = np.flatnonzero(whole).tolist()
        names = tuple(str(at) if read.names is None else read.names[at] for at in kept)
        labels = None if read.labels is None else read.labels[whole]
        gaps = f"{many}: {len(read) - len(kept)} of {len(read)} rows left out"
        return replace(read, values=read.values[whole], names=names, labels=labels, gaps=gaps)
    empty = np.flatnonzero(holes.all(axis=0))
    if len(empty):
        raise ValueError(f"{name}: column {empty[0] + 1} has no number; missing='median' cannot fill it in")
    return replace(read, values=with_medians(read.values), gaps=f"{many}: filled in with the median of the column")


def with_medians(values: FloatArray) -> FloatArray:
    """The values with the median of its column for each missing one."""
    holes = np.isnan(values)
    return np.where(holes, np.nanmedian(values, axis=0), values) if holes.any() else values


def split_parts(path: str | Path) -> list[Path]:
    """The files of "a.npy+b.npy", which ends with such a file each time; a file whose name has a plus is one file."""
    words = str(path).split("+")
    if len(words) > 1 and not Path(path).exists():
        files = [split_key(split_part(word)[0])[0] for word in words]
        if all({file.suffix.lower(), "".join(file.suffixes[-2:]).lower()} & {*SUFFIXES} for file in files):
            return [Path(word) for word in words]
    return [Path(path)]


def has_views(path: str | Path) -> bool:
    """True for several files about the same items, and for one file with views of several models."""
    if len(split_parts(path)) > 1:
        return True
    return Path(path).suffix.lower() in (".npz", ".safetensors") and len(read_arrays(path, only=_VIEWS)) == len(_VIEWS)


def views_in(path: Path, values: FloatArray, arrays: Arrays) -> tuple[tuple[str, FloatArray], ...]:
    """The embeddings of each model, from a file that has the views of several side by side."""
    if not all(name in arrays for name in _VIEWS):
        return ()
    labels, widths = (arrays[name] for name in _VIEWS)
    fits = widths.ndim == 1 and widths.dtype.kind in "iu" and labels.shape == widths.shape and len(widths) > 0
    if not fits or widths.min() < 1 or widths.sum() != values.shape[1]:
        raise ValueError(f"{path}: views {labels.tolist()} have widths {widths.tolist()} of {values.shape[1]} columns")
    blocks = np.split(values, np.cumsum(widths)[:-1], axis=1)
    return tuple((_text(label), block) for label, block in zip(labels, blocks, strict=True))


def _join(parts: list[tuple[Path, Embeddings]]) -> Embeddings:
    first, read = parts[0]
    named = next(((path, one.names) for path, one in parts if one.names is not None), (first, None))
    for path, one in parts:
        if len(one) != len(read):
            raise ValueError(f"{path}: has {len(one)} items and {first} has {len(read)}; expected the same items")
        if one.names not in (None, named[1]):
            pairs = enumerate(zip(one.names or (), named[1] or (), strict=True))
            at, (own, other) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
            raise ValueError(
                f"{path}: item {at} is {own!r}, in {named[0]} it is {other!r}; expected the same items in order"
            )
    labels = next((one.labels for _, one in parts if one.labels is not None), None)
    arrays = tuple(part for path, one in parts for part in one.parts or [(path.stem, one.values)])
    return Embeddings(np.hstack([values for _, values in arrays]), named[1], labels, parts=arrays)


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _main_array(path: Path, arrays: Arrays) -> NDArray[Any]:
    if "embeddings" in arrays:
        return arrays["embeddings"]
    candidates = [name for name, array in arrays.items() if array.ndim == 2]
    if len(candidates) != 1:
        found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
        raise ValueError(f"{path}: expected an array 'embeddings' or a single one with two axes; it holds {found}")
    return arrays[candidates[0]]
