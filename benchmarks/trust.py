"""Whether trust can be trusted: how often the test fires on unrelated spaces, and if confidence is calibrated.

python benchmarks/trust.py level [--trials 500] [--data FOLDER]      the 5 % test on unrelated spaces
python benchmarks/trust.py pairs FOLDER                             evidence on real problems, into a CSV file
python benchmarks/trust.py fit                                       coefficients from the CSV's first part
python benchmarks/trust.py show                                      calibration on the CSV's second part, and the plot

FOLDER holds vision__DATASET__MODEL.npz (embeddings, labels) and language__DATASET__MODEL.npz (embeddings with an axis
for prompts) for the data sets tinyimagenet200 and cifar10. Classes and models of the two parts are different.
"""

import argparse
import csv
import itertools
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

import blindmatch as bm
from blindmatch.trust.alternatives import interchangeable
from blindmatch.trust.assessment import AssessmentPlan, Schedule, gather
from blindmatch.trust.confidence import FEATURES, PAIR, WHOLE, probability
from blindmatch.trust.null import from_background, rotated
from blindmatch.trust.search import Part
from blindmatch.trust.significance import significance

HERE = Path(__file__).parent
EVIDENCE = HERE / "trust_pairs.csv"
PLOT = HERE.parent / "docs" / "figures" / "trust.svg"
COEFFICIENTS = HERE.parent / "src" / "blindmatch" / "trust" / "calibration.json"
UNRELATED = ("disjoint", "noise")
COUNTS = {10: 12, 20: 8, 40: 2}  # problems of each kind and pair of models, by their size
# A confidence that is too high does more harm than one that is too low.
KIND_WEIGHTS = {"disjoint": 2.0, "noise": 2.0, "mixed": 2.0}
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
            task = bm.Task.of(*draw(rng, options.size))
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


def problems(folder, part):
    """Problems (kind, X, Y): subsets of half the classes, noise, and CIFAR-10 halves.

    The truth is the identity, but for the kinds "disjoint" and "noise", where no pair is right.
    """
    images, texts = PARTS[part]
    shuffled = np.random.default_rng(1).permutation(200)
    classes = shuffled[:100] if part == "fit" else shuffled[100:]
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
    task = bm.Task.of(X, Y[order])
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


def rows_of(part):
    with EVIDENCE.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["part"] == part]


def columns(rows):
    X = np.array([[float(row[name]) for name in FEATURES] for row in rows])
    return X, np.array([int(row["right"]) for row in rows])


def fit(options):
    """Maximum likelihood of (1 - p) x level(whole) x share(pair), with coefficients that have the expected sign."""
    from scipy.optimize import minimize

    rows = rows_of("fit")
    X, right = columns(rows)
    p, names, whole = X[:, FEATURES.index("p")], (*WHOLE, *PAIR), len(WHOLE)
    values = X[:, [FEATURES.index(name) for name in names]]
    middle, scale = values.mean(axis=0), values.std(axis=0)
    standard = (values - middle) / scale
    weights = problem_weights(rows)

    def chances(theta):
        level, share = (1 / (1 + np.exp(-logit)) for logit in logits(theta))
        return np.clip((1 - p) * level * share, 1e-6, 1 - 1e-6)

    def logits(theta):
        slopes = theta[2:]
        return theta[0] + standard[:, :whole] @ slopes[:whole], theta[1] + standard[:, whole:] @ slopes[whole:]

    def loss(theta):
        chance = chances(theta)
        likelihood = weights @ (right * np.log(chance) + (1 - right) * np.log(1 - chance))
        return options.strength * theta[2:] @ theta[2:] - likelihood

    signs = [-1 if name == "size" else 1 for name in names]
    limits = [(None, None)] * 2 + [(0, None) if sign > 0 else (None, 0) for sign in signs]
    theta = minimize(loss, [0.0, 0.0, *(0.3 * sign for sign in signs)], bounds=limits).x
    slopes = theta[2:] / scale
    level = {"intercept": theta[0] - slopes[:whole] @ middle[:whole], **dict(zip(WHOLE, slopes, strict=False))}
    pair = {"intercept": theta[1] - slopes[whole:] @ middle[whole:], **dict(zip(PAIR, slopes[whole:], strict=True))}
    fitted = {
        "made_by": "python benchmarks/trust.py pairs FOLDER && python benchmarks/trust.py fit",
        "fitted_on": f"{len(rows)} pairs of {len({row['problem'] for row in rows})} problems: "
        f"{', '.join(sorted({row['kind'] for row in rows}))}",
        "level": {name: round(float(value), 4) for name, value in level.items()},
        "pair": {name: round(float(value), 4) for name, value in pair.items()},
    }
    COEFFICIENTS.write_text(json.dumps(fitted, indent=2) + "\n")
    print(json.dumps(fitted, indent=2))


def problem_weights(rows):
    """Every problem of a kind counts the same, whatever its size; kinds in which few pairs are right count double."""
    kinds = np.array([row["kind"].split(",")[0] for row in rows])
    weights = np.array([1 / int(row["n"]) for row in rows])
    for kind in set(kinds):
        weights[kinds == kind] *= KIND_WEIGHTS.get(kind, 1.0) / weights[kinds == kind].sum()
    return weights / weights.sum()


# --- calibration on the held-out part


def calibration_error(confidence, right, bins=10):
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return sum(abs(confidence[place == b].sum() - right[place == b].sum()) for b in range(bins)) / len(right)


def auroc(confidence, right):
    from scipy.stats import rankdata

    ranks, positive = rankdata(confidence), int(right.sum())
    negative = len(right) - positive
    if not positive * negative:
        return np.nan
    return (ranks[right == 1].sum() - positive * (positive + 1) / 2) / (positive * negative)


def show(options):
    rows = rows_of("test")
    X, right = columns(rows)
    # As `assess` does: at most 1 / k in a group of k that are interchangeable.
    confidence = np.minimum(probability(X), [1 / int(row["tied"]) for row in rows])
    print("| held-out problems | pairs | right | mean confidence | ECE | AUROC | at 0.6 or more | of these right |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    kinds = np.array([row["kind"].split(",")[0] for row in rows])
    for kind in ["all", *dict.fromkeys(kinds.tolist())]:
        these = np.ones(len(rows), bool) if kind == "all" else kinds == kind
        c, r = confidence[these], right[these]
        figures = (r.mean(), c.mean(), calibration_error(c, r), auroc(c, r))
        high = f"{(c >= 0.6).sum()} | {r[c >= 0.6].mean():.2f}" if (c >= 0.6).any() else "0 | "
        print(f"| {kind} | {len(r)} | {' | '.join(f'{figure:.3f}' for figure in figures)} | {high} |")
    print("\n| min_confidence | pairs kept | right among them |\n| ---: | ---: | ---: |")
    for least in (0.0, 0.2, 0.5, 0.8, 0.9):
        kept = confidence >= least
        share = f"{right[kept].mean():.3f}" if kept.any() else "-"
        print(f"| {least} | {kept.sum()} of {len(kept)} | {share} |")
    fires(rows, right)
    plot(confidence, right)


def fires(rows, right):
    """How often the 5 % test fires, by the accuracy of the match."""
    problem = defaultdict(list)
    for row, ok in zip(rows, right, strict=True):
        problem[row["problem"]].append((ok, float(row["p"])))
    accuracy = np.array([np.mean([ok for ok, _ in pairs]) for pairs in problem.values()])
    p = np.array([pairs[0][1] for pairs in problem.values()])
    print("\n| accuracy of the match | problems | the 5 % test fires |\n| --- | ---: | ---: |")
    for low, high in ((0, 0.1), (0.1, 0.3), (0.3, 0.5), (0.5, 0.8), (0.8, 1.01)):
        these = (accuracy >= low) & (accuracy < high)
        share = f"{100 * np.mean(p[these] <= 0.05):.0f} %" if these.any() else "-"
        print(f"| {low:.0%} to {min(high, 1):.0%} | {these.sum()} | {share} |")


def plot(confidence, right, bins=10):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "blindmatch"
    from matplotlib import pyplot

    place = np.minimum((confidence * bins).astype(int), bins - 1)
    used = [b for b in range(bins) if (place == b).any()]
    x, y = ([values[place == b].mean() for b in used] for values in (confidence, right))
    error = [1.96 * np.sqrt(s * (1 - s) / (place == b).sum()) for s, b in zip(y, used, strict=True)]
    figure, (left, lower) = pyplot.subplots(2, 1, figsize=(5, 6), height_ratios=(3, 1), sharex=True)
    left.plot([0, 1], [0, 1], color="0.7")
    left.errorbar(x, y, yerr=error, marker="o", capsize=3)
    left.set_ylabel("share of pairs that are right")
    left.set_title("Confidence of pairs in held-out real problems", fontsize=10)
    lower.hist(confidence, bins=bins, range=(0, 1))
    lower.set(xlabel="confidence", ylabel="pairs")
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Date": None})
    print(f"\n{PLOT.relative_to(HERE.parent)} written")


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
    three.set_defaults(run=fit)
    commands.add_parser("show").set_defaults(run=show)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
