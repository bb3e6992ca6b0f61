"""Right pairs of 40 Tiny-ImageNet classes by the number of known pairs of other classes, in several ways.

    python benchmarks/known.py FOLDER [--draws 8] [--vision resnet50_keras] [--language all_mpnet_base_v2]

FOLDER holds embeddings, as for benchmarks/ask.py. The columns: relations to the known items alone; ridge regression on
the known pairs, then an assignment; relative representations, then an assignment; ``bm.match(..., known=...)``. Every
problem is searched by the same tabu search.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from ask import side
from scipy.optimize import linear_sum_assignment

import blindmatch as bm
from blindmatch.problem.known import LEARNERS, Known
from blindmatch.problem.task import Task
from blindmatch.solvers.tabu import Tabu

ITEMS, COUNTS = 40, (5, 10, 20, 50, 100)
COLUMNS = ("relations", "ridge", "relative", "match")


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
    ridge, relative = (
        linear_sum_assignment(-LEARNERS[name](pairs, sets))[1]
        for name in ("ridge regression", "relative representations")
    )
    return [float(np.mean(order[found] == np.arange(ITEMS))) for found in (relations, ridge, relative, both)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--vision", default="resnet50_keras")
    parser.add_argument("--language", default="all_mpnet_base_v2")
    given = parser.parse_args()
    X = side(given.folder, "vision", "tinyimagenet200", given.vision)
    Y = side(given.folder, "language", "tinyimagenet200", given.language)
    print("| known | " + " | ".join(COLUMNS) + " |\n" + "| --- " * 5 + "|", flush=True)
    for known in COUNTS:
        shares = np.mean([right_pairs(X, Y, known, draw) for draw in range(given.draws)], axis=0)
        print(f"| {known} | " + " | ".join(f"{100 * share:.0f} %" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
