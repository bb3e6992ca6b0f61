"""Static plots of a match, for papers and notebooks; `curves.py` has the others. They need matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.problem.distortion import Distortion, Kernels
from blindmatch.problem.task import Task, as_task
from blindmatch.report.canvas import BAD, GOOD, PALE, SOURCE, TARGET, axes_or_new, new_axes
from blindmatch.report.layout import dissimilarity, laid_over, plane, similar_together
from blindmatch.report.match import Match
from blindmatch.report.measures import matched_kernels
from blindmatch.solving.result import Result
from blindmatch.validation import as_floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    ax = axes_or_new(ax, (5.0, max(2.0, 0.22 * len(pairs) + 0.8)))
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
    source: ArrayLike | Task | None = None,
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
    task = as_task(source, target, kernels=kernels, distortion=distortion, standardize=standardize)
    match = Match(result, task.kernels, similarity=task.distortion.similarities)
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


def plot_spaces(
    result: Result,
    source: ArrayLike | Task | None = None,
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
    task = as_task(source, target, kernels=kernels, distortion=distortion, standardize=standardize)
    match = Match(result, task.kernels, source_names, truth=truth)
    (K, G), (i, j), similar = task.kernels, match.pairs, task.distortion.similarities
    if len(i) < 2:
        raise ValueError(f"result pairs {len(i)} items; expected at least 2")
    X, _ = plane(dissimilarity(K, similar))
    Y, _ = plane(dissimilarity(G, similar))
    Y = laid_over(Y, Y[j], X[i])
    ax = axes_or_new(ax, (6.0, 5.0))
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
