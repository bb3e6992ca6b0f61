"""What ``experiment`` does and shows."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from blindmatch.cli.console import complain, echo_json, plain
from blindmatch.experiments.engine.engines import Engine
from blindmatch.experiments.engine.sweep import Moment
from blindmatch.experiments.run import Sweep, SweepStatus, compute, report, status
from blindmatch.experiments.tables import as_json, as_text


def named(**values: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def run_experiment(sweep: Sweep, out: Path, engine: Engine | None, chunk: int | None, json: bool) -> bool:
    """Compute (with an engine), write the report, show the tables; returns whether Ctrl-C ended the computing."""
    interrupted = False
    if engine is not None:
        try:
            with live_sweep() as watch:
                compute(sweep, out, engine=engine, chunk=chunk, watch=watch)
        except KeyboardInterrupt:
            interrupted = True
    tables, page = report(sweep, out, shlex.join(["blindmatch", *sys.argv[1:]]))
    progress = status(sweep, out)
    if json:
        echo_json({"tables": [as_json(item) for item in tables], "report": str(page), **_counts(progress)})
        return interrupted
    for item in tables:
        typer.echo(plain_lines(as_text(item)))
    if sweep.about:
        typer.echo(f"Data: {sweep.about}.")
    typer.echo(plain(f"{progress.done} of {progress.total} runs done. Tables and figures: {page.parent}"))
    _tell_errors(progress)
    return interrupted


def show_status(sweep: Sweep, out: Path, json: bool) -> None:
    """Count what is done by kind of run."""
    progress = status(sweep, out)
    if json:
        echo_json({**_counts(progress), "kinds": {kind: list(counts) for kind, counts in progress.kinds.items()}})
        return
    width = max(len(kind) for kind in progress.kinds)
    for kind, (done, failed, total) in progress.kinds.items():
        typer.echo(plain(f"{kind.ljust(width)}  {done} of {total}" + (f", {failed} failed" if failed else "")))
    typer.echo(f"{progress.done} of {progress.total} runs done, {progress.failed} failed")
    _tell_errors(progress)


def plain_lines(text: str) -> str:
    """Text for a terminal, line by line: model names come from files."""
    return "\n".join(plain(line) for line in text.split("\n"))


def _counts(progress: SweepStatus) -> dict[str, Any]:
    return {"done": progress.done, "failed": progress.failed, "total": progress.total, "errors": dict(progress.errors)}


def _tell_errors(progress: SweepStatus) -> None:
    for error, count in progress.errors.items():
        complain(f"{count} failed: {error}")


@contextmanager
def live_sweep() -> Iterator[Callable[[Moment], None] | None]:
    """Give a callback that shows a bar with the time left on stderr; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    # Drawn when there is news, not by a thread of its own: workers can only be forked from a process without threads.
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("starting", total=None)

        def show(moment: Moment) -> None:
            left = "" if moment.seconds_left is None else f"about {_duration(moment.seconds_left)} left"
            failed = f", {moment.failed} failed" if moment.failed else ""
            bar.update(
                task, total=moment.total, completed=moment.done + moment.failed, description=left + failed, refresh=True
            )

        yield show


def _duration(seconds: float) -> str:
    """Seconds for people.

    >>> _duration(75), _duration(7300)
    ('1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
