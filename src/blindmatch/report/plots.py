"""Static plots of a match, for papers and notebooks; `curves.py` has the others. They need matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blindmatch.report.canvas import BAD, GOOD, PALE, SOURCE, TARGET, axes_or_new, new_axes
from blindmatch.report.layout import dissimilarity, laid_over, plane, similar_together
from blindmatch.report.match import Match
from blindmatch.report.measures import matched_kernels
from blindmatch.solving.result import Result
from blindmatch.trust.report import Assessment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        From ``result.assess()``: unsure pairs are faint.
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
    match = Match(result, trust=trust, truth=truth)
    pairs = result.pairs
    # A pair whose confidence is not known is drawn like one that is sure; the faintest can still be seen.
    known = np.ones(len(result.permutation)) if match.confidence is None else np.nan_to_num(match.confidence, nan=1.0)
    unsure = np.clip(known, 0.2, 1.0)
    named = len(pairs) <= _MOST_NAMES
    names = [(_short(match.source_name(i)), _short(match.target_name(j))) for i, j in pairs] if named else []
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


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


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
    drawn = list(new_axes(3, (10.5, 3.6)) if axes is None else axes)
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
    Y = laid_over(Y, Y[j], X[i])
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
