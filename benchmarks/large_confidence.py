"""Fit the confidence of the pairs of large matches to problems with known truth, and check it on others.

python benchmarks/large_confidence.py pairs.npz 400 1000    match problems of these sizes, keep what was measured, fit
python benchmarks/large_confidence.py pairs.npz             fit again to what was kept

The coefficients that it prints are `_LOGISTIC` of `alignment/margins.py`. Half of the seeds are for the fit, the others
for the tables: once with the present coefficients, once with the new ones. A match takes up to ten seconds, and there
are 27 of each size and seed.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from large import CASES, SHORT, calibration, hidden, with_outliers
from sklearn.linear_model import LogisticRegression

import blindmatch as bm
from blindmatch.alignment import margins
from blindmatch.matching import coordinate_matches as large

SEEDS = 4  # of each kind of problem; the first half is for the fit
PENALTY = 1.0  # of large coefficients
MOST = 400  # pairs of one match: large ones do not outvote the others
KINDS = ("noise", "unrelated", "10 % outliers", "50 % outliers")
Problem = tuple[str, np.ndarray, np.ndarray, np.ndarray, float | None]


def problems(n: int, seed: int) -> Iterator[Problem]:
    """Kind, both sides, true partners (-1 for none), and the price of an unmatched item."""
    for kind in ("mixture", "cloud"):
        for noise in (0.2, 0.5, 0.8, 1.0, 1.3):
            yield "noise", *hidden(n, kind, noise, 5000 + 10 * n + seed), None
    rng = np.random.default_rng([n, seed])
    yield "unrelated", rng.normal(size=(n, 20)), rng.normal(size=(n, 30)), np.full(n, -1), None
    for share in (0.1, 0.5):
        for kind, noise in (*CASES, ("mixture", 0.8)):
            for price in (0.1, 0.3):
                made = with_outliers(n, kind, noise, share, 40_000 + 10 * n + seed)
                yield f"{share:.0%} outliers".replace("%", " %"), *made, price * n


def measured(sizes: list[int]) -> dict[str, np.ndarray]:
    """What the confidence depends on, and whether each pair is right."""
    seen: list[np.ndarray] = []

    def recorded(found: margins.Margins, support: int) -> np.ndarray:
        seen.append(margins.features(found, support))
        return margins.confidence(found, support)

    large.confidence = recorded
    rows: dict[str, list[np.ndarray]] = {"features": [], "right": [], "kind": [], "seed": []}
    for n in sizes:
        for seed in range(SEEDS):
            for kind, X, Y, truth, price in problems(n, seed):
                seen.clear()
                result = bm.match(X, Y, unmatched_cost=price, rng=seed, time_limit=SHORT)
                matched = np.flatnonzero(result.permutation >= 0)
                if result.confidence is None or not seen or not len(matched):
                    continue  # time was up before it was known
                some = np.random.default_rng(seed).permutation(matched)[:MOST]
                rows["features"].append(seen[-1][some])
                rows["right"].append(result.permutation[some] == truth[some])
                rows["kind"].append(np.full(len(some), KINDS.index(kind)))
                rows["seed"].append(np.full(len(some), seed))
            print(f"n = {n}, seed {seed}: {sum(map(len, rows['right']))} pairs", flush=True)
    return {name: np.concatenate(parts) for name, parts in rows.items()}


def fit(rows: dict[str, np.ndarray]) -> None:
    known = np.isfinite(rows["features"]).all(axis=1)
    X, right, kind = rows["features"][known], rows["right"][known], rows["kind"][known]
    first = rows["seed"][known] < SEEDS // 2
    model = LogisticRegression(fit_intercept=False, C=1 / PENALTY, max_iter=1000).fit(X[first], right[first])
    new = tuple(round(float(value), 2) for value in model.coef_[0])
    print(f"\n_LOGISTIC = {new}, from {first.sum()} pairs")
    for title, weights in (("Present", margins._LOGISTIC), ("New", new)):
        said = 1 / (1 + np.exp(-X @ np.array(weights)))
        for at, name in enumerate(KINDS):
            these = ~first & (kind == at)
            if these.any():
                print(f"\n{title} coefficients, {name}:\n")
                calibration([(said[these], right[these])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where the measurements are kept (.npz)")
    parser.add_argument("sizes", type=int, nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.sizes:
        np.savez(options.file, **measured(options.sizes))
    with np.load(options.file) as kept:
        fit(dict(kept))


if __name__ == "__main__":
    main()
