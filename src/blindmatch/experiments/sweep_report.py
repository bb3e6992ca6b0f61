"""Write tables, figures and one page with all of them into the folder of results."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from blindmatch.experiments import figures as drawing
from blindmatch.experiments.base import VERSION, Experiment, Row
from blindmatch.experiments.settings import Settings
from blindmatch.experiments.tables import FORMATS, Table, as_csv
from blindmatch.io.files import write_atomically
from blindmatch.report.page import fill


@dataclass(frozen=True)
class Facts:
    """What a page says about a sweep in addition to its tables.

    Attributes
    ----------
    planned, failed
        Planned runs, and failed runs.
    cpu_seconds
        Total of the finished runs.
    errors
        Error messages of failed runs, and their counts.
    data
        A description of the embeddings.
    command
        The command line.
    """

    planned: int
    failed: int = 0
    cpu_seconds: float = 0.0
    errors: Mapping[str, int] = field(default_factory=dict)
    data: str = ""
    command: str | None = None


def write_sweep_report(
    experiment: Experiment, settings: Settings, rows: Sequence[Row], folder: Path, facts: Facts
) -> tuple[list[Table], Path]:
    """Write ``table-*.txt/.csv/.tex``, ``figure-*.png/.svg`` and ``report.html``; returns the tables and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = experiment.tables(settings, rows)
    for item in tables:
        for kind, render in FORMATS.items():
            _write(folder / f"{item.name}.{kind}", render(item))
    wanted = experiment.figures(settings, rows) if rows else []
    figures = [(figure.title, drawing.save(figure, folder)) for figure in wanted] if drawing.available() else []
    path = folder / "report.html"
    text = fill(
        "sweep.html",
        ["page.js", "sweep.js", "theme.js"],
        ["style.css", "sweep.css"],
        package="blindmatch.experiments",
        data={"csv": {item.name: as_csv(item) for item in tables}},
        title=f"{experiment.about} ({experiment.shows})",
        verdict=_verdict(len(rows), facts),
        about="Our numbers, with the paper's in separate columns if it has the same case.",
        tiles=_tiles(len(rows), facts),
        tables=tables,
        figures=figures,
        undrawn=bool(wanted) and not figures,
        errors=facts.errors,
        command=facts.command,
        settings=_settings(experiment, settings, facts),
    )
    _write(path, text)
    return tables, path


def _settings(experiment: Experiment, settings: Settings, facts: Facts) -> dict[str, str]:
    return {
        "experiment": experiment.name,
        **{name: _text(value) for name, value in asdict(settings).items()},
        **({"embeddings": facts.data} if facts.data else {}),
        "blindmatch": VERSION,
        "python": platform.python_version(),
    }


def _verdict(done: int, facts: Facts) -> str:
    if done == facts.planned:
        return f"All {done} runs are finished."
    return f"{done} of {facts.planned} runs are finished: the tables show only these."


def _tiles(done: int, facts: Facts) -> list[tuple[str, str, str]]:
    """The figures at a glance: title, value, what it means."""
    return [
        ("runs", f"{done} of {facts.planned}", "finished, of those planned"),
        ("failed", str(facts.failed), "tried again next time" if facts.failed else "none"),
        ("CPU time", f"{facts.cpu_seconds:.0f} s", "total of the finished runs"),
        ("version", VERSION, "of blindmatch"),
    ]


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))


def _text(value: Any) -> str:
    if value is None:
        return "all"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
