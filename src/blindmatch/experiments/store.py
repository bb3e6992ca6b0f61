"""The results: one row per run in a SQLite file, and the journals of the workers that it imports."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from blindmatch.experiments.protocol import Record, Trial

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


_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, experiment TEXT NOT NULL, version TEXT NOT NULL, parameters TEXT NOT NULL,
    inputs TEXT NOT NULL, result TEXT, error TEXT, seconds REAL NOT NULL, cpu_seconds REAL NOT NULL,
    worker TEXT NOT NULL, finished TEXT NOT NULL
) STRICT
"""

_encode = json.JSONEncoder(sort_keys=True, allow_nan=False).encode
_JSON = ("parameters", "inputs", "result")


class Store:
    """The folder of results: ``results.sqlite``, and the journals that have not been imported yet.

    Only the process that runs the sweep opens the database. Each worker appends every finished run as a line to its own
    journal, which works on any shared file system, and the sweep imports the lines while it waits. So whatever is
    killed, a finished run is either in the database or in a journal.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "results.sqlite"
        self._read: dict[Path, int] = {}  # bytes of each journal that have been imported
        try:
            self._database = sqlite3.connect(self.path, timeout=60.0)
        except sqlite3.OperationalError as error:
            raise ValueError(f"{self.path}: it cannot be opened for writing ({error})") from None
        try:
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute(_SCHEMA)
            self._database.commit()
        except sqlite3.DatabaseError as error:
            self._database.close()
            locked = isinstance(error, sqlite3.OperationalError)
            reason = "it cannot be written" if locked else "not a database of results"
            raise ValueError(f"{self.path}: {reason} ({error})") from None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def add(self, records: Iterable[Record]) -> None:
        """Write records in one transaction; an existing result is never replaced."""
        rows = [_encoded(record) for record in records]
        with self._database:
            self._database.executemany(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET "
                "result=excluded.result, error=excluded.error, seconds=excluded.seconds, "
                "cpu_seconds=excluded.cpu_seconds, worker=excluded.worker, finished=excluded.finished "
                "WHERE runs.result IS NULL",
                rows,
            )

    def get(self, runs: Sequence[Trial]) -> dict[str, Record]:
        """Records of these runs by key, including failures; missing runs do not appear."""
        wanted = {run.key for run in runs}
        rows = self._rows("SELECT * FROM runs WHERE experiment = ?", runs)
        return {row[0]: _decoded(row) for row in rows if row[0] in wanted}

    def done(self, runs: Sequence[Trial]) -> set[str]:
        """Keys of all runs of the experiment that have a result."""
        return {row[0] for row in self._rows("SELECT key FROM runs WHERE experiment = ? AND result NOTNULL", runs)}

    def _rows(self, query: str, runs: Sequence[Trial]) -> Iterator[Any]:
        for name in sorted({run.experiment for run in runs}):
            yield from self._database.execute(query, (name,))

    def journals(self, experiment: str) -> Path:
        """The folder of the workers' journals."""
        return self.folder / "journals" / experiment

    def take_in(self, experiment: str) -> list[Record]:
        """Import new records from the journals, and return them."""
        taken: list[Record] = []
        for path in sorted(self.journals(experiment).glob("*.jsonl")):
            with contextlib.suppress(OSError):
                records, self._read[path] = read_journal(path, self._read.get(path, 0))
                taken.extend(records)
        if taken:
            self.add(taken)
        return taken

    def clear_journals(self, experiment: str) -> None:
        """Import and delete all journals. They are renamed first, so a worker that still writes starts a new file.

        Windows renames no open file: that one is imported, and deleted by a later sweep.
        """
        for path in sorted(self.journals(experiment).glob("*.jsonl")):
            moved = path.with_suffix(".taken")
            try:
                path.replace(moved)
            except PermissionError:
                self.take_in(experiment)
                continue
            if path in self._read:
                self._read[moved] = self._read.pop(path)
        for moved in sorted(self.journals(experiment).glob("*.taken")):
            self.add(read_journal(moved, self._read.pop(moved, 0))[0])
            moved.unlink()

    @contextmanager
    def sweeping(self, experiment: str) -> Iterator[None]:
        """Lock the folder against a second sweep of the same experiment; a killed process leaves no lock behind."""
        path = self.folder / f".{experiment}.lock"
        # A database that is never written: SQLite locks files on every system, against threads and processes alike, and
        # forked workers do not inherit the lock.
        lock = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise ValueError(f"{path}: it cannot be locked ({error})") from None
                raise ValueError(f"{self.folder}: another sweep of {experiment!r} is running there") from None
            yield
        finally:
            lock.close()


def _encoded(record: Record) -> tuple[Any, ...]:
    row = dict(vars(record))
    for name in _JSON:
        row[name] = None if row[name] is None else _encode(row[name])
    return tuple(row.values())


def _decoded(row: Sequence[Any]) -> Record:
    values = dict(zip(Record.__dataclass_fields__, row, strict=True))
    return Record(**{**values, **{name: json.loads(values[name]) for name in _JSON if values[name] is not None}})
