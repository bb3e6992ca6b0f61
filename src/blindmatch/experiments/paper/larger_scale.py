"""Fig. 5: accuracy on the best subsets of classes, by size."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from blindmatch.experiments.base import Experiment, Row, Trial
from blindmatch.experiments.data import Catalogue, Source, class_count, class_texts, half_means
from blindmatch.experiments.figures import Figure, lines
from blindmatch.experiments.paper.lineup import KNOWN
from blindmatch.experiments.paper.matching_runs import PairSettings, by_pair, matched, model_pairs, prototypes
from blindmatch.experiments.tables import Table, mean, spread, table
from blindmatch.matching.subsets import best_subsets
from blindmatch.validation import IntArray


@dataclass(frozen=True)
class LargerScaleSettings(PairSettings):
    """Settings of larger-scale matching.

    Attributes
    ----------
    sizes
        Numbers of classes in a subset; sizes above the number of classes are skipped.
    subsets
        Number of best subsets of each size.
    solver
        The paper's by default; "branch-and-bound" proves more.
    """

    seeds: int = 3
    sizes: tuple[int, ...] = tuple(range(10, 101, 10))
    subsets: int = 10
    solver: str = "factorized-hahn-grant"
    choices: ClassVar[Mapping[str, Collection[str]]] = {"solver": KNOWN}


class LargerScale(Experiment):
    """How well larger numbers of classes can be matched."""

    name = "larger-scale"
    about = "The best subsets of classes, by size"
    shows = "Fig. 5"
    settings = LargerScaleSettings
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 1, "sizes": (5, 8, 10), "subsets": 3, "time_limit": 5.0}

    def plan(self, settings: LargerScaleSettings, catalogue: Catalogue) -> list[Trial]:
        """Each subset of each size, with each seed."""
        common = {"solver": settings.solver, "subsets": settings.subsets, **settings.common}
        return [
            pair.trial(self, size=size, subset=subset, seed=seed, **common)
            for pair in model_pairs(settings, catalogue)
            for size in settings.sizes
            for subset in range(subset_count(class_count(pair.vision), size, settings.subsets))
            for seed in range(settings.seeds)
        ]

    def compute(self, run: Trial) -> dict[str, Any]:
        """Match one subset."""
        return match_subset(run)

    def tables(self, settings: LargerScaleSettings, rows: Sequence[Row]) -> list[Table]:
        """The numbers of the curves."""
        shown = []
        for pair, of in by_pair(rows).items():
            for size in sorted({row["size"] for row in of}):
                part = [row for row in of if row["size"] == size]
                gaps = [(row["cost"] - row["bound"]) / abs(row["cost"]) for row in part if row["bound"] is not None]
                shown.append(
                    [*pair, size, spread(100 * row["accuracy"] for row in part),
                     spread(row["cost"] for row in part), mean(100 * gap for gap in gaps),
                     mean(100.0 * (row["status"] == "optimal") for row in part),
                     mean(100.0 * (row["cost"] < row["true_cost"] - 1e-12) for row in part),
                     mean(row["cpu_seconds"] for row in part), len(part)]
                )  # fmt: skip
        columns = [("dataset", 0), ("vision", 0), ("language", 0), ("size", 0), ("accuracy", 1), ("cost", 3)]
        more = [("gap %", 2), ("proved %", 0), ("below the truth %", 0), ("CPU s", 1), ("runs", 0)]
        note = (
            "Accuracy in percent, cost per N^2, mean gap between cost and bound. Below the truth: the pairing that was "
            "found costs less than the true one, so a better solver cannot help. The paper shows Fig. 5 only as a plot."
        )
        return [table("figure-5", "Fig. 5: accuracy on the best subsets", [*columns, *more], shown, note)]

    def figures(self, settings: LargerScaleSettings, rows: Sequence[Row]) -> list[Figure]:
        """Accuracy against size."""
        return [Figure("figure-5", "Fig. 5: accuracy on the best subsets", lambda canvas: _draw(canvas, rows))]


@lru_cache(maxsize=32)
def _subsets(vision: Source, language: Source, size: int, k: int) -> tuple[IntArray, ...]:
    """The k best subsets of one size, based on the means of all images; every worker finds the same ones."""
    X = half_means(vision, None, 1.0)
    return best_subsets(X, class_texts(vision, language), size=size, k=k, rng=0, threads=1).subsets


def subset_count(classes: int, size: int, wanted: int) -> int:
    """The number of available subsets, at most as many as requested."""
    return min(wanted, math.comb(classes, size))


def match_subset(run: Trial) -> dict[str, Any]:
    """Match the classes of one of the best subsets."""
    p = run.parameters
    X, Y = prototypes(run)
    chosen = _subsets(run.files["vision"], run.files["language"], p["size"], p["subsets"])[p["subset"]]
    return {**matched(X[chosen], Y[chosen], p), "classes": [int(c) for c in chosen]}


def _draw(canvas: Any, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    series = {}
    for (dataset, vision, language), of in by_pair(rows).items():
        points = []
        for size in sorted({row["size"] for row in of}):
            value = spread(100 * row["accuracy"] for row in of if row["size"] == size)
            if value is not None:
                points.append((float(size), value.mean, value.deviation))
        series[f"{vision}, {language} ({dataset})"] = points
    lines(axes, series)
    sizes = sorted({row["size"] for row in rows})
    axes.plot(sizes, [100 / size for size in sizes], "--", color="grey", label="chance")
    axes.set_xlabel("classes")
    axes.set_ylabel("accuracy (%)")
    canvas.legend(loc="outside upper left", fontsize="x-small")


EXPERIMENT = LargerScale()
