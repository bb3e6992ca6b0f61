"""``subsets``: which items of two paired sets agree best."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command
from blindmatch.cli.console import complain, echo_json, interrupted, output, plain

if TYPE_CHECKING:
    from blindmatch.matching.subsets import Subsets


@dataclass(frozen=True)
class SubsetOptions:
    """Arguments of ``best_subsets``."""

    size: Annotated[int, typer.Option(help="Items in each subset.", show_default=False)]
    k: Annotated[int, typer.Option("-k", help="Number of subsets.")] = 10
    distortion: opt.Distortion = "gw"
    scale: opt.Scale = "none"
    engine: Annotated[str, typer.Option(help="search (no proof), exact (small cases), gurobi or scip.")] = "search"
    time_limit: opt.TimeLimit = None
    rng: Annotated[int, typer.Option("--seed", help="The same seed gives the same result.")] = 0
    threads: opt.Threads = None


@command(
    "blindmatch subsets images.npz texts.npz --size 20",
    "blindmatch subsets images.npz texts.npz --size 10 -k 3 --engine exact --time-limit 60",
    "blindmatch subsets images.npz texts.npz --size 20 -k 10 --json",
)
def subsets(
    source: opt.Source,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The same items in the same order, row by row.")],
    how: SubsetOptions,
    json: opt.Json = False,
) -> None:
    """Find the subsets of paired items whose relations agree best: those that a blind match is likely to get right."""
    from blindmatch.cli.answers import print_all
    from blindmatch.cli.progress import busy
    from blindmatch.cli.tables import Tables
    from blindmatch.io.embeddings import load_embeddings
    from blindmatch.matching.subsets import best_subsets

    one, other = load_embeddings(source), load_embeddings(target)
    tables = Tables.scaled(one, other, how.scale)
    tables.warn()
    with busy("searching", how.time_limit):
        found = best_subsets(one.values, other.values, **vars(how))
    names = one.names or other.names
    if json:
        named = {} if names is None else {"names": [[names[i] for i in subset] for subset in found.subsets]}
        echo_json({**found.to_dict(), **named, "columns": tables.to_dict()})
    else:
        _show(found, names)
        print_all(tables.texts)
    if found.status == "interrupted":
        complain("interrupted; these are the best so far")
        raise interrupted()


def _show(found: Subsets, names: tuple[str, ...] | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from blindmatch.report.verdict import number

    table = Table(show_edge=False, pad_edge=False)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("items", overflow="fold")
    for subset, cost in zip(found.subsets, found.costs, strict=True):
        words = (str(i) if names is None else plain(names[i]) for i in subset)
        table.add_row(number(float(cost)), Text(", ".join(words)))
    told = {
        "optimal": f"Proved: no other subset is cheaper than the last of these ({found.engine}).",
        "heuristic": "Found by search: there is no proof that none is cheaper.",
        "time_limit": "The time limit ended the run.",
        "interrupted": "The run was interrupted.",
    }[found.status]
    bound = "" if found.lower_bound is None else f" No subset costs less than {number(found.lower_bound)}."
    output().print(table, Text(told + bound), sep="\n")
