"""Whether trust can be trusted: how often the test fires on unrelated spaces, and if confidence is calibrated.

python benchmarks/trust.py level [--trials 500] [--data FOLDER]      the 5 % test on unrelated spaces
python benchmarks/trust.py pairs FOLDER                             evidence on real problems, into a CSV file
python benchmarks/trust.py fit [--only-with-prior]                   coefficients from the CSV's first part
python benchmarks/trust.py show                                      calibration on the CSV's second part, and the plot
python benchmarks/trust.py prior                                     the same with stated priors, right and wrong
python benchmarks/trust.py known FOLDER                              priors that are counted on known pairs
python benchmarks/trust.py ceiling                                   how well any function of the features could do

FOLDER holds vision__DATASET__MODEL.npz (embeddings, labels) and language__DATASET__MODEL.npz (embeddings with an axis
for prompts) for the data sets tinyimagenet200 and cifar10. Classes and models of the two parts are different.
"""

import argparse
import csv
import itertools
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from trust_calibration import EVIDENCE, ceiling, fit, kinds_of, rows_of, show
from trust_prior import HEAD, line, prior

import blindmatch as bm
from blindmatch.trust.alternatives import interchangeable
from blindmatch.trust.assessment import AssessmentPlan, Schedule, gather
from blindmatch.trust.confidence import FEATURES
from blindmatch.trust.null import from_background, rotated
from blindmatch.trust.prior import Count, KnownPairs
from blindmatch.trust.search import Part, search
from blindmatch.trust.significance import significance

UNRELATED = ("disjoint", "noise")
COUNTS = {10: 12, 20: 8, 40: 2}  # problems of each kind and pair of models, by their size
PARTS = {
    "fit": ("resnet50_keras", ("all_minilm_l6_v2", "wordllama_256")),
    "test": ("efficientnet_lite0", ("all_mpnet_base_v2", "glove_100d_wink")),
}


# --- the 5 % test on unrelated spaces


def normal(rng, n):
    return rng.standard_normal((n, 32)), rng.standard_normal((n, 64))


def decaying(rng, n):
    return rng.standard_normal((n, 32)) / np.arange(1, 33) ** 0.7, rng.standard_normal((n, 64)) / np.arange(1, 65)


def clustered(rng, n, k=4, spread=0.5):
    return tuple(
        rng.standard_normal((k, d))[rng.integers(k, size=n)] + spread * rng.standard_normal((n, d)) for d in (32, 64)
    )


def tight(rng, n):
    return clustered(rng, n, 3, 0.25)


def heavy_tailed(rng, n):
    return rng.standard_t(3, (n, 16)), rng.standard_t(3, (n, 16))


def real(folder):
    """Images of some classes and names of others, so that no item has a partner."""
    X = vision(folder, "tinyimagenet200", "efficientnet_lite0")
    Y = language(folder, "tinyimagenet200", "all_minilm_l6_v2")

    def draw(rng, n):
        chosen = rng.choice(len(X), 2 * n, replace=False)
        return X[chosen[:n]], Y[chosen[n:]]

    return draw, Y


def level(options):
    generators = {
        "normal": (normal, None),
        "normal, decaying spectrum": (decaying, None),
        "4 clusters": (clustered, None),
        "3 tight clusters": (tight, None),
        "heavy tails (t, 3 degrees)": (heavy_tailed, None),
    }
    if options.data is not None:
        draw, background = real(options.data)
        generators["real, disjoint classes"] = draw, None
        generators["real, null from a background"] = draw, background
    if options.only is not None:
        generators = {name: generators[name] for name in options.only}
    print(f"{options.trials} trials each, n = {options.size}, at most {options.draws} draws")
    print("| unrelated spaces | fires at 5 % | fires at 10 % | mean p | CPU s |\n| --- | ---: | ---: | ---: | ---: |")
    for name, (draw, background) in generators.items():
        start, p = time.process_time(), []
        for trial in range(options.trials):
            rng = np.random.default_rng([options.seed, options.size, trial])
            task = bm.Task(*draw(rng, options.size))
            nulls = rotated(task.points[1], rng) if background is None else [from_background(background, options.size)]
            p.append(significance(task, nulls, options.draws, Part(rng)).p_value)
        p, seconds = np.array(p), time.process_time() - start
        rates = " | ".join(f"{100 * np.mean(p <= alpha + 1e-12):.1f} %" for alpha in (0.05, 0.1))
        print(f"| {name} | {rates} | {p.mean():.2f} | {seconds:.0f} |", flush=True)


# --- evidence on real problems


def vision(folder, data, model, **options):
    with np.load(folder / f"vision__{data}__{model}.npz", allow_pickle=False) as file:
        return bm.class_means(file["embeddings"], file["labels"], **options)[1]


def language(folder, data, model):
    with np.load(folder / f"language__{data}__{model}.npz", allow_pickle=False) as file:
        return bm.prompt_means(file["embeddings"])


def problems(folder, part, half=None):
    """Problems (kind, X, Y): subsets of half the classes, noise, and CIFAR-10 halves.

    The truth is the identity, but for the kinds "disjoint" and "noise", where no pair is right. The two parts have
    different classes, unless `half` names the part whose classes are used.
    """
    images, texts = PARTS[part]
    classes = np.random.default_rng(1).permutation(200).reshape(2, 100)[int((half or part) == "test")]
    seen = vision(folder, "tinyimagenet200", images)[classes]
    said = [language(folder, "tinyimagenet200", model)[classes] for model in texts]
    sides = {f"{images} x {texts[0]}": (seen, said[0]), f"{images} x {texts[1]}": (seen, said[1])}
    sides[f"{texts[0]} x {texts[1]}"] = tuple(said)
    for size, count in COUNTS.items():
        for (place, (name, (X, Y))), at in itertools.product(enumerate(sides.items()), range(count)):
            rng = np.random.default_rng([7, part == "fit", size, at, place])
            some = rng.permutation(100)
            best = some[:50][bm.best_subsets(X[some[:50]], Y[some[:50]], size=size, k=1, rng=rng).subsets[0]]
            half = np.concatenate([best[: size // 2], some[50 : 50 + size - size // 2]])
            yield f"random, {name}", X[some[:size]], Y[some[:size]]
            yield f"best, {name}", X[best], Y[best]
            yield f"mixed, {name}", X[half], Y[half]
            yield f"disjoint, {name}", X[some[:size]], Y[some[50 : 50 + size]]
        for at in range(count):
            rng = np.random.default_rng([9, part == "fit", size, at])
            for name, draw in (("decaying", decaying), ("heavy", heavy_tailed), ("clusters", clustered)):
                yield f"noise, {name}", *draw(rng, size)
    if part == "test":
        for model, seed in itertools.product(texts, range(10)):
            X = vision(folder, "cifar10", images, fraction=0.5, rng=seed)
            yield f"cifar10, {images} x {model}", X, language(folder, "cifar10", model)


def evidence_of(kind, X, Y, rng):
    """A row for each pair of one problem: n, tied, the features, right."""
    n, order = len(X), rng.permutation(len(Y))
    task = bm.Task(X, Y[order])
    match = bm.match(task, solver="tabu", rng=rng, threads=1).permutation
    found = gather(match, task, AssessmentPlan(), Schedule(rng))
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


def pairs(options):
    start = time.process_time()
    with EVIDENCE.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["part", "kind", "problem", "n", "tied", *FEATURES, "right"])
        for part in PARTS:
            for index, problem in enumerate(problems(options.data, part)):
                rows = evidence_of(*problem, np.random.default_rng([index, part == "fit"]))
                table.writerows([part, problem[0], index, *row] for row in rows)
                file.flush()
                right = np.mean([row[-1] for row in rows])
                print(f"{part} {index} {problem[0]}: {len(rows)} pairs, {right:.2f} right", flush=True)
    print(f"{time.process_time() - start:.0f} CPU s")


# --- priors that are counted on known pairs


def known(options):
    """Random classes, with a prior counted on other classes of the same two models, for all pairs of models."""
    folder, rows, counted = options.data, [], []
    models = {name: vision(folder, "tinyimagenet200", name) for name in ("resnet50_keras", "efficientnet_lite0")}
    words = ("all_minilm_l6_v2", "wordllama_256", "all_mpnet_base_v2", "glove_100d_wink")
    models |= {name: language(folder, "tinyimagenet200", name) for name in words}
    for (one, other), n, split in itertools.product(itertools.combinations(models, 2), (10, 20), range(2)):
        X, Y = models[one], models[other]
        rng = np.random.default_rng([5, split])
        seen, rest = np.split(rng.permutation(200), 2)
        task = bm.Task(X[seen[:n]], Y[seen[:n]])
        share = KnownPairs.of((X[seen], Y[seen]), task).count(task, Part(rng)).share
        for at in range(4):
            some, problem = rng.choice(rest, n, replace=False), len(rows)
            for size, tied, *values in evidence_of("random", X[some], Y[some], np.random.default_rng([split, at, n])):
                named = dict(zip((*FEATURES, "right"), values, strict=True))
                rows.append({"n": size, "tied": tied, "problem": problem, **named})
                counted.append(share)
        print(f"{one} x {other}, {n} classes: {share:.2f}", flush=True)
    counted = np.array(counted)
    groups = {"all": counted > 0, "share above 1/3": counted > 1 / 3, "share below 1/3": counted < 1 / 3}
    groups |= {f"{n} classes": np.array([row["n"] == n for row in rows]) for n in (10, 20)}
    print(HEAD)
    for name, these in groups.items():
        chosen = [rows[i] for i in np.flatnonzero(these)]
        line(name, "none", chosen, None)
        line(name, "counted", chosen, counted[these])
    known_by_kind(folder)


def known_by_kind(folder):
    """The held-out problems of `pairs`, with a prior counted on other classes of the same models, kind and size."""
    right = defaultdict(list)
    for kind, X, Y in problems(folder, "test", half="fit"):
        rng = np.random.default_rng([8, len(X)])
        order = rng.permutation(len(Y))
        found, _ = search(bm.Task(X, Y[order]).problem, Part(rng))
        unrelated = kind.split(",")[0] in UNRELATED
        right[kind, str(len(X))] += [int(hit and not unrelated) for hit in order[found] == np.arange(len(X))]
    shares = {key: Count(sum(hits), len(hits)).share for key, hits in right.items()}
    rows = [row for row in rows_of("test") if not row["kind"].startswith("cifar10")]  # all of its ten classes are used
    kinds = kinds_of(rows)
    for kind in dict.fromkeys(kinds.tolist()):
        chosen = [row for row, its in zip(rows, kinds, strict=True) if its == kind]
        line(kind, "none", chosen, None)
        line(kind, "counted", chosen, np.array([shares[row["kind"], row["n"]] for row in chosen]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("level")
    one.add_argument("--trials", type=int, default=500)
    one.add_argument("--size", type=int, default=10)
    one.add_argument("--draws", type=int, default=99)
    one.add_argument("--seed", type=int, default=2026, help="the null was chosen with other numbers")
    one.add_argument("--data", type=Path)
    one.add_argument("--only", nargs="+", help="names of unrelated spaces, as the table has them")
    one.set_defaults(run=level)
    two = commands.add_parser("pairs")
    two.add_argument("data", type=Path)
    two.set_defaults(run=pairs)
    three = commands.add_parser("fit")
    three.add_argument("--strength", type=float, default=1e-3, help="of the penalty on large coefficients")
    three.add_argument("--only-with-prior", action="store_true", help="keep the coefficients without a prior")
    three.set_defaults(run=fit)
    commands.add_parser("show").set_defaults(run=show)
    commands.add_parser("prior").set_defaults(run=prior)
    four = commands.add_parser("known")
    four.add_argument("data", type=Path)
    four.set_defaults(run=known)
    commands.add_parser("ceiling").set_defaults(run=ceiling)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
