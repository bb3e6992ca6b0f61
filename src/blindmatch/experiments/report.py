"""Tables, figures and one page with all of them, written into the folder of results."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from blindmatch.experiments import figures as drawing
from blindmatch.experiments.base import VERSION, Experiment, Row
from blindmatch.experiments.settings import Settings
from blindmatch.experiments.tables import FORMATS, Table, as_html
from blindmatch.files import write_atomically

_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; font-size: 0.9rem; } th, td { padding: 0.15rem 1rem 0.15rem 0; text-align: left;
border-bottom: 1px solid #8884; vertical-align: top; } .number { text-align: right; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } img { max-width: 100%; background: white; }
.scroll { overflow-x: auto; }
"""


def write_report(
    experiment: Experiment, settings: Settings, rows: Sequence[Row], folder: Path, facts: Mapping[str, str]
) -> tuple[list[Table], Path]:
    """Write ``table-*.txt/.csv/.tex``, ``figure-*.png/.svg`` and ``report.html``; returns the tables and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = experiment.tables(settings, rows)
    for item in tables:
        for kind, render in FORMATS.items():
            _write(folder / f"{item.name}.{kind}", render(item))
    pictures = []
    wanted = experiment.figures(settings, rows) if rows else []
    if wanted and drawing.available():
        for figure in wanted:
            png = drawing.save(figure, folder)[0]
            pictures.append((figure.title, base64.b64encode(png.read_bytes()).decode()))
    missing = "" if drawing.available() or not wanted else "<p>No figures: pip install 'blindmatch[experiments]'</p>"
    page = folder / "report.html"
    _write(page, _page(experiment, settings, tables, pictures, facts, missing))
    return tables, page


def _page(
    experiment: Experiment,
    settings: Settings,
    tables: Sequence[Table],
    pictures: Sequence[tuple[str, str]],
    facts: Mapping[str, str],
    missing: str,
) -> str:
    shown = "\n".join(f'<div class="scroll">{as_html(item)}</div>' for item in tables)
    drawn = "\n".join(
        f'<h2>{escape(title)}</h2><img alt="{escape(title)}" src="data:image/png;base64,{data}">'
        for title, data in pictures
    )
    values: dict[str, Any] = {**facts, **asdict(settings), "blindmatch": VERSION}
    rows = "\n".join(f"<tr><th>{escape(k)}</th><td>{escape(_text(v))}</td></tr>" for k, v in values.items())
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(experiment.name)}</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>{escape(experiment.about)} ({escape(experiment.shows)})</h1>\n"
        f"{shown}\n{drawn}\n{missing}\n<h2>What was run</h2>\n<table>{rows}</table>\n</body></html>\n"
    )


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
