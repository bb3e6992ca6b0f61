"""Tables, figures and one page with all of them, written into the folder of results."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from blindmatch.experiments import figures as drawing
from blindmatch.experiments.base import VERSION, Experiment, Row
from blindmatch.experiments.settings import Settings
from blindmatch.experiments.tables import FORMATS, Table, as_csv, as_html
from blindmatch.io.files import write_atomically
from blindmatch.report import page


@dataclass(frozen=True)
class Facts:
    """What a page tells about a sweep beside its tables.

    Attributes
    ----------
    planned, failed
        Runs of the plan, and those that ended badly.
    cpu_seconds
        Of the runs that are done, all together.
    errors
        Why runs failed, and how often.
    data
        A word about the embeddings.
    command
        What was typed.
    """

    planned: int
    failed: int = 0
    cpu_seconds: float = 0.0
    errors: Mapping[str, int] = field(default_factory=dict)
    data: str = ""
    command: str | None = None


def write_report(
    experiment: Experiment, settings: Settings, rows: Sequence[Row], folder: Path, facts: Facts
) -> tuple[list[Table], Path]:
    """Write ``table-*.txt/.csv/.tex``, ``figure-*.png/.svg`` and ``report.html``; returns the tables and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = experiment.tables(settings, rows)
    for item in tables:
        for kind, render in FORMATS.items():
            _write(folder / f"{item.name}.{kind}", render(item))
    wanted = experiment.figures(settings, rows) if rows else []
    figures = ""
    if wanted and drawing.available():
        figures = "\n".join(_card(figure.title, drawing.save(figure, folder), "drawn") for figure in wanted)
    elif wanted:
        figures = _card("Figures", "<p>No figures: pip install 'blindmatch[experiments]'</p>")
    path = folder / "report.html"
    _write(path, _page(experiment, settings, len(rows), tables, figures, facts))
    return tables, path


def _page(
    experiment: Experiment, settings: Settings, done: int, tables: Sequence[Table], figures: str, facts: Facts
) -> str:
    script = page.bundle([page.asset("page.js"), _asset("sweep.js"), page.asset(page.THEME)])
    style = page.asset(page.LOOK) + "\n" + _asset("sweep.css")
    told: dict[str, Any] = {"experiment": experiment.name, **{k: _text(v) for k, v in asdict(settings).items()}}
    told |= {"embeddings": facts.data} if facts.data else {}
    told |= {"blindmatch": VERSION, "python": platform.python_version()}
    return Template(_asset("sweep.html")).substitute(
        title=escape(f"{experiment.about} ({experiment.shows})"),
        policy=page.policy(script, style),
        style=style,
        script=script,
        data=page.script_json({"csv": {item.name: as_csv(item) for item in tables}}),
        verdict=escape(_verdict(done, facts)),
        about="Our numbers, and the paper's in columns of their own where it has the same case.",
        tiles=_tiles(done, facts),
        tables="\n".join(_table(item) for item in tables),
        figures=figures,
        failures=_failures(facts),
        command=page.command_box(facts.command),
        settings=page.facts_rows(told),
    )


def _verdict(done: int, facts: Facts) -> str:
    if done == facts.planned:
        return f"All {done} runs are done."
    return f"{done} of {facts.planned} runs are done: the tables show these alone."


def _tiles(done: int, facts: Facts) -> str:
    return (
        _tile("runs", f"{done} of {facts.planned}", "done, of those that were planned")
        + _tile("failed", str(facts.failed), "tried again next time" if facts.failed else "none")
        + _tile("CPU time", f"{facts.cpu_seconds:.0f} s", "of the runs that are done, together")
        + _tile("version", VERSION, "of blindmatch")
    )


def _tile(name: str, value: str, hint: str) -> str:
    """A figure at a glance."""
    return f'<div class="tile"><dt>{escape(name)}</dt><dd><b>{escape(value)}</b><span>{escape(hint)}</span></dd></div>'


def _table(item: Table) -> str:
    notes = "".join(f"<p>{escape(note)}</p>" for note in item.notes)
    label = escape(item.title)
    return _card(
        item.title,
        f'<p class="tools"><button type="button" data-csv="{escape(item.name)}">Copy as CSV</button></p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">{as_html(item)}</div>{notes}',
    )


def _failures(facts: Facts) -> str:
    if not facts.errors:
        return ""
    items = "".join(f"<li>{count} times: {escape(error)}</li>" for error, count in facts.errors.items())
    return _card("Runs that failed", f'<ul class="failures">{items}</ul>')


def _card(title: str, content: str, kind: str = "") -> str:
    return f'<section class="card {kind}"><h2>{escape(title)}</h2>{content}</section>'


def _asset(name: str) -> str:
    return page.asset(name, "blindmatch.experiments")


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))


def _text(value: Any) -> str:
    if value is None:
        return "all"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
