"""``experiment``: the paper's experiments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blindmatch.cli import completion
from blindmatch.cli import options as opt
from blindmatch.cli.app import command
from blindmatch.cli.engines import ShardEngineOptions

if TYPE_CHECKING:
    from blindmatch.experiments.executors import Engine
    from blindmatch.experiments.sweeps import Moment, Sweep, SweepStatus

RESULTS = Path("blindmatch-results")
NAMES = "shuffling, small-scale, larger-scale, solvers-small, solvers-large, classification, ablation"


@dataclass(frozen=True)
class RunSettings:
    """Settings that most experiments have; None for an experiment's own default."""

    seeds: Annotated[int | None, typer.Option(help="Number of random seeds.")] = None
    sizes: Annotated[str | None, typer.Option(metavar="N,N...", help="Problem sizes.")] = None
    datasets: Annotated[opt.Words, typer.Option("--dataset", help="Repeatable, like the next ones.")] = None
    vision: Annotated[opt.Words, typer.Option(help="A vision model.")] = None
    language: Annotated[opt.Words, typer.Option(help="A language model.")] = None
    solvers: Annotated[
        opt.Words, typer.Option("-s", "--solver", help="A solver.", autocompletion=completion.solvers)
    ] = None
    time_limit: Annotated[float | None, typer.Option("-t", "--time-limit", metavar="SECONDS", help="For each run.")] = (
        None
    )


@dataclass(frozen=True)
class EngineOptions(ShardEngineOptions):
    """Where to compute."""

    engine: Annotated[str, typer.Option(help="Where to compute: local, dask or slurm.")] = "local"
    chunk: Annotated[int | None, typer.Option(help="Runs that are sent together.")] = None


@command(
    "blindmatch experiment ablation --quick",
    "blindmatch experiment small-scale --embeddings embeddings --out results",
    "blindmatch experiment solvers-small --embeddings embeddings --seeds 5 --solver faq --solver branch-and-bound",
    "blindmatch experiment ablation --only size=40 --status",
    "blindmatch experiment larger-scale --embeddings embeddings --engine dask --address tcp://host:8786",
    note="\n\nFinished runs are kept whatever happens; the same command resumes where it stopped.",
)
def experiment(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help=f"One of {NAMES}.", show_default=False, autocompletion=completion.experiments
        ),
    ],
    given: RunSettings,
    place: EngineOptions,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version: a minute on bundled data; one pair of models of a folder.")
    ] = False,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="The folder of the results.")] = RESULTS,
    embeddings: Annotated[
        opt.File,
        typer.Option("-e", "--embeddings", metavar="FOLDER", help="vision__DATASET__MODEL and language__..."),
    ] = None,
    config: Annotated[opt.File, typer.Option(metavar="FILE", help="Settings, as TOML.")] = None,
    setting: Annotated[opt.Words, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting.")] = None,
    only: Annotated[opt.Words, typer.Option(metavar="NAME=PATTERN", help="Only runs with such parameters.")] = None,
    status: Annotated[bool, typer.Option("--status", help="Count what is done, and compute nothing.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Write tables and figures, and compute nothing.")] = False,
    json: opt.Json = False,
) -> None:
    """Run an experiment of the paper in parallel, and show the paper's numbers next to yours."""
    from blindmatch.cli.console import complain, interrupted
    from blindmatch.cli.engines import job_options
    from blindmatch.experiments.executors import make_engine
    from blindmatch.experiments.sweeps import plan

    values = {key: value for key, value in vars(given).items() if value is not None}
    layers = _layers(name, config, values, setting)
    sweep = plan(name, *layers, quick=quick, embeddings=embeddings, out=out, only=only or ())
    if status:
        _show_status(sweep, out, json)
        return
    chosen = (
        None
        if report
        else make_engine(place.engine, workers=place.workers, address=place.address, options=job_options(place.job))
    )
    if _run(sweep, out, chosen, place.chunk, json):
        complain("interrupted; finished runs are kept, and the same command resumes from there")
        raise interrupted()


def _layers(name: str, config: Path | None, values: dict[str, Any], setting: list[str] | None) -> list[dict[str, Any]]:
    from blindmatch import experiments
    from blindmatch.experiments.protocol import parse_assignments, read_config

    known = {item.name for item in fields(experiments.load(name).settings)}
    layers = [read_config(config, name, experiments.NAMES)] if config is not None else []
    return [*layers, _fitting(known, values), parse_assignments(setting)]


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
    from blindmatch.cli.console import echo_json, plain
    from blindmatch.cli.inputs import command_line
    from blindmatch.experiments.result_tables import as_text, table_json
    from blindmatch.experiments.sweeps import compute, report, status
    from blindmatch.solving.limits import keep_what_is_done

    with keep_what_is_done() as interrupted, _live_sweep() as watch:
        if engine is not None:
            compute(sweep, out, engine=engine, chunk=chunk, watch=watch)
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


@contextmanager
def _live_sweep() -> Iterator[Callable[[Moment], None] | None]:
    """Give a callback that shows a bar with the time left on stderr; None if stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from blindmatch.cli.progress_lines import clock

    # Drawn when there is news, not by a thread of its own: workers can only be forked from a process without threads.
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("starting", total=None)

        def show(moment: Moment) -> None:
            left = "" if moment.seconds_left is None else f"about {clock(moment.seconds_left)} left"
            failed = f", {moment.failed} failed" if moment.failed else ""
            bar.update(
                task, total=moment.total, completed=moment.done + moment.failed, description=left + failed, refresh=True
            )

        yield show
