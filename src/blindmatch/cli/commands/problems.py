"""Problems (``solve``, ``convert``), certificates and saved matches (``verify``, ``assess``, ``report``)."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TextIO

import typer

from blindmatch.cli import answers
from blindmatch.cli.answers import Answer, check_trust, plan_of
from blindmatch.cli.console import FAILED, complain, echo_json, output
from blindmatch.cli.inputs import read_certified, read_match, read_start
from blindmatch.cli.items import check_items, item_files, match_to_show
from blindmatch.cli.options import Given, open_engine
from blindmatch.cli.outputs import Delivery, check_outputs, check_paths, write_page
from blindmatch.cli.progress import STDERR, busy
from blindmatch.cli.texts import assignment_text
from blindmatch.io.qaplib import write_sln
from blindmatch.matching.match import SolveOptions
from blindmatch.problem.fingerprint import differs
from blindmatch.problem.problem_files import load_problem, save_problem
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task
from blindmatch.proof import checker
from blindmatch.report import Match
from blindmatch.report.verdict import counted
from blindmatch.solving import run as solving
from blindmatch.solving.limits import as_seconds, note_limit
from blindmatch.solving.result import Result
from blindmatch.validation import at_least, positive

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


def verify(given: Given) -> None:
    """Recompute the lower bound that a certificate proves."""
    start, path = time.perf_counter(), given.files[-1]
    problem, others, certificate = read_certified(given)
    try:
        with busy(f"checking the proof, {counted(len(certificate.nodes), 'node')}"):
            bound = min(checker.verify(problem, certificate), others)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    seconds = time.perf_counter() - start
    other = differs(problem, certificate.fingerprint)
    if given.json:
        values = {"lower_bound": bound, "size": problem.n, "seconds": seconds}
        echo_json({**values, "same_problem": not other if certificate.fingerprint else None})
    elif bound > float("-inf"):
        output().print(f"Verified in {seconds:.2f} s: every pairing costs at least {bound!r}.", soft_wrap=True)
    if other:
        options = " or other options, such as --distortion, --metric and --scale" if len(given.files) == 3 else ""
        complain(
            f"{path}: it was written for another problem (other data{options}); the bound is that of the one given"
        )
    if bound == float("-inf"):
        complain(f"{path}: proves nothing about this problem")
        raise typer.Exit(FAILED)


def assess(given: Given) -> None:
    """Assess a saved match."""
    check_items(given)
    check_outputs(given, [given.match, *item_files(given), given.background, *(given.prior_from or ())])
    at_least(given.draws, 1, "--draws")
    positive(given.assess_time, "--assess-time")
    check_trust(given)
    result = read_match(given.match)
    if not isinstance(result.task, Task):
        raise ValueError(f"{given.match}: an assignment problem; an assessment compares two sets of items")
    plan = plan_of(given, result.task)
    answer = Answer(match_to_show(given, result), given, fresh=False)
    answer.assess(plan, given.min_confidence)
    answer.finish()


def report(given: Given) -> None:
    """Make the report of a saved match."""
    check_items(given)
    check_outputs(given, [given.match, *item_files(given)])
    result, out = read_match(given.match), given.out
    shown = match_to_show(given, result if given.title is None else replace(result, title=given.title))
    delivery = Delivery()
    if delivery.write(out, partial(write_page, shown)):
        answer = {"report": str(out), "bytes": out.stat().st_size}
        delivery.show(lambda: echo_json(answer)) if given.json else delivery.announce(f"Report: {out}")
    delivery.end()
