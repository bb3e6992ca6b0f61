"""What the command line says about pairs: known, forbidden, alike, unmatched. By name or by index, or in files."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blindmatch.io.embeddings import Embeddings, load_embeddings
from blindmatch.problem.hints import Hints


@dataclass(frozen=True)
class PairOptions:
    """The options that ``match`` and ``verify`` share: the same ones make the same problem."""

    known: tuple[str, ...] = ()
    known_file: Path | None = None
    forbidden: tuple[str, ...] = ()
    forbidden_file: Path | None = None
    similarity: Path | None = None
    similarity_weight: float = 1.0
    unmatched_cost: float | None = None
    max_unmatched: int | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        files = (self.known_file, self.forbidden_file, self.similarity)
        return tuple(path for path in files if path is not None)

    @property
    def settings(self) -> dict[str, str]:
        """What was asked for, for the report."""
        chosen = {"known pairs": ", ".join(_told(self.known, self.known_file)) or "none"}
        forbidden = _told(self.forbidden, self.forbidden_file)
        if forbidden:
            chosen["forbidden pairs"] = ", ".join(forbidden)
        if self.similarity is not None:
            chosen["similarity"] = f"{self.similarity.name}, weight {self.similarity_weight:g}"
        if self.unmatched_cost is not None:
            most = "" if self.max_unmatched is None else f", at most {self.max_unmatched}"
            chosen["unmatched"] = f"{self.unmatched_cost:g} each{most}"
        return chosen

    def hints(self, source: Embeddings, target: Embeddings) -> Hints:
        """Read the files, look names up, and check it all."""
        hints = Hints.of(
            (len(source), len(target)),
            known_pairs=_pairs("--known", self.known, self.known_file, source, target),
            forbidden_pairs=_pairs("--forbid", self.forbidden, self.forbidden_file, source, target),
            similarity=None if self.similarity is None else load_embeddings(self.similarity).values,
            similarity_weight=self.similarity_weight,
            unmatched_cost=self.unmatched_cost,
            max_unmatched=self.max_unmatched,
        )
        if self.similarity is None and self.similarity_weight != 1.0:
            raise ValueError(f"--similarity-weight {self.similarity_weight:g}: there is no --similarity to weigh")
        return hints


def _told(words: tuple[str, ...], file: Path | None) -> list[str]:
    return [*words, *([file.name] if file else [])]


def _pairs(
    option: str, words: tuple[str, ...], file: Path | None, source: Embeddings, target: Embeddings
) -> list[tuple[int, int]]:
    pairs = []
    for word in words:
        left, colon, right = word.partition(":")
        if not colon:
            raise ValueError(f"{option} {word}: expected SOURCE:TARGET, for example 0:4")
        pairs.append((f"{option} {word}", left, right))
    if file is not None:
        pairs += _rows(file)
    try:
        return [(_index(left, source.names, where), _index(right, target.names, where)) for where, left, right in pairs]
    except ValueError as error:
        if not any(word.count(":") > 1 for word in words):
            raise
        others = {"--known": "--known-pairs", "--forbid": "--forbidden-pairs"}[option]
        raise ValueError(f"{error}; names with a colon go into a file for {others}") from None


def read_pairs(path: Path, source: Embeddings, target: Embeddings) -> list[tuple[int, int]]:
    """The pairs of a file with a line 'source,target' each, by name or index."""
    return _pairs("", (), path, source, target)


def _rows(path: Path) -> list[tuple[str, str, str]]:
    """Where each pair stands, and its two sides; a first line "source,target" is skipped."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if any(row)]
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path}: not a text file with a line 'source,target' for each pair") from None
    if rows and [cell.strip().lower() for cell in rows[0][1]] == ["source", "target"]:
        del rows[0]
    for number, row in rows:
        if len(row) != 2:
            raise ValueError(f"{path}: line {number} has {len(row)} cells; expected 'source,target'")
    return [(f"{path}: line {number}", row[0].strip(), row[1].strip()) for number, row in rows]


def _index(word: str, names: Sequence[str] | None, where: str) -> int:
    """A name by its place, and what is no name as an index: items may be called by numbers, in another order."""
    places = [index for index, name in enumerate(names or ()) if name == word]
    if len(places) == 1:
        return places[0]
    if not places and word.isdecimal():
        return int(word)
    if names is None:
        raise ValueError(f"{where}: {word!r} is not an index, and the file holds no names")
    near = [] if places else difflib.get_close_matches(word, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "; expected once"
    raise ValueError(f"{where}: the name {word!r} occurs {len(places)} times{hint}")
