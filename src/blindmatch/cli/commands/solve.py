"""``solve``: a quadratic assignment problem from a file."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
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
    from blindmatch.cli.answers import Answer, check_answer, solve_options, solve_with_progress
    from blindmatch.cli.inputs import command_line, read_start
    from blindmatch.cli.texts import assignment_text
    from blindmatch.io.qaplib import write_sln
    from blindmatch.problem.files import load_problem
    from blindmatch.report import Match

    others = {"--solution": solution, "--checkpoint": checkpoint, "--log": solving.log}
    check_answer(outputs, solve_options(solving, checkpoint).solver, others, [problem, start])
    read = load_problem(problem)
    begin = None if start is None else read_start(start, read)
    with place.executor() as executor:
        options = replace(solve_options(solving, checkpoint, executor), start=begin)
        found = solve_with_progress(partial(_solve, read), options, solving)
    settings = {"problem": problem.name, **solving.settings, "command": command_line()}
    match = Match(replace(found, title=problem.name, settings=settings))
    answer = Answer(match, outputs, assignment_text(match))
    answer.write(solution, lambda path: write_sln(path, found.cost, found.permutation), "Solution")
    answer.finish()


def _solve(problem: QAP, options: SolveOptions) -> Result:
    from blindmatch.solving.limits import as_seconds, with_limit_noted
    from blindmatch.solving.run import solve

    limit = options.time_limit
    found = solve(problem, options.solver, time_limit=as_seconds(limit), start=options.start, **options.steering)
    return with_limit_noted(found, limit)
