"""Accuracy against the number of language models whose relations are averaged, and other ways to mix them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
from scipy.stats import rankdata

from blindmatch.experiments.data import Catalogue, class_count, class_texts, half_means
from blindmatch.experiments.matching_runs import KNOWN, PairExperiment, lineup_solver, paper_dataset
from blindmatch.experiments.protocol import Row, Trial
from blindmatch.experiments.result_tables import Spread, Table, group_by, make_table, mean, proved_share, spread
from blindmatch.geometry.kernels import distances, knn_kernel, standardized
from blindmatch.geometry.views import Views
from blindmatch.matching.match import match
from blindmatch.validation import FloatArray

_NEAR = 3  # neighbours in the further view


def _by_agreement(kernels: Sequence[FloatArray]) -> FloatArray:
    off = ~np.eye(len(kernels[0]), dtype=bool)
    each = np.corrcoef([K[off] for K in kernels])
    weights = np.maximum(each.sum(axis=1) - 1, 0.0)
    return np.asarray(np.average(kernels, axis=0, weights=weights if weights.any() else None))


def _ranks(kernel: FloatArray) -> FloatArray:
    rows = np.triu_indices(len(kernel), 1)
    found = np.zeros_like(kernel)
    found[rows] = rankdata(kernel[rows])
    return standardized(found + found.T)


def _neighbours(kernels: Sequence[FloatArray]) -> FloatArray:
    """The share of the views, negated, in which the other item is near."""
    return -np.asarray(np.mean([knn_kernel(-K, _NEAR) + knn_kernel(-K, _NEAR).T for K in kernels], axis=0))


WAYS: Mapping[str, Callable[[list[FloatArray]], FloatArray]] = {
    "mean": lambda kernels: np.mean(kernels, axis=0),
    "ranks": lambda kernels: np.mean([_ranks(K) for K in kernels], axis=0),
    "weights by agreement": _by_agreement,
    "median": lambda kernels: np.median(kernels, axis=0),
    "neighbours as a view": lambda kernels: np.mean([*kernels, standardized(_neighbours(kernels))], axis=0),
}


@dataclass(frozen=True)
class ViewsStudy(PairExperiment):
    """Several language models in place of one."""

    name = "views"
    seeds: int = 8
    # size, sets: a dataset with more classes than `size` gives random sets of so many, each with its own seed
    size: int = 10
    sets: int = 30
    ways: tuple[str, ...] = tuple(WAYS)  # how the relations of all language models are mixed
    solver: str = "branch-and-bound"  # an exact solver
    joined: ClassVar[bool] = True
    choices: ClassVar[Mapping[str, Collection[str]]] = {"solver": KNOWN, "ways": WAYS}

    def plan(self, catalogue: Catalogue) -> list[Trial]:
        """The mean over each subset of the language models, and each way to mix them all."""
        runs = []
        for dataset in catalogue.datasets(self.datasets):
            models = catalogue.models("language", dataset, self.language)
            subsets = [some for count in range(1, len(models) + 1) for some in combinations(models, count)]
            others = [way for way in self.ways if way != "mean" and len(models) > 1]
            wanted = [("mean", some) for some in subsets] + [(way, tuple(models)) for way in others]
            for vision in catalogue.models("vision", dataset, self.vision):
                large = class_count(vision) > self.size
                for seed, (way, some) in product(range(self.sets if large else self.seeds), wanted):
                    names = {
                        "dataset": dataset,
                        "vision": vision.model,
                        "language": "+".join(one.model for one in some),
                    }
                    how = {"models": len(some), "way": way, "seed": seed, "size": self.size, "solver": self.solver}
                    texts = {f"language {at + 1}": one for at, one in enumerate(some)}
                    runs.append(self.run({**names, **how, **self.common}, vision=vision, **texts))
        return runs

    def compute(self, run: Trial) -> dict[str, Any]:
        """Match; row i of the images belongs to row i of the texts."""
        p, vision = run.parameters, run.files["vision"]
        X = half_means(vision, p["seed"], p["fraction"])
        Y = [class_texts(vision, file) for role, file in sorted(run.files.items()) if role != "vision"]
        if len(X) > p["size"]:
            chosen = np.random.default_rng([p["seed"], p["size"]]).choice(len(X), p["size"], replace=False)
            X, Y = X[chosen], [texts[chosen] for texts in Y]
        options: dict[str, Any] = {"solver": lineup_solver(p["solver"]), "rng": p["seed"], "threads": 1}
        options["time_limit"] = p["time_limit"]
        if p["way"] == "mean":
            result = match(X, Views(*Y), **options)
        else:
            mixed = WAYS[p["way"]]([standardized(distances(texts)) for texts in Y])
            relations = _ranks(distances(X)) if p["way"] == "ranks" else distances(X)
            result = match(kernels=(relations, mixed), **options)
        return {
            "accuracy": float((result.permutation == np.arange(len(X))).mean()),
            "cost": result.cost / len(X) ** 2,
            "status": result.status,
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Accuracy against the number of models, and by the way to mix them all."""
        means = [row for row in rows if row["way"] == "mean"]
        counts, numbers = sorted({row["models"] for row in means}), []
        for (dataset, vision), own in sorted(group_by(means, "dataset", "vision").items()):
            cells = [_over_seeds(row for row in own if row["models"] == count) for count in counts]
            numbers.append([paper_dataset(dataset), vision, *cells, proved_share(own)])
        columns = [("dataset", 0), ("vision", 0), *((str(count), 0) for count in counts), ("proved", 0)]
        datasets = sorted({row["dataset"] for row in rows})
        most = {dataset: max(row["models"] for row in rows if row["dataset"] == dataset) for dataset in datasets}
        chosen = {"one language model": [row for row in rows if row["models"] == 1]}
        for way in self.ways:
            chosen[way] = [row for row in rows if row["way"] == way and row["models"] == most[row["dataset"]]]
        lines = [
            [name, *(_over_seeds(row for row in of if row["dataset"] == dataset) for dataset in datasets)]
            for name, of in chosen.items()
        ]
        heads = [("way", 0), *((paper_dataset(dataset), 0) for dataset in datasets)]
        return [make_table("views", numbers, columns=columns), make_table("mixing", lines, columns=heads)]


def _over_seeds(rows: Iterable[Row]) -> Spread | None:
    return spread(mean(100 * row["accuracy"] for row in of) for of in group_by(rows, "seed").values())
