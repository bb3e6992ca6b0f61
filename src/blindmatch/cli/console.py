"""How the commands speak: tables and JSON on stdout, errors on stderr."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from blindmatch.io.json_values import json_finite

if TYPE_CHECKING:
    from rich.console import Console

BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130
UNBOUNDED = 100_000  # columns: nothing is that wide
JOINERS = "\u200c\u200d"  # without a width of their own; several scripts and emoji are written with them


def output() -> Console:
    """The console for results. In a pipe no line is broken and no cell is cut, unless COLUMNS says how wide it is."""
    from rich.console import Console

    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=UNBOUNDED if piped else None)


def write_what_can_be_written() -> None:
    """Where stdout or stderr cannot take a character (an old locale), write a question mark instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def complain(message: str) -> None:
    """One line on stderr."""
    typer.echo(f"blindmatch: {plain(' '.join(message.split()))}", err=True)


def plain(text: str) -> str:
    r"""Text from a file, fit for a terminal: control characters could move the cursor or worse.

    >>> plain("cat\x1b[2J")
    'cat�[2J'
    """
    return "".join(letter if letter.isprintable() or letter in JOINERS else "\ufffd" for letter in text)


def drop_stdout() -> None:
    """Forget what stdout could not take: Python would try again at its end, and tell of it in its own way."""
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("w") as nowhere:  # it may have no descriptor
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def open_closed_streams() -> None:
    """Where stdout or stderr is closed, send it nowhere, so that no file that is opened takes its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (until the end)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Errors that a user can mend, in one line and with an exit code; bugs keep their traceback."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None and error.errno is not None:  # not a file that was given: stdout, most likely
            drop_stdout()
            complain(reason(error))
            raise typer.Exit(FAILED) from None
        complain(_told(error))
        raise typer.Exit(BAD_INPUT) from None
    except ValueError as error:
        complain(str(error))
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


def reason(error: OSError) -> str:
    """What the system says, in small letters."""
    return (error.strerror or str(error) or type(error).__name__).lower()


def _told(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    hint = _nearest(Path(os.fsdecode(error.filename))) if isinstance(error, FileNotFoundError) else ""
    return f"{error.filename}: {reason(error)}{hint}"


def _nearest(path: Path) -> str:
    """What a file that is not there may have been meant to be."""
    folder = path.parent
    if not folder.is_dir():
        return f" (there is no folder {folder} in {Path.cwd()})" if not folder.is_absolute() else ""
    close = difflib.get_close_matches(path.name, [entry.name for entry in folder.iterdir()], n=1)
    return f"; did you mean {str(folder / close[0])!r}?" if close else f" (looked in {folder.resolve()})"


def echo_json(values: dict[str, Any] | list[Any]) -> None:
    """Print JSON that every parser takes: numbers without a finite value become null."""
    typer.echo(json.dumps(json_finite(values), allow_nan=False))
