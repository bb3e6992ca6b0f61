"""Figures as PNG and SVG. matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from blindmatch.experiments.svg import inline_svg
from blindmatch.io.files import write_atomically


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes
    ----------
    name, title
        The name of its files, and a title to display.
    draw
        Fills a matplotlib figure.
    size
        Inches.
    """

    name: str
    title: str
    draw: Callable[[Any], None]
    size: tuple[float, float] = (7.0, 4.0)


_LOOK: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
_INK = "#0d0d0d"  # on a coloured background: pure black would be replaced by the text colour of the page


def available() -> bool:
    """Whether matplotlib is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def save(figure: Figure, folder: Path) -> str:
    """Write the figure as .png and .svg (the same data give the same bytes), and return it for a page."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context({"svg.hashsalt": figure.name, **_LOOK}):
        canvas = Canvas(figsize=figure.size, layout="constrained")
        figure.draw(canvas)
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            path = folder / f"{figure.name}.{kind}"

            def write(file: IO[bytes], kind: str = kind, metadata: Mapping[str, None] = metadata) -> None:
                canvas.savefig(file, format=kind, dpi=150, metadata=metadata)

            write_atomically(path, write)
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
        x, y, deviation = (list(values) for values in zip(*points, strict=True))
        (line,) = axes.plot(x, y, (styles or {}).get(label, "-"), label=label, marker=".", linewidth=1.2)
        low = [a - b for a, b in zip(y, deviation, strict=True)]
        high = [a + b for a, b in zip(y, deviation, strict=True)]
        if low != high:
            axes.fill_between(x, low, high, alpha=0.2, color=line.get_color(), linewidth=0)


def heat_map(axes: Any, rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]]) -> None:
    """A heat map with numbers, from 0 to 100."""
    grid = [[float("nan") if value is None else value for value in row] for row in values]
    axes.imshow(grid, vmin=0, vmax=100, cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right")
    axes.set_yticks(range(len(rows)), rows)
    for r, row in enumerate(values):
        for c, value in enumerate(row):
            if value is not None:
                axes.text(c, r, f"{value:.0f}", ha="center", va="center", color="white" if value < 60 else _INK)
