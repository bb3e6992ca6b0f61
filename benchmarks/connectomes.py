"""Neurons of two hemispheres: graphs with and without the edges between them, beside scipy's FAQ.

    python benchmarks/connectomes.py FOLDER

FOLDER holds ``NAME_nodes.csv`` (node_id, pair, hemisphere) and ``NAME_edgelist.csv`` (from, to, weight). Twenty random
starts for scipy, of which the best counts; one run of ours.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

import numpy as np
from scipy.optimize import quadratic_assignment

import blindmatch as bm
from blindmatch.geometry.relations import adjacency
from blindmatch.io.edge_lists import read_edges


def halves(folder: Path, name: str) -> list[np.ndarray]:
    """The graphs left-left, right-right, left-right and right-left, in the order of the pairs."""
    with (folder / f"{name}_nodes.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    sides = [{row["pair"]: row["node_id"] for row in rows if row["hemisphere"] == side} for side in "LR"]
    pairs = sorted(set(sides[0]) & set(sides[1]))
    left, right = (tuple(side[pair] for pair in pairs) for side in sides)
    edges = read_edges(folder / f"{name}_edgelist.csv")
    return [adjacency(edges, *ends) for ends in ((left, left), (right, right), (left, right), (right, left))]


def scipy_faq(A: np.ndarray, B: np.ndarray, starts: int = 20) -> np.ndarray:
    found = [
        quadratic_assignment(A, B, options={"maximize": True, "rng": seed, "P0": "randomized", "maxiter": 30})
        for seed in range(starts)
    ]
    return max(found, key=lambda one: one.fun).col_ind


def main() -> None:
    folder = Path(sys.argv[1])
    for path in sorted(folder.glob("*_edgelist.csv")):
        name = path.stem.removesuffix("_edgelist")
        for how in ("none", "log"):
            LL, RR, LR, RL = (np.log1p(M) if how == "log" else M for M in halves(folder, name))
            n = len(LL)
            p = np.random.default_rng(0).permutation(n)
            right = lambda found, p=p: f"{100 * np.mean(p[found] == np.arange(len(p))):.0f} %"  # noqa: E731
            inside = LL, RR[np.ix_(p, p)]
            begin = time.process_time()
            print(f"{name}, {n} pairs, weights {how}: scipy's FAQ {right(scipy_faq(*inside))}", end="")
            print(f" ({time.process_time() - begin:.1f} CPU s)", flush=True)
            for crossed in (None, (LR[:, p], RL[p])):
                begin = time.process_time()
                found = bm.match(kernels=inside, crossed=crossed, rng=0, threads=1)
                words = f"{found.status}, cost {found.cost:.6g}, bound {found.lower_bound:.6g}"
                kind = "with" if crossed else "without"
                print(
                    f"  {kind} crossed: {right(found.permutation)}, {words} ({time.process_time() - begin:.1f} CPU s)"
                )


if __name__ == "__main__":
    main()
