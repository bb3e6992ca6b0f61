"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FILES = ".npy, .npz, .safetensors, .parquet, .csv, .tsv"


def examples(*lines: str) -> str:
    """The end of a help text: commands to copy, a line each."""
    return "Examples:\n\n" + "\n\n".join(f"  [bold]{line}[/bold]" for line in lines)


def show_version(wanted: bool) -> None:
    """Print the version and end, if wanted."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"blindmatch {version('blindmatch')}")
        raise typer.Exit


Solver = Annotated[str, typer.Option("--solver", "-s", help="A name from 'blindmatch solvers'.")]
Distortion = Annotated[
    str, typer.Option("--distortion", "-d", help="What to compare: gw, cka, mutual-knn, kl or inner-product.")
]
Standardize = Annotated[
    bool, typer.Option("--standardize/--no-standardize", help="Bring both kernels to a common scale first.")
]
Known = Annotated[
    list[str] | None,
    typer.Option("--known", metavar="S:T", help="A pair that is known, by index or by name; may be repeated."),
]
KnownPairs = Annotated[
    Path | None, typer.Option("--known-pairs", metavar="FILE", help="Known pairs, a line 'source,target' each.")
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", "-t", metavar="SECONDS", help="Then the best so far is returned.")
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same result.")]
Threads = Annotated[int | None, typer.Option("--threads", help="How many to use; all cores by default.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
Certificate = Annotated[
    Path | None, typer.Option("--certificate", "-c", metavar="FILE", help="Write the proof of the bound (.npz).")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option("--checkpoint", metavar="FILE", help="Keep the state of branch-and-bound there, and go on from it."),
]
Report = Annotated[
    Path | None, typer.Option("--report", "-r", metavar="FILE", help="Write a report to look at (.html).")
]
