"""The stored record of a finished run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Record:
    """A finished run: its result, or the reason for its failure.

    Attributes
    ----------
    key, experiment, version, parameters, inputs
        As in the run; `inputs` are digests by role.
    result
        Its result, as plain JSON values; None if it failed.
    error
        Why it failed.
    seconds, cpu_seconds
        Its time in the worker.
    worker, finished
        The process, and the time at which it ended (UTC).
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
