"""The progress of a run, and the reasons why it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["optimal", "time_limit", "stalled", "interrupted", "heuristic"]


@dataclass(frozen=True)
class Progress:
    """The state of a run at one moment, with costs on the caller's scale."""

    seconds: float
    iteration: int
    lower_bound: float | None
    cost: float | None
    phase: str = ""  # what is being done, in runs with several phases
    bound: str = ""  # which lower bound it is
