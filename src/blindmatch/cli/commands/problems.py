"""``solve``, ``convert`` and ``solvers``: quadratic assignment problems from files."""

from __future__ import annotations

import inspect
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from rich.padding import Padding
from rich.text import Text

from blindmatch.cli import answers
from blindmatch.cli.console import echo_json, output, plain_table
from blindmatch.cli.inputs import read_start
from blindmatch.cli.options import Given, open_engine
from blindmatch.cli.outputs import check_paths
from blindmatch.cli.progress import STDERR
from blindmatch.cli.texts import assignment_text
from blindmatch.io.qaplib import write_sln
from blindmatch.matching.match import SolveOptions
from blindmatch.problem.problem_files import load_problem, save_problem
from blindmatch.problem.qap import QAP
from blindmatch.report import Match
from blindmatch.solvers import SOLVERS
from blindmatch.solving import run as solving
from blindmatch.solving.limits import as_seconds, note_limit
from blindmatch.solving.result import Result

_LIMITS = ("gap_limit", "cost_limit", "bound_limit", "node_limit", "solution_limit", "work_limit", "pool_size")


def solve(given: Given) -> None:
    """Solve a quadratic assignment problem."""
    if given.engine == "slurm":
        raise ValueError(
            "--engine slurm: pieces of a tree are too short for jobs of their own; start a Dask cluster inside a job "
            "and use --engine dask"
        )
    answers.solve_options(given)
    answers.check_answer(given, [given.problem, given.start])
    read = load_problem(given.problem)
    begin = None if given.start is None else read_start(given.start, read)
    with open_engine(given, Path()) as (_, executor), ExitStack() as stack:
        stream: TextIO | None = sys.stderr if given.log == STDERR else None
        if given.log not in (None, STDERR):
            stream = stack.enter_context(given.log.open("a", encoding="utf-8"))
        options = replace(answers.solve_options(given, executor), start=begin)
        run = partial(_solve, read, given, stream)
        found = answers.solve_with_progress(run, options, given) if stream is None else run(options)
    settings = {"problem": given.problem.name, **given.settings}
    match = Match(answers.with_title(found, given.problem.name, settings))
    answer = answers.Answer(match, given, assignment_text(match, given.rows))
    answer.write(given.solution, lambda path: write_sln(path, found.cost, found.permutation), "Solution")
    answer.finish()


def _solve(problem: QAP, given: Given, log: TextIO | None, options: SolveOptions) -> Result:
    limit = options.time_limit
    limits = {name: getattr(given, name) for name in (*_LIMITS, "maximize")}
    steering = {**options.steering, **limits, "log": log or False}
    found = solving.solve(problem, options.solver, time_limit=as_seconds(limit), start=options.start, **steering)
    return note_limit(found, limit)


def convert(given: Given) -> None:
    """Convert a quadratic assignment problem to another file format."""
    check_paths({"FILE": given.target}, [given.problem])
    read = load_problem(given.problem)
    save_problem(given.target, read)
    if given.json:
        echo_json({"problem": str(given.problem), "file": str(given.target), "n": read.sources, "m": read.n})
    else:
        output().print(f"{given.target}: {read!r}", markup=False, highlight=False)


_WITH_NOTES = 78  # columns of a terminal that the table of solvers needs
ABILITIES = {
    "bound": ("bound", "proves a lower bound"),
    "exact": ("exact", "ends with a proof of optimality, given time"),
    "linear": ("linear", "takes a linear term (known pairs lead to one)"),
    "forbidden": ("forbid", "takes forbidden pairs"),
    "asymmetric": ("asym", "takes asymmetric matrices"),
    "unequal": ("uneq", "takes sets of unequal sizes"),
}


def solvers(given: Given) -> None:
    """List the solvers and what each can do; a narrow terminal gets a list in place of a table."""
    if given.json:
        return echo_json([_row(name, solver) for name, solver in SOLVERS.items()])
    console, titles = output(), [title for title, _ in ABILITIES.values()]
    table = plain_table("solver|", *(f"{title}^|" for title in titles), "max n>|", "note", tight=True)
    for name, solver in SOLVERS.items():
        row = _row(name, solver)
        largest = "any" if row["max_size"] is None else str(row["max_size"])
        note = row["note"] if row["installed"] else f"not installed: {row['install']}"
        if console.width < _WITH_NOTES:
            able = ", ".join(title for key, (title, _) in ABILITIES.items() if row[key])
            about = Padding(Text(f"{able}; max n: {largest}\n{note}"), (0, 0, 0, 2))
            console.print(Text(name, style="bold"), about)
        else:
            table.add_row(name, *("✓" if row[key] else "-" for key in ABILITIES), largest, Text(note))
    legend = Text("\n" + "; ".join(f"{title}: {meaning}" for title, meaning in ABILITIES.values()) + ".")
    console.print(*([table] if table.row_count else []), legend)


def _row(name: str, solver: Any) -> dict[str, Any]:
    can = solver.capabilities
    return {
        "name": name,
        **{ability: getattr(can, ability) for ability in ABILITIES},
        "max_size": can.max_size,
        "installed": can.installed,
        "install": None if can.requires is None else can.requires.install,
        "options": list(inspect.signature(solver).parameters),
        "note": can.note,
    }
