"""Write the tables and figures of a sweep, and one page with all of them."""

from __future__ import annotations

import base64
import io
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blindmatch.experiments.protocol import VERSION, Row
from blindmatch.experiments.result_tables import FORMATS, Table, as_csv
from blindmatch.io.files import write_atomically, write_text

if TYPE_CHECKING:
    from blindmatch.experiments.sweeps import Sweep


@dataclass(frozen=True)
class Figure:
    """A figure; `draw` fills a matplotlib figure."""

    name: str  # of its files
    title: str
    draw: Callable[[Any], None]
    size: tuple[float, float] = (7.0, 4.0)  # inches


_LOOK: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}


def save_figure(figure: Figure, folder: Path) -> str:
    """Write the figure as .png and .svg (the same data give the same bytes), and return its data address for a page."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context({"svg.hashsalt": figure.name, **_LOOK}):
        canvas = Canvas(figsize=figure.size, layout="constrained")
        figure.draw(canvas)
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            write = partial(canvas.savefig, format=kind, dpi=150, metadata=metadata)
            write_atomically(folder / f"{figure.name}.{kind}", write)
        drawn = io.BytesIO()
        canvas.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode()}"


def draw_lines(
    axes: Any, series: Mapping[str, Sequence[tuple[float, float, float]]], *, styles: Mapping[str, str] | None = None
) -> None:
    """Curves through (x, mean, deviation), with bands of one deviation."""
    for label, points in series.items():
        if not points:
            continue
        x, y, deviation = np.transpose(points)
        (line,) = axes.plot(x, y, (styles or {}).get(label, "-"), label=label, marker=".", linewidth=1.2)
        if deviation.any():
            axes.fill_between(x, y - deviation, y + deviation, alpha=0.2, color=line.get_color(), linewidth=0)


def write_sweep_report(
    what: Sweep, rows: Sequence[Row], errors: Mapping[str, int], folder: Path, command: str | None
) -> tuple[list[Table], Path]:
    """Write ``table-*.txt/.csv/.tex``, ``figure-*.png/.svg`` and ``report.html``; returns the tables and the page.

    `rows` are the finished runs; `errors` counts the error messages of failed runs; the page shows `command`.
    """
    from blindmatch.report.html import fill  # workers, which import this file, need no pages

    experiment = what.experiment
    folder.mkdir(parents=True, exist_ok=True)
    tables = experiment.tables(rows)
    texts = {f"{item.name}.{kind}": render(item) for item in tables for kind, render in FORMATS.items()}
    wanted = experiment.figures(rows) if rows else []
    drawn = wanted if find_spec("matplotlib") is not None else []
    settings = {"experiment": experiment.name}
    for name, value in asdict(experiment).items():
        values = value if isinstance(value, list | tuple) else ["all" if value is None else value]
        settings[name] = ", ".join(map(str, values))
    settings |= {"embeddings": what.about} if what.about else {}
    settings |= {"blindmatch": VERSION, "python": platform.python_version()}
    texts["report.html"] = fill(
        "sweep.html",
        ["page.js", "sweep.js", "theme.js"],
        ["style.css", "sweep.css"],
        package="blindmatch.experiments",
        data={"csv": {item.name: as_csv(item) for item in tables}},
        experiment=experiment,
        done=len(rows),
        planned=len(what.runs),
        seconds=sum(row["cpu_seconds"] for row in rows),
        tables=tables,
        figures=[(figure.title, save_figure(figure, folder)) for figure in drawn],
        undrawn=bool(wanted) and not drawn,
        errors=errors,
        command=command,
        settings=settings,
    )
    for name, text in texts.items():
        write_text(folder / name, text)
    return tables, folder / "report.html"
