"""Write tables, figures and one page with all of them into the folder of results."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blindmatch.experiments import figures as drawing
from blindmatch.experiments.base import VERSION, Row
from blindmatch.experiments.tables import FORMATS, Table, as_csv
from blindmatch.io.files import write_atomically
from blindmatch.report.page import fill

if TYPE_CHECKING:
    from blindmatch.experiments.run import Sweep


def write_sweep_report(
    what: Sweep, rows: Sequence[Row], errors: Mapping[str, int], folder: Path, command: str | None
) -> tuple[list[Table], Path]:
    """Write ``table-*.txt/.csv/.tex``, ``figure-*.png/.svg`` and ``report.html``; returns the tables and the page.

    `rows` are the finished runs; `errors` counts the error messages of failed runs; the page shows `command`.
    """
    experiment, settings = what.experiment, what.settings
    done, planned, failed = len(rows), len(what.runs), sum(errors.values())
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
        verdict=f"All {done} runs are finished."
        if done == planned
        else f"{done} of {planned} runs are finished: the tables show only these.",
        about="Our numbers, with the paper's in separate columns if it has the same case.",
        tiles=[  # title, value, what it means
            ("runs", f"{done} of {planned}", "finished, of those planned"),
            ("failed", str(failed), "tried again next time" if failed else "none"),
            ("CPU time", f"{sum(row['cpu_seconds'] for row in rows):.0f} s", "total of the finished runs"),
            ("version", VERSION, "of blindmatch"),
        ],
        tables=tables,
        figures=figures,
        undrawn=bool(wanted) and not figures,
        errors=errors,
        command=command,
        settings={
            "experiment": experiment.name,
            **{name: _text(value) for name, value in asdict(settings).items()},
            **({"embeddings": what.about} if what.about else {}),
            "blindmatch": VERSION,
            "python": platform.python_version(),
        },
    )
    _write(path, text)
    return tables, path


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))


def _text(value: Any) -> str:
    if value is None:
        return "all"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
