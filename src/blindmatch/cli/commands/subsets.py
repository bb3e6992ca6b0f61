"""``subsets``: which items of two paired sets agree best."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blindmatch.cli import options as opt
from blindmatch.cli.app import command
from blindmatch.cli.console import echo_json, output, plain

if TYPE_CHECKING:
    from blindmatch.io.embeddings import Embeddings
    from blindmatch.matching.subsets import Subsets
    from blindmatch.validation import IntArray


@dataclass(frozen=True)
class SubsetOptions:
    """Arguments of ``best_subsets``."""

    size: int
    k: int = 10
    distortion: str = "gw"
    scale: str = "none"
    metric: str = "euclidean"
    neighbors: str | None = None
    engine: str = "search"
    time_limit: Any = None
    rng: Any = 0
    threads: int | None = None


@command(
    "blindmatch subsets images.npz texts.npz --size 20",
    "blindmatch subsets images.npz texts.npz --size 10 -k 3 --engine exact --time-limit 60",
    "blindmatch subsets images.npz texts.npz --size 20 -k 10 --json",
    "blindmatch subsets images.npz texts.npz --size 20 --out best",
    "blindmatch match best/source.npz best/target.npz --truth rows",
)
def subsets(source: Path, target: Path, how: SubsetOptions, out: opt.File = None, json: bool = False) -> None:
    """Find the subsets of paired items whose relations agree best.

    The true pairing of such a subset costs little.
    Another pairing may cost even less: run 'match' on the files that --out writes.
    """
    from blindmatch.cli.answers import print_all
    from blindmatch.cli.inputs import side_of
    from blindmatch.cli.outputs import Delivery, check_outputs
    from blindmatch.cli.pairs import relation
    from blindmatch.cli.progress import busy
    from blindmatch.cli.tables import Tables
    from blindmatch.io.embeddings import load_embeddings
    from blindmatch.matching.subsets import best_subsets

    one, other = load_embeddings(source), load_embeddings(target)
    sides = {"source.npz": one, "target.npz": other}
    if out is not None:
        if out.exists() and not out.is_dir():
            raise ValueError(f"--out {out}: this is a file; expected a folder")
        out.mkdir(exist_ok=True)
        check_outputs({f"--out, {name}": out / name for name in sides}, (source, target))
    tables = Tables.scaled(one, other, how.scale)
    with tables.warned(), busy(f"looking for subsets of {how.size} items ({how.engine})", how.time_limit):
        found = best_subsets(side_of(one), side_of(other), **{**vars(how), **relation(how.metric, how.neighbors)})
    names = one.names or other.names
    if json:
        named = {} if names is None else {"names": [[names[i] for i in subset] for subset in found.subsets]}
        echo_json({**found.to_dict(), **named, "columns": tables.to_dict()})
    else:
        _show(found, names, len(one.values))
        print_all(tables.texts)
    delivery = Delivery(json)
    if out is not None and found.subsets:
        for name, side in sides.items():
            delivery.write(out / name, partial(_write, side, names, found.subsets[0]))
        delivery.announce(f"Best subset: {out / 'source.npz'} {out / 'target.npz'}")
    delivery.end("these are the best so far" if found.status == "interrupted" else "")


def _write(side: Embeddings, names: tuple[str, ...] | None, rows: IntArray, path: Path) -> None:
    """Some rows of the embeddings, with their names."""
    import numpy as np

    from blindmatch.io.files import write_atomically

    arrays: dict[str, Any] = {"embeddings": side.values[rows]}
    if side.parts:
        arrays["views"] = np.array([label for label, _ in side.parts])
        arrays["widths"] = np.array([values.shape[1] for _, values in side.parts])
    called = side.names or names
    if called is not None:
        arrays["names"] = np.array([called[i] for i in rows])
    write_atomically(path, lambda file: np.savez(file, **arrays))


def _show(found: Subsets, names: tuple[str, ...] | None, count: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from blindmatch.report.verdict import lower_number, number

    table = Table(show_edge=False, pad_edge=False)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("items", overflow="fold")
    for subset, cost in zip(found.subsets, found.costs, strict=True):
        words = (str(i) if names is None else plain(names[i]) for i in subset)
        table.add_row(number(float(cost)), Text("; ".join(words)))
    text = {
        "optimal": f"Proved: no other subset is cheaper than the last of these ({found.engine}).",
        "heuristic": "Found by search: there is no proof that none is cheaper.",
        "time_limit": "The time limit ended the run.",
        "interrupted": "The run was interrupted.",
    }[found.status]
    if found.subsets and len(found.subsets[0]) == count:
        text = "This is the only subset of that size: all items."
    bound = "" if found.lower_bound is None else f" No subset costs less than {lower_number(found.lower_bound)}."
    output().print(table, Text(text + bound), sep="\n")
