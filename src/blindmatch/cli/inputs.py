"""What the commands read: a problem from one file, or from two files of embeddings."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blindmatch.distortion import as_distortion
from blindmatch.embeddings import Embeddings, load_embeddings
from blindmatch.files import load_problem
from blindmatch.matching import without_dummies
from blindmatch.problem import QAP
from blindmatch.result import Result
from blindmatch.validation import FloatArray, as_pairs

Names = tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Loaded:
    """A problem, and what is known about its items."""

    problem: QAP
    kernels: tuple[FloatArray, FloatArray] | None = None
    source_names: Names = None
    target_names: Names = None

    def unpadded(self, result: Result) -> Result:
        """The result for the items that there are: sets of unequal sizes are filled up with dummies to solve."""
        if self.kernels is None:
            return result
        return without_dummies(result, *(len(kernel) for kernel in self.kernels))


@dataclass(frozen=True)
class ProblemFile:
    """A quadratic assignment problem in a file."""

    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return (self.path,)

    @property
    def settings(self) -> dict[str, str]:
        """What was asked for, for the report."""
        return {"problem": self.path.name}

    def load(self) -> Loaded:
        """Read the file."""
        return Loaded(load_problem(self.path))


@dataclass(frozen=True)
class EmbeddingFiles:
    """Two files of embeddings, and how they are compared."""

    source: Path
    target: Path
    distortion: str = "gw"
    standardize: bool = True
    known: tuple[str, ...] = ()
    known_file: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return (self.source, self.target, *([self.known_file] if self.known_file else []))

    @property
    def settings(self) -> dict[str, str]:
        """What was asked for, for the report."""
        known = [*self.known, *([self.known_file.name] if self.known_file else [])]
        return {
            "source": self.source.name,
            "target": self.target.name,
            "distortion": self.distortion,
            "standardize": str(self.standardize),
            "known pairs": ", ".join(known) or "none",
        }

    def load(self) -> Loaded:
        """Read both files and build the problem."""
        distortion = as_distortion(self.distortion, self.standardize)
        source, target = load_embeddings(self.source), load_embeddings(self.target)
        kernels = distortion.kernels(source.values, target.values)
        problem = distortion.problem_of(*kernels)
        known = as_pairs(self._known_pairs(source, target), (len(source), len(target)), "known pairs")
        if known:
            problem = problem.with_known_pairs(known)
        return Loaded(problem, kernels, source.names, target.names)

    def _known_pairs(self, source: Embeddings, target: Embeddings) -> list[tuple[int, int]]:
        pairs = []
        for word in self.known:
            left, colon, right = word.partition(":")
            if not colon:
                raise ValueError(f"--known {word}: expected SOURCE:TARGET, for example 0:4")
            pairs.append((f"--known {word}", left, right))
        if self.known_file is not None:
            pairs += _read_pairs(self.known_file)
        return [(_index(left, source.names, where), _index(right, target.names, where)) for where, left, right in pairs]


def _read_pairs(path: Path) -> list[tuple[str, str, str]]:
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
    """An index as it is, a name by its place."""
    if word.isdecimal():
        return int(word)
    if names is None:
        raise ValueError(f"{where}: {word!r} is not an index, and the file holds no names")
    places = [index for index, name in enumerate(names) if name == word]
    if len(places) != 1:
        raise ValueError(f"{where}: the name {word!r} occurs {len(places)} times; expected once")
    return places[0]
