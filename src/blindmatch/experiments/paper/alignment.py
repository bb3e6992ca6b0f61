"""The computations of the shuffling study: measures under partial shuffling, their steps, Lipschitz constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from blindmatch.experiments.base import Trial
from blindmatch.experiments.data import Source, class_texts, half_means, images, texts
from blindmatch.geometry.kernels import distances
from blindmatch.io.arrays import read_arrays
from blindmatch.problem.distortions import CKA, MutualKNN
from blindmatch.validation import FloatArray, IntArray

MEASURES = ("mutual-knn", "cka", "gw")
SIGNIFICANT = 0.05


def repeated_texts(vision: Source) -> bool:
    """Whether images share texts: the file of images has labels."""
    return "labels" in read_arrays(vision.path, ("labels",))


@lru_cache(maxsize=4)
def _kernels(
    vision: Source, language: Source, measure: str, unit: str, most: int, neighbors: int
) -> tuple[FloatArray, FloatArray]:
    """Both kernels of one measure, on their common scale."""
    data = images(vision)
    if data.paired:
        X, (Y, _) = data.values, texts(language)
        if len(X) != len(Y):
            raise ValueError(f"{language.path}: {len(Y)} texts, but {vision.path} has {len(X)} images without labels")
    elif unit == "classes":
        X, Y = half_means(vision, None, 1.0), class_texts(vision, language)
    else:
        X, Y = data.values, class_texts(vision, language)[data.labels]
    if len(X) > most:
        chosen = np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))
        X, Y = X[chosen], Y[chosen]
    if measure == "mutual-knn":
        return MutualKNN(k=min(neighbors, len(X) - 1)).kernels(X, Y)
    return CKA().kernels(X, Y) if measure == "cka" else (_unit_range(distances(X)), _unit_range(distances(Y)))


def _unit_range(kernel: FloatArray) -> FloatArray:
    """Distances scaled to the range from 0 to 1, as in the paper's study."""
    return kernel / max(float(kernel.max()), np.finfo(float).tiny)


def partial_shuffle(n: int, level: float, rng: np.random.Generator) -> IntArray:
    """A permutation that moves at most floor(level * n) items, drawn and permuted at random.

    >>> partial_shuffle(4, 0.0, np.random.default_rng(0)).tolist()
    [0, 1, 2, 3]
    """
    permutation = np.arange(n)
    chosen = rng.choice(n, math.floor(level * n + 1e-9), replace=False)
    permutation[np.sort(chosen)] = chosen
    return permutation


def shuffled_values(run: Trial) -> dict[str, Any]:
    """The measure at one level, for all seeds."""
    p = run.parameters
    K, G = _kernels(run.files["vision"], run.files["language"], p["measure"], p["unit"], p["images"], p["neighbors"])
    n = len(K)
    squares = float((K**2).sum() + (G**2).sum())
    values = []
    for seed in range(p["seeds"]):
        # The level is part of the seed: otherwise all levels would shuffle in the same order.
        order = partial_shuffle(n, p["level"], np.random.default_rng([seed, round(1e6 * p["level"])]))
        product = float(np.vdot(K, G[order][:, order]))
        values.append((squares - 2 * product) / n**2 if p["measure"] == "gw" else product)
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "deviation": deviation, "values": values, "items": n}


def steps(levels: Sequence[Sequence[float]], *, rising: bool) -> tuple[int, int, int]:
    """Test every step of a curve from one level to the next, given the values at each level.

    Returns the number of steps whose mean does not go in the expected direction (0 means strictly monotone), and of
    those that go in the expected and in the opposite direction with p < 0.05 in Welch's one-sided test.

    >>> steps([[0.0, 0.1, 0.2], [1.0, 1.1, 1.2], [1.0, 1.1, 1.2]], rising=True)
    (1, 1, 0)
    """
    differences = np.diff([float(np.mean(values)) for values in levels])
    wrong = int(((differences if rising else -differences) <= 0).sum())
    expected, opposite = (
        sum(_p_value(before, after, up) < SIGNIFICANT for before, after in pairwise(levels))
        for up in (rising, not rising)
    )
    return wrong, expected, opposite


def _p_value(before: Sequence[float], after: Sequence[float], rising: bool) -> float:
    from scipy.stats import ttest_ind_from_stats

    first, second = ((np.mean(v), np.std(v, ddof=1) if len(v) > 1 else 0.0, len(v)) for v in (before, after))
    if first[1] == second[1] == 0:  # level 0 has a single pairing, and a single seed has no deviation
        return 0.0 if (second[0] > first[0] if rising else second[0] < first[0]) else 1.0
    test = ttest_ind_from_stats(*second, *first, equal_var=False, alternative="greater" if rising else "less")
    return float(test.pvalue)


def lipschitz(run: Trial) -> dict[str, Any]:
    """The density of |f(x) - f(y)| / |x - y| over all pairs of images."""
    inputs, vision = run.files["inputs"], run.files["vision"]
    x, y = images(inputs, False).values, images(vision, False).values
    if len(x) != len(y):
        raise ValueError(f"{vision.path}: {len(y)} images, but {inputs.path} has {len(x)}")
    most = run.parameters["images"]
    before, after = pdist(x[:most]), pdist(y[:most])
    ratios = after[before > 0] / before[before > 0]
    density, edges = np.histogram(ratios, bins=60, range=(0.0, float(np.quantile(ratios, 0.999))), density=True)
    peak = int(np.argmax(density))
    low, median, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    return {
        "mode": (edges[peak] + edges[peak + 1]) / 2,
        "median": median,
        "low": low,
        "high": high,
        "density": density,
        "edges": edges,
    }
