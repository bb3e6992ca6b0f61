"""The work of a worker: runs one after the other, each recorded as it ends."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

from blindmatch import experiments
from blindmatch.experiments.protocol import Record, Trial
from blindmatch.experiments.store import Journal
from blindmatch.io.json_values import json_finite


def run_chunk(runs: Sequence[Trial], journals: str) -> list[Record]:
    """Compute runs of one experiment on one thread; a failed run becomes a record too, and the others continue."""
    experiment = experiments.load(runs[0].experiment)
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
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
