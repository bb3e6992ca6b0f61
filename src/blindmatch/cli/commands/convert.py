"""``convert``: a quadratic assignment problem from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command


@command(
    "blindmatch convert nug12.dat nug12.mps",
    "blindmatch convert problem.json problem.dd",
    "blindmatch convert flows.txt problem.npz --json",
)
def convert(
    problem: Annotated[Path, typer.Argument(metavar="PROBLEM", help="A problem: .dat or .txt (QAPLIB), .json, .npz.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="What to write: .dat, .json, .npz; .dd (graph matching); .lp, .mps (linearised)."
        ),
    ],
    json: opt.Json = False,
) -> None:
    """Convert a quadratic assignment problem to another file format."""
    from blindmatch.cli.console import echo_json, output
    from blindmatch.cli.outputs import check_outputs
    from blindmatch.problem.files import load_problem, save_problem

    check_outputs({"FILE": target}, [problem])
    read = load_problem(problem)
    save_problem(target, read)
    if json:
        echo_json({"problem": str(problem), "file": str(target), "n": read.sources, "m": read.n})
    else:
        output().print(f"{target}: {read!r}", markup=False, highlight=False)
