"""Options that say where to compute: here, in local processes, on a Dask cluster or as Slurm jobs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blindmatch.cli import options as opt

if TYPE_CHECKING:
    from blindmatch.experiments.executors import Engine


@dataclass(frozen=True)
class EngineOptions:
    """The place of the computation: this process if no engine was asked for."""

    engine: str | None = None
    workers: int | None = None
    address: str | None = None
    job: opt.Words = None

    def make(self) -> Engine | None:
        """The engine."""
        if self.engine is None:
            if self.workers is not None or self.address is not None or self.job:
                raise ValueError("--workers, --address and --job need --engine")
            return None
        from blindmatch.experiments.executors import make_engine
        from blindmatch.experiments.protocol import parse_assignments

        job = {key: int(text) if text.isdigit() else text for key, text in parse_assignments(self.job).items()}
        return make_engine(self.engine, workers=self.workers, address=self.address, options=job)

    @contextmanager
    def open(self, folder: Path) -> Iterator[tuple[Engine | None, Executor | None]]:
        """The engine and its executor."""
        engine = self.make()
        with nullcontext() if engine is None else engine.open(folder) as executor:
            yield engine, executor
