"""The protocol of an experiment: settings, a plan of runs, the work and the record of one run, tables and figures."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar

from blindmatch.experiments.settings import Settings

if TYPE_CHECKING:
    from blindmatch.experiments.data import Catalogue, Source
    from blindmatch.experiments.figures import Figure
    from blindmatch.experiments.tables import Table

VERSION = version("blindmatch")


@dataclass(frozen=True)
class Trial:
    """One planned run: everything that determines its result."""

    experiment: str
    parameters: Mapping[str, Any]  # settings of this run, plain JSON values
    files: Mapping[str, Source] = field(default_factory=dict)  # inputs by role: workers get paths, never arrays
    revision: int = 1  # of the experiment, raised whenever its computation changes
    version: str = VERSION

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each input."""
        return {role: file.digest for role, file in self.files.items()}

    @cached_property
    def key(self) -> str:
        """Hash of settings, version and contents of the inputs (not their paths): identifies this run in the store."""
        decides = {
            "experiment": self.experiment,
            "revision": self.revision,
            "parameters": dict(self.parameters),
            "inputs": self.digests,
            "version": self.version,
        }
        text = json.dumps(decides, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def group(self) -> str:
        """The kind of the run; runs of one kind differ only in inputs and seeds and take about the same time."""
        kept = {k: v for k, v in self.parameters.items() if k in ("variant", "solver", "size", "measure", "unit")}
        return json.dumps(kept, sort_keys=True)


@dataclass(frozen=True)
class Record:
    """A finished run: its result in plain JSON values, or the reason for its failure."""

    key: str
    experiment: str
    version: str
    parameters: dict[str, Any]
    inputs: dict[str, str]  # digests by role
    result: dict[str, Any] | None
    error: str | None
    seconds: float
    cpu_seconds: float
    worker: str
    finished: str  # UTC

    @property
    def flat(self) -> dict[str, Any]:
        """Parameters and results in one mapping."""
        taken = {"run_seconds": self.seconds, "cpu_seconds": self.cpu_seconds}
        return {**self.parameters, **(self.result or {}), **taken}


Row = Mapping[str, Any]
"""Parameters and results of one run in a flat mapping, for tables and figures."""


class Experiment(ABC):
    """One experiment of the paper."""

    name: ClassVar[str]
    about: ClassVar[str]
    shows: ClassVar[str]
    settings: ClassVar[type[Settings]]
    quick: ClassVar[Mapping[str, Any]]
    revision: ClassVar[int] = 1

    @abstractmethod
    def plan(self, settings: Any, catalogue: Catalogue) -> list[Trial]:
        """All runs of these settings; runs that share inputs are adjacent."""

    @abstractmethod
    def compute(self, run: Trial) -> dict[str, Any]:
        """Do the work of one run in a worker; return plain JSON values."""

    @abstractmethod
    def tables(self, settings: Any, rows: Sequence[Row]) -> list[Table]:
        """The paper's tables, from the available rows."""

    def figures(self, settings: Any, rows: Sequence[Row]) -> list[Figure]:
        """The paper's figures."""
        return []

    def run(self, parameters: Mapping[str, Any], **files: Source) -> Trial:
        """A run of this experiment."""
        return Trial(self.name, parameters, files, self.revision)
