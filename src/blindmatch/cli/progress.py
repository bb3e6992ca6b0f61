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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from blindmatch.cli.console import plain

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from blindmatch.solvers.progress import Progress

STDERR = Path("-")  # the file of --log that stands for stderr
REFRESH, OFTEN, QUIET = 0.05, 1.0, 10.0  # seconds between two updates of the line, and between two lines


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours if there are any.

    >>> clock(75.2), clock(4000)
    ('1:15', '1:06:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Pace:
    """An estimate of the time that a run may still take, from the gaps so far.

    The gap is extrapolated linearly from the second half of the run. Bounds rise more and more slowly, so this is a
    guess, and usually too short: it is shown as "at this pace".

    >>> pace = Pace()
    >>> [pace.seconds_left(seconds, gap) for seconds, gap in ((4.0, 0.5), (6.0, 0.375), (8.0, 0.25))]
    [None, 6.0, 4.0]
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()  # the later half of the run

    def seconds_left(self, now: float, gap: float) -> float | None:
        """Note the gap at a moment; return the seconds until it is closed at this pace, None if it does not close."""
        self._seen.append((now, gap))
        while self._seen[0][0] < now / 2:
            self._seen.popleft()
        then, wider = self._seen[0]
        return gap * (now - then) / (wider - gap) if wider > gap else None


def remaining_text(seconds: float, limit: float | None, guess: float | None) -> str:
    """The text about the remaining time.

    >>> remaining_text(20.0, 60.0, None)
    'at most 0:40 left'
    >>> remaining_text(20.0, None, 75.2)
    'about 1:15 left at this pace'
    >>> remaining_text(20.0, 60.0, 12.0)
    'about 0:12 left at this pace'
    >>> remaining_text(20.0, None, None)
    ''
    """
    left = math.inf if limit is None else max(0.0, limit - seconds)
    if guess is not None and guess < min(left, 100 * 3600):
        return f"about {clock(guess)} left at this pace"
    return f"at most {clock(left)} left" if math.isfinite(left) else ""


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
        self._bar, self._listeners, self._limit = bar, listeners, time_limit
        self._start = self._began = time.monotonic()  # of the command, of the step
        self._step, self._text = "", ""
        self._left: Callable[[], str] = str
        self._pace, self._shown = Pace(), -math.inf
        self._guess: float | None = None
        self._lock = threading.Lock()

    def wait(self, name: str) -> None:
        """Show that something runs, and the time that it may still take."""
        self.show(name, lambda: remaining_text(time.monotonic() - self._start, self._limit, None))

    def step(self, name: str, done: int, total: int) -> None:
        """Show how many parts of a step are done; a step with a single part gives no estimate of the time."""
        if total > 1:
            self._show_part(name, done / total, f"{min(done + 1, total)} of {total}")
        else:
            self.show(name)

    def share(self, name: str, share: float) -> None:
        """Show which share of a step is done, from 0 to 1."""
        self._show_part(name, share, f"{100 * share:.0f} %")

    def _show_part(self, name: str, share: float, part: str) -> None:
        now, begins = time.monotonic(), name != self._step
        if begins:
            self._step, self._began = name, now
        end = now + (now - self._began) * (1 - share) / share if share > 0 else math.inf

        def left() -> str:
            rest = max(0.0, end - time.monotonic())
            return f"about {clock(rest)} left of this step" if math.isfinite(rest) else ""

        self.show(f"{name}, {part}", left, share)
        if begins and self._bar is not None:
            self._bar.refresh()  # a step shorter than rich's interval is seen too

    def moment(self, now: Progress) -> None:
        """Show the progress of a solver."""
        if now.seconds - self._shown < REFRESH:
            return
        self._shown = now.seconds
        if now.gap is not None:
            self._guess = self._pace.seconds_left(now.seconds, now.gap)
        here, guess = time.monotonic(), self._guess

        def left() -> str:
            later = time.monotonic() - here
            return remaining_text(now.seconds + later, self._limit, None if guess is None else max(0.0, guess - later))

        self.show(moment_text(now), left)

    def show(self, text: str, left: Callable[[], str] = str, share: float | None = None) -> None:
        """Show a text, what `left` says about the time, and which share is done."""
        if self._bar is not None:
            task = self._bar.tasks[0]
            task.total = None if share is None else 1.0  # `update` takes None for "as it is"
            # What is complete is over for rich, and its clock stands still; but another step may follow.
            refresh = not self._bar.live.auto_refresh
            self._bar.update(task.id, refresh=refresh, description=text, completed=min(share or 0.0, 0.999), left=left)
        with self._lock:
            self._text, self._left = text, left
        self.repeat()

    def repeat(self) -> None:
        """Write the last line for the listeners whose time it is."""
        with self._lock:
            if self._text:
                text = ", ".join(filter(None, (self._text, self._left())))
                for listener in self._listeners:
                    listener.hear(time.monotonic() - self._start, text)


def moment_text(now: Progress) -> str:
    """Bound, cost and gap at one moment of a run."""
    from blindmatch.report.verdict import lower_number, number, percent

    gap = now.gap
    which = f" ({now.bound})" if now.bound else ""
    text = f"bound {lower_number(now.lower_bound)}{which}  cost {number(now.cost)}  gap {percent(gap)}"
    return f"{now.phase}  {text}" if now.phase and now.lower_bound is None else text


@contextmanager
def watched(
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
            stack.callback(_closed, file)
            listeners.append(Listener(file, OFTEN))
            listeners[-1].write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(sys.argv[1:])}")
        stack.enter_context(_quiet_stdout())
        bar = stack.enter_context(_bar(what, threads)) if sys.stderr.isatty() and not verbose else None
        line = None if bar is None and not listeners else ProgressLine(bar, listeners, time_limit)
        if line is not None and listeners and threads:
            stack.enter_context(_every_second(line.repeat))
        yield line


@contextmanager
def busy(what: str, time_limit: float | None = None) -> Iterator[None]:
    """Show that something runs, without an estimate of its time."""
    with watched(what, time_limit) as line:
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


def _closed(file: TextIO) -> None:
    """Close a file; what a full disk did not take is lost."""
    with contextlib.suppress(OSError):
        file.close()


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
