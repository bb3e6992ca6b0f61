"""Fig. 5 and 6: the best subsets of classes by size: accuracy, and cost and bound of each solver."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

from blindmatch.experiments import matching_runs as runs
from blindmatch.experiments.data import Catalogue, Source, class_count, class_texts, half_means
from blindmatch.experiments.protocol import Row, Trial
from blindmatch.experiments.result_tables import Table, group_by, make_table, mean, percent, proved_share, spread
from blindmatch.experiments.sweep_report import Figure, draw_lines
from blindmatch.matching.subsets import best_subsets
from blindmatch.solvers import SOLVERS
from blindmatch.validation import IntArray


@dataclass(frozen=True)
class LargerScale(runs.PairExperiment):
    """Accuracy on larger numbers of classes."""

    name = "larger-scale"
    seeds: int = 3
    # numbers of classes in a subset; sizes above the number of classes are skipped
    sizes: tuple[int, ...] = tuple(range(10, 101, 10))
    subsets: int = 10  # number of best subsets of each size
    solver: str = "factorized-hahn-grant"  # the paper's by default; "branch-and-bound" proves more
    choices: ClassVar[Mapping[str, Collection[str]]] = {"solver": runs.KNOWN}

    def plan(self, catalogue: Catalogue) -> list[Trial]:
        """Each subset of each size, with each seed."""
        return [
            self.trial(*pair, size=size, subset=subset, seed=seed, solver=self.solver, subsets=self.subsets)
            for *pair, _ in self.pairs(catalogue)
            for size in self.sizes
            for subset in range(min(self.subsets, math.comb(class_count(pair[0]), size)))
            for seed in range(self.seeds)
        ]

    def compute(self, run: Trial) -> dict[str, Any]:
        """Match one subset."""
        return match_subset(run)

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """The numbers of the curves."""
        shown = []
        for pair, of in group_by(rows, *runs.PAIR).items():
            for (size,), part in sorted(group_by(of, "size").items()):
                bounded = [row for row in part if row["bound"] is not None]
                gap = mean(100 * (row["cost"] - row["bound"]) / abs(row["cost"]) for row in bounded)
                cost = spread(row["cost"] for row in part)
                below = mean(100.0 * (row["cost"] < row["true_cost"] - 1e-12) for row in part)
                seconds = mean(row["cpu_seconds"] for row in part)
                shown.append([*pair, size, percent(part), cost, gap, proved_share(part), below, seconds, len(part)])
        return [make_table("figure-5", shown)]

    def figures(self, rows: Sequence[Row]) -> list[Figure]:
        """Accuracy against size."""
        return [Figure("figure-5", "Fig. 5: accuracy on the best subsets", lambda canvas: _draw_accuracy(canvas, rows))]


@lru_cache(maxsize=32)
def _subsets(vision: Source, language: Source, size: int, k: int) -> tuple[IntArray, ...]:
    """The k best subsets of one size, based on the means of all images; every worker finds the same ones."""
    X = half_means(vision, None, 1.0)
    return best_subsets(X, class_texts(vision, language), size=size, k=k, rng=0, threads=1).subsets


def match_subset(run: Trial) -> dict[str, Any]:
    """Match the classes of one of the best subsets."""
    p = run.parameters
    X, Y = runs.prototypes(run)
    chosen = _subsets(run.files["vision"], run.files["language"], p["size"], p["subsets"])[p["subset"]]
    return {**runs.match_pair(X[chosen], Y[chosen], p), "classes": [int(c) for c in chosen]}


def _draw_accuracy(canvas: Any, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    series = {}
    for (dataset, vision, language), of in group_by(rows, *runs.PAIR).items():
        values = [(float(size), percent(part)) for (size,), part in sorted(group_by(of, "size").items())]
        points = [(size, value.mean, value.deviation) for size, value in values if value is not None]
        series[f"{vision}, {language} ({dataset})"] = points
    draw_lines(axes, series)
    sizes = sorted({row["size"] for row in rows})
    axes.plot(sizes, [100 / size for size in sizes], "--", color="grey", label="chance")
    axes.set_xlabel("classes")
    axes.set_ylabel("accuracy (%)")
    canvas.legend(loc="outside upper left", fontsize="x-small")


@dataclass(frozen=True)
class SolversLarge(runs.PairExperiment):
    """Cost and bound of each solver against the size of the problem."""

    name = "solvers-large"
    seeds: int = 1
    # numbers of classes in a problem; sizes above the number of classes are skipped
    sizes: tuple[int, ...] = tuple(range(10, 101, 10))
    # names of ``bm.SOLVERS``, and "faq-published". Random is left out by default: it would hide the others.
    solvers: tuple[str, ...] = runs.LINEUP[1:]
    time_limit: float = 5400.0
    choices: ClassVar[Mapping[str, Collection[str]]] = {"solvers": runs.KNOWN}

    def plan(self, catalogue: Catalogue) -> list[Trial]:
        """Each solver on the best subset of each size."""
        return [
            self.trial(*pair, size=size, subsets=1, subset=0, solver=solver, seed=seed)
            for *pair, _ in self.pairs(catalogue)
            for size in self.sizes
            if size <= class_count(pair[0])
            for seed in range(self.seeds)
            for solver in runs.installed_solvers(self.solvers)
            if solver not in SOLVERS or size <= (SOLVERS[solver].capabilities.max_size or size)
        ]

    def compute(self, run: Trial) -> dict[str, Any]:
        """Match the best subset."""
        return match_subset(run)

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """The numbers of the curves, and the best solvers."""
        order = {solver: at for at, solver in enumerate(self.solvers)}
        parts = group_by(rows, *runs.PAIR, "size", "solver")
        shown: list[list[Any]] = []
        for key in sorted(parts, key=lambda key: (*key[:-1], order[key[-1]])):
            of = parts[key]
            cost, bound, seconds = (mean(row[name] for row in of) for name in ("cost", "bound", "cpu_seconds"))
            accuracy = mean(100 * row["accuracy"] for row in of)
            shown.append([*key, cost, bound, of[0]["status"], accuracy, seconds])
        return [make_table("figure-6", shown, runs.missing_note(self.solvers))]

    def figures(self, rows: Sequence[Row]) -> list[Figure]:
        """One plot for each pair of models."""
        return [
            Figure(
                "figure-6-" + "-".join(pair),
                f"Fig. 6: cost (solid) and bound (dashed) against size: {pair[1]}, {pair[2]} on {pair[0]}",
                partial(_draw_costs, study=self, rows=of),
            )
            for pair, of in sorted(group_by(rows, *runs.PAIR).items())
        ]


def _draw_costs(canvas: Any, study: SolversLarge, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    for at, solver in enumerate(study.solvers):
        of = [row for row in rows if row["solver"] == solver]
        sizes = sorted({row["size"] for row in of})
        if not sizes:
            continue
        costs = [mean(row["cost"] for row in of if row["size"] == size) for size in sizes]
        bounds = [mean(row["bound"] for row in of if row["size"] == size) for size in sizes]
        axes.plot(sizes, costs, "-", marker=".", color=f"C{at}", label=solver)
        known = [(size, bound) for size, bound in zip(sizes, bounds, strict=True) if bound is not None]
        if known:
            axes.plot(*zip(*known, strict=True), "--", color=f"C{at}")
    best = [min(row["cost"] for row in rows if row["size"] == size) for size in {row["size"] for row in rows}]
    axes.set_ylim(0, 1.5 * max(best))  # bad solvers may leave the plot, as in the paper
    axes.set_xlabel("classes")
    axes.set_ylabel("cost per $N^2$")
    canvas.legend(loc="outside right upper", fontsize="x-small")
