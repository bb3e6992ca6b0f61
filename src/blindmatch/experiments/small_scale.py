"""Fig. 4, 11 to 13 and Table 3: every vision model with every language model, ten classes, the exact optimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from blindmatch.experiments import matching_runs as runs
from blindmatch.experiments.data import Catalogue, class_texts, half_means, images
from blindmatch.experiments.protocol import Row, Trial
from blindmatch.experiments.result_tables import Spread, Table, group_by, make_table, percent, proved_share, spread
from blindmatch.experiments.sweep_report import Figure
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.distortions import DISTORTIONS, MutualKNN
from blindmatch.validation import FloatArray


@dataclass(frozen=True)
class SmallScale(runs.PairExperiment):
    """All pairs of vision and language models on small problems."""

    name = "small-scale"
    measures: tuple[str, ...] = runs.MEASURES  # the measures to optimise: "gw", "cka", "mutual-knn"
    neighbors: int = 5  # the k of Mutual k-NN
    solver: str = "branch-and-bound"  # an exact solver. (The paper enumerates; the answer is the same.)
    choices: ClassVar[Mapping[str, Collection[str]]] = {"solver": runs.KNOWN, "measures": runs.MEASURES}

    def plan(self, catalogue: Catalogue) -> list[Trial]:
        """Each pair, measure and seed."""
        return [
            self.trial(*pair, measure=measure, seed=seed, solver=self.solver, neighbors=self.neighbors)
            for *pair, seed in self.pairs(catalogue, self.seeds)
            for measure in self.measures
        ]

    def compute(self, run: Trial) -> dict[str, Any]:
        """Match, and measure the alignment at the true pairing."""
        p = run.parameters
        X, Y = runs.prototypes(run)
        vision = run.files["vision"]
        near_images = _near(half_means, vision, p["seed"], p["fraction"], neighbors=p["neighbors"])
        near_texts = _near(class_texts, vision, run.files["language"], neighbors=p["neighbors"])
        return {
            **runs.match_pair(X, Y, p, _distortion(p["measure"], p["neighbors"], len(X))),
            "mutual_knn": float((near_images * near_texts).sum()),
            "parameters": images(vision).parameters,
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Accuracy by measure (Table 3), and by pair of models."""
        measures, pairs = [], []
        for dataset in _sorted_values(rows, "dataset"):
            for measure in self.measures:
                of = [row for row in rows if row["dataset"] == dataset and row["measure"] == measure]
                each = [percent(part) for part in group_by(of, *runs.PAIR).values()]
                best = max(each, key=lambda s: s.mean if s else 0, default=None)
                paper = runs.paper_value("table-3", "accuracy", dataset=runs.paper_dataset(dataset), measure=measure)
                measures.append([runs.paper_dataset(dataset), measure, percent(of), best, proved_share(of), paper])
        matched = [row for row in rows if row["measure"] == "gw"]
        for (dataset, *models), of in group_by(matched, *runs.PAIR).items():
            means = (spread(row[name] for row in of) for name in ("cost", "true_cost", "mutual_knn"))
            pairs.append([runs.paper_dataset(dataset), *models, percent(of), *means, len(of)])
        return [make_table("table-3", measures), make_table("figure-12", pairs)]

    def figures(self, rows: Sequence[Row]) -> list[Figure]:
        """Bars (Fig. 4), heat maps (Fig. 12, 13), accuracy against size (Fig. 11)."""
        kept = [row for row in rows if row["measure"] == "gw"]
        drawn = []
        for dataset in sorted({row["dataset"] for row in kept}):
            of = [row for row in kept if row["dataset"] == dataset]
            name = runs.paper_dataset(dataset)
            number = {"CIFAR-10": "Fig. 12", "CINIC-10": "Fig. 13"}.get(name, "As Fig. 12")
            vision, language = _sorted_values(of, "vision"), _sorted_values(of, "language")
            drawn += [
                Figure(f"figure-4-{dataset}", f"Fig. 4: matching accuracy, {name}", partial(_bars, rows=of)),
                Figure(
                    f"figure-12-{dataset}",
                    f"{number}: accuracy of all pairs in percent, {name}",
                    partial(_heat, rows=of),
                    (2.5 + 0.6 * len(language), 1.8 + 0.35 * len(vision)),
                ),
            ]
            if any(row["parameters"] is not None for row in of):
                title = f"Fig. 11: accuracy and Mutual k-NN against model size, {name}"
                drawn.append(Figure(f"figure-11-{dataset}", title, partial(_against_size, rows=of), (7.0, 6.0)))
        return drawn


def _distortion(measure: str, neighbors: int, n: int) -> Distortion:
    return MutualKNN(k=min(neighbors, n - 1)) if measure == "mutual-knn" else DISTORTIONS[measure]()


# Many runs share a side: the same images with all texts, the same texts with all seeds.
@lru_cache(maxsize=128)
def _near(read: Callable[..., FloatArray], *which: Any, neighbors: int) -> FloatArray:
    points = read(*which)
    measure = _distortion("mutual-knn", neighbors, len(points))
    return measure.scaled(measure.kernel(points))


def _sorted_values(rows: Sequence[Row], name: str) -> list[str]:
    return sorted({row[name] for row in rows})


def _spreads(rows: Sequence[Row], models: list[str], language: str) -> list[Spread | None]:
    return [percent(r for r in rows if (r["vision"], r["language"]) == (model, language)) for model in models]


def _bars(canvas: Any, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    languages, models = _sorted_values(rows, "language"), _sorted_values(rows, "vision")
    width = 0.8 / len(languages)
    for at, language in enumerate(languages):
        values = [(place, s) for place, s in enumerate(_spreads(rows, models, language)) if s is not None]
        axes.bar(
            [place + at * width for place, _ in values],
            [s.mean for _, s in values],
            width,
            yerr=[s.deviation for _, s in values],
            label=language,
        )
    classes = max(len(row["permutation"]) for row in rows)
    axes.axhline(100 / classes, linestyle="--", color="grey", label="chance")
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(models))], models, rotation=25, ha="right")
    axes.set_ylabel("accuracy (%)")
    canvas.legend(loc="outside upper left", ncols=3, fontsize="x-small")


def _heat(canvas: Any, rows: Sequence[Row]) -> None:
    models, languages = _sorted_values(rows, "vision"), _sorted_values(rows, "language")
    columns = [_spreads(rows, models, language) for language in languages]
    values = [[math.nan if s is None else s.mean for s in line] for line in zip(*columns, strict=True)]
    axes = canvas.subplots()
    axes.imshow(values, vmin=0, vmax=100, cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(languages)), languages, rotation=40, ha="right")
    axes.set_yticks(range(len(models)), models)
    for (r, c), value in np.ndenumerate(values):
        if not math.isnan(value):
            axes.text(c, r, f"{value:.0f}", ha="center", va="center", color="white" if value < 60 else "black")


def _against_size(canvas: Any, rows: Sequence[Row]) -> None:
    upper, lower = canvas.subplots(2, 1, sharex=True)
    for language in _sorted_values(rows, "language"):
        known = [row for row in rows if row["language"] == language and row["parameters"] is not None]
        for axes, name in ((upper, "accuracy"), (lower, "mutual_knn")):
            points = sorted(
                (part[0]["parameters"] / 1e6, spread(row[name] for row in part), part[0]["vision"])
                for part in group_by(known, *runs.PAIR).values()
            )
            axes.plot([x for x, _, _ in points], [s.mean for _, s, _ in points if s], "o", label=language)
    upper.set_ylabel("accuracy")
    lower.set_ylabel("Mutual k-NN")
    lower.set_xlabel("million parameters")
    lower.set_xscale("log")
    upper.legend(fontsize="small")
