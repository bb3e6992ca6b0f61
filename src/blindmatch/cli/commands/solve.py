"""``solve``: a quadratic assignment problem from a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command
from blindmatch.cli.engines import TreeEngineOptions

if TYPE_CHECKING:
    from blindmatch.matching.match import SolveOptions
    from blindmatch.problem.qap import QAP
    from blindmatch.solving.result import Result


def _limit(metavar: str, text: str) -> Any:
    return typer.Option(metavar=metavar, help=text, rich_help_panel="Options that end a run, or ask for more")


@dataclass(frozen=True)
class LimitOptions:
    """What ends a run besides the clock, and what else is wanted of it."""

    gap_limit: Annotated[float | None, _limit("SHARE", "Stop at this relative gap: 0.01 is 1 %.")] = None
    cost_limit: Annotated[float | None, _limit("COST", "Stop at an assignment that costs no more.")] = None
    bound_limit: Annotated[float | None, _limit("BOUND", "Stop at a proved bound of at least this.")] = None
    node_limit: Annotated[int | None, _limit("N", "Stop after this many nodes of branch and bound.")] = None
    solution_limit: Annotated[int | None, _limit("N", "Stop after this many better assignments.")] = None
    work_limit: Annotated[
        float | None, _limit("UNITS", "Stop after about as many seconds of one core; the same on every machine.")
    ] = None
    pool_size: Annotated[int, _limit("K", "Find the K best assignments; --json lists them.")] = 1
    maximize: Annotated[bool, _limit("", "Look for the largest cost.")] = False


@command(
    "blindmatch solve nug12.dat",
    "blindmatch solve nug20.dat --log --gap-limit 0.01 --pool-size 5",
    "blindmatch solve problem.npz --solver tabu --time-limit 10 --json",
    "blindmatch solve nug12.dat --start nug12.sln --solution better.sln --certificate proof.npz",
    "blindmatch solve nug20.dat --engine dask --address tcp://host:8786 --checkpoint run.tree",
)
def solve(
    problem: Annotated[Path, typer.Argument(metavar="PROBLEM", help="A problem: .dat or .txt (QAPLIB), .json, .npz.")],
    solving: opt.SolverOptions,
    limits: LimitOptions,
    outputs: opt.OutputOptions,
    place: TreeEngineOptions,
    start: opt.Start = None,
    solution: Annotated[opt.File, typer.Option(metavar="FILE", help="Write the assignment (.sln, QAPLIB).")] = None,
    checkpoint: opt.Checkpoint = None,
    rows: Annotated[bool, typer.Option("--rows", help="Print a row for each facility.")] = False,
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
        with _log(solving.log) as stream:
            run, quiet = partial(_solve, read, limits, stream), replace(solving, log=None)
            found = run(options) if stream is not None else solve_with_progress(run, options, quiet)
    settings = {"problem": problem.name, **solving.settings, "command": command_line()}
    match = Match(replace(found, title=problem.name, settings=settings))
    answer = Answer(match, outputs, assignment_text(match, rows))
    answer.write(solution, lambda path: write_sln(path, found.cost, found.permutation), "Solution")
    answer.finish()


@contextmanager
def _log(path: Path | None) -> Iterator[TextIO | None]:
    """Where the log goes: to a file, which it is appended to, or to stderr."""
    if path is None:
        yield None
    elif path == Path("-"):
        yield sys.stderr
    else:
        with path.open("a", encoding="utf-8") as file:
            yield file


def _solve(problem: QAP, limits: LimitOptions, log: TextIO | None, options: SolveOptions) -> Result:
    from blindmatch.solving.limits import as_seconds, with_limit_noted
    from blindmatch.solving.run import solve

    limit = options.time_limit
    steering = {**options.steering, **vars(limits), "log": log or False}
    found = solve(problem, options.solver, time_limit=as_seconds(limit), start=options.start, **steering)
    return with_limit_noted(found, limit)
