"""``compare``: which of several models of the same items agree."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from blindmatch.cli.answers import command_line
from blindmatch.cli.console import echo_json, output, plain, plain_table
from blindmatch.cli.options import Given
from blindmatch.cli.outputs import Delivery, check_outputs, write_table
from blindmatch.cli.progress import watched
from blindmatch.io.embeddings import SUFFIXES
from blindmatch.report.comparison import Comparison
from blindmatch.report.comparison import compare as compared

_HEADS = ("CKA", "mutual k-NN", "loss of truth", "right", "proved", "p", "cycle closes", "then right")


def compare(given: Given) -> None:
    """Match each two models of the same items blindly."""
    models = _models(given.folder, [path for path in (given.store, given.csv, given.report) if path is not None])
    check_outputs(given)
    names = ("distortion", "time_limit", "draws", "rng", "threads", "store")
    with watched("comparing") as line:
        step = None if line is None else partial(line.step, "pairs of models")
        found = compared(models, callback=step, **{name: getattr(given, name) for name in names})
    delivery = Delivery(given.json)
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


def _print(found: Comparison) -> None:
    table = plain_table("model", "model", *(f"{head}>" for head in _HEADS))
    for pair, cycle in zip(found.pairs, found.cycles, strict=True):
        numbers = (f"{value:.2f}" for value in (pair.cka, pair.mutual_knn, pair.truth_loss))
        p = "" if pair.p_value is None else f"{pair.p_value:.3f}"
        proved = ("as stated" if pair.stated else "yes") if pair.proved else "no"
        closed = ("" if share is None else f"{share:.0%}" for share in cycle)
        table.add_row(plain(pair.one), plain(pair.other), *numbers, f"{pair.accuracy:.0%}", proved, p, *closed)
    output().print(table)
