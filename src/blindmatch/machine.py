"""What this process may use of its machine, on each operating system."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Processors that this process may use; all of the machine where the system keeps no such set (macOS, Windows)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
