"""The time limit of a match: sixty seconds by default."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from blindmatch.errors import shown
from blindmatch.solving.result import Result
from blindmatch.validation import positive

TimeLimit = float | None | Literal["auto"]
AUTO: Literal["auto"] = "auto"
DEFAULT_SECONDS = 60.0


def as_seconds(limit: TimeLimit, default: float | None = DEFAULT_SECONDS) -> float | None:
    """Seconds, or None for no limit; "auto" is the default.

    >>> as_seconds("auto"), as_seconds(None), as_seconds(5)
    (60.0, None, 5.0)
    """
    if limit is None:
        return None
    if isinstance(limit, str):
        if limit != AUTO:
            raise ValueError(f"time_limit={shown(limit)}; expected seconds, None for no limit, or 'auto'")
        return default
    return positive(limit, "time_limit")


def with_limit_noted(result: Result, limit: TimeLimit) -> Result:
    """Add a note to the message of a result if the default limit ended the run."""
    if limit != AUTO or result.status != "time_limit":
        return result
    note = (
        f"the default time limit of {DEFAULT_SECONDS:g} s left no room for more; it includes the check of the proof "
        "(no limit: time_limit=None, --time-limit none)"
    )
    return replace(result, notes=(*result.notes, note))
