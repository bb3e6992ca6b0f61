"""One probability for each pair, fitted on problems whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blindmatch.trust.alternatives import Alternatives
from blindmatch.trust.significance import Significance
from blindmatch.validation import FloatArray

EVIDENCE = ("stability", "regret", "signal", "agreement", "excess")
FEATURES = (*EVIDENCE, "p")


def features(
    found: Alternatives, stability: FloatArray, test: Significance, agreement: float, sizes: tuple[int, int]
) -> FloatArray:
    """(n, 6) what the probability depends on; the columns are named in `FEATURES`.

    - stability: share of resamples in which the pair is left
    - regret: root of log(1 + what the best match without it that was found costs more, in typical swaps)
    - signal: how far the match is better than those of unrelated spaces, in standard deviations, from -2 to 6
    - agreement: of the relations without the mean of each item (`centred_agreement`), by Fisher's transform
    - excess: how much more of the match is left in resampled spaces than of matches of unrelated ones, times the root
      of the number of items, from -2 to 4: chance alone makes it about 0.3
    - p: how often unrelated spaces match as well
    """
    n = len(stability)
    extra = found.without[:n] - found.cost
    regret = np.clip(extra, 0.0, None) / found.unit if found.unit > 0 else np.zeros(n)
    more = 0.0 if test.steadiness is None else float(stability.mean()) - test.steadiness
    whole = [
        np.clip(test.signal, -2.0, 6.0),
        np.arctanh(np.clip(agreement, -0.99, 0.99)),
        np.clip(more * np.sqrt(max(sizes)), -2.0, 4.0),
        test.p_value,
    ]
    pair = [stability, np.sqrt(np.log1p(np.minimum(regret, 1e3)))]
    return np.column_stack([*pair, *(np.full(n, value) for value in whole)])


@dataclass(frozen=True)
class Coefficients:
    """Of the log odds of a pair.

    ``python benchmarks/trust.py fit`` fits them to 2,060 pairs of 94 problems: names, images, tables, clouds, cells and
    noise of 5 to 100 items. A product of a probability of the match and one of the pair, as it was before, has a larger
    log loss on kinds that were left out (0.516 instead of 0.491); so have sums with the number of items (0.499) and
    without the excess (0.496).
    """

    intercept: float
    stability: float
    regret: float
    signal: float
    agreement: float
    excess: float


WITHOUT_PRIOR = Coefficients(intercept=-5.92, stability=2.28, regret=4.07, signal=0.32, agreement=2.19, excess=0.78)
WITH_PRIOR = Coefficients(intercept=-4.2, stability=2.31, regret=2.59, signal=0.42, agreement=1.66, excess=0.85)


def probability(values: FloatArray, prior: float | None = None, fitted: Coefficients | None = None) -> FloatArray:
    """The probability that a pair is right, for each row of features.

    Its log odds are a sum. Without a prior the base rate is that of the fitted problems, and the probability is
    multiplied by 1 - p: in a match that could be chance, no pair is believed, and it errs on the low side. A prior adds
    its own log odds, to coefficients that were fitted with the prior of each kind of problem known.
    """
    fitted = fitted or (WITHOUT_PRIOR if prior is None else WITH_PRIOR)
    odds = 0.0 if prior is None else float(np.log(prior) - np.log1p(-prior))
    weights = np.array([getattr(fitted, name) for name in EVIDENCE])
    logit = fitted.intercept + odds + values[:, : len(EVIDENCE)] @ weights
    found = np.asarray(1 / (1 + np.exp(-np.clip(logit, -30, 30))))
    # With a prior, the signal has told what p tells: 1 - p would be for a prior of its own.
    return found if prior is not None else np.asarray(found * (1 - values[:, -1]))
