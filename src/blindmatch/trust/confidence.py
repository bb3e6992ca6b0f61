"""One probability for each pair: the level of the whole match times that of the pair, fitted on real problems."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from blindmatch.trust.alternatives import Alternatives
from blindmatch.trust.significance import Significance
from blindmatch.validation import FloatArray

PAIR = ("stability", "regret", "size")
WHOLE = ("signal", "agreement")
FEATURES = (*PAIR, *WHOLE, "p")


def features(
    found: Alternatives, stability: FloatArray, test: Significance, agreement: float, sizes: tuple[int, int]
) -> FloatArray:
    """(n, 6) what the probability depends on; the columns are named in `FEATURES`.

    - stability: share of resamples in which the pair comes back
    - regret: root of log(1 + what the best match without it that was found costs more, in typical swaps)
    - size: logarithm of the number of items to choose from
    - signal: how far the cost is below that of unrelated spaces, in standard deviations, from -2 to 10
    - agreement: of the relations without the mean of each item (`centred_agreement`), by Fisher's transform
    - p: how often unrelated spaces match as well
    """
    n = len(stability)
    extra = found.without[:n] - found.cost
    regret = np.clip(extra, 0.0, None) / found.unit if found.unit > 0 else np.zeros(n)
    pair = [stability, np.sqrt(np.log1p(np.minimum(regret, 1e3)))]
    alike = np.arctanh(np.clip(agreement, -0.99, 0.99))
    whole = [np.log(max(sizes)), np.clip(test.signal, -2.0, 10.0), alike, test.p_value]
    return np.column_stack([*pair, *(np.full(n, value) for value in whole)])


def probability(values: FloatArray, prior: float | None = None) -> FloatArray:
    """The probability that a pair is right, for each row of features.

    It is level(signal, agreement) x share(stability, regret, size), where level and share are logistic. Level is the
    same for all pairs of a match: whatever a pair looks like, it is never above it. Without a prior the base rate is
    that of the fitted problems, and no pair is above 1 - p either. A prior adds its log odds to those of the level, and
    the coefficients are those that were fitted with the prior of each problem known.
    """
    fitted = calibration() if prior is None else calibration()["with_prior"]
    columns = dict(zip(FEATURES, values.T, strict=True))
    odds = 0.0 if prior is None else float(np.log(prior) - np.log1p(-prior))
    level = _logistic(fitted["level"], {name: columns[name] for name in WHOLE}, odds)
    share = _logistic(fitted["pair"], {name: columns[name] for name in PAIR})
    if prior is not None:
        # The signal has told what p tells. 1 - p as a bound would be for a prior of its own.
        return np.asarray(level * share)
    return np.asarray(np.minimum(level * share, 1 - columns["p"]))


def _logistic(weights: dict[str, float], columns: dict[str, FloatArray], odds: float = 0.0) -> FloatArray:
    logit = sum((weights[name] * values for name, values in columns.items()), start=weights["intercept"] + odds)
    return np.asarray(1 / (1 + np.exp(-np.clip(logit, -30, 30))))


@cache
def calibration() -> dict[str, Any]:
    """The coefficients, and how they were made (``benchmarks/trust.py fit`` writes the file)."""
    text = files("blindmatch.trust").joinpath("calibration.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
