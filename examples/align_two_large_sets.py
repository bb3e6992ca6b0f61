"""Map embeddings from one space to another: thousands of items on each side, none of them shared."""

import numpy as np

import blindmatch as bm

rng = np.random.default_rng(0)
scale = 1 / np.sqrt(1 + np.arange(16))
kinds = 2 * scale * rng.normal(size=(200, 16))  # the structure that both encoders see
encoders = [np.linalg.qr(rng.normal(size=(width, 16)))[0].T for width in (48, 64)]


def items(count):
    """Draw new items."""
    return kinds[rng.integers(200, size=count)] + 0.5 * scale * rng.normal(size=(count, 16))


def embed(things, encoder):
    """Embed items with one encoder."""
    return things @ encoder + 0.02 * rng.normal(size=(len(things), encoder.shape[1]))


aligner = bm.BlindAligner(n_clusters=12, n_candidates=3, n_iterations=10, random_state=0)
aligner.fit(embed(items(3000), encoders[0]), embed(items(2500), encoders[1]))

# Embed new items with both encoders: is the nearest neighbour in the other space the same item?
new = items(1000)
_, nearest = aligner.kneighbors(embed(new, encoders[0]), n_neighbors=1, candidates=embed(new, encoders[1]))
print(f"{aligner.support_} of {len(aligner.candidates_) - 1} other starts led to the same map")
print(f"match of {len(aligner.source_centres_)} centres: {aligner.result_.status}")
right = (nearest[:, 0] == np.arange(1000)).mean()
print(f"{right:.0%} of 1000 new items find themselves; chance is 0.1%")
