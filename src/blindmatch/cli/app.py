"""The typer application of the ``blindmatch`` command: help, version, exit codes. Its commands add themselves to it."""

from __future__ import annotations

from typing import Annotated

import typer

from blindmatch.cli import options as opt

app = typer.Typer(
    name="blindmatch",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=opt.examples(
        "blindmatch demo --report report.html",
        "blindmatch match images.npy texts.npy --time-limit 60",
        "blindmatch match a.csv b.csv --json > match.json",
        "blindmatch solve nug12.dat --certificate proof.npz",
        "blindmatch verify nug12.dat proof.npz",
    )
    + "\n\nExit codes: 0 done, 1 something failed, 2 bad input, 130 interrupted (the best so far is printed).",
)


@app.callback()
def blindmatch(
    version: Annotated[
        bool, typer.Option("--version", callback=opt.show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Match two sets of embeddings with no pairs at all, and prove how good the match is."""
