"""``solve``, ``convert`` and ``solvers``: quadratic assignment problems from files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from blindmatch.cli import options as opt
from blindmatch.cli.app import command
from blindmatch.cli.engines import EngineOptions

if TYPE_CHECKING:
    from blindmatch.matching.match import SolveOptions
    from blindmatch.problem.qap import QAP
    from blindmatch.solving.result import Result


@dataclass(frozen=True)
class LimitOptions:
    """Limits of a run besides the clock, the number of assignments to find, and the direction."""

    gap_limit: float | None = None
    cost_limit: float | None = None
    bound_limit: float | None = None
    node_limit: int | None = None
    solution_limit: int | None = None
    work_limit: float | None = None
    pool_size: int = 1
    maximize: bool = False


@command(
    "blindmatch solve nug12.dat",
    "blindmatch solve nug20.dat --log --gap-limit 0.01 --pool-size 5",
    "blindmatch solve problem.npz --solver tabu --time-limit 10 --json",
    "blindmatch solve nug12.dat --start nug12.sln --solution better.sln --certificate proof.npz",
    "blindmatch solve nug20.dat --engine dask --address tcp://host:8786 --checkpoint run.tree",
)
def solve(
    problem: Path,
    solving: opt.SolverOptions,
    limits: LimitOptions,
    outputs: opt.OutputOptions,
    place: EngineOptions,
    start: opt.File = None,
    solution: opt.File = None,
    checkpoint: opt.File = None,
    rows: bool = False,
) -> None:
    """Solve a quadratic assignment problem: facilities, the rows of the first matrix, go to locations."""
    from blindmatch.cli import answers
    from blindmatch.cli.inputs import read_start
    from blindmatch.cli.texts import assignment_text
    from blindmatch.io.qaplib import write_sln
    from blindmatch.problem.problem_files import load_problem
    from blindmatch.report import Match

    if place.engine == "slurm":
        raise ValueError(
            "--engine slurm: pieces of a tree are too short for jobs of their own; start a Dask cluster inside a job "
            "and use --engine dask"
        )
    others = {"--solution": solution, "--checkpoint": checkpoint, "--log": solving.log}
    answers.check_answer(outputs, answers.solve_options(solving, checkpoint).solver, others, [problem, start])
    read = load_problem(problem)
    begin = None if start is None else read_start(start, read)
    with place.open(Path()) as (_, executor), _log(solving.log) as stream:
        options = replace(answers.solve_options(solving, checkpoint, executor), start=begin)
        run, quiet = partial(_solve, read, limits, stream), replace(solving, log=None)
        found = run(options) if stream is not None else answers.solve_with_progress(run, options, quiet)
    match = Match(answers.with_title(found, problem.name, {"problem": problem.name, **solving.settings}))
    answer = answers.Answer(match, outputs, assignment_text(match, rows))
    answer.write(solution, lambda path: write_sln(path, found.cost, found.permutation), "Solution")
    answer.finish()


@contextmanager
def _log(path: Path | None) -> Iterator[TextIO | None]:
    """Open the log: a file, to which it is appended, or stderr."""
    if path is None or path == Path("-"):
        yield None if path is None else sys.stderr
    else:
        with path.open("a", encoding="utf-8") as file:
            yield file


def _solve(problem: QAP, limits: LimitOptions, log: TextIO | None, options: SolveOptions) -> Result:
    from blindmatch.solving.limits import as_seconds, note_limit
    from blindmatch.solving.run import solve

    limit = options.time_limit
    steering = {**options.steering, **vars(limits), "log": log or False}
    found = solve(problem, options.solver, time_limit=as_seconds(limit), start=options.start, **steering)
    return note_limit(found, limit)


@command(
    "blindmatch convert nug12.dat nug12.mps",
    "blindmatch convert problem.json problem.dd",
    "blindmatch convert flows.txt problem.npz --json",
)
def convert(problem: Path, target: Path, json: bool = False) -> None:
    """Convert a quadratic assignment problem to another file format."""
    from blindmatch.cli.console import echo_json, output
    from blindmatch.cli.outputs import check_outputs
    from blindmatch.problem.problem_files import load_problem, save_problem

    check_outputs({"FILE": target}, [problem])
    read = load_problem(problem)
    save_problem(target, read)
    if json:
        echo_json({"problem": str(problem), "file": str(target), "n": read.sources, "m": read.n})
    else:
        output().print(f"{target}: {read!r}", markup=False, highlight=False)


@command("blindmatch solvers", "blindmatch solvers --json")
def solvers(json: bool = False) -> None:
    """List the solvers and what each can do."""
    from blindmatch.cli.console import echo_json, output
    from blindmatch.cli.solver_table import solver_legend, solver_rows, solver_table

    rows = solver_rows()
    if json:
        echo_json(rows)
    else:
        console = output()
        console.print(solver_table(rows, console.width), solver_legend())
