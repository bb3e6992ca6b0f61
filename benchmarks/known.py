"""Right pairs of 40 Tiny-ImageNet classes by the number of known pairs of other classes, in several ways.

    python benchmarks/known.py FOLDER [--draws 8] [--vision resnet50_keras] [--language all_mpnet_base_v2] [--plot FILE]

FOLDER holds embeddings, as for benchmarks/ask.py. The columns: relations to the known items alone; ridge regression on
the known pairs, then an assignment; relative representations, then an assignment; ``bm.match(..., known=...)``. Every
problem is searched by the same tabu search.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from ask import side
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment

import blindmatch as bm
from blindmatch.problem.known import Known, relative, ridge
from blindmatch.problem.task import Task
from blindmatch.solvers.tabu import Tabu

ITEMS, COUNTS = 40, (5, 10, 20, 50, 100)
NAMES = ("relations alone", "ridge regression", "relative representations", "bm.match(known=)")
COLUMNS = ("relations", "ridge", "relative", "match", "match less ridge")


def right_pairs(X: np.ndarray, Y: np.ndarray, known: int, draw: int) -> list[float]:
    """The share of right pairs of each column."""
    index = np.random.default_rng([9, draw]).permutation(len(X))
    others, items = index[:known], index[-ITEMS:]
    order = np.random.default_rng(draw).permutation(ITEMS)
    pairs, sets = (X[others], Y[others]), (X[items], Y[items][order])
    task = Task(*sets, known=pairs)
    assert task.known is not None
    solver = Tabu(iterations=60 * ITEMS, streams=2)
    relations, both = (
        bm.solve(one.problem, solver, rng=0, threads=1).permutation
        for one in (task.changed(known=Known(task.known.given)), task)
    )
    alone = (linear_sum_assignment(-similarity)[1] for similarity in (ridge(0.3, pairs, sets), relative(pairs, sets)))
    return [float(np.mean(order[found] == np.arange(ITEMS))) for found in (relations, *alone, both)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--vision", default="resnet50_keras")
    parser.add_argument("--language", default="all_mpnet_base_v2")
    parser.add_argument("--plot", type=Path, help="write the curves there (.png)")
    given = parser.parse_args()
    X = side(given.folder, "vision", "tinyimagenet200", given.vision)
    Y = side(given.folder, "language", "tinyimagenet200", given.language)
    print("| known | " + " | ".join(COLUMNS) + " |\n" + "| --- " * 6 + "|", flush=True)
    curves = []
    for known in COUNTS:
        shares = 100 * np.array([right_pairs(X, Y, known, draw) for draw in range(given.draws)])
        ahead = shares[:, 3] - shares[:, 1]
        error = ahead.std(ddof=1) / given.draws**0.5
        curves.append((shares.mean(axis=0), shares.std(axis=0, ddof=1) / given.draws**0.5))
        row = " | ".join(f"{share:.0f} %" for share in shares.mean(axis=0))
        print(f"| {known} | {row} | {ahead.mean():+.1f} +- {error:.1f} |", flush=True)
    if given.plot is not None:
        draw(np.array(curves), f"{given.vision} x {given.language}, {given.draws} draws").savefig(given.plot, dpi=120)


def draw(curves: np.ndarray, title: str) -> Figure:
    """Accuracy against the number of known pairs, with standard errors; curves is (counts, 2, columns)."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for at, name in enumerate(COLUMNS[:4]):
        wide = 2.5 if name == "match" else 1.2
        axes.errorbar(COUNTS, curves[:, 0, at], curves[:, 1, at], label=NAMES[at], linewidth=wide, capsize=2)
    axes.set(xscale="log", xlabel="known pairs of other classes", ylabel="right pairs, %", title=title)
    axes.set_xticks(COUNTS, [str(count) for count in COUNTS])
    axes.minorticks_off()
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
