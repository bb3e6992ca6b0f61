"""Predict the memory of a run and compare it with what is available, so that a run that is too large does not start."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from blindmatch.problem.qap import QAP
from blindmatch.solvers.auto import Auto
from blindmatch.solvers.base import Solver

_UNKNOWN = 1 << 62  # bytes: there is no limit, or it is not known


def fitting(problem: QAP, solver: Solver) -> tuple[Solver, str]:
    """The solver and no note, or "auto" without branch and bound, and why, if memory is too short for that.

    Any other solver that would run out of memory is refused, by a ValueError with the figures and an alternative.
    """
    needed, there = solver.memory(problem), available_bytes()
    if needed <= there:
        return solver, ""
    if isinstance(solver, Auto):
        smaller = replace(solver, largest=max(1, min(problem.n - 1, int(problem.n * (there / needed) ** (1 / 3)))))
        if smaller.memory(problem) <= there:
            figures = f"about {_gigabytes(needed)} of memory for n={problem.n}, and {_gigabytes(there)} is free"
            return smaller, f"branch and bound needs {figures}"
    instead = (
        "solver='auto' or 'tabu', which need n^2 numbers" if solver.name not in ("auto", "tabu") else "fewer items"
    )
    raise ValueError(
        f"solver={solver.name!r} needs about {_gigabytes(needed)} of memory for n={problem.n}, and "
        f"{_gigabytes(there)} is free; use {instead}"
    )


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


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.3g} GB"
