"""Items by name or index: pairs of them in options and files; names, pictures and true partners for people."""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from blindmatch.cli.options import Given
from blindmatch.io.embeddings import Embeddings
from blindmatch.io.files import bytes_of, text_of
from blindmatch.problem.task import Task
from blindmatch.report import Match
from blindmatch.report.pictures import ALL_OF_THEM, thumbnails
from blindmatch.solving.result import Result

SAME_ROWS, SAME_NAMES = "rows", "names"  # words for --truth in place of a file
Pictures = dict[int, bytes]
Partners = tuple[list[int], list[int]]  # sources and targets with the same names


def item_files(given: Given) -> list[Path]:
    """The files that are read; of pictures, only the lists of them."""
    files = (given.source_names, given.target_names, given.source_images, given.target_images)
    truth = [] if given.truth in (None, SAME_ROWS, SAME_NAMES) else [Path(given.truth)]
    return [*(path for path in files if path is not None and not path.is_dir()), *truth]


def check_items(given: Given) -> None:
    """Refuse pictures without a report to show them, and a truth that is neither a file nor one of two words."""
    if given.truth not in (None, SAME_ROWS, SAME_NAMES) and not Path(given.truth).exists():
        raise ValueError(f"--truth {given.truth}: no such file, and neither '{SAME_ROWS}' nor '{SAME_NAMES}'")
    for option, path in (("--source-images", given.source_images), ("--target-images", given.target_images)):
        if path is not None and "report" in vars(given) and given.report is None:
            raise ValueError(f"{option} {path}: pictures are shown in a report; add --report FILE")


def with_names(given: Given, source: Embeddings, target: Embeddings) -> tuple[Embeddings, Embeddings]:
    """The embeddings with the names from these files, if any."""
    if given.source_names is not None:
        source = replace(source, names=tuple(_lines(given.source_names, len(source), "--source-names")))
    if given.target_names is not None:
        target = replace(target, names=tuple(_lines(given.target_names, len(target), "--target-names")))
    return source, target


def partners(
    given: Given, source: Embeddings, target: Embeddings, permutation: Sequence[int] | None = None
) -> list[int] | None:
    """The true partner of each source, -1 if it has none; None if nothing is known.

    With names that occur several times, a pair of the match is true if its names agree.
    """
    if given.truth is None:
        return None
    if given.truth == SAME_ROWS:
        return [i if i < len(target) else -1 for i in range(len(source))]
    rows = _same_names(source, target) if given.truth == SAME_NAMES else _list_partners(given.truth, source, target)
    found = [-1] * len(source) if permutation is None else permutation
    # Of targets with the same name each is right: first those that the match chose, then any that are left.
    true, taken = [-1] * len(source), set[int]()
    for sources, targets in rows:
        allowed = set(targets)
        for i in sources:
            if found[i] in allowed:
                true[i] = found[i]
                taken.add(found[i])
        left = iter([j for j in targets if j not in taken])
        for i in sources:
            if true[i] < 0:
                true[i] = next(left, -1)
    return true


def _list_partners(truth: str, source: Embeddings, target: Embeddings) -> list[Partners]:
    rows = [
        (_places(left, source.names, where), _places(right, target.names, where))
        for where, left, right in _rows(Path(truth))
    ]
    if not rows:
        raise ValueError(f"--truth {truth}: there is no pair in it; expected one 'source,target' per line")
    found: tuple[dict[int, Partners], dict[int, Partners]] = ({}, {})
    for row in rows:
        i, j = row[0][0], row[1][0]
        if i >= len(source) or j >= len(target):
            sizes = f"there are {len(source)} sources and {len(target)} targets"
            raise ValueError(f"--truth {truth}: ({i}, {j}) is out of range; {sizes}")
        if found[0].setdefault(i, row) != row or found[1].setdefault(j, row) != row:
            raise ValueError(f"--truth {truth}: source {i} or target {j} has two partners; expected one each")
    return list(found[0].values())


def match_to_show(given: Given, result: Result) -> Match:
    """A saved match with what these files know about its items."""
    task = result.task
    if not isinstance(task, Task):
        if given.changed("items"):
            raise ValueError("--truth, names and images are for embeddings; a problem has only indices")
        return Match(result)
    source, target = Embeddings(task.sides[0], task.source_names), Embeddings(task.sides[1], task.target_names)
    source, target = with_names(given, source, target)
    task = task.changed(source_names=source.names, target_names=target.names)
    images = pictures(given, source, target)
    truth = partners(given, source, target, result.permutation.tolist())
    return Match(replace(result, task=task), result.assessment, truth, images[0], images[1])


def pictures(given: Given, source: Embeddings, target: Embeddings) -> tuple[Pictures | None, Pictures | None]:
    """Small pictures of the items, as far as there are any."""
    sides = (given.source_images, source, "--source-images"), (given.target_images, target, "--target-images")
    room = ALL_OF_THEM // max(1, sum(path is not None for path, _, _ in sides))
    found: list[Pictures | None] = []
    for path, items, option in sides:
        if path is None:
            found.append(None)
            continue
        if path.is_dir():
            files = _in_folder(path, items, option)
        else:  # a file with the path of a picture on each line, relative to the file; an empty line for none
            files = {item: path.parent / line for item, line in enumerate(_lines(path, len(items), option)) if line}
        found.append(thumbnails({item: (str(file), bytes_of(file)) for item, file in files.items()}, room))
    return found[0], found[1]


def _lines(path: Path, count: int, option: str) -> list[str]:
    """The lines of a text file, one per item; empty lines at the end are ignored."""
    try:
        lines = [line.strip() for line in text_of(path).splitlines()]
    except UnicodeDecodeError:
        raise ValueError(f"{option} {path}: not a text file with one line per item") from None
    while len(lines) > count and not lines[-1]:
        del lines[-1]
    if len(lines) != count:
        raise ValueError(f"{option} {path}: has {len(lines)} lines; expected {count}, one for each item")
    return lines


def _same_names(source: Embeddings, target: Embeddings) -> list[Partners]:
    if source.names is None or target.names is None:
        raise ValueError("--truth names: both files need names; see --source-names and --target-names")
    rows: dict[str, Partners] = {name: ([], []) for name in source.names}
    for i, name in enumerate(source.names):
        rows[name][0].append(i)
    for j, name in enumerate(target.names):
        if name in rows:
            rows[name][1].append(j)
    if not any(targets for _, targets in rows.values()):
        raise ValueError(f"--truth names: no name is in both files ({source.names[0]!r}, {target.names[0]!r}, ...)")
    return list(rows.values())


def _in_folder(folder: Path, items: Embeddings, option: str) -> dict[int, Path]:
    """The pictures of a folder: by the names of the items if any match, or in order if all are numbered.

    In a folder with a subfolder for each item, as 'embed classes' takes it, the first picture of each subfolder.
    """
    from blindmatch.encoders.item_sets import SUFFIXES  # a tenth of a second, for those who show pictures

    def in_order(path: Path) -> list[tuple[int, str]]:  # 2.png before 10.png
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.name)]

    def inside(place: Path) -> list[Path]:
        return sorted((file for file in place.iterdir() if file.suffix.lower() in SUFFIXES), key=in_order)

    files, names = inside(folder), items.names or ()
    called = {file.stem: file for file in reversed(files)} | {file.name: file for file in files}
    found = {item: called[name] for item, name in enumerate(names) if name in called}
    if found:
        return found
    folders = {item: folder / name for item, name in enumerate(names) if (folder / name).is_dir()}
    found = {item: first for item, place in folders.items() for first in inside(place)[:1]}
    if found:
        return found
    # With any other names, the order could be wrong without anybody noticing.
    if len(files) == len(items) and all(re.search(r"\d", file.stem) for file in files):
        return dict(enumerate(files))
    raise ValueError(
        f"{option} {folder}: has {len(files)} pictures, none of them named like an item; expected such names, or "
        f"{len(items)} pictures with numbers in their names, or a file that lists them"
    )


def pairs_given(
    option: str, words: Sequence[str], file: Path | None, source: Embeddings, target: Embeddings
) -> list[tuple[int, int]]:
    """The pairs that an option and a file name, as indices."""
    pairs = []
    for word in words:
        left, colon, right = word.partition(":")
        if not colon:
            raise ValueError(f"{option} {word}: expected SOURCE:TARGET, for example 0:4")
        pairs.append((f"{option} {word}", left, right))
    if file is not None:
        pairs += _rows(file)
    found = []
    try:
        for where, *sides in pairs:
            places = [_places(word, each.names, where) for word, each in zip(sides, (source, target), strict=True)]
            for word, items in zip(sides, places, strict=True):
                if len(items) > 1:
                    raise ValueError(f"{where}: the name {word!r} occurs {len(items)} times; expected once")
            found.append((places[0][0], places[1][0]))
    except ValueError as error:
        if not any(word.count(":") > 1 for word in words):
            raise
        others = {"--known": "--known-pairs", "--forbid": "--forbidden-pairs"}[option]
        raise ValueError(f"{error}; names with a colon go into a file for {others}") from None
    return found


def _rows(path: Path) -> list[tuple[str, str, str]]:
    """The place of each pair, and its two sides; a first line "source,target" is skipped."""
    try:
        lines = csv.reader(io.StringIO(text_of(path), newline=""))
        rows = [(number, row) for number, row in enumerate(lines, 1) if any(row)]
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path}: not a text file with one 'source,target' per line") from None
    if rows and [cell.strip().lower() for cell in rows[0][1]] == ["source", "target"]:
        del rows[0]
    for number, row in rows:
        if len(row) != 2:
            raise ValueError(f"{path}: line {number} has {len(row)} cells; expected 'source,target'")
    return [(f"{path}: line {number}", row[0].strip(), row[1].strip()) for number, row in rows]


def _places(word: str, names: Sequence[str] | None, where: str) -> list[int]:
    """The indices of a name; a word that is no name is an index. Items may have numbers as names."""
    places = [index for index, name in enumerate(names or ()) if name == word]
    if places or word.isdecimal():
        return places or [int(word)]
    if names is None:
        raise ValueError(f"{where}: {word!r} is not an index, and the file holds no names")
    near = difflib.get_close_matches(word, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{where}: no item is called {word!r}{hint}")
