"""Match the same ten words across two language models, whose spaces share nothing but their geometry."""

from importlib.resources import files

import numpy as np

import blindmatch as bm

with np.load(files("blindmatch") / "data" / "cifar10.npz") as data:
    words, gte_small, minilm = data["names"], data["target"], data["target_paper"]

order = np.random.default_rng(0).permutation(len(words))
result = bm.match(minilm, gte_small[order], rng=0)

for i, j in result.pairs:
    mark = "" if order[j] == i else "   <- wrong"
    print(f"{words[i]:10} = {words[order[j]]}{mark}")
print(f"{np.mean(order[result.permutation] == np.arange(len(words))):.0%} are right, {result.status}")
