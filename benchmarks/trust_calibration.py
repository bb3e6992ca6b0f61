"""The second half of ``trust.py``: fit the confidence to the evidence, and check it on held-out problems."""

import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from blindmatch.trust.confidence import FEATURES, PAIR, WHOLE, probability

HERE = Path(__file__).parent
EVIDENCE = HERE / "trust_pairs.csv"
PLOT = HERE.parent / "docs" / "figures" / "trust.svg"
COEFFICIENTS = HERE.parent / "src" / "blindmatch" / "trust" / "calibration.json"
# A confidence that is too high does more harm than one that is too low.
KIND_WEIGHTS = {"disjoint": 3.0, "noise": 3.0}


def rows_of(part):
    with EVIDENCE.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["part"] == part]


def columns(rows):
    X = np.array([[float(row[name]) for name in FEATURES] for row in rows])
    return X, np.array([int(row["right"]) for row in rows])


def fit(options):
    """Coefficients of the confidence without a prior, and of that with the prior of each kind of problem."""
    rows = rows_of("fit")
    problems = len({row["problem"] for row in rows})
    about = f"{len(rows)} pairs of {problems} problems: {', '.join(sorted({row['kind'] for row in rows}))}"
    made_by = "python benchmarks/trust.py pairs FOLDER && python benchmarks/trust.py fit"
    priors = priors_of(rows)
    odds = np.array([log_odds(priors[kind]) for kind in kinds_of(rows)])
    fitted = json.loads(COEFFICIENTS.read_text())
    if not options.only_with_prior:
        fitted = {"made_by": made_by, "fitted_on": about, **coefficients(rows, 0 * odds, options.strength)}
    told = {"made_by": f"{made_by} --only-with-prior", "fitted_on": about, "priors": priors}
    fitted["with_prior"] = {**told, **coefficients(rows, odds, options.strength)}
    COEFFICIENTS.write_text(json.dumps(fitted, indent=2) + "\n")
    print(json.dumps(fitted, indent=2))


def priors_of(rows):
    """The share of right pairs in the problems of each kind; a user can state neither 0 nor 1."""
    kinds, right = kinds_of(rows), np.array([int(row["right"]) for row in rows])
    weights = np.array([1 / int(row["n"]) for row in rows])
    shares = {kind: np.average(right[kinds == kind], weights=weights[kinds == kind]) for kind in sorted(set(kinds))}
    return {str(kind): round(float(np.clip(share, 0.01, 0.99)), 3) for kind, share in shares.items()}


def log_odds(share):
    return np.log(share) - np.log1p(-share)


def coefficients(rows, odds, strength):
    """Maximum likelihood of level(whole, odds) x share(pair), with coefficients that have the expected sign."""
    from scipy.optimize import minimize

    X, right = columns(rows)
    names, whole = (*WHOLE, *PAIR), len(WHOLE)
    values = X[:, [FEATURES.index(name) for name in names]]
    middle, scale = values.mean(axis=0), values.std(axis=0)
    standard = (values - middle) / scale
    weights = problem_weights(rows)

    def chances(theta):
        level, share = (1 / (1 + np.exp(-logit)) for logit in logits(theta))
        return np.clip(level * share, 1e-6, 1 - 1e-6)

    def logits(theta):
        slopes = theta[2:]
        level = theta[0] + odds + standard[:, :whole] @ slopes[:whole]
        return level, theta[1] + standard[:, whole:] @ slopes[whole:]

    def loss(theta):
        chance = chances(theta)
        likelihood = weights @ (right * np.log(chance) + (1 - right) * np.log(1 - chance))
        return strength * theta[2:] @ theta[2:] - likelihood

    signs = [-1 if name == "size" else 1 for name in names]
    limits = [(None, None)] * 2 + [(0, None) if sign > 0 else (None, 0) for sign in signs]
    theta = minimize(loss, [0.0, 0.0, *(0.3 * sign for sign in signs)], bounds=limits).x
    slopes = theta[2:] / scale
    level = {"intercept": theta[0] - slopes[:whole] @ middle[:whole], **dict(zip(WHOLE, slopes, strict=False))}
    pair = {"intercept": theta[1] - slopes[whole:] @ middle[whole:], **dict(zip(PAIR, slopes[whole:], strict=True))}
    return {
        part: {name: round(float(value), 4) for name, value in found.items()}
        for part, found in (("level", level), ("pair", pair))
    }


def problem_weights(rows):
    """Every problem of a kind counts the same, whatever its size; kinds in which no pair is right count more."""
    kinds = kinds_of(rows)
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


def ceiling(options):
    """How well any function of the features could do: models that also see problems of the held-out kinds.

    Each problem is predicted by a model that was fitted to the others, of both parts. "Told the kind" adds the kind.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    rows = [*rows_of("fit"), *rows_of("test")]
    X, right = columns(rows)
    kinds, held = kinds_of(rows), np.array([row["part"] == "test" for row in rows])
    names = list(dict.fromkeys(kinds[held].tolist()))
    told = np.column_stack([X, *(kinds == name for name in names)])
    groups = np.unique([f"{row['part']} {row['problem']}" for row in rows], return_inverse=True)[1]
    weights = np.array([10 / int(row["n"]) for row in rows])
    trees = HistGradientBoostingClassifier(max_iter=70, learning_rate=0.07, max_leaf_nodes=6, min_samples_leaf=60)
    products = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=2000))
    print(f"| ECE within held-out kinds | {' | '.join(names)} |\n| --- |{' ---: |' * len(names)}")
    for label, model, values in (
        ("gradient boosting", trees, X),
        ("logistic, with products of two features", products, X),
        ("gradient boosting, told the kind", trees, told),
        ("logistic, told the kind", products, told),
    ):
        step = "logisticregression__" if model is products else ""
        chance = np.zeros(len(rows))
        for seen, unseen in GroupKFold(8, shuffle=True, random_state=0).split(X, groups=groups):
            model.fit(values[seen], right[seen], **{f"{step}sample_weight": weights[seen]})
            chance[unseen] = model.predict_proba(values[unseen])[:, 1]
        chosen = [held & (kinds == name) for name in names]
        errors = [calibration_error(chance[these], right[these]) for these in chosen]
        print(f"| {label} | {' | '.join(f'{error:.3f}' for error in errors)} |", flush=True)


def kinds_of(rows):
    return np.array([row["kind"].split(",")[0] for row in rows])


def show(options):
    rows = rows_of("test")
    X, right = columns(rows)
    # As `assess` does: at most 1 / k in a group of k that are interchangeable.
    confidence = np.minimum(probability(X), [1 / int(row["tied"]) for row in rows])
    print("| held-out problems | pairs | right | mean confidence | ECE | AUROC | at 0.6 or more | of these right |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    kinds = kinds_of(rows)
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
