"""What a long command shows while it works: on stderr, and only on a terminal."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from blindmatch.result import Progress

REFRESH = 0.05  # seconds between two updates of the line


class Pace:
    """How long a run may still take, from the gaps that were seen.

    The gap is extrapolated along a straight line from the middle of the run to now. Bounds rise ever more slowly, so
    this is a guess, and mostly too short: it is shown as "at this pace".

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
        """Seconds until the gap is closed if it goes on closing like this; None where it does not."""
        if not self._seen:
            return None
        (then, wider), (now, gap) = self._seen[0], self._seen[-1]
        return gap * (now - then) / (wider - gap) if wider > gap else None


def remaining_text(seconds: float, limit: float | None, guess: float | None) -> str:
    """What is said about the time that is left.

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


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any.

    >>> clock(75.2), clock(4000)
    ('1:15', '1:06:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def live_progress(time_limit: float | None = None) -> Iterator[Callable[[Progress], None] | None]:
    """Give a callback that shows bound, cost, gap and times on stderr; None where stderr is no terminal."""
    with _quiet_stdout(), _line("starting", time_limit) as bar:
        if bar is None:
            yield None
            return
        from blindmatch.report.verdict import number, percent
        from blindmatch.result import relative_gap

        pace, shown, task = Pace(), -math.inf, bar.task_ids[0]

        def show(moment: Progress) -> None:
            nonlocal shown
            if moment.seconds - shown < REFRESH:
                return
            shown = moment.seconds
            gap = None if moment.cost is None else relative_gap(moment.cost, moment.lower_bound)
            if gap is not None:
                pace.see(moment.seconds, gap)
            bound, cost = number(moment.lower_bound), number(moment.cost)
            text = f"bound {bound}  cost {cost}  gap {percent(gap)}"
            bar.update(task, description=text, guess=pace.seconds_left)

        yield show


@contextmanager
def busy(what: str, time_limit: float | None = None) -> Iterator[None]:
    """Show on a terminal that something takes its time, where nothing else is known about it."""
    with _quiet_stdout(), _line(what, time_limit):
        yield


@contextmanager
def _line(text: str, time_limit: float | None) -> Iterator[Bar | None]:
    """A line with a spinner, `text`, the time and the `guess` of what is left; it vanishes at the end."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(remaining_text(task.elapsed or 0.0, time_limit, task.fields["guess"]))

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(), Left())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(text, total=None, guess=None)
        yield bar


@contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Send what libraries print on stdout to stderr: Gurobi speaks up at Ctrl-C, which would spoil the JSON."""
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
