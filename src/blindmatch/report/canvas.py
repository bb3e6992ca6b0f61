"""Where the static plots are drawn, and their colours. They need matplotlib: ``pip install 'blindmatch[plot]'``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blindmatch.errors import pip_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# As in the report; colour-blind people tell them apart (Okabe and Ito).
SOURCE, TARGET, GOOD, BAD, PALE = "#0072b2", "#d55e00", "#009e73", "#cc3311", "#9aa0a8"


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes that were given, or those of a new figure."""
    return new_axes(1, size)[0] if ax is None else ax


def new_axes(columns: int, size: tuple[float, float]) -> list[Axes]:
    """New axes side by side, in a figure of pyplot: notebooks show it, and ``plt.show()`` as well."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(f"plots need matplotlib: {pip_install('plot')}") from None
    _, axes = pyplot.subplots(1, columns, figsize=size, squeeze=False, layout="constrained")
    return list(axes[0])
