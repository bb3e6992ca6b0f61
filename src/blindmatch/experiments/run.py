"""Settings, plan, sweep and report, one call each, for the command line and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blindmatch import experiments
from blindmatch.experiments.base import Experiment, Record, Trial
from blindmatch.experiments.data import Catalogue, read_catalogue
from blindmatch.experiments.engine.engines import Engine, Local
from blindmatch.experiments.engine.store import Store
from blindmatch.experiments.engine.sweep import Watch, select, sweep
from blindmatch.experiments.paper.matching_runs import PairSettings, one_pair
from blindmatch.experiments.paper.sample import write_sample
from blindmatch.experiments.settings import Settings, make_settings
from blindmatch.experiments.tables import Table


@dataclass(frozen=True)
class Sweep:
    """An experiment with its settings and the resulting runs."""

    experiment: Experiment
    settings: Settings
    runs: tuple[Trial, ...]
    about: str = ""


@dataclass(frozen=True)
class SweepStatus:
    """How much of a plan is finished; `kinds` counts (done, failed, all) for each kind of run."""

    done: int
    failed: int
    total: int
    kinds: Mapping[str, tuple[int, int, int]]
    errors: Mapping[str, int]


def plan(
    name: str,
    *layers: Mapping[str, Any],
    quick: bool = False,
    embeddings: str | Path | None = None,
    out: str | Path = "results",
    only: Iterable[str] = (),
) -> Sweep:
    """Plan the runs of an experiment.

    Parameters
    ----------
    name
        The name of the experiment.
    layers
        Settings that override the defaults (the paper's); later ones override earlier ones.
    quick
        A small version. Without a folder it uses the bundled embeddings and takes about a minute. From a folder it
        takes the first dataset and the first model of each side, unless others are named.
    embeddings
        The folder with the embeddings, if the experiment needs any.
    out
        The folder of results.
    only
        ``name=pattern`` texts: keep only runs with matching parameters.

    Examples
    --------
    >>> sweep = plan("ablation", {"sizes": (8,), "time_limits": (1.0,), "seeds": 1})
    >>> len(sweep.runs), sweep.runs[0].parameters["variant"]
    (8, 'Hahn-Grant')
    """
    experiment = experiments.load(name)
    settings = make_settings(experiment.settings, experiment.quick if quick else {}, *layers)
    catalogue = Catalogue()
    if not isinstance(settings, PairSettings):
        if embeddings is not None:
            raise ValueError(f"embeddings={str(embeddings)!r}: experiment {name!r} uses no embeddings")
    elif embeddings is not None:
        catalogue = read_catalogue(embeddings)
        settings = one_pair(settings, catalogue) if quick else settings
    elif quick:
        catalogue = write_sample(Path(out) / "sample-embeddings")
    else:
        raise ValueError(f"experiment {name!r} needs --embeddings FOLDER; --quick uses bundled ones")
    runs = select(experiment.plan(settings, catalogue), only)
    if not runs:
        raise ValueError(f"experiment {name!r}: these settings leave no run")
    return Sweep(experiment, settings, tuple(runs), catalogue.about)


def compute(
    what: Sweep,
    out: str | Path,
    *,
    engine: Engine | None = None,
    chunk: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Compute the runs that are not in the folder of results yet."""
    with Store(out) as store:
        sweep(what.runs, store, engine or Local(), chunk=chunk, watch=watch)


def report(what: Sweep, out: str | Path, command: str | None = None) -> tuple[list[Table], Path]:
    """Write tables, figures and the page from the available results; the page shows `command`."""
    from blindmatch.experiments.sweep_report import write_sweep_report  # not needed for a sweep

    records = stored(what, out)
    rows = [records[run.key].flat for run in what.runs if _is_done(records, run)]
    return write_sweep_report(what, rows, _errors(records), Path(out) / what.experiment.name, command)


def status(what: Sweep, out: str | Path) -> SweepStatus:
    """Count the finished runs without computing anything."""
    records = stored(what, out)
    kinds: dict[str, list[int]] = {}
    for run in what.runs:
        entry = kinds.setdefault(_kind(run), [0, 0, 0])
        entry[0] += _is_done(records, run)
        entry[1] += run.key in records and records[run.key].result is None
        entry[2] += 1
    done, failed, total = (sum(entry[i] for entry in kinds.values()) for i in range(3))
    return SweepStatus(done, failed, total, {kind: (a, b, c) for kind, (a, b, c) in kinds.items()}, _errors(records))


def stored(what: Sweep, out: str | Path) -> dict[str, Record]:
    """Records of these runs, including those in the journals of a killed sweep."""
    if not (Path(out) / "results.sqlite").exists():
        return {}
    with Store(out) as store:
        store.take_in(what.experiment.name)
        return store.get(what.runs)


def _errors(records: Mapping[str, Record]) -> Counter[str]:
    return Counter(record.error for record in records.values() if record.error is not None)


def _is_done(records: Mapping[str, Record], run: Trial) -> bool:
    return run.key in records and records[run.key].result is not None


def _kind(run: Trial) -> str:
    names: Sequence[str] = ("dataset", "variant", "solver", "measure", "size")
    return ", ".join(f"{name}={run.parameters[name]}" for name in names if name in run.parameters) or "all"
