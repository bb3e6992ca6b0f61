"""The second half of ``trust.py``: fit the confidence to the evidence, and check it on held-out problems."""

import csv
from pathlib import Path

import numpy as np

from blindmatch.trust.confidence import EVIDENCE as NAMES
from blindmatch.trust.confidence import FEATURES, Coefficients, probability

HERE = Path(__file__).parent
EVIDENCE = {part: HERE / f"trust_pairs_{part}.csv" for part in ("fit", "test")}
RANGES = ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.01))


def rows_of(part):
    with EVIDENCE[part].open(newline="") as file:
        return list(csv.DictReader(file))


def columns(rows):
    X = np.array([[float(row[name]) for name in FEATURES] for row in rows])
    return X, np.array([int(row["right"]) for row in rows])


def kinds_of(rows):
    return np.array([row["kind"].split(",")[0] for row in rows])


def priors_of(rows):
    """The share of right pairs in the problems of each kind; a user can state neither 0 nor 1."""
    kinds, right = kinds_of(rows), np.array([int(row["right"]) for row in rows])
    weights = np.array([1 / int(row["n"]) for row in rows])
    shares = {kind: np.average(right[kinds == kind], weights=weights[kinds == kind]) for kind in sorted(set(kinds))}
    return {str(kind): round(float(np.clip(share, 0.01, 0.99)), 3) for kind, share in shares.items()}


def log_odds(share):
    return np.log(share) - np.log1p(-share)


def fit(options):
    """Coefficients of the confidence without a prior, and of that with the prior of each kind of problem."""
    rows = rows_of("fit")
    priors = priors_of(rows)
    print(f"{len(rows)} pairs of {len({row['problem'] for row in rows})} problems; priors {priors}")
    print("WITHOUT_PRIOR =", coefficients(rows, 0.0))
    print("WITH_PRIOR =", coefficients(rows, np.array([log_odds(priors[kind]) for kind in kinds_of(rows)])))
    kinds = kinds_of(rows)
    for kind in sorted(set(kinds)):  # each kind by a model that was fitted to the others
        model = coefficients([row for row in rows if row["kind"].split(",")[0] != kind], 0.0)
        print(f"left out: {kind}")
        by_range([row for row in rows if row["kind"].split(",")[0] == kind], model)


def coefficients(rows, odds, strength=1e-3):
    """Maximum likelihood, with coefficients that are not negative."""
    from scipy.optimize import minimize

    X, right = columns(rows)
    values = X[:, : len(NAMES)]
    middle, scale = values.mean(axis=0), values.std(axis=0)
    standard, weights = (values - middle) / scale, problem_weights(rows)

    def loss(theta):
        chance = np.clip(1 / (1 + np.exp(-(theta[0] + odds + standard @ theta[1:]))), 1e-6, 1 - 1e-6)
        likelihood = weights @ (right * np.log(chance) + (1 - right) * np.log(1 - chance))
        return strength * theta[1:] @ theta[1:] - likelihood

    theta = minimize(loss, [0.0, *[0.3] * len(NAMES)], bounds=[(None, None)] + [(0, None)] * len(NAMES)).x
    slopes = theta[1:] / scale
    found = dict(zip(NAMES, slopes, strict=True), intercept=theta[0] - slopes @ middle)
    return Coefficients(**{name: round(float(value), 2) for name, value in found.items()})


def problem_weights(rows):
    """A problem counts as the root of its size, a kind as the root of its problems."""
    kinds = kinds_of(rows)
    weights = np.array([float(row["n"]) ** -0.5 for row in rows])
    for kind in set(kinds):
        weights[kinds == kind] /= weights[kinds == kind].sum() ** 0.5
    return weights / weights.sum()


# --- calibration on the held-out part


def confidence_of(rows, model=None):
    """As `assess` has it: at most 1 / k in a group of k that are interchangeable."""
    return np.minimum(probability(columns(rows)[0], None, model), [1 / int(row["tied"]) for row in rows])


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


def by_range(rows, model=None):
    """Calibration by the true share of right pairs of each match, and how often the 5 % test fires."""
    X, right = columns(rows)
    confidence, p = confidence_of(rows, model), X[:, FEATURES.index("p")]
    problem = np.array([f"{row['part']} {row['problem']}" for row in rows])
    shares = {one: right[problem == one].mean() for one in dict.fromkeys(problem)}
    share = np.array([shares[one] for one in problem])
    print("| right | problems | test fires | pairs | right | mean confidence | ECE | at 0.8 or more | of these right |")
    print(f"| --- |{' ---: |' * 8}")
    for low, high in (*RANGES, (0.0, 1.01)):
        these = (share >= low) & (share < high)
        if these.any():
            names = np.unique(problem[these])
            fires = np.mean([p[problem == one][0] <= 0.05 + 1e-9 for one in names])
            c, r = confidence[these], right[these]
            sure = f"{(c >= 0.8).sum()} | {r[c >= 0.8].mean():.2f}" if (c >= 0.8).any() else "0 | "
            figures = f"{r.mean():.2f} | {c.mean():.2f} | {calibration_error(c, r):.3f}"
            print(f"| {low:.0%} to {min(high, 1):.0%} | {len(names)} | {fires:.0%} | {len(r)} | {figures} | {sure} |")


def show(options):
    rows = rows_of("test")
    by_range(rows)
    kinds = kinds_of(rows)
    for kind in dict.fromkeys(kinds.tolist()):
        chosen = [row for row, its in zip(rows, kinds, strict=True) if its == kind]
        c, r = confidence_of(chosen), columns(chosen)[1]
        figures = f"{r.mean():.2f} right, confidence {c.mean():.2f}, ECE {calibration_error(c, r):.3f}"
        print(f"{kind}: {len(r)} pairs, {figures}, AUROC {auroc(c, r):.2f}")
