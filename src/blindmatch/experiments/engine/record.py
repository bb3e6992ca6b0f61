"""The stored record of a finished run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
