"""Shared code of the experiments with image classes and class names: pairs of models, one problem, its result."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blindmatch.experiments.base import Experiment, Row, Trial
from blindmatch.experiments.data import Catalogue, Source, class_texts, half_means
from blindmatch.experiments.paper.lineup import lineup_solver
from blindmatch.experiments.settings import Settings
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.distortions import GromovWasserstein
from blindmatch.solving.run import solve
from blindmatch.validation import FloatArray


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

    @property
    def common(self) -> dict[str, float]:
        """The parameters that every run has."""
        return {"fraction": self.fraction, "time_limit": self.time_limit}


@dataclass(frozen=True)
class ModelPair:
    """A dataset with the embeddings of its images by one model and of its texts by another."""

    vision: Source
    language: Source

    def trial(self, experiment: Experiment, **parameters: Any) -> Trial:
        """A run on this pair."""
        names = {"dataset": self.vision.dataset, "vision": self.vision.model, "language": self.language.model}
        return experiment.run({**names, **parameters}, vision=self.vision, language=self.language)


def one_pair(settings: PairSettings, catalogue: Catalogue) -> PairSettings:
    """The settings for the first dataset and the first model of each side, if none are named."""
    datasets = tuple(catalogue.datasets(settings.datasets)[: None if settings.datasets else 1])
    if len(datasets) != 1:  # each dataset may have other models
        return settings
    vision = settings.vision or (catalogue.models("vision", datasets[0])[0].model,)
    language = settings.language or (catalogue.models("language", datasets[0])[0].model,)
    return replace(settings, datasets=datasets, vision=vision, language=language)


def seeded_pairs(
    settings: PairSettings, catalogue: Catalogue, seeds: Iterable[int] | None = None
) -> Iterator[tuple[ModelPair, int]]:
    """Every vision model with every language model of each dataset, with each seed.

    Runs with the same images and seed are adjacent, so that means are computed once.
    """
    for dataset in catalogue.datasets(settings.datasets):
        languages = catalogue.models("language", dataset, settings.language)
        for vision in catalogue.models("vision", dataset, settings.vision):
            for seed in range(settings.seeds) if seeds is None else seeds:
                for language in languages:
                    yield ModelPair(vision, language), seed


def model_pairs(settings: PairSettings, catalogue: Catalogue) -> Iterator[ModelPair]:
    """Every vision model with every language model of each dataset."""
    return (pair for pair, _ in seeded_pairs(settings, catalogue, seeds=(0,)))


def by_pair(rows: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """The rows of each dataset, vision model and language model."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["dataset"], row["vision"], row["language"]), []).append(row)
    return found


def prototypes(run: Trial) -> tuple[FloatArray, FloatArray]:
    """One image embedding and one text embedding per class, in the same order of classes."""
    vision = run.files["vision"]
    return half_means(vision, run.parameters["seed"], run.parameters["fraction"]), class_texts(
        vision, run.files["language"]
    )


def matched(
    X: FloatArray, Y: FloatArray, parameters: Mapping[str, Any], measure: Distortion | None = None
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
        "permutation": result.permutation.tolist(),
    }
