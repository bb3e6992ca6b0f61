"""Shared parts of the studies: pairs of models, solvers by the paper's names, one match, the paper's numbers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

import numpy as np

from blindmatch.experiments.data import Catalogue, Source, class_texts, half_means
from blindmatch.experiments.protocol import Experiment, Trial
from blindmatch.experiments.result_tables import Spread
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.distortions import GromovWasserstein
from blindmatch.solvers import SOLVERS
from blindmatch.solvers.base import Solver
from blindmatch.solvers.faq import FAQ
from blindmatch.solving.run import solve
from blindmatch.validation import FloatArray

PAIR = ("dataset", "vision", "language")
MEASURES = ("mutual-knn", "cka", "gw")


@dataclass(frozen=True)
class PairExperiment(Experiment):
    """An experiment on pairs of models."""

    # datasets, vision, language: names in the folder; None for all
    datasets: tuple[str, ...] | None = None
    vision: tuple[str, ...] | None = None
    language: tuple[str, ...] | None = None
    fraction: float = 0.5  # share of the images of each class that a seed draws
    time_limit: float = 3600.0  # seconds for each run
    joined: ClassVar[bool] = False  # whether a run uses all language models together

    @property
    def common(self) -> dict[str, Any]:
        """The parameters that every run has."""
        return {"fraction": self.fraction, "time_limit": self.time_limit}

    def trial(self, vision: Source, language: Source, **parameters: Any) -> Trial:
        """A run on a dataset, with its images by one model and its texts by another."""
        names = {"dataset": vision.dataset, "vision": vision.model, "language": language.model}
        return self.run({**names, **parameters, **self.common}, vision=vision, language=language)

    def pairs(self, catalogue: Catalogue, seeds: int = 1) -> Iterator[tuple[Source, Source, int]]:
        """Every vision model with every language model of each dataset, with each seed.

        Runs with the same images and seed are adjacent, so that means are computed once.
        """
        for dataset in catalogue.datasets(self.datasets):
            languages = catalogue.models("language", dataset, self.language)
            for vision in catalogue.models("vision", dataset, self.vision):
                yield from ((vision, language, seed) for seed in range(seeds) for language in languages)

    def of_one_pair(self, catalogue: Catalogue) -> PairExperiment:
        """The settings for the first dataset and the first model of each side, if none are named."""
        datasets = tuple(catalogue.datasets(self.datasets)[: None if self.datasets else 1])
        if len(datasets) != 1:  # each dataset may have other models
            return self
        vision = self.vision or (catalogue.models("vision", datasets[0])[0].model,)
        first = (catalogue.models("language", datasets[0])[0].model,)
        language = self.language or (None if self.joined else first)
        return replace(self, datasets=datasets, vision=vision, language=language)


def prototypes(run: Trial) -> tuple[FloatArray, FloatArray]:
    """One image embedding and one text embedding per class, in the same order of classes."""
    vision = run.files["vision"]
    return half_means(vision, run.parameters["seed"], run.parameters["fraction"]), class_texts(
        vision, run.files["language"]
    )


def match_pair(
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


PAPER_NAMES = {
    "random": "Random",
    "local-cka": "LocalCKA",
    "entropic-gw": "OT",
    "faq-published": "FAQ",
    "mpopt": "MPOpt",
    "gurobi": "Gurobi",
    "factorized-hahn-grant": "Ours",
}
"""Rows of the paper's tables. The paper's "Ours" is the factorised Hahn-Grant solver."""

LINEUP = (*PAPER_NAMES, "faq", "dual-ascent", "branch-and-bound")
KNOWN = (*SOLVERS, "faq-published")


def lineup_solver(name: str) -> Solver:
    """A solver of ``bm.SOLVERS``, or "faq-published": plain FAQ, best of 100 starts, as the paper ran it."""
    solver: Solver = FAQ(centre_diagonals=False, polish=False) if name == "faq-published" else SOLVERS[name]()
    return solver


def installed_solvers(names: Iterable[str]) -> list[str]:
    """The installed solvers; the others are left out of plans and named below the tables."""
    return [name for name in names if lineup_solver(name).capabilities.installed]


def missing_note(names: Iterable[str]) -> str:
    """A sentence about solvers that are not installed; empty if all are."""
    lost = [name for name in names if not lineup_solver(name).capabilities.installed]
    return f"Not installed, so there are no numbers: {', '.join(lost)}." if lost else ""


def label(name: str) -> str:
    """A name for a table: ours, with the paper's in brackets if it has one."""
    paper = PAPER_NAMES.get(name)
    return name if paper is None or paper.lower() == name else f"{name} (paper: {paper})"


@cache
def paper_tables() -> dict[str, Any]:
    """All tables of the paper by number, and its names of datasets and models, from ``paper_values.json``."""
    content: dict[str, Any] = json.loads(
        files("blindmatch.experiments").joinpath("paper_values.json").read_text(encoding="utf-8")
    )
    return content


def paper_value(table: str, column: str, **where: str) -> float | Spread | None:
    """The paper's value in one column of the only matching row; None if there is no such row."""
    fits = [row for row in paper_tables()[table]["rows"] if all(row.get(key) == value for key, value in where.items())]
    if len(fits) != 1 or fits[0].get(column) is None:
        return None
    value: float = fits[0][column]
    deviation: float | None = fits[0].get(f"{column}_deviation")
    return value if deviation is None else Spread(value, deviation)


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def paper_dataset(name: str) -> str:
    """The paper's name of a dataset, or the name itself."""
    return str(paper_tables()["datasets"].get(_letters(name), name))


def paper_model(name: str) -> str:
    """The paper's short name of a model in its tables, or the name itself."""
    return str(paper_tables()["models"].get(_letters(name), name))
