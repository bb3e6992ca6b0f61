"""Options that say where to compute: here, in local processes, on a Dask cluster or as Slurm jobs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blindmatch.cli import options as opt
from blindmatch.errors import unknown_name

if TYPE_CHECKING:
    from blindmatch.experiments.executors import Engine


@dataclass(frozen=True)
class TreeEngineOptions:
    """Where branch-and-bound grows its tree."""

    engine: Annotated[
        str | None,
        typer.Option(help="Workers for branch-and-bound: local (processes) or dask. Default: threads of this process."),
    ] = None
    workers: Annotated[int | None, typer.Option(help="Processes, with --engine local.")] = None
    address: Annotated[str | None, typer.Option(help="Address of the Dask scheduler, with --engine dask.")] = None

    @contextmanager
    def executor(self) -> Iterator[Executor | None]:
        """The workers; None if no engine was asked for."""
        if self.engine == "slurm":
            raise ValueError(
                "--engine slurm: pieces of a tree are too short for jobs of their own; start a Dask cluster inside a "
                "job and use --engine dask"
            )
        if self.engine not in (None, "local", "dask"):
            raise unknown_name("engine", self.engine, ("local", "dask"))
        with open_engine(self.engine, self.workers, self.address, Path()) as (_, executor):
            yield executor


@dataclass(frozen=True)
class ShardEngineOptions:
    """Where models run."""

    engine: Annotated[
        str | None, typer.Option(help="Workers that load the model and embed: local, dask or slurm. Default: none.")
    ] = None
    workers: Annotated[int | None, typer.Option(help="Local processes, or array tasks at a time.")] = None
    address: Annotated[str | None, typer.Option(help="Address of the Dask scheduler.")] = None
    job: Annotated[
        opt.Words,
        typer.Option(metavar="NAME=VALUE", help="A job parameter of submitit, or a resource that a Dask task needs."),
    ] = None


@contextmanager
def open_engine(
    name: str | None, workers: int | None, address: str | None, folder: Path, job: list[str] | None = None
) -> Iterator[tuple[Engine | None, Executor | None]]:
    """The engine and its executor; None and None if no engine was asked for."""
    if name is None:
        if workers is not None or address is not None or job:
            raise ValueError("--workers, --address and --job need --engine")
        yield None, None
        return
    from blindmatch.experiments.executors import make_engine

    engine = make_engine(name, workers=workers, address=address, options=job_options(job))
    with engine.open(folder) as executor:
        yield engine, executor


def job_options(job: list[str] | None) -> dict[str, Any]:
    """The parameters of jobs: NAME=VALUE as a dictionary."""
    from blindmatch.experiments.protocol import parse_assignments

    return {key: int(text) if text.isdigit() else text for key, text in parse_assignments(job).items()}
