"""Static plots for papers and notebooks. They need matplotlib: ``pip install 'blindmatch[plot]'``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import pip_install
from blindmatch.report.content import dissimilarity, history, lay_over, matched_kernels, plane, similar_together
from blindmatch.report.match import Match
from blindmatch.report.pairs import shorten
from blindmatch.solving.result import Result
from blindmatch.trust.report import Assessment
from blindmatch.validation import as_floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# As in the report; colour-blind people tell them apart (Okabe and Ito).
SOURCE, TARGET, GOOD, BAD, PALE = "#0072b2", "#d55e00", "#009e73", "#cc3311", "#9aa0a8"


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes that were given, or those of a new figure."""
    return _new_axes(1, size)[0] if ax is None else ax


def _new_axes(columns: int, size: tuple[float, float]) -> list[Axes]:
    # In a figure of pyplot: notebooks show it, and plt.show() as well.
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(f"plots need matplotlib: {pip_install('plot')}") from None
    _, axes = pyplot.subplots(1, columns, figsize=size, squeeze=False, layout="constrained")
    return list(axes[0])


_MOST_NAMES = 60
_LONGEST = 28  # characters of a name
_CHARACTER = 0.1  # inches that a character takes at most, on average


def plot_match(
    result: Result, *, truth: Sequence[int] | None = None, trust: Assessment | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the pairs: sources on the left, targets on the right in the order of their partners, a line for each pair.

    Parameters
    ----------
    result
        From ``bm.match`` or ``bm.solve``.
    truth
        The true partner of each source: right pairs are green, wrong ones dashed red.
    trust
        From ``result.assess()``, by default the last assessment: unsure pairs are faint.
    ax
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import blindmatch as bm
    >>> X = [[0.0], [1.0], [5.0]]
    >>> names = {"source_names": ["cat", "dog", "cow"], "target_names": ["vache", "chien", "chat"]}
    >>> ax = bm.plot.match(bm.match(X, X[::-1], **names, rng=0))
    >>> [text.get_text() for text in ax.texts]
    ['cat', 'chat', 'dog', 'chien', 'cow', 'vache']
    """
    match = Match(result, trust=trust or result.assessment, truth=truth)
    pairs = result.pairs
    # A pair whose confidence is not known is drawn like one that is sure; the faintest can still be seen.
    known = np.ones(len(result.permutation)) if match.confidence is None else np.nan_to_num(match.confidence, nan=1.0)
    unsure = np.clip(known, 0.2, 1.0)
    named = len(pairs) <= _MOST_NAMES
    each = match.named_pairs if named else []
    names = [(shorten(source, _LONGEST), shorten(target, _LONGEST)) for _, _, source, target in each]
    # Room for the longest names, in inches; the lines are two inches long, and axes take 0.775 of a figure's width.
    left, right = (
        (0.15 + _CHARACTER * max(map(len, side)) for side in zip(*names, strict=True)) if names else (0.2, 0.2)
    )
    ax = axes_or_new(ax, ((2 + left + right) / 0.775, max(2.0, 0.22 * len(pairs) + 0.8)))
    for row, (i, j) in enumerate(pairs):
        true = None if truth is None else truth[i] == j
        colour = PALE if true is None else GOOD if true else BAD
        ax.plot([0, 1], [row, row], color=colour, alpha=float(unsure[i]), ls="--" if true is False else "-", lw=2)
        if named:
            ax.text(-0.03, row, names[row][0], ha="right", va="center", color=SOURCE)
            ax.text(1.03, row, names[row][1], ha="left", va="center", color=TARGET)
    ax.set(xlim=(-left / 2, 1 + right / 2), ylim=(len(pairs) - 0.5, -0.5), title=f"{len(pairs)} pairs")
    ax.set_axis_off()
    return ax


def plot_kernels(result: Result, *, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw what is near what: the source's kernel, the target's in the order of the match, and their difference.

    Parameters
    ----------
    result
        From ``bm.match``.
    axes
        Three axes; a new figure by default.
    """
    match = Match(result)
    K, G = matched_kernels(match) or (np.zeros((0, 0)),) * 2
    if len(K) < 2:
        raise ValueError(f"result pairs {len(K)} items; expected at least 2")
    order = similar_together(K, G)
    K, G = (M[np.ix_(order, order)].copy() for M in (K, G))
    for matrix in (K, G):
        np.fill_diagonal(matrix, np.nan)
    drawn = list(_new_axes(3, (10.5, 3.6)) if axes is None else axes)
    if len(drawn) != 3:
        raise ValueError(f"axes has {len(drawn)} items; expected 3")
    low, high = np.nanquantile(np.stack([K, G]), [0.005, 0.995])
    colours = "Blues" if match.similarity else "Blues_r"  # dark is near
    pictures = [
        ("source", K, colours, (low, high)),
        ("target, matched", G, colours, (low, high)),
        ("difference", K - G, "PuOr_r", (low - high, high - low)),
    ]
    for ax, (title, matrix, cmap, (least, most)) in zip(drawn, pictures, strict=True):
        image = ax.imshow(matrix, cmap=cmap, vmin=least, vmax=most)
        ax.set(title=title, xticks=[], yticks=[])
        ax.figure.colorbar(image, ax=ax, shrink=0.8)
    return drawn


def plot_spaces(result: Result, *, truth: Sequence[int] | None = None, ax: Axes | None = None) -> Axes:
    """Draw both sets in the plane (classical scaling), the target laid over the source (Procrustes), partners linked.

    Parameters
    ----------
    result
        From ``bm.match``.
    truth
        The true partner of each source: links of wrong pairs are dashed red.
    ax
        Where to draw; a new figure by default.
    """
    match = Match(result, truth=truth)
    if match.kernels is None:
        raise ValueError("there are no kernels to draw: expected a result of bm.match that is not too large")
    (K, G), (i, j), similar = match.kernels, match.pairs, match.similarity
    if len(i) < 2:
        raise ValueError(f"result pairs {len(i)} items; expected at least 2")
    X, _ = plane(dissimilarity(K, similar))
    Y, _ = plane(dissimilarity(G, similar))
    Y = lay_over(Y, Y[j], X[i])
    ax = axes_or_new(ax, (6.0, 5.0))
    for a, b in zip(i.tolist(), j.tolist(), strict=True):
        wrong = truth is not None and truth[a] != b
        ax.plot(*zip(X[a], Y[b], strict=True), color=BAD if wrong else PALE, ls="--" if wrong else "-", lw=1, zorder=1)
        if match.source_names is not None and len(i) <= _MOST_NAMES:
            ax.annotate(match.source_name(a), X[a], xytext=(5, 3), textcoords="offset points", fontsize="small")
    ax.scatter(X[:, 0], X[:, 1], s=30, color=SOURCE, label="source", zorder=2)
    ax.scatter(Y[:, 0], Y[:, 1], s=34, color=TARGET, marker="D", label="target", zorder=2)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.legend()
    return ax


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
        steps = [np.array(line).T for line in lines.values()]
        above, below = (values[np.searchsorted(times, moments, side="right") - 1] for times, values in steps)
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
