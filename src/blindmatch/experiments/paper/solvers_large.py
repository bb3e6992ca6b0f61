"""Fig. 6: cost and bound of each solver as a function of the size of the problem."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar

from blindmatch.experiments.base import Experiment, Row, Trial
from blindmatch.experiments.data import Catalogue, class_count
from blindmatch.experiments.figures import Figure
from blindmatch.experiments.paper.larger_scale import match_subset, subset_count
from blindmatch.experiments.paper.lineup import KNOWN, LINEUP, installed, missing_note
from blindmatch.experiments.paper.matching_runs import PairSettings, by_pair, model_pairs
from blindmatch.experiments.tables import Table, mean, table
from blindmatch.solvers import SOLVERS


@dataclass(frozen=True)
class SolversLargeSettings(PairSettings):
    """Settings of the solver comparison on larger problems.

    Attributes
    ----------
    sizes
        Numbers of classes in a problem; sizes above the number of classes are skipped.
    solvers
        Names of ``bm.SOLVERS``, and "faq-published". Random is left out by default: it would hide the others.
    """

    seeds: int = 1
    sizes: tuple[int, ...] = tuple(range(10, 101, 10))
    solvers: tuple[str, ...] = LINEUP[1:]
    time_limit: float = 5400.0
    choices: ClassVar[Mapping[str, Collection[str]]] = {"solvers": KNOWN}


class SolversLarge(Experiment):
    """Which solver stays near the optimum, and can say so."""

    name = "solvers-large"
    about = "Solvers against the size of the problem: cost and bound"
    shows = "Fig. 6"
    settings = SolversLargeSettings
    quick: ClassVar[Mapping[str, Any]] = {"sizes": (5, 10), "time_limit": 5.0}

    def plan(self, settings: SolversLargeSettings, catalogue: Catalogue) -> list[Trial]:
        """Each solver on the best subset of each size."""
        return [
            pair.trial(self, size=size, subsets=1, subset=0, solver=solver, seed=seed, **settings.common)
            for pair in model_pairs(settings, catalogue)
            for size in settings.sizes
            if subset_count(class_count(pair.vision), size, 1)
            for seed in range(settings.seeds)
            for solver in installed(settings.solvers)
            if not _too_large(solver, size)
        ]

    def compute(self, run: Trial) -> dict[str, Any]:
        """Match the best subset."""
        return match_subset(run)

    def tables(self, settings: SolversLargeSettings, rows: Sequence[Row]) -> list[Table]:
        """The numbers of the curves, and the best solvers."""
        shown = []
        for pair, of in sorted(by_pair(rows).items()):
            for size, solver in product(sorted({row["size"] for row in of}), settings.solvers):
                part = [row for row in of if (row["size"], row["solver"]) == (size, solver)]
                if part:
                    shown.append(
                        [*pair, size, solver, mean(row["cost"] for row in part), mean(row["bound"] for row in part),
                         part[0]["status"], mean(100 * row["accuracy"] for row in part),
                         mean(row["cpu_seconds"] for row in part)]
                    )  # fmt: skip
        columns = [("dataset", 0), ("vision", 0), ("language", 0), ("size", 0), ("solver", 0)]
        more = [("cost", 4), ("bound", 4), ("status", 0), ("accuracy", 1), ("CPU s", 2)]
        notes = (
            "Cost and bound per N^2, accuracy in percent; the status is that of the first seed.",
            "The paper shows Fig. 6 as a plot; its text says: optimal up to size 40, within 1.5 hours.",
            missing_note(settings.solvers),
        )
        return [table("figure-6", "Fig. 6: cost and bound against size", [*columns, *more], shown, *notes)]

    def figures(self, settings: SolversLargeSettings, rows: Sequence[Row]) -> list[Figure]:
        """One plot for each pair of models."""
        return [
            Figure(
                "figure-6-" + "-".join(pair),
                f"Fig. 6: cost (solid) and bound (dashed) against size: {pair[1]}, {pair[2]} on {pair[0]}",
                partial(_draw, settings=settings, rows=of),
            )
            for pair, of in sorted(by_pair(rows).items())
        ]


def _too_large(solver: str, size: int) -> bool:
    largest = SOLVERS[solver].capabilities.max_size if solver in SOLVERS else None
    return largest is not None and size > largest


def _draw(canvas: Any, settings: SolversLargeSettings, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    for at, solver in enumerate(settings.solvers):
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


EXPERIMENT = SolversLarge()
