"""``experiment``: the paper's experiments."""

from __future__ import annotations

import math
import time
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import typer

from blindmatch import experiments
from blindmatch.cli.answers import command_line
from blindmatch.cli.console import complain, echo_json, interruption, plain
from blindmatch.cli.options import Given, make_engine
from blindmatch.cli.progress import ProgressLine, show_progress
from blindmatch.experiments.protocol import parse_assignments, read_config
from blindmatch.experiments.result_tables import as_text, table_json
from blindmatch.experiments.sweeps import Sweep, SweepStatus, compute, plan, report, status
from blindmatch.solving.limits import keep_what_is_done

_SETTINGS = ("seeds", "sizes", "datasets", "vision", "language", "solvers", "time_limit")  # None: its own default


def experiment(given: Given) -> None:
    """Run an experiment of the paper in parallel, and show the paper's numbers next to yours."""
    name, out = given.name, given.out
    values = {key: value for key in _SETTINGS if (value := getattr(given, key)) is not None}
    known = {item.name for item in fields(experiments.load(name))}
    layers = [read_config(given.config, name)] if given.config is not None else []
    layers += [_fitting(known, values), parse_assignments(given.setting)]
    sweep = plan(name, *layers, quick=given.quick, embeddings=given.embeddings, out=out, only=given.only or ())
    if given.status:
        return _show_status(sweep, out, given.json)
    # Workers can only be forked from a process without threads.
    engine = None if given.report else make_engine(given)
    with keep_what_is_done() as stopped, show_progress("starting", threads=False) as line:
        if engine is not None:
            watch = None if line is None else partial(_show_progress, line)
            compute(sweep, out, engine=engine, chunk=given.chunk, watch=watch)
    tables, page = report(sweep, out, command_line())
    progress = status(sweep, out)
    if given.json:
        echo_json({"tables": [table_json(item) for item in tables], "report": str(page), **_counts(progress)})
    else:
        for item in tables:
            typer.echo("\n".join(plain(text) for text in as_text(item).split("\n")))  # names of models are from files
        if sweep.about:
            typer.echo(f"Data: {sweep.about}.")
        typer.echo(plain(f"{progress.done} of {progress.total} runs done. Tables and figures: {page.parent}"))
        for error, count in progress.errors.items():
            complain(f"{count} failed: {error}")
    if stopped:
        complain("interrupted; finished runs are kept, and the same command resumes from there")
        raise interruption()


def _fitting(known: set[str], values: dict[str, Any]) -> dict[str, Any]:
    """Settings under the names that an experiment has for them: some take one solver, or limits for each size."""
    others = {"time_limit": ("time_limits",), "solvers": ("solver", "variants")}
    fitting = {}
    for key, value in values.items():
        names = [key] if key in known else [other for other in others.get(key, ()) if other in known]
        single = names == ["solver"] and isinstance(value, list) and len(value) == 1
        fitting[names[0] if names else key] = value[0] if single else value
    return fitting


def _show_status(sweep: Sweep, out: Path, json: bool) -> None:
    progress = status(sweep, out)
    if json:
        echo_json({**_counts(progress), "kinds": {kind: list(counts) for kind, counts in progress.kinds.items()}})
        return
    width = max(len(kind) for kind in progress.kinds)
    for kind, (done, failed, total) in progress.kinds.items():
        typer.echo(plain(f"{kind.ljust(width)}  {done} of {total}" + (f", {failed} failed" if failed else "")))
    typer.echo(f"{progress.done} of {progress.total} runs done, {progress.failed} failed")
    for error, count in progress.errors.items():
        complain(f"{count} failed: {error}")


def _counts(progress: SweepStatus) -> dict[str, Any]:
    return {"done": progress.done, "failed": progress.failed, "total": progress.total, "errors": dict(progress.errors)}


def _show_progress(line: ProgressLine, moment: SweepStatus) -> None:
    ended = moment.done + moment.failed
    left = math.inf if moment.seconds_left is None else moment.seconds_left
    failed = f", {moment.failed} failed" if moment.failed else ""
    text = f"{ended} of {moment.total} runs{failed}"
    line.show(text, time.monotonic() + left, "about {} left", ended / moment.total)
