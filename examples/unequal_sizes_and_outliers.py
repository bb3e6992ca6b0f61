"""Match sets of different sizes, in which some items have no counterpart."""

import numpy as np

import blindmatch as bm

rng = np.random.default_rng(0)
shared, only_source, only_target = 16, 2, 5
points = rng.normal(size=(shared, 6))
X = np.vstack([points, rng.normal(size=(only_source, 6))])
Y = np.vstack([points @ np.linalg.qr(rng.normal(size=(6, 6)))[0], rng.normal(size=(only_target, 6))])
Y += 0.05 * rng.normal(size=Y.shape)  # source i and target i are the same for i < 16

# By default, each of the 18 sources gets one of the 21 targets, outlier or not.
everything = bm.match(X, Y, rng=0)
print(f"all matched: outliers {everything.permutation[shared:].tolist()} got partners, {everything.status}")

# With a price, items stay unmatched if their relations to the others disagree by more than 0.3 on average.
result = bm.match(X, Y, unmatched_cost=0.3 * len(X), rng=0)
print(f"with a price: outliers {result.permutation[shared:].tolist()}, {result.status}")
print(f"{np.mean(result.permutation[:shared] == np.arange(shared)):.0%} of the others are right")
print(f"cost {result.cost:.4f}, bound {result.lower_bound:.4f}")
