"""The output of the commands (tables and JSON on stdout, errors on stderr), and their exit codes."""

from __future__ import annotations

import codecs
import contextlib
import difflib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from blindmatch.io.exchange import json_finite

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

BAD_INPUT, FAILED, INTERRUPTED, TERMINATED = 2, 1, 130, 143
UNBOUNDED = 100_000  # columns: nothing is that wide
JOINERS = "\u200c\u200d"  # without a width of their own; several scripts and emoji are written with them
_IN_ASCII = {"✓": "+", "✗": "x", "±": "+-", "…": "..."}


def output() -> Console:
    """The console for results. In a pipe, lines are not wrapped and cells not cut, unless COLUMNS sets a width."""
    from rich.console import Console

    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=UNBOUNDED if piped else None)


def write_what_can_be_written() -> None:
    """Write a sign of ours in ASCII, or a question mark, for what stdout or stderr cannot encode (an old locale)."""

    def replace_letters(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeEncodeError)
        letters = error.object[error.start : error.end]
        return "".join(_IN_ASCII.get(letter, "?") for letter in letters), error.end

    codecs.register_error("blindmatch", replace_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="blindmatch")


def complain(message: str) -> None:
    """One line on stderr."""
    typer.echo(f"blindmatch: {plain(' '.join(message.split()))}", err=True)


def plain(text: str) -> str:
    """Text from a file, fit for a terminal: control characters could move the cursor or worse."""
    return "".join(letter if letter.isprintable() or letter in JOINERS else "\ufffd" for letter in text)


def drop_stdout() -> None:
    """Discard what stdout did not accept: Python would try again at exit, and print its own message."""
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:  # it may have no descriptor
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def open_closed_streams() -> None:
    """Replace a closed stdout or stderr by /dev/null, so that no file that is opened gets its number."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (until the end)


_signals: list[int] = []  # that ended this program


def end_on_sigterm() -> None:
    """Let SIGTERM do what Ctrl-C does: the best so far is kept and printed. Only the exit code differs."""

    def interrupt(number: int, frame: object) -> None:
        _signals.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def interruption() -> typer.Exit:
    """The end of a command that Ctrl-C or SIGTERM cut short."""
    return typer.Exit(TERMINATED if _signals else INTERRUPTED)


@contextmanager
def one_line_errors(rephrased: Callable[[str], str] = str) -> Iterator[None]:
    """Show errors that a user can fix in one line, with an exit code; bugs keep their traceback.

    `rephrased` puts a message about arguments into the words of a shell.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None and error.errno is not None:  # not a file that was given: stdout, most likely
            drop_stdout()
            complain(reason(error))
            raise typer.Exit(FAILED) from None
        complain(_message(error))
        raise typer.Exit(BAD_INPUT) from None
    except ValueError as error:
        complain(rephrased(str(error)))
        raise typer.Exit(BAD_INPUT) from None
    except ImportError as error:
        complain(str(error))
        raise typer.Exit(FAILED) from None
    except MemoryError as error:
        complain(f"not enough memory ({error})")
        raise typer.Exit(FAILED) from None
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python 3.11 turns an interrupt while a class is made, as imports do, into a RuntimeError.
        if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        complain("interrupted")
        raise interruption() from None


def reason(error: OSError) -> str:
    """The message of the system, in lower case."""
    return (error.strerror or str(error) or type(error).__name__).lower()


def _message(error: OSError) -> str:
    """The message with the name of the file, and a hint at the one that was probably meant."""
    if error.filename is None:
        return str(error)
    told, path = f"{error.filename}: {reason(error)}", Path(os.fsdecode(error.filename))
    if not isinstance(error, FileNotFoundError):
        return told
    folder = path.parent
    if not folder.is_dir():
        return told if folder.is_absolute() else f"{told} (there is no folder {folder} in {Path.cwd()})"
    close = difflib.get_close_matches(path.name, [entry.name for entry in folder.iterdir()], n=1)
    return f"{told}; did you mean {str(folder / close[0])!r}?" if close else f"{told} (looked in {folder.resolve()})"


def echo_json(values: dict[str, Any] | list[Any]) -> None:
    """Print JSON that every parser accepts: numbers that are not finite become null."""
    typer.echo(json.dumps(json_finite(values), allow_nan=False))


def plain_table(*heads: str, tight: bool = False) -> Table:
    """A table without borders; a head ends with ">" (aligned right), "^" (centred) or "|" (not wrapped)."""
    from rich.table import Table

    look: dict[str, Any] = {"padding": (0, 1, 0, 0), "box": None} if tight else {}
    table = Table(show_edge=False, pad_edge=False, **look)
    for head in heads:
        title = head.rstrip("|>^")
        marks = head[len(title) :]
        wrapped: dict[str, Any] = {"no_wrap": True} if "|" in marks else {"overflow": "fold"}
        table.add_column(title, justify="right" if ">" in marks else "center" if "^" in marks else "left", **wrapped)
    return table
