"""How often the test for structure in common fires on unrelated spaces, and how long an assessment takes.

python benchmarks/trust.py level [--trials 60] [--sizes 6 8 12 20]   the 5 % test on unrelated sets of 29 kinds
python benchmarks/trust.py power FOLDER [--trials 60] [--sizes 10 20] the same test on names in two language models
python benchmarks/trust.py time [--sizes 10 30 100 300]                CPU time of an assessment

FOLDER holds embeddings/. `trust_calibration.py` is about the confidence.
"""

import argparse
import itertools
import time
from functools import cache
from pathlib import Path

import numpy as np

import blindmatch as bm
from blindmatch.trust import significance
from blindmatch.trust.null import rotated
from blindmatch.trust.search import Part, search


def circle(n, d, rng):
    angle = 2 * np.pi * rng.random(n)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def torus(n, d, rng):
    return np.column_stack([circle(n, d, rng), circle(n, d, rng)])


def grid(n, d, rng):
    side = 4 if n <= 16 else 6
    return np.array(list(itertools.product(range(side), repeat=2)), float)[rng.choice(side**2, n, replace=False)]


def outlier(n, d, rng):
    points = rng.standard_normal((n, d))
    points[0] *= 10
    return points


def two_outliers(n, d, rng):
    points = rng.standard_normal((n, d))
    points[:2] *= 10
    return points


def sphere(n, d, rng):
    points = rng.standard_normal((n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def duplicates(n, d, rng):
    return rng.standard_normal((n // 2 + 1, d))[rng.integers(n // 2 + 1, size=n)]


def pairs_of(n, d, rng, apart, extra=0):
    """Two points around each of n / 2 centres."""
    centres = rng.standard_normal(((n + 1) // 2, d + extra))
    return (np.repeat(centres, 2, axis=0) + apart * rng.standard_normal((2 * len(centres), d + extra)))[:n]


def waves(n, d, rng):
    frequency, phase = rng.integers(1, 4, (n, 1)), rng.random((n, 1))
    return np.sin(2 * np.pi * (frequency * np.linspace(0, 1, 40) + phase)) + 0.1 * rng.standard_normal((n, 40))


def tree(n, d, rng):
    """Squared distances are the lengths of paths in a random tree."""
    points = np.zeros((n, n))
    for i in range(1, n):
        points[i] = points[rng.integers(i)]
        points[i, i] = 1
    return points


def spiral(n, d, rng):
    t = 4 * np.pi * rng.random(n)
    return np.column_stack([t * np.cos(t), t * np.sin(t)]) + 0.3 * rng.standard_normal((n, 2))


def clustered(n, d, rng):
    return 3 * rng.standard_normal((3, d))[rng.integers(3, size=n)] + 0.5 * rng.standard_normal((n, d))


KINDS = {
    "normal": lambda n, d, rng: rng.standard_normal((n, d)),
    "decaying spectrum": lambda n, d, rng: rng.standard_normal((n, 30)) / np.arange(1, 31),
    "circle": circle,
    "sphere": sphere,
    "torus": torus,
    "grid": grid,
    "binary": lambda n, d, rng: rng.integers(0, 2, (n, d + 3)).astype(float),
    "counts": lambda n, d, rng: rng.poisson(1.5, (n, d + 2)).astype(float),
    "ranks": lambda n, d, rng: np.array([rng.permutation(n) for _ in range(d)], float).T,
    "simplex": lambda n, d, rng: rng.dirichlet(np.full(d + 1, 0.3), n),
    "positive sphere": lambda n, d, rng: np.abs(sphere(n, d, rng)),
    "outlier": outlier,
    "two outliers": two_outliers,
    "scales": lambda n, d, rng: rng.standard_normal((n, d)) * np.exp(1.5 * rng.standard_normal((n, 1))),
    "exp": lambda n, d, rng: np.exp(2 * rng.standard_normal((n, d))),
    "t": lambda n, d, rng: rng.standard_t(3, (n, d)),
    "duplicates": duplicates,
    "line": lambda n, d, rng: rng.random((n, 1)) * np.ones((1, d)) + 0.01 * rng.standard_normal((n, d)),
    "clusters": clustered,
    "uniform": lambda n, d, rng: rng.random((n, d)),
    "categories": lambda n, d, rng: np.hstack([np.eye(3)[rng.integers(3, size=n)] for _ in range(d)]),
    "answers": lambda n, d, rng: np.clip(np.round(3 + rng.normal(size=(n, 1)) + rng.normal(size=(n, d + 4))), 1, 5),
    "correlated": lambda n, d, rng: rng.standard_normal((n, d + 4)) + 2 * rng.standard_normal((n, 1)),
    "walk": lambda n, d, rng: np.cumsum(rng.standard_normal((n, d)), axis=0),
    "spiral": spiral,
    "tree": tree,
    "near duplicates": lambda n, d, rng: pairs_of(n, d, rng, 0.05),
    "groups of two": lambda n, d, rng: pairs_of(n, d, rng, 0.17, 4),
    "waves": waves,
}


@cache
def language(folder, data, model):
    """The mean over all prompts, or one prompt of a model: "model:7"."""
    model, _, prompt = model.partition(":")
    with np.load(folder / "embeddings" / f"language__{data}__{model}.npz", allow_pickle=False) as file:
        found = file["embeddings"]
    return bm.prompt_means(found[:, [int(prompt)]] if prompt else found)


def tested(task, options, rng):
    """The test of a task, on one thread."""
    return significance.significance(task, rotated(task.points[1], rng), options.draws, Part(rng))


def power(options):
    """How often p <= 0.05 for random names in two language models, or with two prompts, by the share of right pairs."""
    words = ("all_minilm_l6_v2", "wordllama_256", "all_mpnet_base_v2", "glove_100d_wink")
    prompts = [(f"{one}:6", f"{other}:7") for one, other in itertools.product(words[:3], repeat=2)]
    models = [*itertools.combinations(words, 2), *prompts]
    print("| names | right: 0 to 20 % | 20 to 50 % | 50 to 100 % | all |\n| ---: | ---: | ---: | ---: | ---: |")
    for n in options.sizes:
        found = []
        for trial, (one, other) in zip(range(options.trials), itertools.cycle(models), strict=False):
            rng = np.random.default_rng([options.seed, n, trial])
            chosen = rng.permutation(200)[:n]
            task = bm.Task(*(language(options.data, "tinyimagenet200", model)[chosen] for model in (one, other)))
            right = np.mean(search(task.problem, Part(rng))[0] == np.arange(n))
            found.append((right, tested(task, options, rng).p_value <= 0.05 + 1e-12))
        groups = [[fires for right, fires in found if low <= right < high] for low, high in SHARES]
        cells = [f"{sum(group)} of {len(group)}" for group in groups]
        print(f"| {n} | {' | '.join(cells)} |", flush=True)


SHARES = (0, 0.2), (0.2, 0.5), (0.5, 1.1), (0, 1.1)


def level(options):
    """How often p <= 0.05 for two sets of a kind that have nothing in common."""
    print(
        f"| unrelated sets | {' | '.join(f'n = {n}' for n in options.sizes)} |\n| --- |{' ---: |' * len(options.sizes)}"
    )
    start, significance.ENOUGH = time.process_time(), options.hits
    for name in options.only or KINDS:
        shares = []
        for n in options.sizes:
            fires, known = 0, 0
            for trial in range(options.trials):
                rng = np.random.default_rng([options.seed, n, trial])
                dimensions = int(rng.integers(2, 6))
                task = bm.Task(*(KINDS[name](n, dimensions, rng) for _ in range(2)))
                found = tested(task, options, rng)
                known += found is not None
                fires += found is not None and found.p_value <= 0.05 + 1e-12
            shares.append(f"{100 * fires / known:.0f} %" if known else "none")
        print(f"| {name} | {' | '.join(shares)} |", flush=True)
    ended = f"at most {options.draws} draws or {options.hits} hits"
    print(f"{options.trials} sets of each size, {ended}, {time.process_time() - start:.0f} CPU s")


def duration(options):
    """CPU time of an assessment with the default options but for the proofs of regret."""
    for n in options.sizes:
        rng = np.random.default_rng(n)
        X = rng.standard_normal((n, 20)) / np.arange(1, 21) ** 0.5
        Y = X + 0.3 * rng.standard_normal(X.shape) * X.std()
        result = bm.match(X, Y[rng.permutation(n)], solver="tabu", rng=0, threads=1)
        start = time.process_time()
        trust = result.assess(rng=0, threads=1, regret=False, time_limit=None)
        seconds = time.process_time() - start
        print(f"{n} items: {seconds:.1f} CPU s, p {trust.p_value:.3f}, {trust.draws} draws", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("level")
    one.add_argument("--trials", type=int, default=60)
    one.add_argument("--sizes", type=int, nargs="+", default=[6, 8, 12, 20])
    one.add_argument("--draws", type=int, default=39)
    one.add_argument("--seed", type=int, default=2026, help="the null was chosen with other numbers")
    one.add_argument("--hits", type=int, default=significance.ENOUGH, help="the draws end when so many match as well")
    one.add_argument("--only", nargs="+", choices=KINDS)
    one.set_defaults(run=level)
    able = commands.add_parser("power")
    able.add_argument("data", type=Path)
    able.add_argument("--trials", type=int, default=60)
    able.add_argument("--sizes", type=int, nargs="+", default=[10, 20])
    able.add_argument("--draws", type=int, default=39)
    able.add_argument("--seed", type=int, default=2026)
    able.set_defaults(run=power)
    two = commands.add_parser("time")
    two.add_argument("--sizes", type=int, nargs="+", default=[10, 30, 100, 300])
    two.set_defaults(run=duration)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
