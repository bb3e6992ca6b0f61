"""The processors and the memory that this process may use, on each operating system."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

_UNKNOWN = 1 << 62  # bytes: there is no limit, or it is not known


def usable_cores() -> int:
    """Processors that this process may use; all of the machine where the system keeps no such set (macOS, Windows)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_BLAS_LOCK = threading.RLock()
_BLAS_LIMITS: set[object] = set()  # one for each `one_blas_thread` that is not over
_BLAS_BEFORE: list[int] = []  # kept until all are restored: Ctrl-C may come meanwhile
if hasattr(os, "register_at_fork"):  # a child must not find it locked
    os.register_at_fork(
        before=_BLAS_LOCK.acquire, after_in_parent=_BLAS_LOCK.release, after_in_child=_BLAS_LOCK.release
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS and LAPACK to one thread, in this process, until the last of those that want it is done.

    Two take many times as long where other programs use the cores. And a product on several threads holds a lock of
    OpenBLAS: a process that is forked meanwhile waits for it forever in its own first product on several threads.
    """
    limit = object()
    try:
        with _BLAS_LOCK:
            if not _BLAS_BEFORE:
                _BLAS_BEFORE[:] = [library.num_threads for library in _blas_libraries()]
            _BLAS_LIMITS.add(limit)
            _set_blas_threads([1] * len(_BLAS_BEFORE))
        yield
    finally:
        with _BLAS_LOCK:
            _BLAS_LIMITS.discard(limit)
            if not _BLAS_LIMITS and _BLAS_BEFORE:
                _set_blas_threads(_BLAS_BEFORE)
                _BLAS_BEFORE.clear()


def _set_blas_threads(counts: list[int]) -> None:
    for library, count in zip(_blas_libraries(), counts, strict=True):
        # Since version 3.8, threadpoolctl heeds the thread that was first to set a limit, and no other.
        clear = getattr(library, "clear_controlling_thread", lambda force: None)
        clear(force=True)
        library.set_num_threads(count)
        clear(force=True)


@cache
def _blas_libraries() -> list[Any]:
    """The linear algebra of this process. To find it takes two milliseconds, as long as a small problem."""
    import scipy.linalg  # noqa: F401 (it brings a BLAS of its own, besides that of numpy)
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


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
