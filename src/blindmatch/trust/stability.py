"""How often a pair comes back when the data are resampled, and whether the other pairs predict it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist, pdist

from blindmatch.geometry.kernels import unit_rows
from blindmatch.problem.task import Task
from blindmatch.solvers.two_opt import improve
from blindmatch.trust.rotation import compact
from blindmatch.trust.search import Part
from blindmatch.validation import FloatArray, IntArray, as_floats

Redraw = Callable[[np.random.Generator], FloatArray]
# What resampling changes the distances by, as a share of their spread. Of 100 names with two prompts (76 % right), 70 %
# of the right pairs are then left and 39 % of the others; matches of unrelated copies keep 34 to 41 %.
_CHANGE = 0.5
_DIMENSIONS = 16, 4096  # the fewest and the most to draw
_MEASURED = 300  # points whose distances are measured
_AXES, _FOLDS = 12, 8  # to predict pairs by: the most principal axes, and parts of which one is left out


def stability(
    task: Task, full: IntArray, redraws: tuple[Redraw, Redraw], resamples: int, part: Part
) -> FloatArray | None:
    """(n,) share of the resamples in which each pair is left when the match is improved there, by swaps.

    `full` is a match of items and dummies. None if the deadline left no time for one. A search that does not start from
    the match would, of many items, find another one even where this one is right.
    """
    same, n = [], task.sizes[0]
    for at in range(resamples):
        if part.seconds_left <= 0:
            break
        problem = task.problem_with(*(redraw(part.rng) for redraw in redraws))
        same.append(improve(problem, full)[:n] == full[:n])
        part.progress((at + 1) / resamples)
    return np.mean(same, axis=0) if same else None


def redraw_dimensions(points: FloatArray) -> Redraw:
    """The points in random dimensions, so few that the distances change by half of their spread.

    A random linear map to k dimensions changes distances by a share of 1 / sqrt(2 k). Embeddings of many dimensions are
    all about as far from each other: then k must be large.
    """
    flat = compact(points)
    apart = pdist(flat[:: -(-len(flat) // _MEASURED)])
    spread = float(apart.std() / apart.mean()) if apart.any() else 1.0
    k = int(np.clip(0.5 / max(_CHANGE * spread, 1e-3) ** 2, *_DIMENSIONS))

    def redraw(rng: np.random.Generator) -> FloatArray:
        return np.asarray(flat @ rng.standard_normal((flat.shape[1], k)) / np.sqrt(k))

    return redraw


def predicted(points: tuple[FloatArray, FloatArray], partners: IntArray) -> FloatArray:
    """(n,) 1 for the pairs that the other pairs predict, else 0; of fewer than four pairs none.

    In turn an eighth of the pairs is left out. The rotation that fits the principal axes of the others best maps its
    sources; a pair is predicted if no target is nearer to where its source comes than its own.
    """
    rows = np.flatnonzero(partners >= 0)
    found = np.zeros(len(partners))
    if len(rows) < 4:
        return found
    q = int(np.clip(len(rows) // 3, 1, _AXES))
    sides = _principal(points[0][rows], q), _principal(points[1][partners[rows]], q)
    folds = np.arange(len(rows)) % _FOLDS
    for fold in range(min(_FOLDS, len(rows))):
        left, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        U, _, V = np.linalg.svd(sides[0][rest].T @ sides[1][rest])
        apart = cdist(sides[0][left] @ (U @ V), sides[1])
        found[rows[left]] = apart[np.arange(len(left)), left] <= apart.min(axis=1) + 1e-12
    return found


def _principal(points: FloatArray, q: int) -> FloatArray:
    """(n, q) the first principal axes, at the same size for all sets."""
    left, values, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    axes = np.zeros((len(points), q))
    axes[:, : len(values)] = (left * values)[:, :q]
    return axes / (np.linalg.norm(axes) or 1.0)


def redraw_samples(samples: Sequence[ArrayLike], points: FloatArray, name: str) -> Redraw:
    """The mean of a random half of each item's samples (images, prompts), as in the paper; unit length if ours is."""
    groups = [as_floats(group, f"{name}[{at}]") for at, group in enumerate(samples)]
    if len(groups) != len(points):
        raise ValueError(f"{name} has {len(groups)} groups; expected {len(points)}, one for each item")
    if any(group.shape[1] != points.shape[1] for group in groups):
        raise ValueError(f"{name} must have {points.shape[1]} dimensions, as the embeddings have")
    unit = bool(np.allclose(np.linalg.norm(points, axis=1), 1.0, atol=1e-4))

    def redraw(rng: np.random.Generator) -> FloatArray:
        means = np.empty_like(points)
        for at, group in enumerate(groups):
            half = rng.choice(len(group), max(1, len(group) // 2), replace=False)
            means[at] = (unit_rows(group[half]) if unit else group[half]).mean(axis=0)
        return unit_rows(means) if unit else means

    return redraw
