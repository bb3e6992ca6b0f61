"""How often a pair comes back when the data are resampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist

from blindmatch.geometry.kernels import unit_rows
from blindmatch.problem.task import Task
from blindmatch.trust.null import compact
from blindmatch.trust.search import Part, search
from blindmatch.validation import FloatArray, IntArray, as_floats

Redraw = Callable[[np.random.Generator], FloatArray]
_LEAST_DIMENSIONS = 64  # with fewer, drawing dimensions again would be too harsh
# What gentle resampling changes the distances by, as a share of their spread. At 100 names, matches of resamples then
# agree on 26 to 53 % of the pairs for two related language models, and on 2 to 8 % for unrelated copies.
_CHANGE = 0.2
_DIMENSIONS = 16, 4096  # the fewest and the most to draw
_MEASURED = 300  # points whose distances are measured


def stability(
    task: Task, match: IntArray, redraws: tuple[Redraw, Redraw], resamples: int, part: Part
) -> FloatArray | None:
    """(n,) share of the resamples in whose best match each pair occurs; None if the deadline left no time for one."""
    same = []
    for at in range(resamples):
        found = search(task.problem_with(*(redraw(part.rng) for redraw in redraws)), part)
        if found is None:
            break
        same.append(found[0][: len(match)] == match)
        part.progress((at + 1) / resamples)
    return np.mean(same, axis=0) if same else None


def redraw_dimensions(points: FloatArray) -> Redraw:
    """The points in dimensions drawn with replacement from their own: a bootstrap that needs no further data.

    Points of few dimensions are put into more of them by a random linear map.
    """
    d = points.shape[1]

    def redraw(rng: np.random.Generator) -> FloatArray:
        if d < _LEAST_DIMENSIONS:
            return np.asarray(points @ rng.standard_normal((d, _LEAST_DIMENSIONS)))
        return np.asarray(points[:, rng.integers(d, size=d)])

    return redraw


def redraw_gently(points: FloatArray) -> Redraw:
    """The points in random dimensions, so many that the distances change by a fifth of their spread.

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


def reproducibility(task: Task, redraws: tuple[Redraw, Redraw], resamples: int, part: Part) -> float | None:
    """The mean share of pairs that the best matches of two resamples have in common; None if the deadline came."""
    found = []
    for _ in range(resamples):
        match = search(task.problem_with(*(redraw(part.rng) for redraw in redraws)), part)
        if match is None:
            return None
        found.append(task.reduced(match[0]))
    pairs = list(combinations(found, 2))
    return float(np.mean([((a == b) & (a >= 0)).sum() / max((a >= 0).sum(), 1) for a, b in pairs]))


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
