"""Show the progress of a long command: in a line on a terminal, or in lines on stderr and in the file of --log."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from blindmatch.cli.console import plain
from blindmatch.machine import repeating

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from blindmatch.solvers.progress import Progress

STDERR = Path("-")  # the file of --log that stands for stderr
REFRESH, OFTEN, QUIET = 0.05, 1.0, 10.0  # seconds between two updates of the line, and between two lines
_FAR = 100 * 3600  # seconds: a guess beyond is not shown


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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


class ProgressLine:
    """The progress of a command: the current step or the state of a solver, and the time that is left."""

    def __init__(self, bar: Bar | None, listeners: Sequence[Listener] = (), time_limit: float | None = None) -> None:
        self._bar, self._listeners = bar, listeners
        self._limit = math.inf if time_limit is None else time_limit
        self._start = self._began = time.monotonic()  # of the command, of the step
        self._step, self._heard = "", -math.inf
        self._gaps: deque[tuple[float, float]] = deque()  # moments and gaps in the later half of a solver's run
        self._text, self._end, self._words = "", math.inf, ""  # what is shown, when it ends, and how that is told
        self._lock = threading.Lock()

    def wait(self, name: str) -> None:
        """Show that something runs, and the time that it may still take."""
        self.show(name, self._start + self._limit, "at most {} left")

    def step(self, name: str, done: int, total: int) -> None:
        """Show how many parts of a step are done; a step with a single part gives no estimate of the time."""
        if total > 1:
            self.share(name, done / total, f"{min(done + 1, total)} of {total}")
        else:
            self.show(name)

    def share(self, name: str, share: float, part: str = "") -> None:
        """Show which share of a step is done, from 0 to 1."""
        now, begins = time.monotonic(), name != self._step
        if begins:
            self._step, self._began = name, now
        end = now + (now - self._began) * (1 - share) / share if share > 0 else math.inf
        self.show(f"{name}, {part or f'{100 * share:.0f} %'}", end, "about {} left of this step", share)
        if begins and self._bar is not None:
            self._bar.refresh()  # a step shorter than rich's interval is seen too

    def moment(self, now: Progress) -> None:
        """Show the bound, the cost and the gap of a solver."""
        from blindmatch.report.verdict import lower_number, number, percent

        if now.seconds - self._heard < REFRESH:
            return
        self._heard = now.seconds
        left, words = max(0.0, self._limit - now.seconds), "at most {} left"
        guess = math.inf if now.gap is None else self._guess(now.seconds, now.gap)
        if guess < min(left, _FAR):
            left, words = guess, "about {} left at this pace"
        which = f" ({now.bound})" if now.bound else ""
        text = f"bound {lower_number(now.lower_bound)}{which}  cost {number(now.cost)}  gap {percent(now.gap)}"
        text = f"{now.phase}  {text}" if now.phase and now.lower_bound is None else text
        self.show(text, time.monotonic() + left, words)

    def _guess(self, seconds: float, gap: float) -> float:
        """The seconds until the gap is closed, if it goes on as in the second half of the run.

        Bounds rise more and more slowly, so this is usually too short.
        """
        self._gaps.append((seconds, gap))
        while self._gaps[0][0] < seconds / 2:
            self._gaps.popleft()
        then, wider = self._gaps[0]
        return gap * (seconds - then) / (wider - gap) if wider > gap else math.inf

    def show(self, text: str, end: float = math.inf, words: str = "", share: float | None = None) -> None:
        """Show a text, the time until `end` in these words, and which share is done."""
        with self._lock:
            self._text, self._end, self._words = text, end, words
        if self._bar is not None:
            task = self._bar.tasks[0]
            task.total = None if share is None else 1.0  # `update` takes None for "as it is"
            # What is complete is over for rich, and its clock stands still; but another step may follow.
            done, refresh = min(share or 0.0, 0.999), not self._bar.live.auto_refresh
            self._bar.update(task.id, refresh=refresh, description=text, completed=done, left=self.left)
        self.repeat()

    def left(self) -> str:
        """The time that is left, in words; empty if it is not known."""
        rest = max(0.0, self._end - time.monotonic())
        return self._words.format(clock(rest)) if math.isfinite(rest) else ""

    def repeat(self) -> None:
        """Write the last line for the listeners whose time it is."""
        with self._lock:
            if self._text:
                text = ", ".join(filter(None, (self._text, self.left())))
                for listener in self._listeners:
                    listener.hear(time.monotonic() - self._start, text)


@contextmanager
def show_progress(
    what: str, time_limit: float | None = None, *, verbose: bool = False, log: Path | None = None, threads: bool = True
) -> Iterator[ProgressLine | None]:
    """Show progress on a terminal, or in lines; None if it is shown nowhere.

    Lines go to stderr where it is no terminal (now and then) and with `verbose` (every second), and to the file `log`.
    Without `threads`, which forbid to fork, something is shown only when there is news.
    """
    if log == STDERR:
        verbose, log = True, None
    with ExitStack() as stack:
        listeners = []
        if verbose or not (sys.stderr.isatty() or os.environ.get("BLINDMATCH_PROGRESS") == "0"):
            listeners.append(Listener(sys.stderr, OFTEN if verbose else QUIET, "blindmatch: "))
        if log is not None:
            file = log.open("a", encoding="utf-8")
            stack.callback(_close, file)
            listeners.append(Listener(file, OFTEN))
            listeners[-1].write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(sys.argv[1:])}")
        stack.enter_context(_quiet_stdout())
        bar = stack.enter_context(_bar(what, threads)) if sys.stderr.isatty() and not verbose else None
        line = None if bar is None and not listeners else ProgressLine(bar, listeners, time_limit)
        if line is not None and listeners and threads:
            stack.enter_context(repeating(line.repeat, OFTEN))
        yield line


@contextmanager
def busy(what: str, time_limit: float | None = None) -> Iterator[None]:
    """Show that something runs, without an estimate of its time."""
    with show_progress(what, time_limit) as line:
        if line is not None:
            line.wait(what)
        yield


@contextmanager
def _bar(text: str, auto_refresh: bool) -> Iterator[Bar]:
    """A line with a spinner, `text`, a bar if the share that is done is known, and times; it disappears at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Share(BarColumn):
        def render(self, task: Task) -> Any:
            return Text("") if task.total is None else super().render(task)

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(task.fields["left"]())

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), Share(bar_width=20))
    bar = Bar(
        *columns, TimeElapsedColumn(), Left(), console=Console(stderr=True), transient=True, auto_refresh=auto_refresh
    )
    with bar:
        bar.add_task(text, total=None, left=str)
        yield bar


def _close(file: TextIO) -> None:
    """Close a file; what a full disk did not take is lost."""
    with contextlib.suppress(OSError):
        file.close()


@contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Send what libraries print on stdout to stderr: Gurobi prints at Ctrl-C, which would corrupt the JSON."""
    try:
        sys.stdout.flush()
        kept = os.dup(1)
    except (OSError, ValueError):  # there is no stdout
        yield
        return
    try:
        os.dup2(2, 1)
        yield
    finally:
        # C keeps a buffer of its own, which would be written once stdout is back.
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
