"""Fig. 2, 7, 8 and 9: alignment falls as more of the pairs are shuffled; how random networks change distances."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import pdist

from blindmatch.experiments.data import Catalogue, Source, class_texts, half_means, images, texts
from blindmatch.experiments.matching_runs import MEASURES, PAIR, PairExperiment
from blindmatch.experiments.protocol import Row, Trial
from blindmatch.experiments.result_tables import Table, group_by, make_table
from blindmatch.experiments.sweep_report import Figure, draw_lines
from blindmatch.geometry.kernels import distances
from blindmatch.io.files import read_arrays
from blindmatch.problem.distortions import CKA, MutualKNN
from blindmatch.validation import FloatArray, IntArray

LIPSCHITZ = "lipschitz"
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Shuffling(PairExperiment):
    """The measures of alignment against the share of the pairing that is shuffled."""

    name = "shuffling"
    seeds: int = 100  # number of random shufflings per level
    levels: int = 21  # number of levels from 0 (the true pairing) to 1 (all shuffled), both included
    measures: tuple[str, ...] = MEASURES  # "mutual-knn", "cka", "gw" (of distances scaled to the range from 0 to 1)
    neighbors: int = 10  # the k of Mutual k-NN
    # "images": each image with the text of its class, or with its own caption; "classes": class means
    unit: str = "images"
    images: int = 1000  # maximum number of images, drawn at random
    # prefixes of the names of models that are drawn as baselines: random networks, raw pixels
    baselines: tuple[str, ...] = ("random", "pixels")
    inputs: str = "pixels"  # the model whose embeddings are the networks' inputs, for Fig. 9.
    choices: ClassVar[Mapping[str, Collection[str]]] = {"measures": MEASURES, "unit": ("images", "classes")}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.levels < 2:
            raise ValueError(f"levels={self.levels}; expected at least 2")

    @property
    def common(self) -> dict[str, Any]:
        """The parameters that every curve has."""
        return {name: getattr(self, name) for name in ("seeds", "unit", "images", "neighbors")}

    def plan(self, catalogue: Catalogue) -> list[Trial]:
        """Each level of each pair and measure (all its seeds in one run), and Fig. 9 if there are inputs."""
        runs = []
        for vision, language, _ in self.pairs(catalogue):
            # If images share the text of their class, neighbours are ambiguous: the paper leaves Mutual k-NN out.
            ambiguous = self.unit == "images" and "labels" in read_arrays(vision.path, ("labels",))
            runs += [
                self.trial(vision, language, measure=measure, level=level / (self.levels - 1))
                for measure in self.measures
                if measure != "mutual-knn" or not ambiguous
                for level in range(self.levels)
            ]
        for dataset in catalogue.datasets(self.datasets):
            models = {source.model: source for source in catalogue.models("vision", dataset)}
            if self.inputs not in models:
                continue
            for model, network in models.items():
                if model != self.inputs and model.startswith(self.baselines):
                    parameters = {"dataset": dataset, "vision": model, "measure": LIPSCHITZ, "images": self.images}
                    runs.append(self.run(parameters, inputs=models[self.inputs], vision=network))
        return runs

    def compute(self, run: Trial) -> dict[str, Any]:
        """One level, or one density."""
        return lipschitz(run) if run.parameters["measure"] == LIPSCHITZ else shuffled_values(run)

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Each curve's ends, and whether it falls at every step."""
        shown = []
        for (dataset, vision, language, measure), of in _curves(rows).items():
            means = [row["mean"] for row in of]
            counts = steps([row["values"] for row in of], rising=measure == "gw")
            falls = "no" if counts[0] else "yes"
            shown.append([dataset, vision, language, measure, means[0], means[-1], falls, len(of) - 1, *counts])
        first = make_table("figure-2", shown)
        densities = [row for row in rows if row["measure"] == LIPSCHITZ]
        if not densities:
            return [first]
        keys = ("dataset", "vision", "mode", "median", "low", "high")
        second = make_table("figure-9", [[*(row[key] for key in keys), 1.0] for row in densities])
        return [first, second]

    def figures(self, rows: Sequence[Row]) -> list[Figure]:
        """A plot for each dataset and measure, and the density."""
        drawn = []
        curves = _curves(rows)
        for dataset, measure in sorted({(key[0], key[3]) for key in curves}):
            of = {key: part for key, part in curves.items() if (key[0], key[3]) == (dataset, measure)}
            number = "Fig. 2" if measure == "mutual-knn" else "Fig. 7"
            title = f"{number}: {measure} against shuffling, {dataset}"
            draw = partial(_draw, curves=of, measure=measure, study=self)
            drawn.append(Figure(f"figure-7-{dataset}-{measure}", title, draw))
        densities = [row for row in rows if row["measure"] == LIPSCHITZ]
        if densities:
            drawn.append(Figure("figure-9", "Fig. 9: empirical Lipschitz constants", partial(_density, rows=densities)))
        return drawn


def _curves(rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Row]]:
    levels = sorted((row for row in rows if row["measure"] != LIPSCHITZ), key=lambda row: float(row["level"]))
    return dict(sorted(group_by(levels, *PAIR, "measure").items()))


def _draw(canvas: Any, curves: Mapping[tuple[Any, ...], Sequence[Row]], measure: str, study: Shuffling) -> None:
    axes = canvas.subplots()
    series = {
        f"{key[1]}, {key[2]}": [(r["level"], r["mean"], r["deviation"]) for r in of] for key, of in curves.items()
    }
    styles = {name: ":" if name.startswith(study.baselines) else "-" for name in series}
    draw_lines(axes, series, styles=styles)
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


@lru_cache(maxsize=4)
def _kernels(
    vision: Source, language: Source, measure: str, unit: str, most: int, neighbors: int
) -> tuple[FloatArray, FloatArray]:
    data = images(vision)
    if data.paired:
        X, (Y, _) = data.values, texts(language)
        if len(X) != len(Y):
            raise ValueError(f"{language.path}: {len(Y)} texts, but {vision.path} has {len(X)} images without labels")
    elif unit == "classes":
        X, Y = half_means(vision, None, 1.0), class_texts(vision, language)
    else:
        X, Y = data.values, class_texts(vision, language)[data.labels]
    if len(X) > most:
        chosen = np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))
        X, Y = X[chosen], Y[chosen]
    if measure == "mutual-knn":
        return MutualKNN(k=min(neighbors, len(X) - 1)).kernels(X, Y)
    return CKA().kernels(X, Y) if measure == "cka" else (_unit_range(distances(X)), _unit_range(distances(Y)))


def _unit_range(kernel: FloatArray) -> FloatArray:
    """Distances scaled to the range from 0 to 1, as in the paper's study."""
    return kernel / max(float(kernel.max()), np.finfo(float).tiny)


def partial_shuffle(n: int, level: float, rng: np.random.Generator) -> IntArray:
    """A permutation that moves at most floor(level * n) items, drawn and permuted at random."""
    permutation = np.arange(n)
    chosen = rng.choice(n, math.floor(level * n + 1e-9), replace=False)
    permutation[np.sort(chosen)] = chosen
    return permutation


def shuffled_values(run: Trial) -> dict[str, Any]:
    """The measure at one level, for all seeds."""
    p = run.parameters
    K, G = _kernels(run.files["vision"], run.files["language"], p["measure"], p["unit"], p["images"], p["neighbors"])
    n = len(K)
    squares = float((K**2).sum() + (G**2).sum())
    values = []
    for seed in range(p["seeds"]):
        # The level is part of the seed: otherwise all levels would shuffle in the same order.
        order = partial_shuffle(n, p["level"], np.random.default_rng([seed, round(1e6 * p["level"])]))
        product = float(np.vdot(K, G[order][:, order]))
        values.append((squares - 2 * product) / n**2 if p["measure"] == "gw" else product)
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "deviation": deviation, "values": values, "items": n}


def steps(levels: Sequence[Sequence[float]], *, rising: bool) -> tuple[int, int, int]:
    """Test every step of a curve from one level to the next, given the values at each level.

    Returns the number of steps whose mean does not go in the expected direction (0 means strictly monotone), and of
    those that go in the expected and in the opposite direction with p < 0.05 in Welch's one-sided test.
    """
    differences = np.diff([float(np.mean(values)) for values in levels])
    wrong = int(((differences if rising else -differences) <= 0).sum())
    expected, opposite = (
        sum(_p_value(before, after, up) < SIGNIFICANT for before, after in pairwise(levels))
        for up in (rising, not rising)
    )
    return wrong, expected, opposite


def _p_value(before: Sequence[float], after: Sequence[float], rising: bool) -> float:
    from scipy.stats import ttest_ind_from_stats

    first, second = ((np.mean(v), np.std(v, ddof=1) if len(v) > 1 else 0.0, len(v)) for v in (before, after))
    if first[1] == second[1] == 0:  # level 0 has a single pairing, and a single seed has no deviation
        return 0.0 if (second[0] > first[0] if rising else second[0] < first[0]) else 1.0
    test = ttest_ind_from_stats(*second, *first, equal_var=False, alternative="greater" if rising else "less")
    return float(test.pvalue)


def lipschitz(run: Trial) -> dict[str, Any]:
    """The density of |f(x) - f(y)| / |x - y| over all pairs of images."""
    inputs, vision = run.files["inputs"], run.files["vision"]
    x, y = images(inputs, False).values, images(vision, False).values
    if len(x) != len(y):
        raise ValueError(f"{vision.path}: {len(y)} images, but {inputs.path} has {len(x)}")
    most = run.parameters["images"]
    before, after = pdist(x[:most]), pdist(y[:most])
    ratios = after[before > 0] / before[before > 0]
    density, edges = np.histogram(ratios, bins=60, range=(0.0, float(np.quantile(ratios, 0.999))), density=True)
    peak = int(np.argmax(density))
    low, median, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    return {
        "mode": (edges[peak] + edges[peak + 1]) / 2,
        "median": median,
        "low": low,
        "high": high,
        "density": density,
        "edges": edges,
    }
