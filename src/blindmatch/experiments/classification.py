"""Tables 2 and 6: the unsupervised classifier, by models and by solvers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from blindmatch.experiments import matching_runs as runs
from blindmatch.experiments.data import Catalogue, Source, class_texts, images
from blindmatch.experiments.matching_runs import PAIR, paper_dataset, paper_model, paper_value
from blindmatch.experiments.protocol import Row, Trial
from blindmatch.experiments.result_tables import Cell, Table, group_by, make_table, percent
from blindmatch.matching.classifier import BlindClassifier
from blindmatch.matching.evaluation import cluster_assignment, clustering_accuracy
from blindmatch.matching.match import match
from blindmatch.validation import FloatArray, IntArray

TRUTH = "ground truth"
_SOLVERS = (*(name for name in runs.PAPER_NAMES if name != "gurobi"), "branch-and-bound")


@dataclass(frozen=True)
class Classification(runs.PairExperiment):
    """Classify images without labels."""

    name = "classification"
    starts: int = 100  # number of k-means initialisations
    solvers: tuple[str, ...] = _SOLVERS  # names of ``bm.SOLVERS``, and "faq-published". Table 2 shows the last one.
    choices: ClassVar[Mapping[str, Collection[str]]] = {"solvers": runs.KNOWN}

    def plan(self, catalogue: Catalogue) -> list[Trial]:
        """Each solver on each clustering; runs of one clustering are adjacent, so that a worker computes it once."""
        return [
            self.trial(vision, language, solver=solver, seed=seed, starts=self.starts)
            for vision, language, seed in self.pairs(catalogue, self.seeds)
            for solver in runs.installed_solvers(self.solvers)
        ]

    def compute(self, run: Trial) -> dict[str, Any]:
        """Match the centres; accuracy over images, and over clusters against their best classes."""
        p = run.parameters
        vision = run.files["vision"]
        centres, clusters, labels = clustering(vision, p["seed"], p["fraction"], p["starts"])
        Y = class_texts(vision, run.files["language"])
        solver = runs.lineup_solver(p["solver"])
        result = match(centres, Y, solver=solver, time_limit=p["time_limit"], rng=p["seed"], threads=1)
        best = cluster_assignment(labels.tolist(), clusters.tolist())
        right = [int(result.permutation[cluster]) == name for cluster, name in best.items()]
        return {
            "accuracy": float((result.permutation[clusters] == labels).mean()),
            "matching_accuracy": float(np.mean(right)),
            "ceiling": clustering_accuracy(labels.tolist(), clusters.tolist()),
            "cost": result.cost / len(Y) ** 2,
            "status": result.status,
            "seconds": result.seconds,
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """By models, then by solvers."""
        best, models = runs.installed_solvers(self.solvers)[-1], []
        for (dataset, vision, language), found in sorted(group_by(rows, *PAIR).items()):
            of, where = [row for row in found if row["solver"] == best], paper_dataset(dataset)
            names = {"vision": paper_model(vision), "language": paper_model(language)}
            paper = paper_value("table-2", "accuracy", **names) if where == "CIFAR-10" else None
            shares = [percent(of, name) for name in ("accuracy", "matching_accuracy", "ceiling")]
            models.append([where, vision, language, *shares, len(of), paper])
        columns, solvers = ("accuracy", "matching_accuracy"), list[list[Cell]]()
        for solver in self.solvers:
            of = [row for row in rows if row["solver"] == solver]
            known = [paper_value("table-6", column, solver=runs.PAPER_NAMES.get(solver, "")) for column in columns]
            solvers.append([runs.label(solver), *(percent(of, column) for column in columns), *known])
        truth = [paper_value("table-6", column, solver="GT") for column in columns]
        solvers.append([TRUTH, percent(rows, "ceiling"), 100.0 if rows else None, *truth])
        note = runs.missing_note(self.solvers)
        return [make_table("table-2", models, solver=best), make_table("table-6", solvers, note)]


@lru_cache(maxsize=16)
def clustering(source: Source, seed: int, fraction: float, starts: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Centres, and the cluster and class of each image, for a random share of the images."""
    data = images(source)
    count = max(len(data.class_names), int(fraction * len(data.values)))
    rows = np.sort(np.random.default_rng(seed).choice(len(data.values), count, replace=False))
    X = data.values[rows]
    # The classifier without its match, which is repeated with each solver ("random" costs nothing).
    blank = np.eye(len(data.class_names))
    model = BlindClassifier(n_init=starts, vote=False, normalize=True, solver="random", random_state=seed)
    model.fit(X, blank)
    owner = np.argsort(model.result_.permutation)  # the cluster that is assigned to class c
    return model.centres_, owner[model.predict(X)], data.labels[rows]
