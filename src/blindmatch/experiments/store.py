"""Runs are computed one after the other, and each process appends its finished ones to a file of its own."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import signal
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from io import FileIO
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

from blindmatch import experiments
from blindmatch.experiments.protocol import Record, Trial
from blindmatch.io.exchange import json_finite

_SYNC_SECONDS = 1.0
_PROCESS = secrets.token_hex(4)  # process ids repeat, but the names of journals must not


class Journal:
    """The file of this process for finished runs.

    Each run is one write, which survives the end of the process. The file is synced to disk once a second: a machine
    that fails loses no more. This works on any shared file system.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{platform.node()}-{os.getpid()}-{_PROCESS}.jsonl"
        self._file: FileIO | None = None
        self._synced = 0.0

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with self._file, contextlib.suppress(OSError):
                os.fsync(self._file.fileno())

    def add(self, record: Record) -> None:
        """Append a finished run."""
        line = (json.dumps(vars(record), allow_nan=False) + "\n").encode()
        self._file = self._file or FileIO(self._path, "ab")
        self._file.write(line)
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()


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


class Store:
    """The folder of results: the journals of all processes that computed runs, by experiment."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, Record] = {}
        self._read: dict[Path, int] = {}  # bytes of each journal that were read

    def journals(self, experiment: str) -> Path:
        """The folder of the journals."""
        return self.folder / "journals" / experiment

    def add(self, records: Iterable[Record]) -> None:
        """Keep records of this process."""
        for record in records:
            folder = self.journals(record.experiment)
            folder.mkdir(parents=True, exist_ok=True)
            with Journal(folder) as journal:
                journal.add(record)

    def take_in(self, experiment: str) -> list[Record]:
        """Read what is new in the journals, and return it. A result is never replaced; a failure is, if it is older."""
        taken: list[Record] = []
        for path in sorted(self.journals(experiment).glob("*.jsonl")):
            with contextlib.suppress(FileNotFoundError):
                records, self._read[path] = read_journal(path, self._read.get(path, 0))
                taken.extend(records)
        for record in taken:
            known = self._known.setdefault(record.key, record)
            if known.result is None and (record.result is not None or record.finished >= known.finished):
                self._known[record.key] = record
        return taken

    def get(self, runs: Sequence[Trial]) -> dict[str, Record]:
        """Records of these runs by key, including failures; missing runs do not appear."""
        for name in sorted({run.experiment for run in runs}):
            self.take_in(name)
        return {run.key: self._known[run.key] for run in runs if run.key in self._known}

    @contextmanager
    def sweeping(self, experiment: str) -> Iterator[None]:
        """Lock the folder against a second sweep of the same experiment; a killed process leaves no lock behind."""
        path = self.folder / f".{experiment}.lock"
        # A database that is never written: SQLite locks files on every system, against threads and processes alike, and
        # forked workers do not inherit the lock.
        try:
            lock = sqlite3.connect(path, timeout=0, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise ValueError(f"{path}: it cannot be opened for writing ({error})") from None
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


def run_chunk(runs: Sequence[Trial], journals: str) -> list[Record]:
    """Compute runs of one experiment on one thread; a failed run becomes a record too, and the others continue."""
    experiment = experiments.load(runs[0].experiment)()
    records = []
    with _pools(experiment.name).limit(limits=1), Journal(Path(journals)) as journal:
        for run in runs:
            record = _compute(experiment.compute, run)
            with contextlib.suppress(OSError):  # the record is also returned to the sweep
                journal.add(record)
            records.append(record)
    return records


@lru_cache
def _pools(experiment: str) -> ThreadpoolController:
    """The loaded libraries that use threads; cached, because the search takes as long as a quick run."""
    return ThreadpoolController()


def _compute(compute: Any, run: Trial) -> Record:
    result, error = None, None
    start, cpu = time.perf_counter(), time.process_time()
    try:
        result = json_finite(compute(run))
    except Exception as problem:  # one bad run must not end a sweep of thousands
        error = f"{type(problem).__name__}: {problem}"
    return Record(
        key=run.key,
        experiment=run.experiment,
        version=run.version,
        parameters=dict(run.parameters),
        inputs=run.digests,
        result=result,
        error=error,
        seconds=time.perf_counter() - start,
        cpu_seconds=time.process_time() - cpu,
        worker=f"{platform.node()}:{os.getpid()}",
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def start_local_worker() -> None:
    """Leave Ctrl-C to the sweep, and end with it: workers of a killed sweep would wait for work forever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a forked worker has the handler of the command line
    parent = parent_process()

    def end_with(sentinel: int) -> None:
        connection.wait([sentinel])
        os._exit(1)

    if parent is not None:
        threading.Thread(target=end_with, args=(parent.sentinel,), daemon=True).start()
