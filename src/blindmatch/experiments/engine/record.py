"""What is kept of a run that ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Record:
    """A run that ended: its result, or why there is none.

    Attributes
    ----------
    key, experiment, version, parameters, inputs
        Of the run; `inputs` are digests by role.
    result
        What it found, as plain JSON values; None if it failed.
    error
        Why it failed.
    seconds, cpu_seconds
        What it took in the worker.
    worker, finished
        Which process, and when it ended (UTC).
    """

    key: str
    experiment: str
    version: str
    parameters: dict[str, Any]
    inputs: dict[str, str]
    result: dict[str, Any] | None
    error: str | None
    seconds: float
    cpu_seconds: float
    worker: str
    finished: str

    @property
    def flat(self) -> dict[str, Any]:
        """Parameters and results in one mapping."""
        taken = {"run_seconds": self.seconds, "cpu_seconds": self.cpu_seconds}
        return {**self.parameters, **(self.result or {}), **taken}
