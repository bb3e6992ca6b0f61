"""The log of a run, as solvers print it: what is solved, what happens, and why it ended."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import TextIO

from blindmatch.errors import shown
from blindmatch.machine import repeating, usable_cores
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Callback, Solver
from blindmatch.solvers.progress import Limits, Progress
from blindmatch.solving.result import Result

_PERIOD = 5.0  # seconds between two lines where nothing happens
_PAIRS = 3  # of factors whose share of zeros is told
_LEAST = 0.2  # seconds between two lines about better matches: a search finds many at once
_TITLES = f"{'seconds':>9}  {'phase':<18} {'nodes':>9} {'open':>8}   {'incumbent':>14} {'bound':>14} {'gap':>9}"


def as_stream(log: bool | TextIO) -> TextIO | None:
    """Where the log goes: nowhere, to stdout or to an open file."""
    if isinstance(log, bool):
        return sys.stdout if log else None
    if not hasattr(log, "write"):
        raise ValueError(f"log={shown(log)}; expected True, False or an open text file")
    return log


class RunLog:
    """Writes one line for each better match and each new phase, and one every few seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._lock, self._start = stream, threading.Lock(), time.perf_counter()
        self._now: Progress | None = None  # the last that was heard
        self._cost: float | None = None  # of the last line
        self._written = -_LEAST
        self._phases: dict[str, float] = {}  # seconds of each

    def ticking(self) -> AbstractContextManager[None]:
        """Write a line every few seconds, whether anything is heard or not."""
        return repeating(self._tick, _PERIOD / 5)

    def _tick(self) -> None:
        with self._lock:
            if self._now is not None and self._seconds - self._written >= _PERIOD:
                self._line(self._now)

    def begin(
        self, problem: QAP, solver: Solver, threads: int | None, time_limit: float | None, limits: Limits
    ) -> None:
        """Write what is solved and how."""
        numbers = "integers" if problem.exact else "real numbers"
        step = f", costs differ by {problem.granularity:.15g}" if problem.granularity > 1 else ""
        kind = "symmetric" if problem.symmetric else "asymmetric or a sum of factor pairs"
        pairs = problem.factors[:_PAIRS]
        zeros = [f"{100 * (1 - (matrix != 0).mean()):.0f} %" for pair in pairs for matrix in pair]
        forbidden = "" if problem.forbidden is None else f", {int(problem.forbidden.sum())} forbidden pairs"
        linear = ", linear term" if problem.linear.any() else ""
        self._write(f"blindmatch {version('blindmatch')}: {problem!r}, {kind}, {numbers}{step}{linear}{forbidden}")
        self._write(
            "zeros: " + ", ".join(zeros) + f" of the {'first ' if len(problem.factors) > _PAIRS else ''}matrices"
        )
        values = {"time_limit": time_limit, **{name: getattr(limits, name) for name in limits.given}}
        set_ = ", ".join(f"{name}={value:g}" for name, value in values.items() if value is not None)
        count = threads or usable_cores()
        self._write(f"solver {solver.name}, {count} thread{'' if count == 1 else 's'}, {set_ or 'no limits'}")
        self._write(_TITLES)

    def hear(self, now: Progress) -> None:
        """Write a line if a match is better or a phase is new."""
        with self._lock:
            before, self._now = self._now, now
            if before is not None:
                spent = now.seconds - before.seconds
                self._phases[before.phase] = self._phases.get(before.phase, 0.0) + spent
            better = now.cost != self._cost and self._seconds - self._written >= _LEAST
            if before is None or now.phase != before.phase or better:
                self._line(now)

    def heard_by(self, callback: Callback | None) -> Callback:
        """A callback that writes the log and then calls the caller's own."""

        def hear(now: Progress) -> object:
            self.hear(now)
            return None if callback is None else callback(now)

        return hear

    def end(self, result: Result) -> None:
        """Write why the run ended, and what it took."""
        bound = result.lower_bound if result.maximum is None else result.maximum
        self._write(
            f"{result.status}: cost {full(result.cost)}, bound {full(bound)}"
            f"{f' ({result.bound_name})' if result.bound_name else ''}, gap {_percent(result.gap)}"
        )
        proof = result.proof
        size = "no proof" if proof is None else f"proof of {proof.nbytes / 1e6:.3g} MB"
        heard = 0.0 if self._now is None else self._now.seconds
        parts = [f"{phase or 'other'} {seconds:.1f} s" for phase, seconds in self._phases.items() if seconds >= 0.05]
        parts += [f"check {max(0.0, result.seconds - heard):.1f} s"] if proof is not None else []
        nodes = max((now.nodes for now in result.trace), default=0)
        took = f"{self._seconds:.1f} s" + (": " if parts else "") + ", ".join(parts)
        self._write(f"{nodes} node{'' if nodes == 1 else 's'}, {size}; {took}")
        if result.pool is not None and len(result.pool) > 1:
            self._write(repr(result.pool))

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self._start

    def _line(self, now: Progress) -> None:
        mark = "*" if now.cost is not None and now.cost != self._cost else " "
        self._cost, self._written = now.cost, self._seconds
        self._write(
            f"{self._seconds:>9.1f}  {now.phase:<18} {now.nodes:>9} {now.open:>8} {mark} {full(now.cost):>14} "
            f"{full(now.lower_bound):>14} {_percent(now.gap):>9}"
        )

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # a closed or full stream ends the log, not the run
            pass


def full(value: float | None) -> str:
    """A cost with all its digits if it is an integer.

    >>> full(21273196.0), full(0.1 + 0.2), full(None)
    ('21273196', '0.3', '-')
    """
    if value is None or abs(value) == float("inf"):
        return "-"
    return f"{int(value)}" if value == int(value) and abs(value) < 1e15 else f"{value:.7g}"


def _percent(gap: float | None) -> str:
    return "-" if gap is None else f"{100 * gap:.2f} %" if gap >= 1e-4 or gap == 0 else f"{100 * gap:.1e} %"
