"""Fig. 2, 7, 8 and 9: alignment falls as more of the pairs are shuffled; how random networks change distances."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from blindmatch.experiments.base import Experiment, Row, Trial
from blindmatch.experiments.data import Catalogue
from blindmatch.experiments.figures import Figure, lines
from blindmatch.experiments.paper.alignment import MEASURES, lipschitz, repeated_texts, shuffled_values, steps
from blindmatch.experiments.paper.matching_runs import PairSettings, model_pairs
from blindmatch.experiments.tables import Table, table

LIPSCHITZ = "lipschitz"


@dataclass(frozen=True)
class ShufflingSettings(PairSettings):
    """Settings of the shuffling study.

    Attributes
    ----------
    seeds
        Number of random shufflings per level.
    levels
        Number of levels from 0 (the true pairing) to 1 (all shuffled), both included.
    measures
        "mutual-knn", "cka", "gw" (of distances scaled to the range from 0 to 1).
    neighbors
        The k of Mutual k-NN.
    unit
        "images": each image with the text of its class, or with its own caption; "classes": class means.
    images
        Maximum number of images, drawn at random.
    baselines
        Prefixes of the names of models that are drawn as baselines: random networks, raw pixels.
    inputs
        The model whose embeddings are the networks' inputs, for Fig. 9.
    """

    seeds: int = 100
    levels: int = 21
    measures: tuple[str, ...] = MEASURES
    neighbors: int = 10
    unit: str = "images"
    images: int = 1000
    baselines: tuple[str, ...] = ("random", "pixels")
    inputs: str = "pixels"
    choices: ClassVar[Mapping[str, Collection[str]]] = {"measures": MEASURES, "unit": ("images", "classes")}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.levels < 2:
            raise ValueError(f"levels={self.levels}; expected at least 2")


class Shuffling(Experiment):
    """Whether the measures distinguish good pairings from bad ones."""

    name = "shuffling"
    about = "Alignment against the share of the pairing that is shuffled"
    shows = "Fig. 2, 7, 8 and 9"
    settings = ShufflingSettings
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 20, "levels": 6, "images": 200}

    def plan(self, settings: ShufflingSettings, catalogue: Catalogue) -> list[Trial]:
        """Each level of each pair and measure (all its seeds in one run), and Fig. 9 if there are inputs."""
        common = {"seeds": settings.seeds, "unit": settings.unit, "images": settings.images}
        common["neighbors"] = settings.neighbors
        runs = []
        for pair in model_pairs(settings, catalogue):
            # If images share the text of their class, neighbours are ambiguous: the paper leaves Mutual k-NN out.
            ambiguous = settings.unit == "images" and repeated_texts(pair.vision)
            runs += [
                pair.trial(self, measure=measure, level=level / (settings.levels - 1), **common)
                for measure in settings.measures
                if measure != "mutual-knn" or not ambiguous
                for level in range(settings.levels)
            ]
        return [*runs, *self._lipschitz_runs(settings, catalogue)]

    def _lipschitz_runs(self, settings: ShufflingSettings, catalogue: Catalogue) -> list[Trial]:
        runs = []
        for dataset in catalogue.datasets(settings.datasets):
            models = {source.model: source for source in catalogue.models("vision", dataset)}
            if settings.inputs not in models:
                continue
            for model, network in models.items():
                if model != settings.inputs and model.startswith(settings.baselines):
                    parameters = {"dataset": dataset, "vision": model, "measure": LIPSCHITZ, "images": settings.images}
                    runs.append(self.run(parameters, inputs=models[settings.inputs], vision=network))
        return runs

    def compute(self, run: Trial) -> dict[str, Any]:
        """One level, or one density."""
        return lipschitz(run) if run.parameters["measure"] == LIPSCHITZ else shuffled_values(run)

    def tables(self, settings: ShufflingSettings, rows: Sequence[Row]) -> list[Table]:
        """Each curve's ends, and whether it falls at every step."""
        shown = []
        for (dataset, vision, language, measure), of in _curves(rows).items():
            means = [row["mean"] for row in of]
            counts = steps([row["values"] for row in of], rising=measure == "gw")
            falls = "no" if counts[0] else "yes"
            shown.append([dataset, vision, language, measure, means[0], means[-1], falls, len(of) - 1, *counts])
        first = table(
            "figure-2",
            "Fig. 2, 7, 8: alignment at the truth and fully shuffled, and whether every step makes it worse",
            [("dataset", 0), ("vision", 0), ("language", 0), ("measure", 0), ("truth", 4), ("shuffled", 4),
             ("strictly monotone", 0), ("steps", 0), ("wrong", 0), ("significant", 0), ("significantly wrong", 0)],
            shown,
            "Higher is better for mutual-knn and cka, lower for gw. Wrong: steps at which the mean does not get worse; "
            "strictly monotone: no such step. Significant: p < 0.05 in Welch's one-sided test. "
            "The paper: strictly monotone for all.",
        )  # fmt: skip
        densities = [row for row in rows if row["measure"] == LIPSCHITZ]
        if not densities:
            return [first]
        second = table(
            "figure-9",
            "Fig. 9: empirical Lipschitz constants of the networks",
            [("dataset", 0), ("network", 0), ("mode", 2), ("median", 2), ("5 %", 2), ("95 %", 2), ("paper: mode", 1)],
            [[r["dataset"], r["vision"], r["mode"], r["median"], r["low"], r["high"], 1.0] for r in densities],
        )
        return [first, second]

    def figures(self, settings: ShufflingSettings, rows: Sequence[Row]) -> list[Figure]:
        """A plot for each dataset and measure, and the density."""
        drawn = []
        curves = _curves(rows)
        for dataset, measure in sorted({(key[0], key[3]) for key in curves}):
            of = {key: part for key, part in curves.items() if (key[0], key[3]) == (dataset, measure)}
            number = "Fig. 2" if measure == "mutual-knn" else "Fig. 7"
            title = f"{number}: {measure} against shuffling, {dataset}"
            draw = partial(_draw, curves=of, measure=measure, settings=settings)
            drawn.append(Figure(f"figure-7-{dataset}-{measure}", title, draw))
        densities = [row for row in rows if row["measure"] == LIPSCHITZ]
        if densities:
            drawn.append(Figure("figure-9", "Fig. 9: empirical Lipschitz constants", partial(_density, rows=densities)))
        return drawn


def _curves(rows: Sequence[Row]) -> dict[tuple[str, str, str, str], list[Row]]:
    found: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in sorted((row for row in rows if row["measure"] != LIPSCHITZ), key=lambda row: float(row["level"])):
        found.setdefault((row["dataset"], row["vision"], row["language"], row["measure"]), []).append(row)
    return dict(sorted(found.items()))


def _draw(
    canvas: Any, curves: Mapping[tuple[str, str, str, str], Sequence[Row]], measure: str, settings: ShufflingSettings
) -> None:
    axes = canvas.subplots()
    series = {
        f"{key[1]}, {key[2]}": [(r["level"], r["mean"], r["deviation"]) for r in of] for key, of in curves.items()
    }
    styles = {name: ":" if name.startswith(settings.baselines) else "-" for name in series}
    lines(axes, series, styles=styles)
    axes.set_xlabel("share of the pairing that is shuffled")
    axes.set_ylabel(measure)
    canvas.legend(loc="outside right upper", fontsize="x-small")


def _density(canvas: Any, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    for row in rows:
        centres = [(a + b) / 2 for a, b in zip(row["edges"], row["edges"][1:], strict=False)]
        axes.plot(centres, row["density"], label=row["vision"])
    axes.set_xlabel("empirical Lipschitz constant")
    axes.set_ylabel("density")
    axes.legend(fontsize="x-small")


EXPERIMENT = Shuffling()
