"""Deliver answers: to stdout first, then to files, whose paths are checked before the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import typer

from blindmatch.cli.console import FAILED, complain, drop_stdout, interruption, output, reason
from blindmatch.cli.options import Given
from blindmatch.cli.progress import busy
from blindmatch.io.cells import SUFFIX, annotate_files, split_key
from blindmatch.io.exchange import csv_text
from blindmatch.io.files import is_stream, write_text
from blindmatch.matching.projection import project
from blindmatch.report import Match, write_report
from blindmatch.solving.result import Result

_WRITTEN = ("output", "certificate", "report", "save", "solution", "checkpoint", "log", "out", "to", "store", "csv")
_SUFFIXES = {"--report": (".html", ".htm"), "--certificate": (".npz",), "--save": (".npz",), "--solution": (".sln",)}


def check_outputs(given: Given, inputs: Iterable[Path | None] = (), **suffixes: str) -> None:
    """Refuse, before a long run, the files of a command that cannot be written. `suffixes` are those of its own."""
    paths = {f"--{name}": vars(given).get(name) for name in _WRITTEN}
    check_paths(paths, inputs, {f"--{name}": (suffix,) for name, suffix in suffixes.items()})


def check_paths(
    outputs: Mapping[str, Path | None],
    inputs: Iterable[Path | None] = (),
    suffixes: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Refuse, before a long run, paths that cannot be written or that would overwrite another file of the run."""
    read, endings = {_identity(path) for path in inputs if path is not None}, {**_SUFFIXES, **(suffixes or {})}
    seen: dict[object, str] = {}
    for option, path in outputs.items():
        if not isinstance(path, Path) or (option == "--log" and path == Path("-")):  # a switch may have such a name
            continue
        if path.is_dir():
            raise ValueError(f"{option} {path}: it is a folder; expected a file")
        if not path.parent.is_dir():
            raise ValueError(f"{option} {path}: expected a file in a folder that exists")
        if path.exists() and not os.access(path, os.W_OK):
            raise ValueError(f"{option} {path}: this file may not be written to")
        if is_stream(path):  # a device or a pipe: nothing is overwritten
            continue
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise ValueError(f"{option} {path}: its folder may not be written to")
        place = _identity(path)
        if place in read:
            raise ValueError(f"{option} {path}: this would overwrite an input")
        if place in seen:
            raise ValueError(f"{seen[place]} and {option} name the same file {path}")
        seen[place] = option
        wanted = endings.get(option)
        if wanted is not None and path.suffix.lower() not in wanted:
            hint = "; for standard output use /dev/stdout" if str(path) == "-" else ""
            if option == "--report" and path.suffix.lower() == ".pdf":
                hint = "; a browser prints the page as PDF"
            raise ValueError(f"{option} {path}: expected a file name that ends with {wanted[0]}{hint}")


def _identity(path: Path) -> object:
    """The same for all names of a file, also by hard links."""
    status = path.stat() if path.exists() else None
    return path.resolve() if status is None else (status.st_dev, status.st_ino)


def write_page(match: Match, path: Path) -> None:
    """Write the report of a match."""
    with busy("writing the report"):
        write_report(path, match)


class Delivery:
    """Delivers an answer: each part is tried whether or not the others failed; `end` exits with code 1 if one failed.

    Printing comes first, because a full disk must not cost the answer. Files are written even if stdout is closed.
    With `json`, stdout gets nothing but JSON: files are not announced.
    """

    def __init__(self, json: bool = False) -> None:
        self._json, self._failed, self._unproved = json, False, False
        self._broken: BrokenPipeError | SystemExit | None = None

    def show(self, print_it: Callable[[], None]) -> None:
        """Print something on stdout."""
        if self._broken is not None:
            return
        try:
            print_it()
        except (BrokenPipeError, SystemExit) as error:  # rich ends the program itself
            self._broken = error
        except OSError as error:
            drop_stdout()
            self._failed = True
            complain(f"standard output: {reason(error)}")

    def announce(self, text: str) -> None:
        """Print where something is: a line that is not wrapped, so that the path can be copied."""
        if not self._json:
            self.show(lambda: output().print(text, markup=False, soft_wrap=True))

    def write(self, path: Path | None, write_it: Callable[[Path], object], what: str = "") -> bool:
        """Write a file, if there is one to write, and announce `what` it is; returns whether it was written."""
        if path is None:
            return False
        try:
            write_it(path)
        except (OSError, ValueError) as error:
            self._failed = True
            complain(f"{path}: not written: {reason(error) if isinstance(error, OSError) else error}")
            return False
        if what:
            self.announce(f"{what}: {path}")
        return True

    def write_certificate(self, path: Path | None, result: Result, what: str = "") -> bool:
        """Write the proof; the command fails at its end if there is none."""
        if result.certificate is not None:
            return Delivery.write(self, path, result.certificate.save, what)
        if path is not None:
            self._unproved = True
            complain(f"{path}: not written, because solver={result.solver!r} left no certificate")
        return False

    def end(self, cut: str = "") -> None:
        """Exit with code 1 if something failed, or as interrupted if `cut` says what an interrupt left."""
        if cut:
            complain(f"interrupted; {cut}")
        if self._broken is not None:
            raise self._broken
        if self._failed:
            raise typer.Exit(FAILED)
        if cut:
            raise interruption()
        if self._unproved:
            raise typer.Exit(FAILED)


def write_table(columns: Mapping[str, Iterable[object]], path: Path) -> None:
    """Write columns of equal length as CSV."""
    write_text(path, csv_text([columns, *zip(*columns.values(), strict=True)]))


def check_partners(given: Given) -> None:
    """Refuse, before a long run, a file of partners that cannot be written."""
    output = given.output
    if given.candidates < 0:
        raise ValueError(f"--candidates {given.candidates}: expected a number of at least 0")
    if output is None:
        return
    if output.suffix.lower() not in (".csv", SUFFIX) and not is_stream(output):
        raise ValueError(f"--output {output}: expected a file name that ends with .csv or {SUFFIX}")
    others = {split_key(path)[0].suffix.lower() for path in (given.source, given.target)} - {SUFFIX}
    if output.suffix.lower() == SUFFIX and others:
        raise ValueError(f"--output {output}: expected .csv, because SOURCE and TARGET are not both {SUFFIX} files")


def write_partners(match: Match, inputs: tuple[Path, Path], candidates: int, path: Path) -> None:
    """Write a table, one line for each source; or the source's AnnData file with its partners in it."""
    if path.suffix.lower() != SUFFIX:
        table = match.table(candidates)
        if match.confidence is not None:
            table["confidence"] = [f"{share:.4f}" if np.isfinite(share) else "" for share in match.confidence]
        return write_table(table, path)
    # The distances to all other sources would take too much memory for a large match.
    known = match.kernels is not None and len(match.result.pairs) > 0
    points = project(match.result).points if known else None
    annotate_files(inputs, path, match.result.permutation, confidence=match.confidence, projected=points)
