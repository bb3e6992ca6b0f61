"""Static plots of curves: bound and cost against time, a measure against shuffling. They need matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.report.canvas import PALE, SOURCE, TARGET, axes_or_new
from blindmatch.report.measures import history
from blindmatch.solving.result import Result
from blindmatch.validation import FloatArray, as_floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_bounds(result: Result, *, ax: Axes | None = None) -> Axes:
    """Draw bound and cost over time, up to those of the result; the gap between them is shaded.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> points = np.random.default_rng(0).normal(size=(6, 3))
    >>> ax = bm.plot.bounds(bm.match(points, points, solver="branch-and-bound", rng=0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('seconds', 'cost')
    """
    lines: dict[str, list[tuple[float, float]]] = {"cost": [], "lower bound": []}
    for seconds, bound, cost in history(result):
        for name, value in (("cost", cost), ("lower bound", bound)):
            if value is not None:
                lines[name].append((seconds, value))
    if not any(lines.values()):
        raise ValueError(f"result of solver={result.solver!r} has no trace to draw")
    ax = axes_or_new(ax, (6.0, 3.6))
    for (name, line), colour in zip(lines.items(), (TARGET, SOURCE), strict=True):
        if line:
            times, values = zip(*line, strict=True)
            ax.step(times, values, where="post", color=colour, label=name)
    if all(lines.values()):
        moments = np.unique([t for line in lines.values() for t, _ in line])
        moments = moments[moments >= max(line[0][0] for line in lines.values())]
        above, below = (_value_at(line, moments) for line in lines.values())
        ax.fill_between(moments, below, above, step="post", color=PALE, alpha=0.25, lw=0)
    ax.set(xlabel="seconds", ylabel="cost")
    ax.legend()
    return ax


def plot_shuffling(
    levels: ArrayLike, values: ArrayLike, *, measure: str = "", label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how a measure of alignment changes as more of a pairing is shuffled: mean and standard deviation.

    Parameters
    ----------
    levels
        (k,) which share of the pairs is shuffled, from 0 (the true pairing) to 1.
    values
        (k, seeds) the measure at each level for each random shuffling; (k,) if there is only one.
    measure
        What the values are: the label of the axis.
    label
        What the curve is, for the legend. Several calls with one `ax` draw several curves.
    ax
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import blindmatch as bm
    >>> ax = bm.plot.shuffling([0, 0.5, 1], [[0.9, 0.9], [0.5, 0.6], [0.1, 0.2]], measure="CKA")
    >>> [round(float(y), 2) for y in ax.lines[0].get_ydata()]
    [0.9, 0.55, 0.15]
    """
    x, y = as_floats(levels, "levels", ndim=1), np.atleast_2d(np.asarray(values, dtype=float).T).T
    if y.ndim != 2 or len(y) != len(x):
        raise ValueError(f"values has shape {np.shape(values)}; expected ({len(x)}, seeds)")
    y = as_floats(y, "values")
    ax = axes_or_new(ax, (5.0, 3.6))
    mean, spread = y.mean(axis=1), y.std(axis=1)
    (line,) = ax.plot(x, mean, marker="o", ms=3, label=label)
    ax.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.2, lw=0)
    ax.set(xlabel="share of the pairs that is shuffled", ylabel=measure)
    if label is not None:
        ax.legend()
    return ax


def _value_at(line: list[tuple[float, float]], times: FloatArray) -> FloatArray:
    """The value of a step line at each time."""
    at = np.searchsorted([t for t, _ in line], times, side="right") - 1
    return np.array([value for _, value in line])[at]
