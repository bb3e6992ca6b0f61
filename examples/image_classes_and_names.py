"""Match ten classes of images with ten words; no pair is known."""

import blindmatch as bm
from blindmatch.demo import load_demo

demo = load_demo("cifar10", seed=1)  # the words are shuffled
result = bm.match(demo.source, demo.target, rng=0)

for image_class, word in result.pairs:
    print(f"images of {demo.source_names[image_class]:10} are called {demo.target_names[word]}")

right = bm.metrics.matching_accuracy(result.permutation, demo.truth)
print(f"{right:.0%} are right; the match is {result.status}: cost {result.cost:.4f}, bound {result.lower_bound:.4f}")

# A proof is about the cost. Whether the cheapest pairing is the true one depends on the embeddings:
report = bm.metrics.evaluate(demo.source, demo.target, result.permutation, demo.truth, rng=0)
for name, alignment in (("found", report.found), ("true", report.true), ("random", report.random)):
    print(f"{name:>6} pairing: distortion {alignment.gw:.3f}, CKA {alignment.cka:.3f}")
