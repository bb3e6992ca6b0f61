"""Load sets of texts: class names with prompts, lines of a file, columns of a table, captions."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from blindmatch.encoders import coco
from blindmatch.encoders.datasets import DATASETS
from blindmatch.encoders.items import TextSet
from blindmatch.encoders.prompts import (
    check_unique,
    class_names,
    describe_synsets,
    disambiguated,
    fill,
    read_lines,
    templates,
)
from blindmatch.errors import unknown_name
from blindmatch.io.files import reading, text_of
from blindmatch.io.table_files import parquet_table

TEXT_COLUMNS = ("text", "texts", "caption", "sentence", "name", "label")


def load_texts(
    source: str | Path | Sequence[str],
    *,
    prompts: str | Path | Sequence[str] | None = None,
    column: str | None = None,
    split: str | None = None,
    root: str | Path = "data",
    download: bool = False,
    wordnet: str | Path | None = None,
) -> TextSet:
    """Load texts by the name of a dataset, from a file, or from a list.

    Parameters
    ----------
    source
        A list; a ``.txt`` file with one text per line; a ``.csv``, ``.tsv`` or ``.parquet`` table; a folder whose
        subfolders are classes; ``cifar10``, ``cifar100``, ``cinic10``, ``imagenet100`` for their class names; ``coco``
        for its captions; ``hf:NAME`` for a dataset of the Hugging Face hub.
    prompts
        Templates into which each text is inserted (see `templates`); the texts are then class names, which must differ.
        A named dataset uses its own templates by default.
    column
        The column of a table that holds the texts.
    wordnet
        The folder of WordNet 3.0, for definitions.
    """
    if not isinstance(source, str | Path):
        found = TextSet("texts", tuple(source), tuple(source))
    elif str(source) in DATASETS and not Path(source).exists():
        if source == "coco":
            return coco.load_captions(split or "val", Path(root), download)
        return of_classes(str(source), class_names(str(source)), prompts or str(source), wordnet=wordnet)
    elif str(source).startswith("hf:"):
        from blindmatch.encoders.hub_datasets import load_texts as load_hub

        found = load_hub(str(source).removeprefix("hf:"), split or "test", column, download)
    else:
        found = _from_path(Path(source), column)
    for place, text in enumerate(found.texts):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{found.name}: text {place + 1} is {text!r}; expected words")
    if not found.texts:
        raise ValueError(f"{found.name}: no text in it")
    return found if prompts is None else of_classes(found.name, found.texts, prompts, wordnet=wordnet)


def of_classes(
    name: str,
    classes: Sequence[str],
    prompts: str | Path | Sequence[str],
    *,
    definitions: Sequence[str] | None = None,
    wordnet: str | Path | None = None,
) -> TextSet:
    """The prompts of the classes as one set; classes that are WordNet numbers get names and definitions."""
    chosen = templates(prompts)
    if all(len(word) == 9 and word[0] == "n" and word[1:].isdecimal() for word in classes):
        words, definitions = describe_synsets(classes, wordnet)
        names = disambiguated(words, classes)
    else:
        words, names = list(classes), tuple(classes)
    check_unique(names, name)
    filled = fill(words, chosen, definitions)
    rows = [(text, names[c], c) for c, group in enumerate(filled) for text in group]
    texts, owners, labels = zip(*rows, strict=True)
    return TextSet(name, texts, owners, labels, tuple(names), chosen)


def _from_path(path: Path, column: str | None) -> TextSet:
    if path.is_dir():
        names = tuple(
            folder.name.replace("_", " ").strip()
            for folder in sorted(path.iterdir())
            if folder.is_dir() and not folder.name.startswith(".")
        )
        if not names:
            raise ValueError(f"{path}: it has no subfolder whose name could be a class")
        check_unique(names, str(path))
        return TextSet(path.resolve().name, names, names)
    kind = path.suffix.lower()
    if kind == ".txt":
        lines = tuple(line.strip() for line in read_lines(path))
        check_unique(lines, str(path))
        return TextSet(path.stem, lines, lines)
    if kind in (".csv", ".tsv"):
        columns = _read_csv(path)
    elif kind == ".parquet":
        columns = _read_parquet(path)
    elif not path.exists() and "/" not in str(path) and not kind:
        raise unknown_name("texts", str(path), [*DATASETS, "hf:NAME", "a file", "a folder"])
    else:
        path.open("rb").close()  # raises the usual error if the file is missing
        raise ValueError(f"{path}: unknown file type {kind!r}; expected .txt, .csv, .tsv, .parquet or a folder")
    return _from_columns(path, columns, column)


def _from_columns(path: Path, columns: dict[str, list[str]], column: str | None) -> TextSet:
    known = list(columns)
    chosen = column or next((name for name in known if name.lower() in TEXT_COLUMNS), known[0] if known else None)
    if chosen is None or chosen not in columns:
        raise ValueError(f"{path}: it has no column {column or 'of texts'}; it holds {', '.join(known) or 'nothing'}")
    texts = tuple(columns[chosen])
    owner = next((name for name in known if name.lower() in ("name", "id") and name != chosen), None)
    return TextSet(path.stem, texts, texts if owner is None else tuple(columns[owner]), about={"column": chosen})


def _read_csv(path: Path) -> dict[str, list[str]]:
    try:
        text = text_of(path)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
    with reading(path, path.suffix):
        delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;", key=text.partition("\n")[0].count)
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
    if len(rows) < 2:
        raise ValueError(f"{path}: expected a header line and texts below it")
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise ValueError(f"{path}: row {number} has {len(row)} cells, the first has {len(rows[0])}")
    return {name.strip(): [row[place] for row in rows[1:]] for place, name in enumerate(rows[0])}


def _read_parquet(path: Path) -> dict[str, list[str]]:
    table = parquet_table(path)
    from pyarrow import types

    kinds = {field.name: field.type for field in table.schema}
    texts = [name for name, kind in kinds.items() if types.is_string(kind) or types.is_large_string(kind)]
    with reading(path, ".parquet"):
        return {name: table.column(name).to_pylist() for name in texts}
