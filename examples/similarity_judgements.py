"""Match the similarity judgements of two groups of people: the same colours, by their relations."""

import numpy as np

import blindmatch as bm

# Fourteen colours on an uneven wheel. Each person judges a tenth of the pairs, in steps from 0 to 7.
rng = np.random.default_rng(1)
angle, lightness = 2 * np.pi * np.sort(rng.random(14)) ** 1.3, rng.random(14)
colours = np.column_stack([np.cos(angle), np.sin(angle), 0.8 * lightness])
apart = np.linalg.norm(colours[:, None] - colours, axis=2)


def judged(people: int) -> np.ndarray:
    """The mean judgement of a group; nan for pairs that nobody saw."""
    votes = np.rint(np.clip(7 * apart / apart.max() + rng.normal(size=(people, 14, 14)), 0, 7))
    votes[rng.random(votes.shape) < 0.9] = np.nan
    seen = ~np.isnan(votes).all(axis=0)
    means = np.nansum(votes, axis=0) / np.maximum((~np.isnan(votes)).sum(axis=0), 1)
    means = np.where(seen & seen.T, (means + means.T) / 2, np.where(seen, means, np.where(seen.T, means.T, np.nan)))
    np.fill_diagonal(means, 0.0)
    return means


order = rng.permutation(14)
ours, theirs = judged(40), judged(40)[np.ix_(order, order)]
print(f"missing: {np.isnan(ours).sum()} and {np.isnan(theirs).sum()} of {ours.size} judgements")
kernels = bm.fill_missing(ours, "path"), bm.fill_missing(theirs, "path")
result = bm.match(kernels=kernels, time_limit=20, rng=0)
print(
    f"{result.status}: {(order[result.permutation] == np.arange(14)).sum()} of 14 colours are matched with themselves"
)
print(f"cost {result.cost:.2f}, no match costs less than {result.lower_bound:.2f}")
trust = result.assess(draws=19, resamples=5, regret=False, time_limit=30, rng=0)
print(f"p = {trust.p_value}: how often unrelated judgements with the same geometry match as well")
