"""``solve``: a quadratic assignment problem from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command


@command(
    "blindmatch solve nug12.dat",
    "blindmatch solve problem.npz --solver tabu --time-limit 10 --json",
    "blindmatch solve nug12.dat --certificate proof.npz",
)
def solve(
    problem: Annotated[
        Path, typer.Argument(metavar="PROBLEM", help=".dat (QAPLIB), or .npz with source_cost and target_cost.")
    ],
    solving: opt.SolverOptions,
    outputs: opt.OutputOptions,
    checkpoint: opt.Checkpoint = None,
) -> None:
    """Solve a quadratic assignment problem from a file."""
    from blindmatch.cli.answers import Answer, Request
    from blindmatch.cli.inputs import ProblemInput, command_line
    from blindmatch.solving import run as solver

    inputs, request = ProblemInput(problem), Request(solving, outputs, checkpoint)
    request.check(inputs.paths)
    read = inputs.problem
    found = request.solved(lambda options: solver.solve(read, **vars(options)))
    settings = {**inputs.settings, **solving.settings}
    match = inputs.match(found, settings=settings, title=inputs.title, command=command_line())
    Answer(match, request).finish()
