"""Fit the confidence of `Result.assess`, and check it on kinds of data that it was not fitted to.

python benchmarks/trust_calibration.py measure FOLDER [--seconds 600]    evidence on problems of known truth, into a CSV
python benchmarks/trust_calibration.py fit                               the constants of `trust/confidence.py`
python benchmarks/trust_calibration.py show [--constants]                calibration, each kind by a fit to the others

FOLDER holds embeddings/ and cells/, as `trust_evidence.py` reads them. `measure` goes on where it was stopped; remove
`trust_pairs.csv` after a change of what the evidence is. `show --constants` is about the constants as they are.
"""

import argparse
import csv
from dataclasses import fields
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from trust_evidence import EVIDENCE, OF_MATCH, OF_PAIRS, measure

from blindmatch.trust.confidence import FEATURES, WITH_PRIOR, WITHOUT_PRIOR, Coefficients, probability

RANGES = ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.01))
FALSE_BELIEF = 1.5  # weight of unrelated sets: to believe them does more harm than to doubt a right pair
STRENGTH = 1e-3  # of the penalty of large coefficients


class Pairs:
    """The pairs of all problems; `part` chooses some of them."""

    def __init__(self):
        with EVIDENCE.open(newline="") as file:
            rows = list(csv.DictReader(file))
        counts = [len(row["right"].split()) for row in rows]
        whole = {name: np.repeat([float(row[name]) for row in rows], counts) for name in ("n", "share", *OF_MATCH)}
        single = {
            name: np.array([float(one) for row in rows for one in row[name].split()])
            for name in (*OF_PAIRS, "tied", "right")
        }
        self.values = np.column_stack([(whole | single)[name] for name in FEATURES])
        self.share, self.tied, self.right = whole["share"], single["tied"], single["right"]
        self.problem = np.repeat(np.arange(len(rows)), counts)
        self.kind = np.repeat([row["kind"] for row in rows], counts)
        share = np.repeat([float(row["counted"]) for row in rows], counts)
        self.prior = np.log(share) - np.log1p(-share)
        self.times = np.repeat([float(row["n"]) / count for row, count in zip(rows, counts, strict=True)], counts)
        # A problem counts as the root of its pairs, a kind as the root of its problems.
        self.weight = np.repeat([count**-0.5 for count in counts], counts)
        for kind in set(self.kind):
            self.weight[self.kind == kind] /= self.weight[self.kind == kind].sum() ** 0.5
        self.weight[self.kind == "unrelated"] *= FALSE_BELIEF

    def part(self, chosen):
        other = object.__new__(Pairs)
        other.__dict__ = {name: value[chosen] for name, value in self.__dict__.items()}
        return other

    def confidence(self, model, priors):
        """As `assess` has it: at most 1 / k for a source that could as well have k partners."""
        shares = 1 / (1 + np.exp(-self.prior))
        found = np.zeros(len(self.right))
        for share in np.unique(shares) if priors else [None]:
            these = shares == share if priors else np.ones(len(found), bool)
            found[these] = probability(self.values[these], share, model)
        return np.minimum(found, 1 / self.tied)


def coefficients(pairs, priors):
    """Maximum likelihood, with coefficients that are not negative."""
    values = np.column_stack([pairs.values[:, :-1], pairs.prior] if priors else [pairs.values[:, :-1]])
    middle, scale = values.mean(axis=0), values.std(axis=0)
    standard, weights = (values - middle) / scale, pairs.weight / pairs.weight.sum()

    def loss(theta):
        logit = theta[0] + standard @ theta[1:]
        return STRENGTH * theta[1:] @ theta[1:] + weights @ (np.logaddexp(0, logit) - pairs.right * logit)

    count = values.shape[1]
    theta = minimize(loss, [0.0, *[0.3] * count], bounds=[(None, None)] + [(0, None)] * count).x
    slopes = theta[1:] / scale
    names = [field.name for field in fields(Coefficients)]
    return Coefficients(**dict(zip(names, np.round([theta[0] - slopes @ middle, *slopes], 2).tolist(), strict=False)))


def fit(options):
    """The constants, from all problems."""
    pairs = Pairs()
    print(f"# {len(pairs.right)} pairs of {pairs.problem.max() + 1} problems")
    print(f"WITHOUT_PRIOR = {coefficients(pairs, False)}\nWITH_PRIOR = {coefficients(pairs, True)}")


def held_out(pairs, priors):
    """The confidence of each kind by a model that was fitted to the others."""
    found = np.zeros(len(pairs.right))
    for kind in set(pairs.kind):
        these = pairs.kind == kind
        found[these] = pairs.part(these).confidence(coefficients(pairs.part(~these), priors), priors)
    return found


def calibration_error(confidence, right, times, bins=10):
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return np.abs(np.bincount(place, times * (confidence - right))).sum() / times.sum()


def line(title, pairs, confidence, chosen):
    """A row of the table; a kept pair stands for as many as its match has for each kept one."""
    c, right, times = confidence[chosen], pairs.right[chosen], pairs.times[chosen]
    sure = [c >= least for least in (0.6, 0.8)]
    high = (f"{times[s].sum():.0f} ({np.average(right[s], weights=times[s]):.0%})" if s.any() else "0" for s in sure)
    means = (f"{np.average(values, weights=times):.2f}" for values in (right, c))
    figures = f"{' | '.join(means)} | {calibration_error(c, right, times):.3f} | {' | '.join(high)}"
    print(f"| {title} | {len(np.unique(pairs.problem[chosen]))} | {times.sum():.0f} | {figures} |")


def show(options):
    pairs = Pairs()
    for priors, title in ((False, "without a prior"), (True, "with a counted prior")):
        constants = WITH_PRIOR if priors else WITHOUT_PRIOR
        confidence = pairs.confidence(constants, priors) if options.constants else held_out(pairs, priors)
        print(f"\n| {title} | problems | pairs | right | mean confidence | ECE | 0.6 or more (right) | 0.8 or more |")
        print(f"| --- |{' ---: |' * 7}")
        for low, high in (*RANGES, (0.0, 1.01)):
            chosen = (pairs.share >= low) & (pairs.share < high)
            line(f"{low:.0%} to {min(high, 1):.0%} right", pairs, confidence, chosen)
        for kind in sorted(set(pairs.kind)):
            line(kind, pairs, confidence, pairs.kind == kind)
        mean = np.bincount(pairs.problem, confidence) / np.bincount(pairs.problem)
        for low, high in zip((0, 0.1, 0.2, 0.4, 0.6, 0.8), (0.1, 0.2, 0.4, 0.6, 0.8, 1.01), strict=True):
            chosen = ((mean >= low) & (mean < high))[pairs.problem]
            line(f"mean confidence {low:g} to {min(high, 1):g}", pairs, confidence, chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("measure")
    one.add_argument("data", type=Path)
    one.add_argument("--seconds", type=float, default=np.inf, help="of CPU time")
    one.add_argument("--draws", type=int, default=19)
    one.set_defaults(run=measure)
    commands.add_parser("fit").set_defaults(run=fit)
    two = commands.add_parser("show")
    two.add_argument("--constants", action="store_true")
    two.set_defaults(run=show)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
