"""The results: one row for each run in a SQLite file, never lost once written, never computed twice."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from blindmatch.experiments.base import Run

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, experiment TEXT NOT NULL, version TEXT NOT NULL, parameters TEXT NOT NULL,
    inputs TEXT NOT NULL, result TEXT, error TEXT, seconds REAL NOT NULL, cpu_seconds REAL NOT NULL,
    worker TEXT NOT NULL, finished TEXT NOT NULL
) STRICT
"""


@dataclass(frozen=True)
class Record:
    """A run that ended: its result, or why there is none.

    Attributes
    ----------
    key, experiment, version, parameters, inputs
        Of the run; `inputs` are digests by role.
    result
        What it found, as plain JSON values; None if it failed.
    error
        Why it failed.
    seconds, cpu_seconds
        What it took in the worker.
    worker, finished
        Which process, and when it ended (UTC).
    """

    key: str
    experiment: str
    version: str
    parameters: dict[str, Any]
    inputs: dict[str, str]
    result: dict[str, Any] | None
    error: str | None
    seconds: float
    cpu_seconds: float
    worker: str
    finished: str

    @property
    def flat(self) -> dict[str, Any]:
        """Parameters and results in one mapping."""
        taken = {"run_seconds": self.seconds, "cpu_seconds": self.cpu_seconds}
        return {**self.parameters, **(self.result or {}), **taken}


_JSON = ("parameters", "inputs", "result")


class Store:
    """The folder of results: ``results.sqlite``, and the journals of workers that have not been taken in yet.

    Only the process that runs the sweep opens the database. Workers append each finished run as a line to a journal
    of their own, which works on any file system that machines share; the sweep takes the lines in while it waits.
    So whatever is killed, a finished run is either in the database or in a journal.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "results.sqlite"
        self._read: dict[Path, int] = {}  # bytes of each journal that are in the database
        self._database = sqlite3.connect(self.path, timeout=60.0)
        try:
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute(_SCHEMA)
            self._database.commit()
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise ValueError(f"{self.path}: not a database of results ({error})") from None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def add(self, records: Iterable[Record]) -> None:
        """Write records in one transaction; a result that is there is never replaced."""
        rows = [tuple(_encoded(asdict(record)).values()) for record in records]
        with self._database:
            self._database.executemany(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET "
                "result=excluded.result, error=excluded.error, seconds=excluded.seconds, "
                "cpu_seconds=excluded.cpu_seconds, worker=excluded.worker, finished=excluded.finished "
                "WHERE runs.result IS NULL",
                rows,
            )

    def get(self, runs: Sequence[Run]) -> dict[str, Record]:
        """Records of these runs by key, failures included; runs that are missing do not appear."""
        wanted = {run.key for run in runs}
        names = {run.experiment for run in runs}
        marks = ",".join("?" * len(names))
        query = f"SELECT * FROM runs WHERE experiment IN ({marks})"  # nosec B608 (question marks alone)
        return {row[0]: _decoded(row) for row in self._database.execute(query, sorted(names)) if row[0] in wanted}

    def journals(self, experiment: str) -> Path:
        """The folder where workers leave what they finished."""
        return self.folder / "journals" / experiment

    def take_in(self, experiment: str) -> list[Record]:
        """Write what journals hold beyond what was taken in before, and return it."""
        taken: list[Record] = []
        for path in sorted(self.journals(experiment).glob("*.jsonl")):
            with contextlib.suppress(OSError):
                records, self._read[path] = read_journal(path, self._read.get(path, 0))
                taken.extend(records)
        if taken:
            self.add(taken)
        return taken

    def clear_journals(self, experiment: str) -> None:
        """Take everything in and delete it. Renamed first: a worker of old that still writes starts a new file."""
        for path in sorted(self.journals(experiment).glob("*.jsonl")):
            moved = path.with_suffix(".taken")
            path.replace(moved)
            self._read.pop(path, None)
        for moved in sorted(self.journals(experiment).glob("*.taken")):
            self.add(read_journal(moved)[0])
            moved.unlink()

    @contextmanager
    def sweeping(self, experiment: str) -> Iterator[None]:
        """Keep a second sweep of the same experiment out of this folder; a killed process leaves no lock behind."""
        path = self.folder / f".{experiment}.lock"
        with path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"{self.folder}: another sweep of {experiment!r} is running there") from None
            yield


def journal_line(folder: Path, record: Record) -> None:
    """Append a finished run to the journal of this process, in one write; the folder may be out of reach."""
    path = folder / f"{os.uname().nodename}-{os.getpid()}-{_PROCESS}.jsonl"
    line = (json.dumps(asdict(record), allow_nan=False) + "\n").encode()
    with contextlib.suppress(OSError):  # the record is handed back as well
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def read_journal(path: Path, start: int = 0) -> tuple[list[Record], int]:
    """Records of a journal from byte `start` on, and where they end; a line that a crash cut off is left out."""
    with path.open("rb") as file:
        file.seek(start)
        content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    records = []
    for line in whole.splitlines():
        with contextlib.suppress(ValueError, TypeError):
            records.append(Record(**json.loads(line)))
    return records, start + len(whole)


_PROCESS = secrets.token_hex(4)  # process ids repeat; journals must not


def _encoded(row: dict[str, Any]) -> dict[str, Any]:
    texts = {name: json.dumps(row[name], sort_keys=True, allow_nan=False) for name in _JSON if row[name] is not None}
    return {**row, **texts}


def _decoded(row: Sequence[Any]) -> Record:
    values = dict(zip(Record.__dataclass_fields__, row, strict=True))
    return Record(**{**values, **{name: json.loads(values[name]) for name in _JSON if values[name] is not None}})
