"""What limits a run from outside: the time of a match, the memory of the machine, and Ctrl-C between runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from blindmatch.errors import shown
from blindmatch.machine import available_bytes
from blindmatch.problem.qap import QAP
from blindmatch.solvers.auto import Auto
from blindmatch.solvers.base import Solver
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solvers.dual_ascent import DualAscent
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


def note_limit(result: Result, limit: TimeLimit) -> Result:
    """Add a note to the message of a result if the default limit ended the run."""
    if limit != AUTO or result.status != "time_limit":
        return result
    note = (
        f"the default time limit of {DEFAULT_SECONDS:g} s left no room for more; it includes the check of the proof "
        "(no limit: time_limit=None, --time-limit none)"
    )
    return replace(result, notes=(*result.notes, note))


def fitting(problem: QAP, solver: Solver) -> tuple[Solver, str]:
    """The solver and no note, or a smaller one and why, if memory is too short.

    That is one without the bounds of n^4 numbers, or "auto" without branch and bound. Any other solver that would run
    out of memory is refused, by a ValueError with the figures and an alternative.
    """
    needed, there = solver.memory(problem), available_bytes()
    if needed <= there:
        return solver, ""
    smaller: dict[str, Solver] = {}
    if isinstance(solver, Auto | BranchAndBound | DualAscent):
        least = replace(solver, memory_limit=0)
        smaller["a bound of n^4 numbers"] = replace(solver, memory_limit=max(0, there - least.memory(problem)))
    if isinstance(solver, Auto):
        fits = int(problem.n * (there / replace(solver, memory_limit=0).memory(problem)) ** (1 / 3))
        smaller["branch and bound"] = replace(solver, largest=max(1, min(problem.n - 1, fits)))
    for part, without in smaller.items():
        if without.memory(problem) <= there:
            figures = f"about {_gigabytes(needed)} of memory for n={problem.n}, and {_gigabytes(there)} is free"
            return without, f"{part} needs {figures}"
    instead = (
        "solver='auto' or 'tabu', which need n^2 numbers" if solver.name not in ("auto", "tabu") else "fewer items"
    )
    raise ValueError(
        f"solver={solver.name!r} needs about {_gigabytes(needed)} of memory for n={problem.n}, and "
        f"{_gigabytes(there)} is free; use {instead}"
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.3g} GB"


@contextmanager
def keep_what_is_done(there_is: Callable[[], bool] = lambda: True) -> Iterator[list[KeyboardInterrupt]]:
    """Let Ctrl-C end the block, but not the program, if there is something to keep; yields a list for the interrupt.

    >>> done = []
    >>> with keep_what_is_done(lambda: bool(done)) as interrupted:
    ...     done.append(1)
    ...     raise KeyboardInterrupt
    >>> done, bool(interrupted)
    ([1], True)
    """
    interrupts: list[KeyboardInterrupt] = []
    try:
        yield interrupts
    except KeyboardInterrupt as interrupt:
        if not there_is():
            raise
        interrupts.append(interrupt)


def complete(result: Result) -> Result:
    """Return one result of many; raise KeyboardInterrupt if Ctrl-C cut it short, since some of them are of no use."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result
