"""How the commands speak: tables on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from blindmatch.result import Progress

BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130


def output() -> Console:
    """The console for results."""
    from rich.console import Console

    return Console(highlight=False)


def complain(message: str) -> None:
    """One line on stderr."""
    typer.echo(f"blindmatch: {plain(' '.join(message.split()))}", err=True)


def plain(text: str) -> str:
    r"""Text from a file, fit for a terminal: control characters could move the cursor or worse.

    >>> plain("cat\x1b[2J")
    'cat�[2J'
    """
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Errors that a user can mend, in one line and with an exit code; bugs keep their traceback."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        complain(_told(error))
        raise typer.Exit(BAD_INPUT) from None
    except ImportError as error:
        complain(str(error))
        raise typer.Exit(FAILED) from None
    except MemoryError as error:
        complain(f"not enough memory ({error})")
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        complain("interrupted")
        raise typer.Exit(INTERRUPTED) from None


def _told(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or type(error).__name__).lower()}"
    return str(error)


def echo_json(values: dict[str, Any] | list[Any]) -> None:
    """Print JSON that every parser takes: numbers without a finite value become null."""
    typer.echo(json.dumps(_finite(values), allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def live_progress() -> Iterator[Callable[[Progress], None] | None]:
    """Give a callback that shows bound, cost, gap and seconds on stderr; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    from blindmatch.report.verdict import number, percent
    from blindmatch.result import relative_gap

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        shown = -math.inf

        def show(moment: Progress) -> None:
            nonlocal shown
            if moment.seconds - shown < 0.05:
                return
            shown = moment.seconds
            gap = None if moment.cost is None else relative_gap(moment.cost, moment.lower_bound)
            bound, cost = number(moment.lower_bound), number(moment.cost)
            bar.update(task, description=f"bound {bound}  cost {cost}  gap {percent(gap)}")

        yield show
