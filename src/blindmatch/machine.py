"""What this process may use of its machine, on each operating system."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def usable_cores() -> int:
    """Processors that this process may use; all of the machine where the system keeps no such set (macOS, Windows)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep BLAS and LAPACK to one thread: two take many times as long where other programs use the cores."""
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> ThreadpoolController:
    """The libraries that start threads. To find them takes two milliseconds, as long as a small problem."""
    import scipy.linalg  # noqa: F401 (it brings a BLAS of its own, besides that of numpy)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
