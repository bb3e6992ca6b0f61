"""``solve``: a quadratic assignment problem from a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command
from blindmatch.cli.engines import TreeEngineOptions

if TYPE_CHECKING:
    from blindmatch.matching.match_task import SolveOptions
    from blindmatch.problem.qap import QAP
    from blindmatch.solving.result import Result


@command(
    "blindmatch solve nug12.dat",
    "blindmatch solve problem.npz --solver tabu --time-limit 10 --json",
    "blindmatch solve nug12.dat --start nug12.sln --solution better.sln --certificate proof.npz",
    "blindmatch solve nug20.dat --engine dask --address tcp://host:8786 --checkpoint run.tree",
)
def solve(
    problem: Annotated[
        Path, typer.Argument(metavar="PROBLEM", help=".dat (QAPLIB), or .npz with source_cost and target_cost.")
    ],
    solving: opt.SolverOptions,
    outputs: opt.OutputOptions,
    place: TreeEngineOptions,
    start: opt.Start = None,
    solution: Annotated[opt.File, typer.Option(metavar="FILE", help="Write the assignment (.sln, QAPLIB).")] = None,
    checkpoint: opt.Checkpoint = None,
) -> None:
    """Solve a quadratic assignment problem: facilities, the rows of the first matrix, go to locations."""
    from blindmatch.cli.answers import Answer, Request
    from blindmatch.cli.inputs import ProblemInput, command_line
    from blindmatch.cli.saved import read_start
    from blindmatch.cli.texts import assignment_text
    from blindmatch.io.qaplib import write_sln

    inputs, request = ProblemInput(problem), Request(solving, outputs, checkpoint)
    request.check([*inputs.paths, start], {"--solution": solution})
    read = inputs.problem
    if start is not None:
        request = replace(request, start=read_start(start, read))
    with place.executor() as executor:
        request = replace(request, executor=executor)
        found = request.solved(lambda options: _solved(read, options))
    match = inputs.match(found, {**solving.settings, "command": command_line()})
    answer = Answer(match, request, assignment_text(match))
    answer.write("Solution", solution, lambda path: write_sln(path, found.cost, found.permutation))
    answer.finish()


def _solved(problem: QAP, options: SolveOptions) -> Result:
    from blindmatch.solving.limits import as_seconds, with_limit_noted
    from blindmatch.solving.run import solve

    limit = options.time_limit
    return with_limit_noted(solve(problem, **{**vars(options), "time_limit": as_seconds(limit)}), limit)
