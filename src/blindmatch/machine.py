"""The processors and the memory that this process may use, on each operating system."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_UNKNOWN = 1 << 62  # bytes: there is no limit, or it is not known


def usable_cores() -> int:
    """Processors that this process may use; all of the machine where the system keeps no such set (macOS, Windows)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep BLAS and LAPACK to one thread: two take many times as long where other programs use the cores."""
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


@contextmanager
def repeating(call: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call a function every so many seconds, from a thread of its own."""
    done = threading.Event()

    def tick() -> None:
        while not done.wait(seconds):
            call()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@cache
def _libraries() -> ThreadpoolController:
    """The libraries that start threads. To find them takes two milliseconds, as long as a small problem."""
    import scipy.linalg  # noqa: F401 (it brings a BLAS of its own, besides that of numpy)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def available_bytes() -> int:
    """Memory that this process may still allocate: the least of the machine, its control group and its own limit."""
    return max(0, min(_free_of_machine(), _free_of_group(), _free_of_limit()))


def _free_of_machine() -> int:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return _free_of_windows()
    if hasattr(os, "sysconf"):  # macOS: the installed memory
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _UNKNOWN


def _free_of_windows() -> int:
    import ctypes

    status = (ctypes.c_uint64 * 8)()  # MEMORYSTATUSEX: its size and the load, then sizes; the second is the free memory
    ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
    known = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status[2]) if known else _UNKNOWN


def _free_of_group() -> int:
    folder = Path("/sys/fs/cgroup")
    values = ["".join(_lines(folder / name)).strip() for name in ("memory.max", "memory.current")]
    return int(values[0]) - int(values[1]) if all(value.isdigit() for value in values) else _UNKNOWN


def _free_of_limit() -> int:
    try:
        resource: Any = importlib.import_module("resource")
    except ImportError:  # Windows
        return _UNKNOWN
    limit = int(resource.getrlimit(resource.RLIMIT_AS)[0])
    if limit == resource.RLIM_INFINITY:
        return _UNKNOWN
    pages = int("".join([*_lines(Path("/proc/self/statm")), " 0"]).split()[0])  # pages in use, if the system tells
    return limit - pages * os.sysconf("SC_PAGE_SIZE")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
