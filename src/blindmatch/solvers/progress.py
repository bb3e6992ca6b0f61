"""How a run stands, and why it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["optimal", "time_limit", "stalled", "interrupted", "heuristic"]


@dataclass(frozen=True)
class Progress:
    """One moment of a run, on the caller's scale of costs."""

    seconds: float
    iteration: int
    lower_bound: float | None
    cost: float | None
