"""Progress in lines: on stderr where there is no terminal or with --verbose, and in the file of --log."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from blindmatch.cli.console import plain

if TYPE_CHECKING:
    from blindmatch.solvers.progress import Progress

QUIET, OFTEN = 10.0, 1.0  # seconds between two lines


class Listener:
    """A stream that gets a line now and then: the first one after `pause` seconds."""

    def __init__(self, stream: TextIO, pause: float, prefix: str = "") -> None:
        self.stream, self.pause, self.prefix = stream, pause, prefix
        self._next = pause

    def hear(self, seconds: float, text: str) -> None:
        """Write a line, unless there was one a moment ago."""
        if seconds >= self._next:
            self._next = seconds + self.pause
            self.write(f"{seconds:.0f} s: {text}")

    def write(self, text: str) -> None:
        """Write a line now. A closed or full stream ends the lines, not the run."""
        try:
            self.stream.write(f"{self.prefix}{plain(text)}\n")
            self.stream.flush()
        except (OSError, ValueError):
            self._next = math.inf


class ProgressLines:
    """Writes the progress of a command to streams; the methods are those of ``progress.ProgressLine``."""

    def __init__(self, listeners: list[Listener]) -> None:
        self._listeners, self._begin = listeners, time.monotonic()

    def step(self, name: str, done: int, total: int) -> None:
        """Write how many parts of a step are done."""
        self._write(f"{name}, {min(done + 1, total)} of {total}" if total > 1 else name)

    def share(self, name: str, share: float) -> None:
        """Write which share of a step is done."""
        self._write(f"{name}, {100 * share:.0f} %")

    def moment(self, now: Progress) -> None:
        """Write a line about the progress of a solver."""
        self._write(moment_text(now))

    def _write(self, text: str) -> None:
        for listener in self._listeners:
            listener.hear(time.monotonic() - self._begin, text)


def moment_text(now: Progress) -> str:
    """Bound, cost and gap at one moment of a run."""
    from blindmatch.report.verdict import lower_number, number, percent
    from blindmatch.solving.result import relative_gap

    gap = None if now.cost is None else relative_gap(now.cost, now.lower_bound)
    which = f" ({now.bound})" if now.bound else ""
    text = f"bound {lower_number(now.lower_bound)}{which}  cost {number(now.cost)}  gap {percent(gap)}"
    return f"{now.phase}  {text}" if now.phase and now.lower_bound is None else text


@contextmanager
def progress_lines(verbose: bool, log: Path | None) -> Iterator[ProgressLines | None]:
    """Write to stderr if it is no terminal or with `verbose`, and to the file `log`; None if to neither."""
    with ExitStack() as stack:
        listeners = []
        if verbose or not (sys.stderr.isatty() or os.environ.get("BLINDMATCH_PROGRESS") == "0"):
            listeners.append(Listener(sys.stderr, OFTEN if verbose else QUIET, "blindmatch: "))
        if log is not None:
            file = stack.enter_context(log.open("a", encoding="utf-8"))
            listeners.append(Listener(file, OFTEN))
            listeners[-1].write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(sys.argv[1:])}")
        yield ProgressLines(listeners) if listeners else None


@contextmanager
def ticking(what: str) -> Iterator[None]:
    """Write now and then that something still runs, where there is no terminal that shows it."""
    with progress_lines(verbose=False, log=None) as lines:
        if lines is None:
            yield
            return
        done = threading.Event()

        def tick() -> None:
            while not done.wait(OFTEN):
                lines.step(what, 0, 1)

        thread = threading.Thread(target=tick, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
