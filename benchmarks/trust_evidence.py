"""Problems whose truth is known, of 5 to 300 items and with 0 to 100 % right: what the confidence is fitted to.

The names in MiniLM and mpnet, and in MiniLM and GloVe, are not among them: they are kept for checks from outside.
"""

import csv
import time
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from trust import KINDS, language

import blindmatch as bm
from blindmatch.machine import one_blas_thread
from blindmatch.solvers.tabu import Tabu
from blindmatch.trust.assessment import AssessmentPlan, Schedule, gather
from blindmatch.trust.confidence import FEATURES
from blindmatch.trust.search import Part, quick_search

EVIDENCE = Path(__file__).parent / "trust_pairs.csv"
OF_PAIRS, OF_MATCH = ("stability", "regret"), ("agreement", "prediction", "p")
HEAD = ("kind", "name", "problem", "n", "share", "counted", *OF_MATCH, *OF_PAIRS, "tied", "right")
MOST_PAIRS = 25  # of a match that are kept, at random
MINI, MPNET, GLOVE, LLAMA = "all_minilm_l6_v2", "all_mpnet_base_v2", "glove_100d_wink", "wordllama_256"
IMAGES = ("resnet50_keras", "efficientnet_lite0")
# Two models, or two prompts of a model (6: the bare name, 7: with its definition).
NAMES = (
    (LLAMA, f"{LLAMA}:7"),
    (f"{LLAMA}:6", f"{LLAMA}:7"),
    (f"{MINI}:7", f"{LLAMA}:7"),
    (f"{MINI}:6", f"{MINI}:7"),
    (MINI, LLAMA),
    (f"{MPNET}:6", f"{MPNET}:7"),
    (f"{MPNET}:7", f"{MPNET}:0"),
    (MPNET, GLOVE),
    (f"{MPNET}:7", f"{LLAMA}:7"),
    (MPNET, LLAMA),
    (GLOVE, LLAMA),
    (f"{MINI}:0", f"{MINI}:3"),
)
TABLES = ("wine", "breast_cancer", "diabetes", "digits", "iris")
CELLS = {
    "scGEM": ("scGEM_expression.txt", "scGEM_methylation.txt"),
    "SNARE": ("SNAREseq_rna_feat.npy", "SNAREseq_atac_feat.npy"),
}


class Problem(NamedTuple):
    """`draw(rng)` gives both sides, item i with item i; if they are not related, no pair is right."""

    kind: str
    name: str
    draw: object
    related: bool = True


@cache
def vision(folder, data, model):
    with np.load(folder / "embeddings" / f"vision__{data}__{model}.npz", allow_pickle=False) as file:
        return file["embeddings"], file["labels"]


@cache
def table(name):
    """Every column to unit variance."""
    from sklearn import datasets

    values = getattr(datasets, f"load_{name}")().data
    return standard(values[:, values.std(axis=0) > 0])


def standard(values):
    return (values - values.mean(axis=0)) / values.std(axis=0)


@cache
def cells(folder, name):
    sides = []
    for file in CELLS[name]:
        path = folder / "cells" / file
        side = np.load(path) if path.suffix == ".npy" else np.loadtxt(path)
        sides.append(side / np.linalg.norm(side, axis=1, keepdims=True))
    return tuple(sides)


def some(sides, n):
    """A problem of n random rows of both sides."""
    X, Y = sides

    def draw(rng):
        rows = rng.permutation(len(X))[:n]
        return X[rows], Y[rows]

    return draw


def disjoint(sides, n):
    def draw(rng):
        rows = rng.permutation(len(sides[0]))
        return sides[0][rows[:n]], sides[1][rows[n : 2 * n]]

    return draw


def best(sides, n):
    """The rows whose relations agree best."""

    def draw(rng):
        rows = rng.permutation(len(sides[0]))[: 3 * n]
        rows = rows[bm.best_subsets(*(side[rows] for side in sides), size=n, k=1, rng=rng).subsets[0]]
        return tuple(side[rows] for side in sides)

    return draw


def two_parts(values, n, least, most):
    """Random parts of the columns, which overlap if they are more than a half; in the second there is noise then."""

    def draw(rng):
        rows, columns = rng.permutation(len(values))[:n], rng.permutation(values.shape[1])
        count = max(1, int(len(columns) * rng.uniform(least, most)))
        parts = values[np.ix_(rows, columns[:count])], values[np.ix_(rows, columns[-count:])]
        noise = 10 ** rng.uniform(-2, -0.3) * (most > 0.5) * parts[1].std()
        return parts[0], parts[1] + noise * rng.standard_normal(parts[1].shape)

    return draw


def cifar(folder, model, words):
    embeddings, labels = vision(folder, "cifar10", model)
    Y = language(folder, "cifar10", words)
    return lambda rng: (bm.class_means(embeddings, labels, fraction=0.5, rng=rng)[1], Y)


def copies(X, n):
    """The same cells measured twice, with noise."""

    def draw(rng):
        chosen = X[rng.permutation(len(X))[:n]]
        noise = rng.choice([0.3, 0.7, 1.2]) * chosen.std(axis=0)
        return chosen, chosen + noise * rng.standard_normal(chosen.shape)

    return draw


def cloud(n, clustered):
    """A cloud and its rotated, noisy copy."""

    def draw(rng):
        rank, noise = int(rng.integers(2, 12)), 10 ** rng.uniform(-1.3, 0.3)
        points = rng.standard_normal((n, rank))
        if clustered:
            points = 0.4 * points + rng.standard_normal((4, rank))[rng.integers(4, size=n)]
        other = points @ rng.standard_normal((rank, 24)) / np.sqrt(24)
        return points, other + noise * rng.standard_normal(other.shape) * other.std()

    return draw


def swiss_roll(n):
    def draw(rng):
        angle, height = rng.random((2, n))
        X = np.column_stack([2 * angle * np.cos(7 * angle), height, 2 * angle * np.sin(7 * angle)])
        return X, X + 10 ** rng.uniform(-2.5, 0) * rng.standard_normal(X.shape)

    return draw


def graph(n):
    """The lengths of shortest paths in a random geometric graph, and in a copy that lost and gained some edges."""
    from scipy.sparse.csgraph import shortest_path
    from scipy.spatial.distance import cdist

    def draw(rng):
        points = rng.random((n, 2))
        apart = cdist(points, points)
        edges = apart < np.quantile(apart, min(0.9, 5 / n))
        share, sides = rng.uniform(0, 0.2), []
        for _ in range(2):
            flips = np.triu(rng.random((n, n)) < share * edges + share * edges.mean() * ~edges, 1)
            lengths = shortest_path(edges ^ (flips | flips.T), unweighted=True)
            sides.append(np.where(np.isfinite(lengths), lengths, 2 * lengths[np.isfinite(lengths)].max()))
        return sides

    return draw


def unrelated(kind, n):
    def draw(rng):
        dimensions = int(rng.integers(2, 6))
        return KINDS[kind](n, dimensions, rng), KINDS[kind](n, dimensions, rng)

    return draw


def problems(folder):
    """All problems; the kind is what is left out together when a fit is judged."""
    tiny = "tinyimagenet200"
    words = {name: language(folder, tiny, name) for name in {*(one for pair in NAMES for one in pair), MINI, MPNET}}
    means = {name: bm.class_means(*vision(folder, tiny, name))[1] for name in IMAGES}
    for (one, other), n in product(NAMES, (6, 8, 10, 12, 15, 20, 30, 40, 60, 100)):
        yield Problem("names", f"{one} x {other}", some((words[one], words[other]), n))
    for name, n in product((MINI, MPNET, LLAMA, GLOVE), (6, 9, 14, 22, 35, 70)):
        yield Problem("names", f"dimensions of {name}", two_parts(words[name], n, 0.1, 0.5))
    for seen, name in product(IMAGES, (MINI, MPNET, GLOVE, LLAMA)):
        sides = means[seen], words[name]
        for n in (10, 20, 40):
            yield Problem("images", f"random, {seen} x {name}", some(sides, n))
        for n in (8, 12, 20):
            yield Problem("images", f"best, {seen} x {name}", best(sides, n))
        for _ in range(2):
            yield Problem("images", f"cifar10, {seen} x {name}", cifar(folder, seen, name))
        for n in (10, 25):
            yield Problem("unrelated", f"disjoint, {seen} x {name}", disjoint(sides, n), False)
    for n in (8, 12, 20, 40, 80):
        yield Problem("images", "two models", some(tuple(means.values()), n))
        yield Problem("unrelated", "disjoint names", disjoint((words[MPNET], words[LLAMA]), n), False)
    for name, n in product(TABLES, (6, 10, 16, 25, 50, 100)):
        yield Problem("tables", f"halves of {name}", two_parts(table(name), n, 0.5, 0.5))
        for _ in range(1 + (n < 50)):
            yield Problem("tables", f"overlapping parts of {name}", two_parts(table(name), n, 0.6, 0.9))
    with np.load(Path(bm.__file__).parent / "data" / "countries.npz", allow_pickle=False) as file:
        countries = standard(file["source"]), standard(file["target"])
    for n in (6, 10, 15, 20, 25):
        yield Problem("tables", "countries", some(countries, n))
    for name, n in product(CELLS, (8, 15, 30, 60, 120)):
        yield Problem("cells", name, some(cells(folder, name), n))
        yield Problem("cells", f"copies of {name}", copies(cells(folder, name)[0], n))
    for n, count in {5: 4, 6: 4, 8: 4, 10: 4, 12: 4, 15: 4, 20: 4, 30: 4, 40: 2, 60: 2, 100: 2, 200: 1, 300: 1}.items():
        for _ in range(count):
            yield Problem("clouds", "cloud", cloud(n, False))
            yield Problem("clouds", "clusters", cloud(n, True))
        for _ in range(count // 2):
            yield Problem("clouds", "swiss roll", swiss_roll(n))
    for n in (6, 8, 10, 15, 20, 30, 50, 80):
        for _ in range(2):
            yield Problem("graphs", "geometric", graph(n))
    for name in KINDS:
        for n in (6, 10, 20, 30):
            few = min(n, 18) if name == "grid" else n  # two nearly full grids are alike
            yield Problem("unrelated", name, unrelated(name, few), False)


def matched(problem, rng):
    """A task with its targets in another order, and that order."""
    X, Y = problem.draw(rng)
    order = rng.permutation(len(Y))
    task = bm.Task(kernels=(X, Y[np.ix_(order, order)])) if problem.kind == "graphs" else bm.Task(X, Y[order])
    return task, order


def counted(problem, sets, rng):
    """The share of right pairs in other matches like this one, as `prior=` counts it."""
    right = pairs = 0
    for _ in range(sets):
        task, order = matched(problem, rng)
        found = quick_search(task.problem, Part(rng))[0]
        right += problem.related * int((order[found] == np.arange(len(order))).sum())
        pairs += len(order)
    return (right + 0.5) / (pairs + 1)


def evidence_of(problem, rng, draws):
    """The row of one problem, without its number."""
    task, order = matched(problem, rng)
    n = len(order)
    effort = 500 * n if n <= 100 else 5_000_000 // n
    match = bm.match(task, solver=Tabu(iterations=effort, streams=2 if n < 60 else 4), rng=rng, threads=1).permutation
    right = (order[match] == np.arange(n)) & problem.related
    found = gather(match, task, AssessmentPlan(draws=draws, resamples=20), Schedule(rng))
    if found.features is None:
        return None
    tied = found.found.choices(1e-9 * task.problem.scale)
    kept = np.sort(rng.permutation(n)[:MOST_PAIRS])
    values = dict(zip(FEATURES, found.features.T, strict=True))
    lists = [values[name][kept].round(3).tolist() for name in OF_PAIRS] + [tied[kept].tolist(), right[kept].astype(int)]
    share = counted(problem, 8 if n <= 40 else 4 if n <= 100 else 2, rng)
    whole = [
        n,
        round(float(right.mean()), 4),
        round(share, 4),
        *(round(float(values[name][0]), 3) for name in OF_MATCH),
    ]
    return [*whole, *(" ".join(f"{one:g}" for one in values) for values in lists)]


def measure(options):
    """Rows of the problems that are not in the file yet, in an order in which any part is a fair sample."""
    start, known = time.process_time(), set()
    if EVIDENCE.exists():
        with EVIDENCE.open(newline="") as file:
            known = {int(row["problem"]) for row in csv.DictReader(file)}
    todo = list(problems(options.data))
    with EVIDENCE.open("a", newline="") as file, one_blas_thread():
        rows = csv.writer(file, lineterminator="\n")
        if not known:
            rows.writerow(HEAD)
        for index in np.random.default_rng(1).permutation(len(todo)):
            if index in known:
                continue
            if time.process_time() - start > options.seconds:
                break
            problem = todo[index]
            row = evidence_of(problem, np.random.default_rng([2, index]), options.draws)
            if row is not None:
                rows.writerow([problem.kind, problem.name, index, *row])
                file.flush()
                seconds = time.process_time() - start
                print(
                    f"{index} {problem.kind}, {problem.name}: {row[0]} items, {row[1]} right, {seconds:.0f} CPU s",
                    flush=True,
                )
