"""Hundreds to thousands of items with a hidden pairing: share of right pairs and CPU seconds, beside peers.

python benchmarks/large.py 500 1000 2000 --plot p.png    mixtures and clouds of these sizes, all methods
python benchmarks/large.py 2000 --cpu-limit 300          a method that takes longer is cut off, and the table says so
python benchmarks/large.py --methods match 2000 5000     bm.match alone
python benchmarks/large.py --files a.npy b.npy 5000      the first rows of two arrays; equal rows are partners
python benchmarks/large.py --files a.npy b.npy 5000 --seeds 5    other orders and seeds
python benchmarks/large.py --outliers 2000               items without a partner: precision and recall
python benchmarks/large.py --confidence 300 1000         the confidence of pairs against how many are right
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection

import numpy as np
from scipy.optimize import linear_sum_assignment, quadratic_assignment
from scipy.spatial.distance import cdist

import blindmatch as bm
from blindmatch.alignment.margins import SimilarityRanking

CASES = (("mixture", 0.2), ("mixture", 0.5), ("cloud", 0.1))
SECONDS = 60.0
SHORT = 10.0  # of each match whose confidence is looked at


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


def with_outliers(
    n: int, kind: str, noise: float, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`n` items a side, of which this share has no partner; the true partners, -1 for none."""
    common, total = n - round(share * n), n + round(share * n)
    X, Y, truth = hidden(total, kind, noise, seed)
    kept = np.random.default_rng(seed).permutation(np.concatenate([truth[:common], truth[n:]]))
    place = np.full(total, -1)
    place[kept] = np.arange(n)
    return X[:n], Y[kept], place[truth[:n]]


def by_match(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return bm.match(X, Y, rng=0, time_limit=SECONDS).permutation


def by_faq(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return quadratic_assignment(cdist(X, X), cdist(Y, Y), options={"maximize": True, "rng": 0}).col_ind


def by_graspologic(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    from graspologic.match import graph_match

    return graph_match(cdist(X, X), cdist(Y, Y), rng=0).indices_B


def by_aligner(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    aligner = bm.BlindAligner(random_state=0).fit(X, Y)
    return linear_sum_assignment(cdist(aligner.transform(X), Y))[1]


def by_entropic_gw(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    import ot

    plan = ot.gromov.entropic_gromov_wasserstein(*(D / D.mean() for D in (cdist(X, X), cdist(Y, Y))), epsilon=5e-3)
    return linear_sum_assignment(-plan)[1]


def by_low_rank_gw(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    import ot

    sides = [side / np.sqrt((side**2).sum(axis=1).mean()) for side in (X - X.mean(axis=0), Y - Y.mean(axis=0))]
    Q, R, g = ot.gromov.lowrank_gromov_wasserstein_samples(*sides, rank=50, seed_init=0)
    return linear_sum_assignment(-(Q / g) @ R.T)[1]


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "match": by_match,
    "scipy-faq": by_faq,
    "graspologic": by_graspologic,
    "aligner": by_aligner,
    "entropic-gw": by_entropic_gw,
    "low-rank-gw": by_low_rank_gw,
}


def compare(sizes: list[int], methods: list[str], limit: float, plot: str | None) -> None:
    found: dict[str, list[tuple[float, float, int]]] = {name: [] for name in methods}
    print("| n | data | " + " | ".join(f"{name}: right, CPU s" for name in methods) + " |")
    print("| --- | --- | " + " | ".join("---" for _ in methods) + " |")
    for n in sizes:
        for kind, noise in CASES:
            X, Y, truth = hidden(n, kind, noise, n)
            cells = []
            for name in methods:
                spent, partners = limited(name, X, Y, limit)
                if isinstance(partners, str):
                    cells.append(partners)
                    continue
                found[name].append((spent, float(np.mean(partners == truth)), n))
                cells.append(f"{found[name][-1][1]:.1%}, {spent:.1f}")
            print(f"| {n} | {kind}, noise {noise:g} | {' | '.join(cells)} |", flush=True)
    if plot is not None:
        draw({name: points for name, points in found.items() if points}, plot)


def limited(name: str, X: np.ndarray, Y: np.ndarray, limit: float) -> tuple[float, np.ndarray | str]:
    """CPU seconds and partners, from a process of its own; or why there are none."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_run, args=(sender, name, X, Y, limit))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:  # the system ended it
        return limit, f"cut off at {limit:.0f} s"
    finally:
        process.join()


def _run(sender: Connection, name: str, X: np.ndarray, Y: np.ndarray, limit: float) -> None:
    start = time.process_time()
    if limit < math.inf:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit)))
    try:
        partners: np.ndarray | str = METHODS[name](X, Y)
    except ImportError:
        partners = "not installed"
    sender.send((time.process_time() - start, partners))


def draw(found: dict[str, list[tuple[float, float, int]]], path: str) -> None:
    """Right pairs against CPU seconds; larger marks are larger problems."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for marker, (name, points) in zip("osD^v*", found.items(), strict=False):
        seconds, right, sizes = zip(*points, strict=True)
        axes.scatter(seconds, right, [n**0.5 for n in sizes], marker=marker, alpha=0.6, label=name)
    axes.set(xscale="log", xlabel="CPU seconds", ylabel="share of right pairs", ylim=(-0.03, 1.05))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left")
    figure.savefig(path, dpi=110)


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


def outliers(sizes: list[int]) -> None:
    """Precision and recall with items that have no partner, beside mutual neighbours by CSLS."""
    print("| n | data | without a partner | price | match | with min_confidence=0.5 | mutual neighbours | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for n in sizes:
        for (kind, noise), share in [(case, share) for case in CASES for share in (0.1, 0.5)]:
            X, Y, truth = with_outliers(n, kind, noise, share, 10_000 + n)
            for price in (0.05, 0.1, 0.3):
                start = time.process_time()
                result = bm.match(X, Y, unmatched_cost=price * n, rng=0, time_limit=None)
                spent = time.process_time() - start
                sure = np.where(np.nan_to_num(result.confidence) >= 0.5, result.permutation, -1)
                cells = [precision_recall(partners, truth) for partners in (result.permutation, sure, neighbours(X, Y))]
                told = f"{kind}, noise {noise:g} | {share:.0%} | {price:g} n | {' | '.join(cells)}"
                print(f"| {n} | {told} | {spent:.1f} |", flush=True)


def neighbours(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The simple thing: a match of everything, then the pairs that are each other's best candidate."""
    result = bm.match(X, Y, rng=0, time_limit=None)
    forth = result.candidates(1)[:, 0]
    back = replace(result, ranking=turned(result.ranking)).candidates(1)[:, 0]
    return np.where(back[forth] == np.arange(len(X)), forth, -1)


def turned(ranking: SimilarityRanking) -> SimilarityRanking:
    return SimilarityRanking(ranking._target, ranking._source)


def precision_recall(partners: np.ndarray, truth: np.ndarray) -> str:
    good = ((partners == truth) & (truth >= 0)).sum()
    return f"{good / max((partners >= 0).sum(), 1):.3f} / {good / (truth >= 0).sum():.3f}"


def confidence(sizes: list[int]) -> None:
    """Seeds that the fit of the confidence did not use: noise from little to more than the signal, and no relation.

    The second table: the same with items that have no partner, which are matched for a price.
    """
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for n in sizes:
        for kind in ("mixture", "cloud"):
            for noise in (0.3, 0.6, 0.8, 1.0, 1.3):
                X, Y, truth = hidden(n, kind, noise, 10_000 + n)
                result = bm.match(X, Y, rng=1, time_limit=SHORT)
                if result.confidence is not None:  # time was up before it was known
                    pairs.append((result.confidence, result.permutation == truth))
        rng = np.random.default_rng(n)
        result = bm.match(rng.normal(size=(n, 20)), rng.normal(size=(n, 30)), rng=1, time_limit=SHORT)
        if result.confidence is not None:
            pairs.append((result.confidence, np.zeros(n, dtype=bool)))
    calibration(pairs)
    for share in (0.1, 0.5):
        pairs = []
        for n in sizes:
            for kind, noise in (*CASES, ("mixture", 0.8)):
                X, Y, truth = with_outliers(n, kind, noise, share, 20_000 + n)
                result = bm.match(X, Y, unmatched_cost=0.1 * n, rng=1, time_limit=SHORT)
                if result.confidence is not None:
                    matched = result.permutation >= 0
                    pairs.append((result.confidence[matched], (result.permutation == truth)[matched]))
        print(f"\n{share:.0%} of the items without a partner:\n")
        calibration(pairs)


def calibration(pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
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
    parser.add_argument("--cpu-limit", type=float, default=math.inf, help="seconds of each method")
    parser.add_argument("--confidence", action="store_true")
    parser.add_argument("--files", nargs=2, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--seeds", type=int, default=1, help="with --files: this many orders and seeds")
    parser.add_argument("--plot", metavar="FILE", help="draw the comparison")
    parser.add_argument("--outliers", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.outliers:
        outliers(options.sizes)
    elif options.confidence:
        confidence(options.sizes)
    elif options.files:
        compare_files(options.sizes, options.files, options.seeds)
    else:
        compare(options.sizes, options.methods, options.cpu_limit, options.plot)


if __name__ == "__main__":
    main()
