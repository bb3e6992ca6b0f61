"""``solve``: a quadratic assignment problem from a file."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command


@dataclass(frozen=True)
class EngineOptions:
    """Where branch-and-bound grows its tree."""

    engine: Annotated[
        str | None,
        typer.Option(help="Workers for branch-and-bound: local (processes) or dask. Default: threads of this process."),
    ] = None
    workers: Annotated[int | None, typer.Option(help="Processes, with --engine local.")] = None
    address: Annotated[str | None, typer.Option(help="Of the Dask scheduler, with --engine dask.")] = None

    @contextmanager
    def executor(self) -> Iterator[Executor | None]:
        """The workers; None if no engine was asked for."""
        if self.engine is None:
            if self.workers is not None or self.address is not None:
                raise ValueError("--workers and --address need --engine local or --engine dask")
            yield None
            return
        from blindmatch.experiments.engine.engines import make_engine

        if self.engine == "slurm":
            raise ValueError(
                "--engine slurm: pieces of a tree are too short for jobs of their own; start a Dask cluster inside a "
                "job and use --engine dask"
            )
        with make_engine(self.engine, workers=self.workers, address=self.address).open(Path()) as executor:
            yield executor


@command(
    "blindmatch solve nug12.dat",
    "blindmatch solve problem.npz --solver tabu --time-limit 10 --json",
    "blindmatch solve nug12.dat --certificate proof.npz",
    "blindmatch solve nug20.dat --engine dask --address tcp://host:8786 --checkpoint run.tree",
)
def solve(
    problem: Annotated[
        Path, typer.Argument(metavar="PROBLEM", help=".dat (QAPLIB), or .npz with source_cost and target_cost.")
    ],
    solving: opt.SolverOptions,
    outputs: opt.OutputOptions,
    place: EngineOptions,
    checkpoint: opt.Checkpoint = None,
) -> None:
    """Solve a quadratic assignment problem from a file."""
    from blindmatch.cli.answers import Answer, Request
    from blindmatch.cli.inputs import ProblemInput, command_line
    from blindmatch.solving import run as solver

    inputs, request = ProblemInput(problem), Request(solving, outputs, checkpoint)
    request.check(inputs.paths)
    read = inputs.problem
    with place.executor() as executor:
        request = replace(request, executor=executor)
        found = request.solved(lambda options: solver.solve(read, **vars(options)))
    settings = {**inputs.settings, **solving.settings}
    match = inputs.match(found, settings=settings, title=inputs.title, command=command_line())
    Answer(match, request).finish()
