"""Subset selection: our search and our proof beside Gurobi and SCIP, on the same instances in the same run.

python benchmarks/subsets.py [--seconds 10] [--instance cost.npz]
"""

import argparse
import time
from pathlib import Path

import numpy as np

from blindmatch.errors import SolverUnavailable
from blindmatch.matching.subsets import best_subsets

SHARED = Path(__file__).parents[2] / "shared" / "data" / "instances" / "subsets-L100.npz"


def generated(n=100, seed=0):
    """Squared differences of the distances of two noisy views of the same points."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    Y = X + 0.7 * rng.normal(size=(n, 8))
    K, G = (np.linalg.norm(E[:, None] - E[None], axis=-1) for E in (X, Y))
    return (K - G) ** 2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of the engines that prove")
    parser.add_argument("--instance", type=Path, default=SHARED if SHARED.exists() else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("-k", type=int, default=10)
    options = parser.parse_args()
    if options.instance is None:
        cost = generated()
    else:
        with np.load(options.instance, allow_pickle=False) as file:
            cost = file["cost"]
    print(f"{len(cost)} items, the {options.k} best subsets, {options.instance or 'generated'}")
    print(f"{'size':>4} {'engine':8} {'seconds':>8} {'best':>12} {'/ search':>8} {'k-th':>12} {'bound':>12} status")
    for size in options.sizes:
        reference = None
        for engine in ("search", "exact", "gurobi", "scip"):
            limit = None if engine == "search" else options.seconds
            start = time.perf_counter()
            try:
                found = best_subsets(cost=cost, size=size, k=options.k, engine=engine, time_limit=limit, rng=0)
            except SolverUnavailable as error:
                print(f"{size:4} {engine:8} {error}")
                continue
            seconds = time.perf_counter() - start
            if not len(found.costs):
                print(f"{size:4} {engine:8} {seconds:8.2f} {'no subset':>12}")
                continue
            best, last = found.costs[0], found.costs[-1]
            reference = best if reference is None else reference
            last = f"{last:12.6f}" if len(found.costs) == options.k else f"{f'({len(found.costs)})':>12}"
            bound = f"{found.lower_bound:12.6f}" if found.lower_bound is not None else f"{'-':>12}"
            print(
                f"{size:4} {engine:8} {seconds:8.2f} {best:12.6f} {best / reference:8.3f} {last} {bound} {found.status}"
            )


if __name__ == "__main__":
    main()
