"""One probability for each pair: a logistic regression of few numbers, fitted on real problems."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from blindmatch.trust.alternatives import Alternatives
from blindmatch.validation import FloatArray

FEATURES = ("stability", "consensus", "regret", "signal", "correlation", "size")


def features(
    found: Alternatives, stability: FloatArray, z: float, correlation: float, sizes: tuple[int, int]
) -> FloatArray:
    """(n, 6) what the probability depends on; the columns are named in `FEATURES`.

    - stability: share of resamples in which the pair comes back
    - consensus: share of the matches of nearly the same cost in which it occurs
    - regret: log(1 + what the best match without it that was found costs more, in typical swaps)
    - signal: how far the cost is below that of unrelated spaces, in standard deviations, from -2 to 10
    - correlation: of the relations of the one set with those of the other, by Fisher's transform
    - size: logarithm of the number of items to choose from
    """
    n = len(stability)
    extra = found.without[:n] - found.cost
    regret = np.clip(extra, 0.0, None) / found.unit if found.unit > 0 else np.zeros(n)
    whole = [np.clip(z, -2.0, 10.0), np.arctanh(np.clip(correlation, -0.99, 0.99)), np.log(max(sizes))]
    pair = [stability, found.consensus[:n], np.log1p(np.minimum(regret, 1e3))]
    return np.column_stack([*pair, *(np.full(n, value) for value in whole)])


def probability(values: FloatArray) -> FloatArray:
    """The probability that a pair is right, for each row of features."""
    fitted = calibration()
    logit = values @ np.array([fitted["coefficients"][name] for name in FEATURES]) + fitted["intercept"]
    return np.asarray(1 / (1 + np.exp(-np.clip(logit, -30, 30))))


@cache
def calibration() -> dict[str, Any]:
    """The coefficients, and how they were made (``benchmarks/trust.py fit`` writes the file)."""
    text = files("blindmatch.trust").joinpath("calibration.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
