"""``compare``: which of several models of the same items agree."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blindmatch.cli import options as opt
from blindmatch.cli.app import command

if TYPE_CHECKING:
    from blindmatch.report.comparison import Comparison


@command(
    "blindmatch compare models/ --report compare.html",
    "blindmatch compare models/ --csv table.csv --store done.jsonl",
    "blindmatch compare models/ --draws 0 --json",
)
def compare(
    folder: Path,
    distortion: str = "gw",
    time_limit: float = 60.0,
    draws: int = 39,
    store: opt.File = None,
    csv: opt.File = None,
    report: opt.File = None,
    rng: Any = 0,
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Match each two models of the same items blindly: which agree, and whether the match is right."""
    from blindmatch.cli.answers import command_line
    from blindmatch.cli.console import echo_json
    from blindmatch.cli.outputs import Delivery, check_outputs, write_table
    from blindmatch.cli.progress import watched
    from blindmatch.report.comparison import compare as compared

    outputs = {"--store": store, "--csv": csv, "--report": report}
    models = _models(folder, [path for path in outputs.values() if path is not None])
    check_outputs(outputs)
    with watched("comparing", verbose=False, log=None) as line:
        step = None if line is None else partial(line.step, "pairs of models")
        found = compared(
            models,
            distortion=distortion,
            time_limit=time_limit,
            draws=draws,
            rng=rng,
            threads=threads,
            store=store,
            callback=step,
        )
    delivery = Delivery(json)
    rows = [dict(zip(found.table, row, strict=True)) for row in zip(*found.table.values(), strict=True)]
    delivery.show(lambda: echo_json(rows) if json else _print(found))
    delivery.write(csv, partial(write_table, found.table), "Table")
    delivery.write(report, partial(found.report, command=command_line()), "Report")
    delivery.end("these are the finished pairs" if found.interrupted else "")


def _models(folder: Path, written: list[Path]) -> dict[str, Path]:
    """The models of a folder by their file names, without the files that are to be written."""
    from blindmatch.io.embeddings import SUFFIXES

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
    from rich.table import Table

    from blindmatch.cli.console import output, plain

    table = Table(show_edge=False, pad_edge=False)
    heads = (
        "model",
        "model",
        "CKA",
        "mutual k-NN",
        "loss of truth",
        "right",
        "proved",
        "p",
        "cycle closes",
        "then right",
    )
    for at, head in enumerate(heads):
        table.add_column(head, justify="left" if at < 2 else "right")
    for pair, cycle in zip(found.pairs, found.cycles, strict=True):
        numbers = (f"{value:.2f}" for value in (pair.cka, pair.mutual_knn, pair.truth_loss))
        p = "" if pair.p_value is None else f"{pair.p_value:.3f}"
        proved = ("as stated" if pair.stated else "yes") if pair.proved else "no"
        closed = ("" if share is None else f"{share:.0%}" for share in cycle)
        table.add_row(plain(pair.one), plain(pair.other), *numbers, f"{pair.accuracy:.0%}", proved, p, *closed)
    output().print(table)
