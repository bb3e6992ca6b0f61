"""One probability for each pair, fitted on problems whose truth is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from blindmatch.trust.alternatives import Alternatives
from blindmatch.trust.report import LIKELY
from blindmatch.trust.significance import Significance
from blindmatch.validation import FloatArray

FEATURES = ("stability", "regret", "agreement", "prediction", "p")


def features(
    found: Alternatives, stability: FloatArray, test: Significance, centred: float, predicted: FloatArray
) -> FloatArray:
    """(n, 5) what the probability depends on; the columns are named in `FEATURES`.

    - stability: share of resamples in which the pair is left
    - regret: root of log(1 + what the best match without it that was found costs more, in typical swaps), times the
      signal: how far the match is better than those of unrelated spaces, in standard deviations, from 0 to 8, and no
      more than p allows if some match as well
    - agreement: how much more the relations agree than those of unrelated spaces, without the mean of each item
      (`centred_agreement`), by Fisher's transform
    - prediction: how many more of the pairs the other pairs predict than in matches of unrelated spaces, as a share
      times the root of the number of pairs: chance alone makes it about 0.3
    - p: how often unrelated spaces match as well
    """
    n = len(stability)
    extra = found.without[:n] - found.cost
    regret = np.clip(extra, 0.0, None) / found.unit if found.unit > 0 else np.zeros(n)
    signal = min(test.signal, -float(ndtri(test.p_value))) if test.hits else test.signal
    regret = np.sqrt(np.log1p(np.minimum(regret, 1e3))) * np.clip(signal, 0.0, 8.0)
    agreed = 0.0 if test.centred is None else centred - test.centred
    more = 0.0 if test.predicted is None else (float(predicted.mean()) - test.predicted) * np.sqrt(n)
    whole = np.clip(agreed, -1.0, 2.0), np.clip(more, -2.0, 8.0), test.p_value
    return np.column_stack([stability, regret, *(np.full(n, value) for value in whole)])


@dataclass(frozen=True)
class Coefficients:
    """Of the log odds of a pair, fitted by ``benchmarks/trust_calibration.py fit``; `prior` is of its own log odds."""

    intercept: float
    stability: float
    regret: float
    agreement: float
    prediction: float
    prior: float = 0.0


WITHOUT_PRIOR = Coefficients(intercept=-2.98, stability=1.75, regret=1.88, agreement=2.36, prediction=0.31)
WITH_PRIOR = Coefficients(intercept=-2.09, stability=2.31, regret=1.05, agreement=1.18, prediction=0.3, prior=0.63)


def probability(values: FloatArray, prior: float | None = None, fitted: Coefficients | None = None) -> FloatArray:
    """The probability that a pair is right, for each row of features: its log odds are a sum.

    Without a prior the base rate is that of the fitted problems, and two rules keep from false belief, which does more
    harm than a doubt. Where more than a third of the unrelated spaces match as well, the probability is multiplied by
    1.3 - 0.9 p. Where the test does not reject, it is at most what p leaves at best of even odds: 0.62 at p = 0.1, 0.5
    from 1 / e on (Sellke, Bayarri and Berger 2001).
    """
    fitted = fitted or (WITHOUT_PRIOR if prior is None else WITH_PRIOR)
    odds = 0.0 if prior is None else float(np.log(prior) - np.log1p(-prior))
    weights = np.array([getattr(fitted, name) for name in FEATURES[:-1]])
    logit = fitted.intercept + fitted.prior * odds + values[:, :-1] @ weights
    found = 1 / (1 + np.exp(-np.clip(logit, -30, 30)))
    if prior is not None:  # then the signal has told what p tells
        return np.asarray(found)
    p = values[:, -1]
    q = np.clip(p, LIKELY, 1 / math.e)
    most = np.where(p <= LIKELY, 1.0, 1 / (1 - math.e * q * np.log(q)))
    return np.asarray(np.minimum(found * np.minimum(1.0, 1.3 - 0.9 * p), most))
