"""``subsets`` and ``compare``: sets whose items are paired already."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from blindmatch.cli.answers import command_line, print_all
from blindmatch.cli.console import echo_json, output, plain, plain_table
from blindmatch.cli.inputs import relation, side_of
from blindmatch.cli.options import Given
from blindmatch.cli.outputs import Delivery, check_outputs, check_paths, write_table
from blindmatch.cli.progress import busy, show_progress
from blindmatch.cli.texts import Tables
from blindmatch.io.embeddings import SUFFIXES, Embeddings, load_embeddings
from blindmatch.io.files import write_atomically
from blindmatch.matching.subsets import Subsets, best_subsets
from blindmatch.report import comparison
from blindmatch.report.verdict import lower_number, number
from blindmatch.validation import IntArray

_ENDS = {
    "heuristic": "Found by search: there is no proof that none is cheaper.",
    "time_limit": "The time limit ended the run.",
    "interrupted": "The run was interrupted.",
}


def subsets(given: Given) -> None:
    """Find the subsets of paired items whose relations agree best."""
    source, target, out = given.source, given.target, given.out
    one, other = load_embeddings(source), load_embeddings(target)
    sides = {"source.npz": one, "target.npz": other}
    if out is not None:
        if out.exists() and not out.is_dir():
            raise ValueError(f"--out {out}: this is a file; expected a folder")
        out.mkdir(exist_ok=True)
        check_paths({f"--out, {name}": out / name for name in sides}, (source, target))
    tables = Tables.scaled(one, other, given.scale)
    with tables.warn_of_units(), busy(f"looking for subsets of {given.size} items ({given.engine})", given.time_limit):
        same = ("size", "k", "distortion", "scale", "engine", "time_limit", "rng", "threads")
        options = {name: getattr(given, name) for name in same}
        found = best_subsets(side_of(one), side_of(other), **options, **relation(given))
    names = one.names or other.names
    if given.json:
        named = {} if names is None else {"names": [[names[i] for i in subset] for subset in found.subsets]}
        echo_json({**found.to_dict(), **named, "columns": tables.to_dict()})
    else:
        _show(found, names, len(one.values))
        print_all(tables.texts)
    delivery = Delivery(given.json)
    if out is not None and found.subsets:
        for name, side in sides.items():
            delivery.write(out / name, partial(_write, side, names, found.subsets[0]))
        delivery.announce(f"Best subset: {out / 'source.npz'} {out / 'target.npz'}")
    delivery.end("these are the best so far" if found.status == "interrupted" else "")


def _write(side: Embeddings, names: tuple[str, ...] | None, rows: IntArray, path: Path) -> None:
    arrays: dict[str, Any] = {"embeddings": side.values[rows]}
    if side.parts:
        arrays["views"] = np.array([label for label, _ in side.parts])
        arrays["widths"] = np.array([values.shape[1] for _, values in side.parts])
    called = side.names or names
    if called is not None:
        arrays["names"] = np.array([called[i] for i in rows])
    write_atomically(path, lambda file: np.savez(file, **arrays))


def _show(found: Subsets, names: tuple[str, ...] | None, count: int) -> None:
    table = plain_table("cost>|", "items")
    for subset, cost in zip(found.subsets, found.costs, strict=True):
        words = (str(i) if names is None else plain(names[i]) for i in subset)
        table.add_row(number(float(cost)), Text("; ".join(words)))
    proved = f"Proved: no other subset is cheaper than the last of these ({found.engine})."
    text = proved if found.status == "optimal" else _ENDS[found.status]
    if found.subsets and len(found.subsets[0]) == count:
        text = "This is the only subset of that size: all items."
    bound = "" if found.lower_bound is None else f" No subset costs less than {lower_number(found.lower_bound)}."
    output().print(table, Text(text + bound), sep="\n")


_HEADS = ("CKA", "mutual k-NN", "loss of truth", "right", "proved", "p", "cycle closes", "then right")


def compare(given: Given) -> None:
    """Match every pair of models of the same items blindly."""
    models = _models(given.folder, [path for path in (given.store, given.csv, given.report) if path is not None])
    check_outputs(given)
    names, delivery = ("distortion", "time_limit", "draws", "rng", "threads", "store"), Delivery(given.json)
    with show_progress("comparing") as line:
        step = None if line is None else partial(line.step, "pairs of models")
        found = comparison.compare(models, callback=step, **{name: getattr(given, name) for name in names})
    rows = [dict(zip(found.table, row, strict=True)) for row in zip(*found.table.values(), strict=True)]
    delivery.show(lambda: echo_json(rows) if given.json else _print(found))
    delivery.write(given.csv, partial(write_table, found.table), "Table")
    delivery.write(given.report, partial(found.report, command=command_line()), "Report")
    delivery.end("these are the finished pairs" if found.interrupted else "")


def _models(folder: Path, written: list[Path]) -> dict[str, Path]:
    """The models of a folder by their file names, without the files that are to be written."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder with a file of embeddings for each model")
    others = {path.resolve() for path in written}
    files = sorted(
        path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.resolve() not in others
    )
    if len(files) < 2:
        raise ValueError(
            f"{folder}: has {len(files)} files of embeddings; expected two or more ({', '.join(SUFFIXES)})"
        )
    stems = [path.stem for path in files]
    return {path.name if stems.count(path.stem) > 1 else path.stem: path for path in files}


def _print(found: comparison.Comparison) -> None:
    table = plain_table("model", "model", *(f"{head}>" for head in _HEADS))
    for pair, cycle in zip(found.pairs, found.cycles, strict=True):
        numbers = (f"{value:.2f}" for value in (pair.cka, pair.mutual_knn, pair.truth_loss))
        p = "" if pair.p_value is None else f"{pair.p_value:.3f}"
        proved = ("as stated" if pair.stated else "yes") if pair.proved else "no"
        closed = ("" if share is None else f"{share:.0%}" for share in cycle)
        table.add_row(plain(pair.one), plain(pair.other), *numbers, f"{pair.accuracy:.0%}", proved, p, *closed)
    output().print(table)
