"""``experiment``: the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command
from blindmatch.cli.engines import EngineOptions

if TYPE_CHECKING:
    from blindmatch.cli.progress import ProgressLine
    from blindmatch.experiments.executors import Engine
    from blindmatch.experiments.sweeps import Moment, Sweep, SweepStatus

RESULTS = Path("blindmatch-results")


@dataclass(frozen=True)
class RunSettings:
    """Settings that most experiments have; None for an experiment's own default."""

    seeds: int | None = None
    sizes: str | None = None
    datasets: opt.Words = None
    vision: opt.Words = None
    language: opt.Words = None
    solvers: opt.Words = None
    time_limit: float | None = None


@dataclass(frozen=True)
class SweepEngineOptions(EngineOptions):
    """The place of the computation."""

    engine: str = "local"
    chunk: int | None = None


@command(
    "blindmatch experiment ablation --quick",
    "blindmatch experiment small-scale --embeddings embeddings --out results",
    "blindmatch experiment solvers-small --embeddings embeddings --seeds 5 --solver faq --solver branch-and-bound",
    "blindmatch experiment ablation --only size=40 --status",
    "blindmatch experiment larger-scale --embeddings embeddings --engine dask --address tcp://host:8786",
    note="\n\nFinished runs are kept whatever happens; the same command resumes where it stopped.",
)
def experiment(
    name: str,
    given: RunSettings,
    place: SweepEngineOptions,
    quick: bool = False,
    out: Path = RESULTS,
    embeddings: opt.File = None,
    config: opt.File = None,
    setting: opt.Words = None,
    only: opt.Words = None,
    status: bool = False,
    report: bool = False,
    json: bool = False,
) -> None:
    """Run an experiment of the paper in parallel, and show the paper's numbers next to yours."""
    from blindmatch import experiments
    from blindmatch.cli.console import complain, interrupted
    from blindmatch.experiments.protocol import parse_assignments, read_config
    from blindmatch.experiments.sweeps import plan

    values = {key: value for key, value in vars(given).items() if value is not None}
    known = {item.name for item in fields(experiments.load(name).settings)}
    layers = [read_config(config, name, experiments.NAMES)] if config is not None else []
    layers += [_fitting(known, values), parse_assignments(setting)]
    sweep = plan(name, *layers, quick=quick, embeddings=embeddings, out=out, only=only or ())
    if status:
        _show_status(sweep, out, json)
        return
    if _run(sweep, out, None if report else place.make(), place.chunk, json):
        complain("interrupted; finished runs are kept, and the same command resumes from there")
        raise interrupted()


def _fitting(known: set[str], values: dict[str, Any]) -> dict[str, Any]:
    """Settings under the names that an experiment has for them: some take one solver, or limits for each size."""
    others = {"time_limit": ("time_limits",), "solvers": ("solver", "variants")}
    fitting = {}
    for key, value in values.items():
        names = [key] if key in known else [other for other in others.get(key, ()) if other in known]
        single = names == ["solver"] and isinstance(value, list) and len(value) == 1
        fitting[names[0] if names else key] = value[0] if single else value
    return fitting


def _run(sweep: Sweep, out: Path, engine: Engine | None, chunk: int | None, json: bool) -> bool:
    """Compute (with an engine), write the report, show the tables; returns whether Ctrl-C ended the computing."""
    from blindmatch.cli.answers import command_line
    from blindmatch.cli.console import echo_json, plain
    from blindmatch.cli.progress import watched
    from blindmatch.experiments.result_tables import as_text, table_json
    from blindmatch.experiments.sweeps import compute, report, status
    from blindmatch.solving.limits import keep_what_is_done

    # Workers can only be forked from a process without threads.
    with keep_what_is_done() as interrupted, watched("starting", threads=False) as line:
        if engine is not None:
            compute(sweep, out, engine=engine, chunk=chunk, watch=None if line is None else _shown_on(line))
    tables, page = report(sweep, out, command_line())
    progress = status(sweep, out)
    if json:
        echo_json({"tables": [table_json(item) for item in tables], "report": str(page), **_counts(progress)})
        return bool(interrupted)
    for item in tables:
        typer.echo("\n".join(plain(line) for line in as_text(item).split("\n")))  # model names come from files
    if sweep.about:
        typer.echo(f"Data: {sweep.about}.")
    typer.echo(plain(f"{progress.done} of {progress.total} runs done. Tables and figures: {page.parent}"))
    _complain_about_errors(progress)
    return bool(interrupted)


def _show_status(sweep: Sweep, out: Path, json: bool) -> None:
    """Count what is done by kind of run."""
    from blindmatch.cli.console import echo_json, plain
    from blindmatch.experiments.sweeps import status

    progress = status(sweep, out)
    if json:
        echo_json({**_counts(progress), "kinds": {kind: list(counts) for kind, counts in progress.kinds.items()}})
        return
    width = max(len(kind) for kind in progress.kinds)
    for kind, (done, failed, total) in progress.kinds.items():
        typer.echo(plain(f"{kind.ljust(width)}  {done} of {total}" + (f", {failed} failed" if failed else "")))
    typer.echo(f"{progress.done} of {progress.total} runs done, {progress.failed} failed")
    _complain_about_errors(progress)


def _counts(progress: SweepStatus) -> dict[str, Any]:
    return {"done": progress.done, "failed": progress.failed, "total": progress.total, "errors": dict(progress.errors)}


def _complain_about_errors(progress: SweepStatus) -> None:
    from blindmatch.cli.console import complain

    for error, count in progress.errors.items():
        complain(f"{count} failed: {error}")


def _shown_on(line: ProgressLine) -> Callable[[Moment], None]:
    """Show the progress of a sweep."""
    from blindmatch.cli.progress import clock

    def show(moment: Moment) -> None:
        ended = moment.done + moment.failed
        left = "" if moment.seconds_left is None else f"about {clock(moment.seconds_left)} left"
        failed = f", {moment.failed} failed" if moment.failed else ""
        line.show(f"{ended} of {moment.total} runs{failed}", lambda: left, ended / moment.total)

    return show
