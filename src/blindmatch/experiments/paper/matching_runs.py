"""Shared code of the experiments with image classes and class names: pairs of models, one problem, its result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blindmatch.experiments.base import Trial
from blindmatch.experiments.data import Catalogue, Source, class_texts, half_means
from blindmatch.experiments.paper.lineup import lineup_solver
from blindmatch.experiments.settings import Settings
from blindmatch.problem.distortion import Distortion as AnyDistortion
from blindmatch.problem.distortions import DISTORTIONS, GromovWasserstein, MutualKNN
from blindmatch.solving.run import solve
from blindmatch.validation import FloatArray, IntArray


@dataclass(frozen=True)
class PairSettings(Settings):
    """Settings of experiments on pairs of models.

    Attributes
    ----------
    datasets, vision, language
        Names in the folder; None for all.
    fraction
        Share of the images of each class that a seed draws.
    time_limit
        Seconds for each run.
    """

    datasets: tuple[str, ...] | None = None
    vision: tuple[str, ...] | None = None
    language: tuple[str, ...] | None = None
    fraction: float = 0.5
    time_limit: float = 3600.0


def one_pair(settings: PairSettings, catalogue: Catalogue) -> PairSettings:
    """The settings for the first dataset and the first model of each side, if none are named."""
    datasets = tuple(catalogue.datasets(settings.datasets)[: None if settings.datasets else 1])
    if len(datasets) != 1:  # each dataset may have other models
        return settings
    vision = settings.vision or (catalogue.models("vision", datasets[0])[0].model,)
    language = settings.language or (catalogue.models("language", datasets[0])[0].model,)
    return replace(settings, datasets=datasets, vision=vision, language=language)


def model_pairs(settings: PairSettings, catalogue: Catalogue) -> Iterator[tuple[str, Source, Source]]:
    """Every vision model with every language model of each dataset."""
    for dataset in catalogue.datasets(settings.datasets):
        languages = catalogue.models("language", dataset, settings.language)
        for vision in catalogue.models("vision", dataset, settings.vision):
            for language in languages:
                yield dataset, vision, language


def seeded_pairs(settings: PairSettings, catalogue: Catalogue) -> Iterator[tuple[str, Source, int, Source]]:
    """The pairs with each seed; runs with the same images and seed are adjacent, so that means are computed once."""
    for dataset in catalogue.datasets(settings.datasets):
        languages = catalogue.models("language", dataset, settings.language)
        for vision in catalogue.models("vision", dataset, settings.vision):
            for seed in range(settings.seeds):
                for language in languages:
                    yield dataset, vision, seed, language


def inputs(vision: Source, language: Source) -> tuple[dict[str, str], dict[str, str]]:
    """Paths and digests by role."""
    return (
        {"vision": vision.path, "language": language.path},
        {"vision": vision.digest, "language": language.digest},
    )


def prototypes(run: Trial, seed: int | None) -> tuple[FloatArray, FloatArray]:
    """One image embedding and one text embedding per class, in the same order of classes."""
    vision, language = run.files["vision"], run.files["language"]
    seen, read = run.digests["vision"], run.digests["language"]
    X = half_means(vision, seen, seed, run.parameters.get("fraction", 0.5))
    return X, class_texts(vision, seen, language, read)


def distortion(measure: str, neighbors: int = 5, n: int | None = None) -> AnyDistortion:
    """A measure by its name; small sets use fewer neighbours."""
    if measure == "mutual-knn":
        return MutualKNN(k=neighbors if n is None else min(neighbors, n - 1))
    return DISTORTIONS[measure]()


def matched(
    X: FloatArray, Y: FloatArray, parameters: Mapping[str, Any], measure: AnyDistortion | None = None
) -> dict[str, Any]:
    """Match two sets whose truth is row i with row i (``solve`` shuffles them), and return the result as JSON."""
    n = len(X)
    limit, seed = parameters["time_limit"], parameters["seed"]
    start = time.process_time()
    problem = (measure or GromovWasserstein()).problem(X, Y)
    result = solve(problem, lineup_solver(parameters["solver"]), time_limit=limit, rng=seed, threads=1)
    taken = time.process_time() - start  # the time of ``bm.match``: building the problem, solving it, the check
    return {
        "solver_cpu_seconds": taken,
        "accuracy": float((result.permutation == np.arange(n)).mean()),
        "cost": result.cost / n**2,
        "bound": None if result.lower_bound is None else result.lower_bound / n**2,
        "true_cost": problem.objective(np.arange(n)) / n**2,
        "status": result.status,
        "seconds": result.seconds,
        "permutation": permutation_list(result.permutation),
    }


def permutation_list(permutation: IntArray) -> list[int]:
    """Plain integers."""
    return [int(j) for j in permutation]
