"""Sets of texts: class names in prompts, WordNet definitions, lines of a file, columns of a table."""

from __future__ import annotations

import functools
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from blindmatch.encoders.item_sets import TextSet
from blindmatch.errors import pip_install, unknown_name
from blindmatch.io.files import text_of
from blindmatch.io.table_files import DATABASES, EXCEL, read_table, split_part

WORDNET_FOLDERS = ("/usr/share/wordnet", "/usr/share/wordnet/dict", "/usr/local/WordNet-3.0/dict")


@functools.cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(files("blindmatch.encoders").joinpath("prompts.toml").read_text("utf-8"))


def class_names(dataset: str) -> tuple[str, ...]:
    """The classes of a dataset; for imagenet100 their WordNet numbers."""
    known = _tables()["classes"]
    if dataset not in known:
        raise unknown_name("dataset", dataset, known)
    return tuple(known[dataset])


def templates(prompts: str | Path | Sequence[str]) -> tuple[str, ...]:
    """Prompt templates by name, from a file (one per line) or as given; ``{}`` stands for the class.

    Parameters
    ----------
    prompts
        ``cifar`` (18), ``imagenet`` (80), ``imagenet7``, ``name``, ``definition``; a dataset's name for the set that it
        uses (``cifar10``, ``cifar100``, ``cinic10``, ``imagenet100``); a text file; or a list.

    Examples
    --------
    >>> len(templates("cifar10")), templates("cifar10")[0]
    (18, 'a photo of a {}.')
    """
    if isinstance(prompts, Sequence) and not isinstance(prompts, str):
        found = tuple(prompts)
    elif Path(prompts).is_file():
        found = tuple(line.strip() for line in read_lines(Path(prompts)))
    else:
        known, uses = _tables()["templates"], _tables()["dataset"]
        name = uses.get(str(prompts), str(prompts))
        if name not in known:
            raise unknown_name("prompts", str(prompts), [*known, *uses])
        found = tuple(known[name])
    if not found:
        raise ValueError(f"prompts={prompts!r} has no template")
    for template in found:
        fields = re.findall(r"\{(.*?)\}", template)
        if "" not in fields or not set(fields) <= {"", "definition"}:
            raise ValueError(f"prompts: {template!r} is not a template; expected one {{}} for the name of the class")
    return found


def fill(names: Sequence[str], prompts: Sequence[str], definitions: Sequence[str] | None = None) -> list[list[str]]:
    """The prompts of each class."""
    if definitions is None and any("{definition}" in template for template in prompts):
        raise ValueError("the prompts need definitions; pass them, or WordNet numbers (n02123045) as classes")
    explained = [""] * len(names) if definitions is None else definitions
    return [
        [template.replace("{}", name).replace("{definition}", text) for template in prompts]
        for name, text in zip(names, explained, strict=True)
    ]


def describe_synsets(numbers: Sequence[str], wordnet: str | Path | None = None) -> tuple[list[str], list[str]]:
    """Names and definitions of WordNet 3.0 nouns by their ImageNet numbers (``n02123045``).

    Parameters
    ----------
    wordnet
        The folder or file ``data.noun`` of WordNet 3.0. By default where Debian's ``wordnet-base`` puts it; failing
        that, the tables that timm carries for ImageNet's classes.
    """
    for number in numbers:
        if not re.fullmatch(r"n\d{8}", number):
            raise ValueError(f"class {number!r} is not a WordNet number; expected n and eight digits, like n02123045")
    if wordnet is not None:
        given = Path(wordnet)
        path: Path | None = given / "data.noun" if given.is_dir() else given
    else:
        path = next((file for folder in WORDNET_FOLDERS if (file := Path(folder, "data.noun")).is_file()), None)
    entries = _from_wordnet(path, set(numbers)) if path is not None else _from_timm(set(numbers))
    missing = [number for number in numbers if number not in entries]
    if missing:
        raise ValueError(f"{path or 'timm'}: no entry for {', '.join(missing[:5])}")
    return [entries[number][0] for number in numbers], [entries[number][1] for number in numbers]


def _from_wordnet(path: Path, wanted: set[str]) -> dict[str, tuple[str, str]]:
    """Lines "02123045 05 n 01 tabby 0 ... | a cat with a grey coat"; examples after a semicolon are left out."""
    entries = {}
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            number = f"n{line[:8]}"
            if number in wanted:
                head, _, gloss = line.partition("|")
                entries[number] = (head.split()[4].replace("_", " "), gloss.partition('; "')[0].strip())
    return entries


def _from_timm(wanted: set[str]) -> dict[str, tuple[str, str]]:
    try:
        from timm.data import ImageNetInfo
    except (ImportError, RuntimeError):
        raise ImportError(
            f"definitions need WordNet 3.0 (Debian: apt-get install wordnet-base) or timm: {pip_install('encoders')}"
        ) from None
    info = ImageNetInfo("imagenet-1k")
    entries = {}
    for number in wanted & set(info.label_names()):
        names, _, definition = info.label_name_to_description(number, detailed=True).partition(": ")
        entries[number] = (names.partition(",")[0], definition)
    return entries


def disambiguate(names: Sequence[str], numbers: Sequence[str]) -> tuple[str, ...]:
    """Append the WordNet number to names that occur more than once (there are two cranes)."""
    return tuple(
        name if list(names).count(name) == 1 else f"{name} ({number})"
        for name, number in zip(names, numbers, strict=True)
    )


def check_unique(names: Sequence[str], where: str) -> None:
    """Refuse equal class names, which the result could not distinguish."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"{where}: class names occur twice: {', '.join(twice[:5])}")


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    try:
        lines = text_of(path).splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
    return [line for line in lines if line.strip()]


_TABLES = (".csv", ".tsv", ".jsonl", ".parquet", *EXCEL, *DATABASES)
TEXT_COLUMNS = ("text", "texts", "caption", "sentence", "name", "label")


def text_set_of_classes(
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
        names = disambiguate(words, classes)
    else:
        words, names = list(classes), tuple(classes)
    check_unique(names, name)
    filled = fill(words, chosen, definitions)
    rows = [(text, names[c], c) for c, group in enumerate(filled) for text in group]
    texts, owners, labels = zip(*rows, strict=True)
    return TextSet(name, texts, owners, labels, tuple(names), chosen)


def read_texts(path: Path, column: str | None) -> TextSet:
    """Read the names of subfolders, the lines of a ``.txt`` file, or one column of a table."""
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
    if path.suffix.lower() == ".txt":
        lines = tuple(line.strip() for line in read_lines(path))
        check_unique(lines, str(path))
        return TextSet(path.stem, lines, lines)
    file, part = split_part(path)
    if file.suffix.lower() not in _TABLES:
        path.open("rb").close()  # raises the usual error if the file is missing
        kinds = ", ".join(_TABLES)
        raise ValueError(f"{path}: unknown file type {path.suffix.lower()!r}; expected .txt, {kinds} or a folder")
    table = read_table(file, part)
    if table.titles is None:
        raise ValueError(f"{path}: expected a header line and texts below it")
    columns = dict(zip(table.titles, table.columns, strict=True))
    known = [title for title, cells in columns.items() if any(isinstance(cell, str) for cell in cells)]
    chosen = column or next((name for name in known if name.lower() in TEXT_COLUMNS), known[0] if known else None)
    if chosen is None or chosen not in known:
        raise ValueError(f"{path}: it has no column {column or 'of texts'}; it holds {', '.join(known) or 'nothing'}")
    texts = tuple(columns[chosen])
    owner = next((name for name in known if name.lower() in ("name", "id") and name != chosen), None)
    return TextSet(file.stem, texts, texts if owner is None else tuple(columns[owner]), about={"column": chosen})
