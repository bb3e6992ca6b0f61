"""Hundreds to thousands of items with a hidden pairing: share of right pairs and CPU seconds, beside peers.

python benchmarks/large.py 200 500 1000                  mixtures and clouds of these sizes, all methods
python benchmarks/large.py --methods match 2000 5000     bm.match alone
python benchmarks/large.py --files a.npy b.npy 5000      the first rows of two arrays; equal rows are partners
python benchmarks/large.py --files a.npy b.npy 5000 --seeds 5    other orders and seeds
python benchmarks/large.py --outliers 2000               items without a partner: precision and recall
python benchmarks/large.py --confidence 300 1000         the confidence of pairs against how many are right
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment, quadratic_assignment
from scipy.spatial.distance import cdist

import blindmatch as bm

CASES = (("mixture", 0.2), ("mixture", 0.5), ("cloud", 0.1))
SECONDS = 60.0


def hidden(n: int, kind: str, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, their rotated, noisy and shuffled copy, and the true partners."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 32)) * np.geomspace(3, 0.3, 32)
    if kind == "mixture":
        X += 3 * rng.standard_normal((20, 32))[rng.integers(20, size=n)]
    Y = X @ np.linalg.qr(rng.standard_normal((48, 32)))[0].T
    Y += noise * Y.std() * rng.standard_normal(Y.shape)
    order = rng.permutation(n)
    return X, Y[order], np.argsort(order)


def by_match(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return bm.match(X, Y, rng=0, time_limit=SECONDS).permutation


def by_faq(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return quadratic_assignment(cdist(X, X), cdist(Y, Y), options={"maximize": True, "rng": 0}).col_ind


def by_aligner(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    aligner = bm.BlindAligner(random_state=0).fit(X, Y)
    return linear_sum_assignment(cdist(aligner.transform(X), Y))[1]


def by_entropic_gw(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    import ot

    plan = ot.gromov.entropic_gromov_wasserstein(*(D / D.mean() for D in (cdist(X, X), cdist(Y, Y))), epsilon=5e-3)
    return linear_sum_assignment(-plan)[1]


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "match": by_match,
    "scipy-faq": by_faq,
    "aligner": by_aligner,
    "entropic-gw": by_entropic_gw,
}


def compare(sizes: list[int], methods: list[str]) -> None:
    print("| n | data | " + " | ".join(f"{name}: right, CPU s" for name in methods) + " |")
    print("| --- | --- | " + " | ".join("---" for _ in methods) + " |")
    for n in sizes:
        for kind, noise in CASES:
            X, Y, truth = hidden(n, kind, noise, n)
            cells = []
            for name in methods:
                start = time.process_time()
                right = float(np.mean(METHODS[name](X, Y) == truth))
                cells.append(f"{right:.1%}, {time.process_time() - start:.1f}")
            print(f"| {n} | {kind}, noise {noise:g} | {' | '.join(cells)} |", flush=True)


def compare_files(sizes: list[int], files: list[str], seeds: int) -> None:
    """`bm.match` without a time limit; the truth is used for the share of right pairs alone."""
    source, target = (np.load(name, mmap_mode="r") for name in files)
    print("| n | seed | right | support | mean confidence | confidence 0.9 or more: pairs, right | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for n in sizes:
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(n)
            X, Y, truth = np.array(source[:n]), np.array(target[:n])[order], np.argsort(order)
            start = time.process_time()
            result = bm.match(X, Y, rng=seed, time_limit=None)
            spent = time.process_time() - start
            right, sure = result.permutation == truth, np.asarray(result.confidence)
            high = sure >= 0.9
            share = f"{right[high].mean():.1%}" if high.any() else "-"
            told = f"{result.support} | {np.nanmean(sure):.2f} | {high.sum()}, {share}"
            print(f"| {n} | {seed} | {right.mean():.2%} | {told} | {spent:.1f} |", flush=True)


def confidence(sizes: list[int]) -> None:
    """Seeds that the fit of the confidence did not use; noise from little to more than the signal, and no relation."""
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for n in sizes:
        for kind in ("mixture", "cloud"):
            for noise in (0.3, 0.6, 0.8, 1.0, 1.3):
                X, Y, truth = hidden(n, kind, noise, 10_000 + n)
                result = bm.match(X, Y, rng=1, time_limit=SECONDS)
                pairs.append((np.asarray(result.confidence), result.permutation == truth))
        rng = np.random.default_rng(n)
        result = bm.match(rng.normal(size=(n, 20)), rng.normal(size=(n, 30)), rng=1, time_limit=SECONDS)
        pairs.append((np.asarray(result.confidence), np.zeros(n, dtype=bool)))
    said, right = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    print("| confidence | pairs | mean confidence | right |\n| --- | --- | --- | --- |")
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (said >= low) & (said < low + 0.2 + 1e-9 * (low == 0.8))
        if inside.any():
            means = f"{said[inside].mean():.2f} | {right[inside].mean():.2f}"
            print(f"| {low:.1f} to {low + 0.2:.1f} | {inside.sum()} | {means} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--confidence", action="store_true")
    parser.add_argument("--files", nargs=2, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--seeds", type=int, default=1, help="with --files: this many orders and seeds")
    parser.add_argument("--outliers", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.confidence:
        confidence(options.sizes)
    elif options.files:
        compare_files(options.sizes, options.files, options.seeds)
    else:
        compare(options.sizes, options.methods)


if __name__ == "__main__":
    main()
