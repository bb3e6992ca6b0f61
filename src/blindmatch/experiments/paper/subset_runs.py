"""Shared code of the experiments on the best subsets of classes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from blindmatch.experiments.base import Trial
from blindmatch.experiments.data import Source, class_texts, half_means
from blindmatch.experiments.paper.matching_runs import matched, prototypes
from blindmatch.matching.subsets import best_subsets
from blindmatch.validation import IntArray


@lru_cache(maxsize=32)
def _subsets(vision: Source, language: Source, size: int, k: int) -> tuple[IntArray, ...]:
    """The k best subsets of one size, based on the means of all images; every worker finds the same ones."""
    X = half_means(vision, None, 1.0)
    return best_subsets(X, class_texts(vision, language), size=size, k=k, rng=0, threads=1).subsets


def subset_count(classes: int, size: int, wanted: int) -> int:
    """The number of available subsets, at most as many as requested."""
    return min(wanted, math.comb(classes, size))


def match_subset(run: Trial) -> dict[str, Any]:
    """Match the classes of one of the best subsets."""
    p = run.parameters
    X, Y = prototypes(run)
    chosen = _subsets(run.files["vision"], run.files["language"], p["size"], p["subsets"])[p["subset"]]
    return {**matched(X[chosen], Y[chosen], p), "classes": [int(c) for c in chosen]}
