"""Progress in lines: on stderr where there is no terminal or with --verbose, and in the file of --log."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from blindmatch.cli.console import plain

if TYPE_CHECKING:
    from blindmatch.solvers.progress import Progress

STDERR = Path("-")  # the file of --log that stands for stderr
QUIET, OFTEN = 10.0, 1.0  # seconds between two lines


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours if there are any.

    >>> clock(75.2), clock(4000)
    ('1:15', '1:06:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class StepClock:
    """When the current step will end, judged by the share of it that is done."""

    def __init__(self) -> None:
        self._step, self._began = "", 0.0

    def end(self, step: str, share: float) -> float:
        """The end on the clock of `time.monotonic`; infinity if nothing is done yet."""
        now = time.monotonic()
        if step != self._step:
            self._step, self._began = step, now
        return now + (now - self._began) * (1 - share) / share if share > 0 else math.inf


def left_of_step(end: float) -> str:
    """The text about the time until the end of a step, on the clock of `time.monotonic`."""
    return f"about {clock(max(0.0, end - time.monotonic()))} left of this step" if math.isfinite(end) else ""


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
        self._listeners, self._begin, self._clock = listeners, time.monotonic(), StepClock()
        self._text, self._lock = "", threading.Lock()

    def step(self, name: str, done: int, total: int) -> None:
        """Write how many parts of a step are done."""
        if total > 1:
            self._write_part(name, done / total, f"{min(done + 1, total)} of {total}")
        else:
            self._write(name)

    def share(self, name: str, share: float) -> None:
        """Write which share of a step is done."""
        self._write_part(name, share, f"{100 * share:.0f} %")

    def moment(self, now: Progress) -> None:
        """Write a line about the progress of a solver."""
        self._write(moment_text(now))

    def _write_part(self, name: str, share: float, part: str) -> None:
        self._write(", ".join(filter(None, (name, part, left_of_step(self._clock.end(name, share))))))

    def repeat(self) -> None:
        """Write the last line again if it is time for one."""
        if self._text:
            self._write(self._text)

    def _write(self, text: str) -> None:
        with self._lock:
            self._text = text
            for listener in self._listeners:
                listener.hear(time.monotonic() - self._begin, text)


def moment_text(now: Progress) -> str:
    """Bound, cost and gap at one moment of a run."""
    from blindmatch.report.verdict import lower_number, number, percent

    gap = now.gap
    which = f" ({now.bound})" if now.bound else ""
    text = f"bound {lower_number(now.lower_bound)}{which}  cost {number(now.cost)}  gap {percent(gap)}"
    return f"{now.phase}  {text}" if now.phase and now.lower_bound is None else text


@contextmanager
def progress_lines(verbose: bool, log: Path | None) -> Iterator[ProgressLines | None]:
    """Write to stderr if it is no terminal or with `verbose`, and to the file `log`; None if to neither."""
    if log == STDERR:
        verbose, log = True, None
    with ExitStack() as stack:
        listeners = []
        if verbose or not (sys.stderr.isatty() or os.environ.get("BLINDMATCH_PROGRESS") == "0"):
            listeners.append(Listener(sys.stderr, OFTEN if verbose else QUIET, "blindmatch: "))
        if log is not None:
            file = stack.enter_context(log.open("a", encoding="utf-8"))
            listeners.append(Listener(file, OFTEN))
            listeners[-1].write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(sys.argv[1:])}")
        lines = ProgressLines(listeners) if listeners else None
        if lines is not None:
            stack.enter_context(_every_second(lines.repeat))
        yield lines


@contextmanager
def _every_second(call: Callable[[], object]) -> Iterator[None]:
    """Call a function every second, from a thread of its own."""
    done = threading.Event()

    def tick() -> None:
        while not done.wait(OFTEN):
            call()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def ticking(what: str) -> Iterator[None]:
    """Write now and then that something still runs, where there is no terminal that shows it."""
    with progress_lines(verbose=False, log=None) as lines:
        if lines is None:
            yield
            return
        lines.step(what, 0, 1)
        yield
