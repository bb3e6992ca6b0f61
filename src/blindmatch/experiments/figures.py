"""Figures as PNG and SVG. matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from blindmatch.experiments.svg import inline_svg
from blindmatch.io.files import write_atomically


@dataclass(frozen=True)
class Figure:
    """A figure; `draw` fills a matplotlib figure."""

    name: str  # of its files
    title: str
    draw: Callable[[Any], None]
    size: tuple[float, float] = (7.0, 4.0)  # inches


_LOOK: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
_INK = "#0d0d0d"  # on a coloured background: pure black would be replaced by the text colour of the page


def available() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def save(figure: Figure, folder: Path) -> str:
    """Write the figure as .png and .svg (the same data give the same bytes), and return it for a page."""
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
    return inline_svg(drawn.getvalue().decode(), figure.name, figure.title)


def lines(
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


def heat_map(axes: Any, rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]]) -> None:
    """A heat map with numbers, from 0 to 100."""
    axes.imshow(np.array(values, dtype=float), vmin=0, vmax=100, cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right")
    axes.set_yticks(range(len(rows)), rows)
    for r, row in enumerate(values):
        for c, value in enumerate(row):
            if value is not None:
                axes.text(c, r, f"{value:.0f}", ha="center", va="center", color="white" if value < 60 else _INK)
