"""Static plots for papers and notebooks. They need matplotlib: ``pip install 'blindmatch[plot]'``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.distortion import Distortion, Kernels, as_distortion
from blindmatch.report.layout import dissimilarity, laid_over, plane, similar_together
from blindmatch.report.match import Match
from blindmatch.report.measures import matched_kernels
from blindmatch.result import Result
from blindmatch.validation import as_floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# As in the report; colour-blind people tell them apart (Okabe and Ito).
SOURCE, TARGET, GOOD, BAD, PALE = "#0072b2", "#d55e00", "#009e73", "#cc3311", "#9aa0a8"
_MOST_NAMES = 60


def plot_match(
    result: Result,
    *,
    source_names: Sequence[str] | None = None,
    target_names: Sequence[str] | None = None,
    truth: Sequence[int] | None = None,
    confidence: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the pairs: sources on the left, targets on the right in the order of their partners, a line for each pair.

    Parameters
    ----------
    result
        From ``bm.match`` or ``bm.solve``.
    source_names, target_names
        What the items are called; their indices by default.
    truth
        The true partner of each source: right pairs are green, wrong ones dashed red.
    confidence
        (n,) numbers from 0 to 1, as of ``bm.assess``: unsure pairs are faint.
    ax
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import blindmatch as bm
    >>> result = bm.solve(bm.QAP([[0, 1], [1, 0]], [[0, 5], [5, 0]], linear=[[1, 0], [0, 1]]), "brute-force")
    >>> ax = bm.plot_match(result, source_names=["cat", "dog"], target_names=["chien", "chat"])
    >>> [text.get_text() for text in ax.texts]
    ['cat', 'chat', 'dog', 'chien']
    """
    match = Match(result, source_names=source_names, target_names=target_names, truth=truth)
    pairs, unsure = result.pairs, np.ones(len(result.permutation))
    if confidence is not None:
        unsure = np.clip(np.nan_to_num(as_floats(np.nan_to_num(confidence), "confidence", ndim=1)), 0.05, 1.0)
        if len(unsure) != len(result.permutation):
            raise ValueError(f"confidence has {len(unsure)} items; expected {len(result.permutation)}")
    ax = _axes(ax, (5.0, max(2.0, 0.22 * len(pairs) + 0.8)))
    for row, (i, j) in enumerate(pairs):
        right = None if truth is None else truth[i] == j
        colour = PALE if right is None else GOOD if right else BAD
        ax.plot([0, 1], [row, row], color=colour, alpha=float(unsure[i]), ls="--" if right is False else "-", lw=2)
        if len(pairs) <= _MOST_NAMES:
            ax.text(-0.03, row, match.source_name(i), ha="right", va="center", color=SOURCE)
            ax.text(1.03, row, match.target_name(j), ha="left", va="center", color=TARGET)
    ax.set(xlim=(-0.6, 1.6), ylim=(len(pairs) - 0.5, -0.5), title=f"{len(pairs)} pairs")
    ax.set_axis_off()
    return ax


def plot_kernels(
    result: Result,
    source: ArrayLike | None = None,
    target: ArrayLike | None = None,
    *,
    kernels: Kernels | None = None,
    distortion: str | Distortion = "gw",
    standardize: bool = True,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw what is near what: the source's kernel, the target's in the order of the match, and their difference.

    Parameters
    ----------
    result, source, target, kernels, distortion, standardize
        The match, and what it was made from, as ``bm.match`` had it.
    axes
        Three axes; a new figure by default.
    """
    match = _match(result, source, target, kernels, distortion, standardize)
    K, G = matched_kernels(match) or (np.zeros((0, 0)),) * 2
    if len(K) < 2:
        raise ValueError(f"result pairs {len(K)} items; expected at least 2")
    order = similar_together(K, G)
    K, G = (M[np.ix_(order, order)].copy() for M in (K, G))
    for matrix in (K, G):
        np.fill_diagonal(matrix, np.nan)
    drawn = list(_figure(3, (10.5, 3.6)) if axes is None else axes)
    if len(drawn) != 3:
        raise ValueError(f"axes has {len(drawn)} items; expected 3")
    low, high = np.nanquantile(np.stack([K, G]), [0.005, 0.995])
    colours = "Blues" if match.similarity else "Blues_r"  # dark is near
    for ax, matrix, title in zip(drawn, (K, G), ("source", "target, matched"), strict=False):
        image = ax.imshow(matrix, cmap=colours, vmin=low, vmax=high)
        ax.set(title=title, xticks=[], yticks=[])
        _figure_of(ax).colorbar(image, ax=ax, shrink=0.8)
    image = drawn[2].imshow(K - G, cmap="PuOr_r", vmin=low - high, vmax=high - low)
    drawn[2].set(title="difference", xticks=[], yticks=[])
    _figure_of(drawn[2]).colorbar(image, ax=drawn[2], shrink=0.8)
    return drawn


def plot_spaces(
    result: Result,
    source: ArrayLike | None = None,
    target: ArrayLike | None = None,
    *,
    kernels: Kernels | None = None,
    distortion: str | Distortion = "gw",
    standardize: bool = True,
    source_names: Sequence[str] | None = None,
    truth: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw both sets in the plane (classical scaling), the target laid over the source (Procrustes), partners linked.

    Parameters
    ----------
    result, source, target, kernels, distortion, standardize
        The match, and what it was made from, as ``bm.match`` had it.
    source_names
        Labels of the sources.
    truth
        The true partner of each source: links of wrong pairs are dashed red.
    ax
        Where to draw; a new figure by default.
    """
    match = _match(result, source, target, kernels, distortion, standardize, source_names, truth)
    K, G = match.kernels or (np.zeros((0, 0)),) * 2
    i, j = match.pairs
    if len(i) < 2:
        raise ValueError(f"result pairs {len(i)} items; expected at least 2")
    X, _ = plane(dissimilarity(K, match.similarity))
    Y, _ = plane(dissimilarity(G, match.similarity))
    Y = laid_over(Y, Y[j], X[i])
    ax = _axes(ax, (6.0, 5.0))
    for a, b in zip(i.tolist(), j.tolist(), strict=True):
        wrong = truth is not None and truth[a] != b
        ax.plot(*zip(X[a], Y[b], strict=True), color=BAD if wrong else PALE, ls="--" if wrong else "-", lw=1, zorder=1)
        if source_names is not None and len(i) <= _MOST_NAMES:
            ax.annotate(source_names[a], X[a], xytext=(5, 3), textcoords="offset points", fontsize="small")
    ax.scatter(X[:, 0], X[:, 1], s=30, color=SOURCE, label="source", zorder=2)
    ax.scatter(Y[:, 0], Y[:, 1], s=34, color=TARGET, marker="D", label="target", zorder=2)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.legend()
    return ax


def plot_bounds(result: Result, *, ax: Axes | None = None) -> Axes:
    """Draw bound and cost against time; what lies between them is shaded.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> points = np.random.default_rng(0).normal(size=(6, 3))
    >>> ax = bm.plot_bounds(bm.match(points, points, solver="branch-and-bound", rng=0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('seconds', 'cost')
    """
    lines: dict[str, list[tuple[float, float]]] = {"cost": [], "lower bound": []}
    for moment in result.trace:
        for name, value in (("cost", moment.cost), ("lower bound", moment.lower_bound)):
            if value is not None and np.isfinite(value):
                lines[name].append((moment.seconds, value))
    if not any(lines.values()):
        raise ValueError(f"result of solver={result.solver!r} has no trace to draw")
    ax = _axes(ax, (6.0, 3.6))
    end = max(result.seconds, max(line[-1][0] for line in lines.values() if line))
    for (name, line), colour in zip(lines.items(), (TARGET, SOURCE), strict=True):
        if line:
            times, values = zip(*line, (end, line[-1][1]), strict=True)
            ax.step(times, values, where="post", color=colour, label=name)
    if all(lines.values()):
        moments = np.unique([t for line in lines.values() for t, _ in line] + [end])
        moments = moments[moments >= max(line[0][0] for line in lines.values())]
        cost, bound = (_value_at(line, moments) for line in lines.values())
        ax.fill_between(moments, bound, cost, step="post", color=PALE, alpha=0.25, lw=0)
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
        (k, seeds) the measure at each level for each random shuffling; (k,) if there is but one.
    measure
        What the values are: the label of the axis.
    label
        What the curve is, for the legend. Several calls with one `ax` draw several curves.
    ax
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import blindmatch as bm
    >>> ax = bm.plot_shuffling([0, 0.5, 1], [[0.9, 0.9], [0.5, 0.6], [0.1, 0.2]], measure="CKA")
    >>> [round(float(y), 2) for y in ax.lines[0].get_ydata()]
    [0.9, 0.55, 0.15]
    """
    x, y = as_floats(levels, "levels", ndim=1), np.atleast_2d(np.asarray(values, dtype=float).T).T
    if y.ndim != 2 or len(y) != len(x):
        raise ValueError(f"values has shape {np.shape(values)}; expected ({len(x)}, seeds)")
    y = as_floats(y, "values")
    ax = _axes(ax, (5.0, 3.6))
    mean, spread = y.mean(axis=1), y.std(axis=1)
    (line,) = ax.plot(x, mean, marker="o", ms=3, label=label)
    ax.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.2, lw=0)
    ax.set(xlabel="share of the pairs that is shuffled", ylabel=measure)
    if label is not None:
        ax.legend()
    return ax


def _value_at(line: list[tuple[float, float]], times: Any) -> Any:
    """The value of a step line at each time."""
    at = np.searchsorted([t for t, _ in line], times, side="right") - 1
    return np.array([value for _, value in line])[at]


def _match(
    result: Result,
    source: ArrayLike | None,
    target: ArrayLike | None,
    kernels: Kernels | None,
    distortion: str | Distortion,
    standardize: bool,
    source_names: Sequence[str] | None = None,
    truth: Sequence[int] | None = None,
) -> Match:
    chosen = as_distortion(distortion, standardize)
    compared = chosen.kernels(source, target, kernels=kernels)
    return Match(result, compared, source_names, truth=truth, similarity=chosen.similarities)


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    return _figure(1, size)[0] if ax is None else ax


def _figure(columns: int, size: tuple[float, float]) -> list[Axes]:
    """New axes side by side, in a figure of pyplot: notebooks show it, and ``plt.show()`` as well."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'blindmatch[plot]'") from None
    _, axes = pyplot.subplots(1, columns, figsize=size, squeeze=False, layout="constrained")
    return list(axes[0])


def _figure_of(ax: Axes) -> Any:
    return ax.figure
