"""What a long command shows while it runs: one line on a terminal; `progress_lines.py` has the rest."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blindmatch.cli.progress_lines import (
    ProgressLines,
    StepClock,
    clock,
    left_of_step,
    moment_text,
    progress_lines,
    ticking,
)

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from blindmatch.solvers.progress import Progress

REFRESH = 0.05  # seconds between two updates of the line


class Pace:
    """How long a run may still take, judged by the gaps so far.

    The gap is extrapolated linearly from the second half of the run. Bounds rise more and more slowly, so this is a
    guess, and usually too short: it is shown as "at this pace".

    >>> pace = Pace()
    >>> pace.see(0.0, 0.4), pace.see(5.0, 0.3), pace.see(10.0, 0.2)
    (None, None, None)
    >>> round(pace.seconds_left)
    10
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()  # the later half of the run

    def see(self, seconds: float, gap: float) -> None:
        """Note the gap at a moment."""
        self._seen.append((seconds, gap))
        while self._seen[0][0] < seconds / 2:
            self._seen.popleft()

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the gap is closed at this pace; None if it does not close."""
        if not self._seen:
            return None
        (then, wider), (now, gap) = self._seen[0], self._seen[-1]
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


class ProgressLine:
    """A line of progress: the current step, its time so far, and its remaining time."""

    def __init__(self, bar: Bar, time_limit: float | None) -> None:
        self._bar, self._limit = bar, time_limit
        self._pace, self._shown = Pace(), -math.inf
        self._step, self._clock = "", StepClock()

    def step(self, name: str, done: int, total: int) -> None:
        """Show how many parts of a step are done; a step with a single part gives no estimate of the time."""
        if total > 1:
            self.share(name, done / total, f"{name}, {min(done + 1, total)} of {total}")
        else:
            self._show(name, str)

    def share(self, name: str, share: float, text: str | None = None) -> None:
        """Show which share of a step is done, from 0 to 1."""
        end = self._clock.end(name, share)
        self._show(text or name, lambda: left_of_step(end), share)
        if name != self._step:
            self._step = name
            self._bar.refresh()  # a step shorter than rich's interval is seen too

    def moment(self, now: Progress) -> None:
        """Show the progress of a solver."""
        if now.seconds - self._shown < REFRESH:
            return
        self._shown = now.seconds
        gap = now.gap
        if gap is not None:
            self._pace.see(now.seconds, gap)
        text = moment_text(now)
        here, guess = time.monotonic(), self._pace.seconds_left

        def left() -> str:
            later = time.monotonic() - here
            return remaining_text(now.seconds + later, self._limit, None if guess is None else max(0.0, guess - later))

        self._show(text, left)

    def _show(self, text: str, left: Callable[[], str], share: float | None = None) -> None:
        task = self._bar.tasks[0]
        task.total = None if share is None else 1.0  # `update` takes None for "as it is"
        # What is complete is over for rich, and its clock stands still; but another step may follow.
        self._bar.update(task.id, description=text, completed=min(share or 0.0, 0.999), left=left)


class Both:
    """A line on the terminal, and the same progress in lines."""

    def __init__(self, line: ProgressLine, lines: ProgressLines) -> None:
        self._all = (line, lines)

    def step(self, name: str, done: int, total: int) -> None:
        """Show how many parts of a step are done."""
        for one in self._all:
            one.step(name, done, total)

    def share(self, name: str, share: float) -> None:
        """Show which share of a step is done."""
        for one in self._all:
            one.share(name, share)

    def moment(self, now: Progress) -> None:
        """Show the progress of a solver."""
        for one in self._all:
            one.moment(now)


@contextmanager
def watched(
    what: str, time_limit: float | None = None, *, verbose: bool, log: Path | None
) -> Iterator[ProgressLine | ProgressLines | Both | None]:
    """Show progress on a terminal, or with `verbose` in lines every second; None if it is shown nowhere.

    The file `log` gets the lines as well.
    """
    shown = nullcontext() if verbose else _bar(what)
    with progress_lines(verbose, log) as lines, _quiet_stdout(), shown as bar:
        line = None if bar is None else ProgressLine(bar, time_limit)
        yield Both(line, lines) if line is not None and lines is not None else line or lines


@contextmanager
def busy(what: str, time_limit: float | None = None) -> Iterator[None]:
    """Show that something runs, without an estimate of its time."""
    with ticking(what), _quiet_stdout(), _bar(what, time_limit):
        yield


@contextmanager
def _bar(text: str, time_limit: float | None = None) -> Iterator[Bar | None]:
    """A line with a spinner, `text`, a bar if the share that is done is known, and times; it disappears at the end."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Share(BarColumn):
        def render(self, task: Task) -> Any:
            return Text("") if task.total is None else super().render(task)

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(task.fields["left"]() or remaining_text(task.elapsed or 0.0, time_limit, None))

    words = TextColumn("{task.description}", markup=False)
    with Bar(
        SpinnerColumn(), words, Share(bar_width=20), TimeElapsedColumn(), Left(), console=Console(stderr=True),
        transient=True,
    ) as bar:  # fmt: skip
        bar.add_task(text, total=None, left=str)
        yield bar


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
