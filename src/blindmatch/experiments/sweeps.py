"""Plan the runs of an experiment, compute the missing ones in chunks on any engine, count and report them."""

from __future__ import annotations

import difflib
import fnmatch
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blindmatch import experiments
from blindmatch.experiments.data import Catalogue, read_ahead, read_catalogue, write_sample
from blindmatch.experiments.executors import Engine, Local, forkable
from blindmatch.experiments.matching_runs import PairExperiment
from blindmatch.experiments.protocol import Experiment, Record, Trial, make_settings
from blindmatch.experiments.result_tables import Table
from blindmatch.experiments.store import Store, run_chunk
from blindmatch.validation import at_least


@dataclass(frozen=True)
class Sweep:
    """An experiment and its runs."""

    experiment: Experiment
    runs: tuple[Trial, ...]
    about: str = ""


@dataclass(frozen=True)
class SweepStatus:
    """The finished part of a plan."""

    done: int
    failed: int
    total: int
    kinds: Mapping[str, Sequence[int]] = field(default_factory=dict)  # done, failed, all of each kind of run
    errors: Mapping[str, int] = field(default_factory=dict)  # how often each message occurs
    seconds_left: float | None = None  # estimated from runs of the same kind; None before the first run has ended


Watch = Callable[[SweepStatus], object]


def plan(
    name: str,
    *layers: Mapping[str, Any],
    quick: bool = False,
    embeddings: str | Path | None = None,
    out: str | Path = "results",
    only: Iterable[str] = (),
) -> Sweep:
    """Plan the runs of an experiment.

    `layers` are settings in place of the defaults (the paper's), later ones in place of earlier ones. `quick` plans a
    small version: without a folder of `embeddings` it uses the bundled ones and takes about a minute, from a folder it
    takes the first dataset and the first model of each side, unless others are named. `out` is the folder of results.
    `only` has ``name=pattern`` texts: runs with other parameters are left out.

    Examples
    --------
    >>> sweep = plan("ablation", {"sizes": (8,), "time_limits": (1.0,), "seeds": 1})
    >>> len(sweep.runs), sweep.runs[0].parameters["variant"]
    (8, 'Hahn-Grant')
    """
    kind = experiments.load(name)
    experiment = make_settings(kind, kind.quick if quick else {}, *layers)
    catalogue = Catalogue()
    if not isinstance(experiment, PairExperiment):
        if embeddings is not None:
            raise ValueError(f"embeddings={str(embeddings)!r}: experiment {name!r} uses no embeddings")
    elif embeddings is not None:
        catalogue = read_catalogue(embeddings)
        experiment = experiment.of_one_pair(catalogue) if quick else experiment
    elif quick:
        catalogue = write_sample(Path(out) / "sample-embeddings")
    else:
        raise ValueError(f"experiment {name!r} needs --embeddings FOLDER; --quick uses bundled ones")
    runs = select(experiment.plan(catalogue), only)
    if not runs:
        raise ValueError(f"experiment {name!r}: these settings leave no run")
    return Sweep(experiment, tuple(runs), catalogue.about)


def report(what: Sweep, out: str | Path, command: str | None = None) -> tuple[list[Table], Path]:
    """Write tables, figures and the page from the available results; the page shows `command`."""
    from blindmatch.experiments.sweep_report import write_sweep_report  # not needed for a sweep

    records = read_records(what, out)
    rows = [records[run.key].flat for run in what.runs if _is_done(records, run)]
    return write_sweep_report(what, rows, _errors(records), Path(out) / what.experiment.name, command)


def status(what: Sweep, out: str | Path) -> SweepStatus:
    """Count the finished runs without computing anything."""
    records = read_records(what, out)
    kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for run in what.runs:
        done = _is_done(records, run)
        for at, counts in enumerate((done, run.key in records and not done, True)):
            kinds[run.kind][at] += counts
    done, failed, total = (sum(counts) for counts in zip(*kinds.values(), strict=True))
    return SweepStatus(done, failed, total, kinds, _errors(records))


def read_records(what: Sweep, out: str | Path) -> dict[str, Record]:
    """The finished runs among these."""
    return Store(out).get(what.runs) if Path(out).exists() else {}


def _errors(records: Mapping[str, Record]) -> Counter[str]:
    return Counter(record.error for record in records.values() if record.error is not None)


def _is_done(records: Mapping[str, Record], run: Trial) -> bool:
    return run.key in records and records[run.key].result is not None


def missing(runs: Sequence[Trial], store: Store) -> list[Trial]:
    """The runs without a result, each key once."""
    done = store.get(runs)
    return list({run.key: run for run in runs if not _is_done(done, run)}.values())


def select(runs: Sequence[Trial], only: Iterable[str]) -> list[Trial]:
    """The runs whose parameters match all ``name=pattern`` texts; patterns of one name are alternatives."""
    patterns: dict[str, list[str]] = defaultdict(list)
    known = sorted({name for run in runs for name in run.parameters})
    for text in only:
        name, equals, pattern = text.partition("=")
        if not equals or name not in known:
            near = difflib.get_close_matches(name, known, n=1) if equals else []
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"--only {text!r}; expected NAME=PATTERN, where NAME is one of {', '.join(known)}{hint}")
        patterns[name].append(pattern)

    def fits(run: Trial, name: str) -> bool:
        return any(fnmatch.fnmatchcase(str(run.parameters.get(name)), pattern) for pattern in patterns[name])

    return [run for run in runs if all(fits(run, name) for name in patterns)]


MOST_IN_A_CHUNK = 50
_CHUNKS_PER_WORKER = 16  # so that the last chunks do not keep the others waiting
_TICK_SECONDS = 0.5
_LIVES = 3  # how often the pool may break before the sweep gives up


def compute(
    what: Sweep, out: str | Path, *, engine: Engine | None = None, chunk: int | None = None, watch: Watch | None = None
) -> None:
    """Compute the runs that are not in the folder of results yet. Ctrl-C ends it; finished runs are kept.

    `chunk` runs are sent together; by default each worker gets several chunks. `watch` is called with the state about
    twice a second.
    """
    if chunk is not None:
        at_least(chunk, 1, "chunk")
    engine, store, name = engine or Local(), Store(out), what.experiment.name
    tried: dict[str, Record] = {}
    error: Exception | None = None
    with store.sweeping(name):
        store.journals(name).mkdir(parents=True, exist_ok=True)
        for _ in range(_LIVES):
            todo = [run for run in missing(what.runs, store) if run.key not in tried]
            if not todo:
                return
            workers = engine.workers
            size = chunk or max(1, min(MOST_IN_A_CHUNK, len(todo) // (workers * _CHUNKS_PER_WORKER)))
            if isinstance(engine, Local) and forkable():
                read_ahead(todo)
            chunks = [todo[first : first + size] for first in range(0, len(todo), size)]
            with engine.open(store.folder) as executor:
                error = _collect(chunks, store, executor, _Tracker(todo, workers, tried, watch))
        if any(run.key not in tried for run in missing(what.runs, store)):
            raise ChildProcessError(
                f"workers were lost {_LIVES} times ({type(error).__name__}: {error}); out of memory? "
                "Finished runs are kept: run again to continue, perhaps with fewer workers"
            ) from error


def _collect(work: Sequence[list[Trial]], store: Store, executor: Executor, tracker: _Tracker) -> Exception | None:
    """Submit the work and store the results; return the error if a chunk was lost."""
    name = work[0][0].experiment
    journals = str(store.journals(name).absolute())
    lost: Exception | None = None
    waiting: set[Future[list[Record]]] = set()
    try:
        for piece in work:
            waiting.add(executor.submit(run_chunk, piece, journals))
    except BrokenExecutor as error:  # a worker died while work was still being submitted
        lost = error
    tracker.show()
    while waiting:
        done, waiting = wait(waiting, timeout=_TICK_SECONDS, return_when=FIRST_COMPLETED)
        tracker.note(store.take_in(name))
        for future in done:
            try:
                unseen = [record for record in future.result() if record.key not in tracker.tried]
            except Exception as error:  # the engine's error for a worker that died; failed runs give a record
                lost = error
                continue
            store.add(unseen)  # from a worker whose journal cannot be reached
            tracker.note(unseen)
        tracker.show()
    return lost


class _Tracker:
    """Counts finished runs, and estimates the time left from runs of the same kind."""

    def __init__(self, todo: Sequence[Trial], workers: int, tried: dict[str, Record], watch: Watch | None) -> None:
        self._todo, self.tried = {run.key: run for run in todo}, tried
        self._workers, self._watch, self._shown = workers, watch, 0.0

    def note(self, records: Iterable[Record]) -> None:
        for record in records:
            if record.key in self._todo:
                self.tried.setdefault(record.key, record)

    def show(self) -> None:
        if self._watch is None or time.monotonic() - self._shown < _TICK_SECONDS / 2:
            return
        self._shown = time.monotonic()
        seconds: dict[str, list[float]] = defaultdict(list)
        failed, rest, left = 0, list[Trial](), None
        for key, run in self._todo.items():
            if key in self.tried:
                seconds[run.kind].append(self.tried[key].seconds)
                failed += self.tried[key].error is not None
            else:
                rest.append(run)
        if seconds:
            means = {kind: statistics.fmean(values) for kind, values in seconds.items()}
            overall = statistics.fmean(means.values())
            left = sum(means.get(run.kind, overall) for run in rest) / min(self._workers, max(1, len(rest)))
        done = len(self._todo) - len(rest) - failed
        self._watch(SweepStatus(done, failed, len(self._todo), seconds_left=left))
