"""Journals: finished runs that are not in the database yet, one line per run."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import time
from pathlib import Path

from blindmatch.experiments.base import Record

_OPEN_SECONDS = 1.0
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)  # Windows translates line ends otherwise
_PROCESS = secrets.token_hex(4)  # process ids repeat, but the names of journals must not


class Journal:
    """The journal of this process for the runs of one chunk; an unreachable folder is not an error.

    Each run is one write, which survives the end of the process. The file is synced to disk and reopened once a second.
    A machine that fails therefore loses at most a second, and a sweep that finds the journal of an old worker may
    rename it (`Store.clear_journals`); the worker soon starts another.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{platform.node()}-{os.getpid()}-{_PROCESS}.jsonl"
        self._descriptor: int | None = None
        self._opened = 0.0

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, record: Record) -> None:
        """Append a finished run."""
        line = (json.dumps(vars(record), allow_nan=False) + "\n").encode()
        if time.monotonic() - self._opened > _OPEN_SECONDS:
            self.close()
        with contextlib.suppress(OSError):  # the record is also returned to the sweep
            if self._descriptor is None:
                self._descriptor = os.open(self._path, _APPEND, 0o644)
                self._opened = time.monotonic()
            os.write(self._descriptor, line)

    def close(self) -> None:
        """Sync the file to disk."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            with contextlib.suppress(OSError):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_journal(path: Path, start: int = 0) -> tuple[list[Record], int]:
    """Records of a journal from byte `start` on, and where they end; a truncated last line is skipped."""
    with path.open("rb") as file:
        file.seek(start)
        content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    records = []
    for line in whole.splitlines():
        with contextlib.suppress(ValueError, TypeError):
            records.append(Record(**json.loads(line)))
    return records, start + len(whole)
