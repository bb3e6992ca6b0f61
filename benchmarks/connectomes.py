"""Neurons of two hemispheres: graphs with and without the edges between them, beside FAQ of scipy and graspologic.

    python benchmarks/connectomes.py FOLDER [--seeds 0 1 2] [--ours]

FOLDER holds ``NAME_nodes.csv`` (node_id, pair, hemisphere) and ``NAME_edgelist.csv`` (from, to, weight), and may hold
``herm_elec_adj.csv``, a second relation. Twenty starts for the others, of which the best counts; one run of ours for
each seed, on nodes in another order, in up to 60 s. ``--ours`` leaves the others out.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import quadratic_assignment

import blindmatch as bm
from blindmatch.geometry.relations import EDGE_WEIGHTS, adjacency
from blindmatch.io.edge_lists import read_edges

try:
    from graspologic.match import graph_match
except ImportError:
    graph_match = None

STARTS = 20
Halves = list[np.ndarray]  # left-left, right-right, left-right, right-left


def halves(folder: Path, name: str, edges: str = "") -> Halves:
    """The graphs inside and between the hemispheres, in the order of the pairs."""
    with (folder / f"{name}_nodes.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    sides = [{row["pair"]: row["node_id"] for row in rows if row["hemisphere"] == side} for side in "LR"]
    pairs = sorted(set(sides[0]) & set(sides[1]))
    left, right = (tuple(side[pair] for pair in pairs) for side in sides)
    found = read_edges(folder / (edges or f"{name}_edgelist.csv"))
    return [adjacency(found, *ends) for ends in ((left, left), (right, right), (left, right), (right, left))]


def shuffled(graphs: Halves, p: np.ndarray) -> Halves:
    """The right hemisphere in another order."""
    LL, RR, LR, RL = graphs
    return [LL, RR[np.ix_(p, p)], LR[:, p], RL[p]]


def by_scipy(A: np.ndarray, B: np.ndarray, *_: np.ndarray) -> np.ndarray:
    options = {"maximize": True, "P0": "randomized", "maxiter": 30}
    seeds = map(np.random.default_rng, range(STARTS))
    found = [quadratic_assignment(A, B, options={**options, "rng": rng}) for rng in seeds]
    return max(found, key=lambda one: one.fun).col_ind


def by_graspologic(A: np.ndarray, B: np.ndarray, *between: np.ndarray) -> np.ndarray:
    found = graph_match(A, B, *between, n_init=STARTS, rng=0, init_perturbation=1.0, n_jobs=1)
    return found.indices_B[np.argsort(found.indices_A)]


def line(name: str, match: Callable[[], tuple[np.ndarray, str]], p: np.ndarray) -> None:
    begin = time.process_time()
    found, words = match()
    right = np.mean(p[found] == np.arange(len(p)))
    print(f"  {name}: {right:.0%} right{words} ({time.process_time() - begin:.1f} CPU s)", flush=True)


def ours(layers: list[Halves], crossed: bool, how: str, seed: int) -> tuple[np.ndarray, str]:
    """One run on relations that correspond."""
    found = bm.match(
        kernels=[(LL, RR) for LL, RR, _, _ in layers],
        crossed=[(LR, RL) for _, _, LR, RL in layers] if crossed else None,
        weights=[1.0, 0.5][: len(layers)],
        edge_weights=how.split(","),
        rng=seed,
        threads=1,
        time_limit=60,
    )
    return found.permutation, f", {found.status}, cost {found.cost:.6g}, bound {found.lower_bound:.6g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--ours", action="store_true")
    given = parser.parse_args()
    folder = given.folder
    for path in sorted(folder.glob("*_edgelist.csv")):
        name = path.stem.removesuffix("_edgelist")
        graphs = halves(folder, name)
        for seed in given.seeds:
            p = np.random.default_rng(seed).permutation(len(graphs[0]))
            layers = [shuffled(graphs, p)]
            if name == "herm_chem" and (folder / "herm_elec_adj.csv").exists():
                layers.append(shuffled(halves(folder, name, "herm_elec_adj.csv"), p))
            for how in ("none", "log", "none,log,binary"):
                print(f"{name}, {len(p)} pairs, weights {how}, seed {seed}")
                if how in EDGE_WEIGHTS and not given.ours:
                    plain = [EDGE_WEIGHTS[how](matrix) for matrix in layers[0]]
                    line("scipy's FAQ, without crossed", lambda plain=plain: (by_scipy(*plain), ""), p)
                    if graph_match is not None:
                        line("graspologic, without crossed", lambda plain=plain: (by_graspologic(*plain[:2]), ""), p)
                        line("graspologic, with crossed", lambda plain=plain: (by_graspologic(*plain), ""), p)
                for some in (layers[:1], layers)[: len(layers)]:
                    for crossed in (False, True):
                        words = f"blindmatch, {len(some)} relations, {'with' if crossed else 'without'} crossed"
                        line(words, lambda args=(some, crossed, how, seed): ours(*args), p)


if __name__ == "__main__":
    main()
