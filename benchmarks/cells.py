"""Cells that were measured by two assays: FOSCTTM, label transfer and CPU seconds, beside POT and the settings of SCOT.

python benchmarks/cells.py FOLDER scGEM SNAREseq              all methods; FOLDER holds the files of SCOT's repository
python benchmarks/cells.py FOLDER scGEM --methods hops scot    some of them
python benchmarks/cells.py FOLDER scGEM --controls             the test of assess, with shuffled features and without
python benchmarks/cells.py FOLDER SNAREseq --controls --cells 300      the same with 300 of the cells
python benchmarks/cells.py FOLDER scGEM --unequal              cells that are missing on one side

The truth (row i is the same cell in both files) is used for the figures and for nothing else.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import blindmatch as bm
from blindmatch.geometry.kernels import unit_rows
from blindmatch.geometry.metrics import Metric
from blindmatch.matching.projection import similar_matches
from blindmatch.trust.null import rotated
from blindmatch.trust.search import Part
from blindmatch.trust.significance import significance

FILES = {
    "SNAREseq": ("SNAREseq_rna_feat.npy", "SNAREseq_atac_feat.npy", "SNAREseq_rna_types.txt"),
    "scGEM": ("scGEM_expression.txt", "scGEM_methylation.txt", "scGEM_expression_type.txt"),
}
RELATION = "hops:correlation"  # the graph of SCOT: k nearest neighbours by correlation, edges of length 1
SECONDS = 60.0
LIMIT = 600.0  # CPU seconds of entropic GW
Sides = tuple[np.ndarray, np.ndarray]
Ends = tuple[np.ndarray, np.ndarray]  # sources in the target's space, targets in the source's space


def read(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both assays, rows of unit length, and the types of the cells."""
    first, second, types = (folder / file for file in FILES[name])
    sides = [unit_rows(np.load(file) if file.suffix == ".npy" else np.loadtxt(file)) for file in (first, second)]
    return sides[0], sides[1], np.loadtxt(types).astype(int)


def matched(task: bm.Task) -> bm.Result:
    return bm.match(task, rng=0, time_limit=SECONDS, threads=1)


def ours(metric: str, soft: bool = True, descents: int = 0) -> Callable[[Sides], tuple[Ends, str]]:
    """``bm.match`` with this metric and nothing else chosen; then each side at its partners, or projected."""

    def run(sides: Sides) -> tuple[Ends, str]:
        task, back = bm.Task(*sides, metric=metric), bm.Task(*sides[::-1], metric=metric)
        result, *others = similar_matches(matched(task), task, descents, rng=0, threads=1)
        count = "auto" if soft else 1
        turned = [inverse(found, back) for found in (result, *others)]
        ends = [
            bm.project(result, partners=count, alternatives=others),
            bm.project(turned[0], partners=count, alternatives=turned[1:]),
        ]
        told = f", {ends[0].partners} and {ends[1].partners} partners" if soft else ""
        told += f", mean over {len(others) + 1} matches" if others else ""
        return (ends[0].points, ends[1].points), f"cost {result.cost / task.problem.n**2:.3f}{told}"

    return run


def inverse(result: bm.Result, back: bm.Task) -> bm.Result:
    partners = np.full(back.sizes[0], -1)
    rows = np.flatnonzero(result.permutation >= 0)
    partners[result.permutation[rows]] = rows
    return replace(result, permutation=partners, task=back)


def scot_kernels(sides: Sides, neighbors: int | None) -> Sides:
    """Shortest paths as SCOT's paper describes them, divided by their maximum."""
    k = min(50, min(map(len, sides)) // 5) if neighbors is None else neighbors
    return tuple(paths / paths.max() for paths in (Metric.of(RELATION, k).of_points(side) for side in sides))


def entropic(neighbors: int | None, epsilon: float) -> Callable[[Sides], tuple[Ends, str]]:
    """POT's entropic GW, ten iterations at a time. Their only state is the plan, so that is one long run."""

    def run(sides: Sides) -> tuple[Ends, str]:
        import ot

        kernels, plan, start = scot_kernels(sides, neighbors), None, time.process_time()
        for _ in range(100):  # times ten: POT's limit
            plan, log = ot.gromov.entropic_gromov_wasserstein(*kernels, epsilon=epsilon, G0=plan, max_iter=10, log=True)
            change = float(log["err"][-1])
            if not change > 1e-9:  # POT's tolerance, or not a number
                return barycentric(plan, sides)
            if time.process_time() - start > LIMIT:
                break
        ends, told = barycentric(plan, sides)
        return ends, told or f"not converged: the plan still changes by {change:.1g}"

    return run


def plain(sides: Sides) -> tuple[Ends, str]:
    import ot

    return barycentric(ot.gromov.gromov_wasserstein(*scot_kernels(sides, None)), sides)


def barycentric(plan: np.ndarray, sides: Sides) -> tuple[Ends, str]:
    there, back = plan.sum(axis=1, keepdims=True), plan.sum(axis=0)[:, None]
    if not (there > 0).all() or not (back > 0).all():
        return (np.full_like(sides[0], np.nan), np.full_like(sides[1], np.nan)), "no plan: numbers underflow"
    return (plan @ sides[1] / there, plan.T @ sides[0] / back), ""


NOTHING = "nothing"
METHODS: dict[str, tuple[str, str, Callable[[Sides], tuple[Ends, str]]]] = {
    "euclidean": ("`bm.match`, Euclidean distances (the default), `bm.project`", NOTHING, ours("euclidean")),
    "hops": (f"`bm.match`, {RELATION}, `bm.project`", NOTHING, ours(RELATION)),
    "hard": ("the same, each cell at its one partner", NOTHING, ours(RELATION, soft=False)),
    "pot": ("plain GW of POT", NOTHING, plain),
    "scot-eps": ("entropic GW of POT, eps = 0.005", "eps, with the truth", entropic(None, 5e-3)),
    "scot": ("entropic GW of POT, eps = 0.001 (SCOT's defaults)", NOTHING, entropic(None, 1e-3)),
    "geodesic": ("`bm.match`, geodesic:correlation, `bm.project`", NOTHING, ours("geodesic:correlation")),
    "correlation": ("`bm.match`, correlation, `bm.project`", NOTHING, ours("correlation")),
    "mean": (f"`bm.match`, {RELATION}, `bm.project` with alternatives=24", NOTHING, ours(RELATION, descents=24)),
}


def figures(ends: Ends, sides: Sides, truth: np.ndarray, types: Sides) -> str:
    """FOSCTTM of the first side in the space of the second, and the other way, each in both directions."""
    if not np.isfinite(ends[0]).all():
        return "-"
    there, back = np.flatnonzero(truth >= 0), np.full(len(sides[1]), -1)
    back[truth[there]] = there
    values = (*bm.metrics.foscttm(ends[0], sides[1], truth), *bm.metrics.foscttm(ends[1], sides[0], back))
    labels = (
        bm.metrics.label_transfer(ends[0], sides[1], types[0], types[1]),
        bm.metrics.label_transfer(ends[1], sides[0], types[1], types[0]),
    )
    return f"{' '.join(f'{value:.3f}' for value in values)} | {' '.join(f'{value:.2f}' for value in labels)}"


def compared(sides: Sides, types: np.ndarray, methods: list[str]) -> None:
    order = np.random.default_rng(0).permutation(len(sides[1]))
    shuffled, truth = (sides[0], sides[1][order]), np.argsort(order)
    print(
        "| method | FOSCTTM of the first in the space of the second, both directions; the other way | label transfer | "
        "CPU s | tuned | |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name in methods:
        title, tuned, run = METHODS[name]
        start = time.process_time()
        ends, told = run(shuffled)
        spent = time.process_time() - start
        values = figures(ends, shuffled, truth, (types, types[order]))
        print(f"| {title} | {values} | {spent:.0f} | {tuned} | {told} |", flush=True)


def controls(sides: Sides) -> None:
    """What the test must not take for structure in common, and what it must: only the test of ``Result.assess``."""
    rng = np.random.default_rng(0)
    for told, columns in (("shuffled features", True), ("the other assay", False)):
        other = np.column_stack([rng.permutation(c) for c in sides[1].T]) if columns else sides[1]
        task = bm.Task(sides[0], other[rng.permutation(len(other))], metric=RELATION)
        start = time.process_time()
        test = significance(task, rotated(task.points[1], rng), 19, Part(rng))
        spent = time.process_time() - start
        print(f"{told}: p = {test.p_value:.2f}, z = {test.z:.1f}, {test.draws} draws, {spent:.0f} CPU s", flush=True)


def unequal(sides: Sides, types: np.ndarray) -> None:
    """Cells that are missing on one side, at random and a whole type."""
    rng = np.random.default_rng(0)
    gone = {"30 % at random": rng.random(len(types)) < 0.3, "one type": types == types[0]}
    for told, lost in gone.items():
        kept = rng.permutation(np.flatnonzero(~lost))
        place = np.full(len(types), -1)
        place[kept] = np.arange(len(kept))
        left = (sides[0], sides[1][kept])
        task = bm.Task(*left, metric=RELATION)
        result = matched(task)
        alone = result.permutation < 0
        ends = bm.project(result).points
        values = bm.metrics.foscttm(ends, left[1], place)
        print(
            f"{told} removed from the target: FOSCTTM {values[0]:.3f} {values[1]:.3f}; {alone.sum()} cells unmatched, "
            f"{(alone & lost).sum()} of them without a true partner ({lost.sum()} have none)"
        )


def main() -> None:
    global LIMIT
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+", choices=FILES)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--controls", action="store_true")
    parser.add_argument("--unequal", action="store_true")
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds of entropic GW (default: %(default)s)")
    parser.add_argument("--cells", type=int, help="use a random part of the cells")
    arguments = parser.parse_args()
    LIMIT = arguments.limit
    warnings.simplefilter("ignore")
    for name in arguments.names:
        first, second, types = read(arguments.folder, name)
        if arguments.cells is not None:
            some = np.random.default_rng(1).choice(len(types), min(arguments.cells, len(types)), replace=False)
            first, second, types = first[some], second[some], types[some]
        print(f"\n{name}: {len(first)} cells")
        if arguments.controls:
            controls((first, second))
        elif arguments.unequal:
            unequal((first, second), types)
        else:
            compared((first, second), types, arguments.methods)


if __name__ == "__main__":
    main()
