"""What an experiment is: settings, a plan of runs, the work of one run, and what is shown of all of them."""

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
    from blindmatch.experiments.data import Catalogue
    from blindmatch.experiments.figures import Figure
    from blindmatch.experiments.tables import Table

VERSION = version("blindmatch")


@dataclass(frozen=True)
class Trial:
    """One row to be: everything that decides its result.

    Attributes
    ----------
    experiment, revision
        Which work, and which edition of it: an experiment that changes what it computes raises its revision.
    parameters
        Settings of this run, plain JSON values.
    files
        Inputs by role. Paths are sent to the workers, never arrays; they are no part of the key.
    digests
        SHA-256 of each input: the key depends on what a file holds, not on where it is.
    """

    experiment: str
    parameters: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    revision: int = 1
    version: str = VERSION

    @cached_property
    def key(self) -> str:
        """Hash of inputs, settings and version: the name of this run in the store."""
        decides = {
            "experiment": self.experiment,
            "revision": self.revision,
            "parameters": dict(self.parameters),
            "inputs": dict(self.digests),
            "version": self.version,
        }
        text = json.dumps(decides, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def group(self) -> str:
        """Runs that take about the same time: they differ in nothing but their inputs and seeds."""
        kept = {k: v for k, v in self.parameters.items() if k in ("variant", "solver", "size", "measure", "unit")}
        return json.dumps(kept, sort_keys=True)


Row = Mapping[str, Any]
"""Parameters and results of one run in one flat mapping, as tables and figures get it."""


class Experiment(ABC):
    """One experiment of the paper."""

    name: ClassVar[str]
    about: ClassVar[str]
    shows: ClassVar[str]
    settings: ClassVar[type[Settings]]
    quick: ClassVar[Mapping[str, Any]]
    needs_embeddings: ClassVar[bool] = True
    revision: ClassVar[int] = 1

    @abstractmethod
    def plan(self, settings: Any, catalogue: Catalogue) -> list[Trial]:
        """All runs of these settings; those that share inputs stand together."""

    @abstractmethod
    def compute(self, run: Trial) -> dict[str, Any]:
        """Do the work of one run, in a worker: plain JSON values back."""

    @abstractmethod
    def tables(self, settings: Any, rows: Sequence[Row]) -> list[Table]:
        """What the paper's tables show, from the rows that there are."""

    def figures(self, settings: Any, rows: Sequence[Row]) -> list[Figure]:
        """What the paper's figures show."""
        return []

    def run(self, parameters: Mapping[str, Any], files: Mapping[str, str], digests: Mapping[str, str]) -> Trial:
        """A run of this experiment."""
        return Trial(self.name, parameters, files, digests, self.revision)
