"""Accuracy against the number of language models whose relations are averaged, and what else was tried.

    python benchmarks/views.py FOLDER [--halves 8] [--sets 30]

FOLDER holds ``vision__DATASET__MODEL.npz`` and ``language__DATASET__MODEL.npz`` (docs/embeddings.md). Every match is
proved optimal. The spread is over halves of the images, or over random sets of ten classes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np

import blindmatch as bm
from blindmatch.geometry.kernels import distances, knn_kernel, standardized, unit_rows

Sides = list[np.ndarray]


def read(folder: Path, kind: str, dataset: str) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    found = {}
    for path in sorted(folder.glob(f"{kind}__{dataset}__*.npz")):
        with np.load(path) as file:
            values = file["embeddings"].astype(np.float64)
            values /= np.linalg.norm(values, axis=-1, keepdims=True)
            labels = file["labels"] if kind == "vision" else None
        found[path.stem.split("__")[2]] = (
            (values, labels) if kind == "vision" else (unit_rows(values.mean(axis=1)), None)
        )
    return found


def class_means(values: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means of a random half of the images of each class."""
    rows = [rng.permutation(np.flatnonzero(labels == c)) for c in range(labels.max() + 1)]
    return unit_rows(np.array([values[row[: len(row) // 2]].mean(axis=0) for row in rows]))


def ranked(kernel: np.ndarray) -> np.ndarray:
    """Relations replaced by their ranks."""
    n, rows = len(kernel), np.triu_indices(len(kernel), 1)
    found = np.zeros((n, n))
    found[rows] = kernel[rows].argsort().argsort()
    return found + found.T


def mean_of(kernels: Sides) -> np.ndarray:
    return np.mean([standardized(K) for K in kernels], axis=0)


def by_agreement(kernels: Sides) -> np.ndarray:
    """Weights by the mean correlation of a view with the others."""
    off = ~np.eye(len(kernels[0]), dtype=bool)
    each = np.corrcoef([K[off] for K in kernels]) if len(kernels) > 1 else np.ones((1, 1))
    weights = np.maximum((each.sum(axis=1) - 1) / max(len(kernels) - 1, 1), 0.0) if len(kernels) > 1 else np.ones(1)
    weights = weights if weights.sum() > 0 else np.ones(len(kernels))
    return np.tensordot(weights / weights.sum(), [standardized(K) for K in kernels], 1)


def with_neighbours(kernels: Sides) -> np.ndarray:
    """The neighbours of each item as one more view."""
    near = [-(knn_kernel(-K, 3) + knn_kernel(-K, 3).T) for K in kernels]
    return mean_of([*kernels, np.mean(near, axis=0)])


def median_of(kernels: Sides) -> np.ndarray:
    return np.median([standardized(K) for K in kernels], axis=0)


WAYS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[Sides], np.ndarray]]] = {
    "mean": (lambda K: K, mean_of),
    "ranks": (ranked, mean_of),
    "weights by agreement": (lambda K: K, by_agreement),
    "median": (lambda K: K, median_of),
    "neighbours as a view": (lambda K: K, with_neighbours),
}


def right(X: np.ndarray, views: Sides, way: str, rng: np.random.Generator) -> float:
    """The share of right pairs of a proved match."""
    shape, mix = WAYS[way]
    p = rng.permutation(len(X))
    G = mix([shape(distances(Y[p])) for Y in views])
    result = bm.match(kernels=(shape(distances(X)), G), rng=0, threads=1)
    assert result.status == "optimal"
    return float(np.mean(p[result.permutation] == np.arange(len(X))))


def line(name: str, values: dict[int, list[list[float]]]) -> str:
    cells = [f"{100 * np.mean(draws):.0f} ± {100 * np.std(np.mean(draws, axis=1)):.0f} %" for draws in values.values()]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--halves", type=int, default=8)
    parser.add_argument("--sets", type=int, default=30)
    given = parser.parse_args()
    texts = [values for values, _ in read(given.folder, "language", "cifar10").values()]
    images = read(given.folder, "vision", "cifar10")
    counts = range(1, len(texts) + 1)
    print(f"| CIFAR-10, language models averaged | {' | '.join(map(str, counts))} |")
    print("| --- " * (len(texts) + 1) + "|")
    for name, (values, labels) in images.items():
        found: dict[int, list[list[float]]] = {count: [] for count in counts}
        for seed in range(given.halves):
            X = class_means(values, labels, np.random.default_rng(seed))
            for count in counts:
                chosen = [[texts[at] for at in subset] for subset in combinations(range(len(texts)), count)]
                found[count].append([right(X, some, "mean", np.random.default_rng(seed)) for some in chosen])
        print(line(name, found), flush=True)
    ways: dict[str, list[float]] = {way: [] for way in WAYS}
    for values, labels in images.values():
        for seed in range(given.halves):
            X = class_means(values, labels, np.random.default_rng(seed))
            for way in WAYS:
                ways[way].append(right(X, texts, way, np.random.default_rng(seed)))
    words = [values for values, _ in read(given.folder, "language", "tinyimagenet200").values()]
    tiny: dict[str, list[float]] = {way: [] for way in ("one model", *WAYS)}
    for values, labels in read(given.folder, "vision", "tinyimagenet200").values():
        for seed in range(given.sets):
            rng = np.random.default_rng(seed)
            X, some = class_means(values, labels, rng), rng.choice(200, 10, replace=False)
            tiny["one model"].append(np.mean([right(X[some], [Y[some]], "mean", rng) for Y in words]))
            for way in WAYS:
                tiny[way].append(right(X[some], [Y[some] for Y in words], way, rng))
    print("\n| all language models | CIFAR-10 | sets of ten Tiny-ImageNet classes |\n| --- | --- | --- |")
    for way, values in tiny.items():
        own = f"{100 * np.mean(ways[way]):.0f} %" if way in ways else ""
        print(f"| {way} | {own} | {100 * np.mean(values):.0f} ± {100 * np.std(values) / len(values) ** 0.5:.0f} % |")


if __name__ == "__main__":
    main()
