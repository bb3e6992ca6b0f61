"""How many answers a match needs until 80 % of its pairs are right: those of ``Result.ask`` against random ones.

    python benchmarks/ask.py FOLDER [--draws 30] [--first 200]

FOLDER holds embeddings: vision__DATASET__MODEL.npz and language__DATASET__MODEL.npz (see benchmarks/README.md). Each
answer is the true partner of the item; the match is repeated after each.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import blindmatch as bm
from blindmatch.geometry.column_scaling import ColumnScaling
from blindmatch.problem.task import Task
from blindmatch.solvers.tabu import Tabu
from blindmatch.validation import IntArray

ENOUGH = 0.8


def side(folder: Path, kind: str, dataset: str, model: str) -> np.ndarray:
    """Unit class means of images or prompts."""
    with np.load(folder / f"{kind}__{dataset}__{model}.npz") as file:
        rows = file["embeddings"].astype(float)
        rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
        if kind == "language":
            means = rows.mean(axis=1)
        else:
            labels = file["labels"]
            means = np.stack([rows[labels == c].mean(axis=0) for c in range(labels.max() + 1)])
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True))


def countries() -> tuple[np.ndarray, np.ndarray]:
    """The two tables that come with the package, in the scale that belongs to them; row i of both is one country."""
    with np.load(Path(bm.__file__).parent / "data" / "countries.npz", allow_pickle=False) as file:
        sides = file["source"], file["target"]
        first, second = ColumnScaling.pair(*sides, str(file["scale"]))
    return first.transform(sides[0]), second.transform(sides[1])


def answers_needed(X: np.ndarray, Y: np.ndarray, truth: IntArray, asks: bool, seed: int) -> int:
    """Answers until enough pairs are right; each is about the first question, or about a random open item."""
    task, rng = Task(X, Y), np.random.default_rng(seed)
    solver = Tabu(iterations=100 * len(X), streams=2)
    known: tuple[tuple[int, int], ...] = ()
    while True:
        now = task.changed(hints=replace(task.hints, known=known))
        found = replace(bm.solve(now.problem, solver, rng=seed, threads=1), task=now)
        if float(np.mean(found.permutation == truth)) >= ENOUGH:
            return len(known)
        if asks:
            source = found.ask(1, rng=seed, threads=1)[0][0]
        else:
            source = int(rng.choice(np.setdiff1d(np.arange(len(X)), [i for i, _ in known])))
        known += ((source, int(truth[source])),)


def main() -> None:
    """Print one line for each kind of problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--first", type=int, default=200, help="seed of the first draw")
    given = parser.parse_args()
    kinds = {
        "CIFAR-10, images x names": ("cifar10", "vision", "resnet50_keras", "language", "all_mpnet_base_v2", 10),
        "CIFAR-10, images x GloVe": ("cifar10", "vision", "efficientnet_lite0", "language", "glove_100d_wink", 10),
        "20 Tiny-ImageNet names, MiniLM x GloVe": (
            "tinyimagenet200",
            "language",
            "all_minilm_l6_v2",
            "language",
            "glove_100d_wink",
            20,
        ),
        "20 Tiny-ImageNet classes, images x names": (
            "tinyimagenet200",
            "vision",
            "resnet50_keras",
            "language",
            "all_mpnet_base_v2",
            20,
        ),
    }
    data = {
        name: (side(given.folder, one, dataset, first), side(given.folder, other, dataset, second), size)
        for name, (dataset, one, first, other, second, size) in kinds.items()
    }
    data["25 countries"] = (*countries(), 25)
    for name, (X, Y, size) in data.items():
        counts: dict[bool, list[int]] = {True: [], False: []}
        for draw in range(given.first, given.first + given.draws):
            rng = np.random.default_rng(draw)
            items, order = rng.permutation(len(X))[:size], rng.permutation(size)
            for asks, needed in counts.items():
                needed.append(answers_needed(X[items], Y[items][order], np.argsort(order), asks, draw))
        saved = np.subtract(counts[False], counts[True])
        print(
            f"{name:42} asked {np.mean(counts[True]):5.1f}   random {np.mean(counts[False]):5.1f}   saved "
            f"{saved.mean():4.1f} +- {saved.std(ddof=1) / given.draws**0.5:.1f}   ({given.draws} draws)",
            flush=True,
        )


if __name__ == "__main__":
    main()
