"""Read embeddings from files, with their names and labels if there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindmatch.io.arrays import read_arrays
from blindmatch.io.cells import read_cells, split_key
from blindmatch.io.files import Arrays, read_npy
from blindmatch.io.table_files import read_parquet, read_text
from blindmatch.validation import FloatArray, as_floats


@dataclass(frozen=True, eq=False)
class Embeddings:
    """One set of embeddings.

    Attributes
    ----------
    values
        (n, d) float64, all finite.
    names
        A human-readable name for each row.
    labels
        (n,) the class of each row.
    columns
        Of a table: the titles of the columns that form the embedding. None for an array.
    ignored
        Of a table: the columns that were not used, and why.
    """

    values: FloatArray
    names: tuple[str, ...] | None = None
    labels: NDArray[Any] | None = None
    columns: tuple[str, ...] | None = None
    ignored: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)


Complete = Callable[[ArrayLike], ArrayLike]
SUFFIXES = (".npy", ".npz", ".safetensors", ".parquet", ".csv", ".tsv", ".h5ad")


def load_embeddings(path: str | Path, complete: Complete | None = None) -> Embeddings:
    """Read embeddings from a file; a ValueError names the file and says what is wrong with it.

    Parameters
    ----------
    path
        ``.npy``: an (n, d) array. ``.npz`` and ``.safetensors``: the array ``embeddings`` or the only two-dimensional
        array, and optionally ``names`` and ``labels``. ``.csv``, ``.tsv`` and ``.parquet``: one row per item with
        numeric columns. Columns called ``name``, ``label``, ``class``, ``id`` or ``index``, text columns and the index
        of a data frame are not part of the embedding. The first of them names the items, with ``name`` before all
        others, and ``label`` or ``class`` is their class. In text files the first row may be a header
        (``docs/embeddings.md`` has the rules). A ``.parquet`` file may have one column of lists instead. ``.h5ad``
        (AnnData): ``cells.h5ad#X_pca`` is its ``obsm["X_pca"]``; without a key, the only matrix in ``obsm``, or ``X``.
    complete
        Gets the numbers, nan where one is missing or a cell is empty, and returns them without gaps, such as
        ``bm.fill_missing`` for relations. Without it, files with gaps are refused.
    """
    path, key = split_key(path)
    suffix = path.suffix.lower()
    if path.is_dir() and suffix not in SUFFIXES:
        raise ValueError(f"{path}: it is a folder; expected a file ({', '.join(SUFFIXES)})")
    if suffix == ".dat":
        raise ValueError(f"{path}: a problem in QAPLIB format, not embeddings; 'blindmatch solve' and bm.solve take it")
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: unknown file type {suffix!r}; expected {', '.join(SUFFIXES)}")
    if suffix == ".npy":
        return _checked(path, complete, read_npy(path))
    if suffix in (".npz", ".safetensors"):
        return _from_arrays(path, complete, read_arrays(path))
    if suffix == ".h5ad":
        return _checked(path, complete, *read_cells(path, key))
    table = read_parquet(path) if suffix == ".parquet" else read_text(path, gaps=complete is not None)
    read = _checked(path, complete, table.values, table.names, table.labels)
    return replace(read, columns=table.used if len(table.used) == read.values.shape[1] else None, ignored=table.ignored)


def _checked(
    path: Path, complete: Complete | None, values: ArrayLike, names: Any = None, labels: Any = None
) -> Embeddings:
    """Build the embeddings from the contents of a file, and check each part."""
    numbers = as_floats(values if complete is None else complete(values), str(path))
    for what, column in (("names", names), ("labels", labels)):
        if column is not None and np.shape(column) != (len(numbers),):
            raise ValueError(
                f"{path}: {what} has shape {np.shape(column)}; expected one for each of {len(numbers)} rows"
            )
    texts = None if names is None else tuple(_text(name) for name in names)
    return Embeddings(numbers, texts, None if labels is None else np.asarray(labels))


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _from_arrays(path: Path, complete: Complete | None, arrays: Arrays) -> Embeddings:
    if "embeddings" in arrays:
        values = arrays["embeddings"]
    else:
        candidates = [name for name, array in arrays.items() if array.ndim == 2]
        if len(candidates) != 1:
            found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
            raise ValueError(f"{path}: expected an array 'embeddings' or a single one with two axes; it holds {found}")
        values = arrays[candidates[0]]
    return _checked(path, complete, values, arrays.get("names"), arrays.get("labels"))
