"""Classify without labels: cluster the images and match the clusters with the class names."""

from importlib.resources import files

import numpy as np

import blindmatch as bm

with np.load(files("blindmatch") / "data" / "cifar10.npz") as data:
    names, name_embeddings, parts = data["names"], data["target"], data["source_parts"]

# Four averages of 250 images per class, pooled: it is not known which four belong together.
images = parts.reshape(-1, parts.shape[-1]).astype(float)
labels = np.repeat(names, parts.shape[1])

model = bm.BlindClassifier(normalize=True, random_state=0)
model.fit(images, name_embeddings, classes=names)

for label, predicted in zip(labels[::4], model.predict(images)[::4], strict=True):
    print(f"{label:10} is classified as {predicted}")
scores = model.evaluate(images, labels)
print(f"accuracy {scores.accuracy:.0%}, with the best names for the clusters {scores.ceiling:.0%}")
print(f"match of {len(model.centres_)} clusters: {model.result_.status}")
