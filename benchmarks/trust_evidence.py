"""Problems whose truth is known, from 5 to 100 items and from 0 to 100 % right: what the confidence is fitted to.

The part "test" has other models, other tables, other kinds of clouds and other cells than the part "fit". Neither has
the names in MiniLM and mpnet, or in MiniLM and GloVe: those pairs are kept for checks from outside.
"""

import csv
import itertools
import time
from pathlib import Path

import numpy as np

import blindmatch as bm
from blindmatch.solvers.tabu import Tabu
from blindmatch.trust.alternatives import interchangeable
from blindmatch.trust.assessment import AssessmentPlan, Schedule, gather
from blindmatch.trust.confidence import FEATURES

UNRELATED = ("disjoint", "noise")
IMAGES = {"fit": "resnet50_keras", "test": "efficientnet_lite0"}
WORDS = {"fit": ("all_minilm_l6_v2", "wordllama_256"), "test": ("all_mpnet_base_v2", "glove_100d_wink")}
# Two models, or two prompts of a model (6: the bare name, 7: with its definition), matched at 8 to 100 names.
NAMES = {
    "fit": (
        ("wordllama_256", "wordllama_256:7"),
        ("wordllama_256:6", "wordllama_256:7"),
        ("all_minilm_l6_v2:7", "wordllama_256:7"),
        ("all_minilm_l6_v2:6", "all_minilm_l6_v2:7"),
        ("all_minilm_l6_v2", "wordllama_256"),
    ),
    "test": (
        ("all_mpnet_base_v2:6", "all_mpnet_base_v2:7"),
        ("all_mpnet_base_v2:7", "all_mpnet_base_v2:0"),
        ("all_mpnet_base_v2", "glove_100d_wink"),
        ("all_mpnet_base_v2:7", "wordllama_256:7"),
    ),
}
TABLES = {"fit": ("wine", "breast_cancer"), "test": ("diabetes", "digits", "countries")}
CELLS = {
    "fit": ("scGEM_expression.txt", "scGEM_methylation.txt"),
    "test": ("SNAREseq_rna_feat.npy", "SNAREseq_atac_feat.npy"),
}


def vision(folder, data, model, **options):
    with np.load(folder / "embeddings" / f"vision__{data}__{model}.npz", allow_pickle=False) as file:
        return bm.class_means(file["embeddings"], file["labels"], **options)[1]


def language(folder, data, model):
    """The mean over all prompts, or one prompt of a model: "model:7"."""
    model, _, prompt = model.partition(":")
    with np.load(folder / "embeddings" / f"language__{data}__{model}.npz", allow_pickle=False) as file:
        found = file["embeddings"]
    return bm.prompt_means(found[:, [int(prompt)]] if prompt else found)


def table(name):
    """Both halves of the columns, each to unit variance."""
    if name == "countries":
        with np.load(Path(bm.__file__).parent / "data" / "countries.npz", allow_pickle=False) as file:
            return file["source"], file["target"]
    from sklearn import datasets

    values = getattr(datasets, f"load_{name}")().data
    values = values[:, values.std(axis=0) > 0]
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    return values[:, ::2], values[:, 1::2]


def cells(folder, part):
    sides = []
    for name in CELLS[part]:
        path = folder / "cells" / name
        side = np.load(path) if path.suffix == ".npy" else np.loadtxt(path)
        sides.append(side / np.linalg.norm(side, axis=1, keepdims=True))
    return tuple(sides)


def cloud(rng, n, part):
    """A cloud and its rotated, noisy copy; in the part "test" it has clusters."""
    rank, noise = int(rng.integers(2, 12)), 10 ** rng.uniform(-1.3, 0.3)
    points = rng.standard_normal((n, rank))
    if part == "test":
        points = 0.4 * points + rng.standard_normal((4, rank))[rng.integers(4, size=n)]
    other = points @ rng.standard_normal((rank, 24)) / np.sqrt(24)
    return points, other + noise * rng.standard_normal(other.shape) * other.std()


def graph(rng, n):
    """The lengths of shortest paths in a random geometric graph, and in a copy that lost and gained some edges."""
    from scipy.sparse.csgraph import shortest_path
    from scipy.spatial.distance import cdist

    points = rng.random((n, 2))
    apart = cdist(points, points)
    edges = apart < np.quantile(apart, min(0.9, 5 / n))
    share, sides = rng.uniform(0, 0.2), []
    for _ in range(2):
        flips = np.triu(rng.random((n, n)) < share * edges + share * edges.mean() * ~edges, 1)
        lengths = shortest_path(edges ^ (flips | flips.T), unweighted=True)
        sides.append(np.where(np.isfinite(lengths), lengths, 2 * lengths[np.isfinite(lengths)].max()))
    return sides


def noise(rng, n, part):
    """Two sets with nothing in common."""
    if part == "fit":
        kinds = (
            lambda d: rng.standard_normal((n, d)),
            lambda d: rng.standard_normal((n, 4 * d)) / np.arange(1, 4 * d + 1) ** 0.7,
            lambda d: rng.standard_normal((4, d))[rng.integers(4, size=n)] + 0.4 * rng.standard_normal((n, d)),
        )
    else:
        kinds = (
            lambda d: rng.standard_t(3, (n, d)),
            lambda d: rng.integers(0, 2, (n, d + 3)).astype(float),
            lambda d: rng.standard_normal((n, 40 * d)) / np.arange(1, 40 * d + 1),
        )
    draw = kinds[rng.integers(3)]
    return draw(int(rng.integers(2, 12))), draw(int(rng.integers(2, 12)))


def problems(folder, part):
    """Problems (kind, X, Y) whose truth is the identity; of "disjoint" and "noise" no pair is right."""
    counts = {8: 4, 15: 4, 30: 2, 60: 1, 100: 1}
    rng = np.random.default_rng([3, part == "fit"])

    def some(size, n):
        return rng.permutation(size)[:n]

    for at, (one, other) in enumerate(NAMES[part]):
        X, Y = (language(folder, "tinyimagenet200", model) for model in (one, other))
        for n, count in counts.items():
            for _ in range(count if n < 100 or at < 2 else 0):
                chosen = some(200, n)
                yield f"names, {one} x {other}", X[chosen], Y[chosen]
    seen = vision(folder, "tinyimagenet200", IMAGES[part])
    for model in WORDS[part]:
        Y = language(folder, "tinyimagenet200", model)
        for n, _ in itertools.product((10, 20), range(3)):
            chosen, others = np.split(some(200, 4 * n), [2 * n])
            best = chosen[bm.best_subsets(seen[chosen], Y[chosen], size=n, k=1, rng=rng).subsets[0]]
            yield f"images, random, {model}", seen[chosen[:n]], Y[chosen[:n]]
            yield f"images, best, {model}", seen[best], Y[best]
            yield f"disjoint, {model}", seen[chosen[:n]], Y[others[:n]]
        if part == "test":
            for seed in range(3):
                X = vision(folder, "cifar10", IMAGES[part], fraction=0.5, rng=seed)
                yield f"images, cifar10, {model}", X, language(folder, "cifar10", model)
    for name in TABLES[part]:
        X, Y = table(name)
        for n, count in {6: 3, 12: 3, 25: 2, 50: 1, 90: 1}.items():
            for _ in range(count if n <= len(X) else 0):
                chosen = some(len(X), n)
                yield f"tables, {name}", X[chosen], Y[chosen]
    X, Y = cells(folder, part)
    for n, count in {10: 2, 20: 2, 40: 1}.items():
        for _ in range(count):
            chosen = some(len(X), n)
            yield "cells", X[chosen], Y[chosen]
    for n, count in {5: 6, 10: 8, 20: 6, 40: 3, 80: 1}.items():
        for _ in range(count):
            yield "clouds", *cloud(rng, n, part)
            yield "noise", *noise(rng, n, part)
        for _ in range(count // 2 if part == "test" else 0):
            yield "graphs", *graph(rng, n)


def evidence_of(kind, X, Y, rng):
    """A row for each pair of one problem: n, tied, the features, right."""
    n, order = len(X), rng.permutation(len(Y))
    task = bm.Task(kernels=(X, Y[np.ix_(order, order)])) if kind == "graphs" else bm.Task(X, Y[order])
    match = bm.match(task, solver=Tabu(iterations=500 * n, streams=2 if n < 60 else 4), rng=rng, threads=1).permutation
    found = gather(match, task, AssessmentPlan(draws=19, resamples=20), Schedule(rng))
    if found.features is None:
        return []
    groups = interchangeable(found.found, found.rows, 1e-9 * task.problem.scale)
    tied = {i: len(group) for group in groups for i in group}
    return [
        [
            n,
            tied.get(i, 1),
            *(f"{value:.4g}" for value in row),
            int(order[match[i]] == i and kind.split(",")[0] not in UNRELATED),
        ]
        for i, row in enumerate(found.features)
    ]


def write_evidence(folder, part, path):
    start = time.process_time()
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["part", "kind", "problem", "n", "tied", *FEATURES, "right"])
        for index, (kind, X, Y) in enumerate(problems(folder, part)):
            found = evidence_of(kind, X, Y, np.random.default_rng([index, part == "fit"]))
            rows.writerows([part, kind, index, *row] for row in found)
            file.flush()
            right = np.mean([row[-1] for row in found]) if found else np.nan
            print(f"{part} {index} {kind}: {len(found)} pairs, {right:.2f} right", flush=True)
    print(f"{time.process_time() - start:.0f} CPU s")
