"""Reports of every kind for the browser to open."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import blindmatch as bm
from blindmatch.matching.classifier import ClassifierScores
from blindmatch.report import Clusters, Match, write_report
from blindmatch.solvers.progress import Progress
from blindmatch.solving.result import Result
from blindmatch.trust.report import Judgement, judge

EVIL = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script><script>alert(1)</script>")
PROBLEM = bm.QAP(*np.random.default_rng(5).integers(0, 9, size=(2, 6, 6)))


@dataclass(frozen=True)
class Doubt:
    """An assessment, as ``Result.assess`` makes them."""

    confidence: np.ndarray
    p_value: float | None = 0.002
    p_value_error: float | None = 0.001
    ambiguous: Sequence[Sequence[int]] = ()
    regret: np.ndarray | None = None
    better: float = 0.0
    chance_agreement: float | None = 0.61
    prior: float | None = None

    @property
    def judgement(self) -> Judgement:
        if self.better:
            return Judgement("no", "No: a cheaper match exists", "By 0.5.")
        return judge(self.p_value, self.confidence, len(self.confidence))

    @property
    def significant(self) -> bool:
        return self.p_value is not None and self.p_value <= 0.05

    @property
    def doubtful(self) -> np.ndarray:
        return (np.nan_to_num(self.confidence) < 0.5) | (not self.significant)

    def check_about(self, result: Result) -> None:
        if len(self.confidence) != len(result.permutation):
            raise ValueError(f"trust is about {len(self.confidence)} sources")

    def to_dict(self) -> dict[str, Any]:
        return {"p_value": self.p_value, "confidence": self.confidence.tolist()}


def sets(n: int, m: int | None = None, noise: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two views of the same points, and the true partner of each source (-1 if it has none)."""
    rng = np.random.default_rng(seed)
    most = max(n, m or n)
    points = rng.normal(size=(most, 8)) + 2 * rng.normal(size=(4, 8))[rng.integers(4, size=most)]
    order = rng.permutation(most)[: m or n]
    partner = np.full(most, -1)
    partner[order] = np.arange(len(order))
    turned = (points + noise * rng.normal(size=points.shape)) @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    return points[:n], turned[order], partner[:n]


def found(X: np.ndarray, Y: np.ndarray, permutation: Sequence[int], **names: Any) -> Result:
    """A result with a given permutation, its cost, and a run that never was."""
    problem = bm.GromovWasserstein().problem(X, Y)
    whole = np.full(problem.n, -1)
    whole[: len(X)] = permutation
    whole[whole < 0] = np.setdiff1d(np.arange(problem.n), whole)
    cost = problem.objective(whole)
    trace = (Progress(0.0, 0, None, 2 * cost), Progress(0.5, 1, cost / 2, cost), Progress(1.5, 2, 0.9 * cost, cost))
    values = {"lower_bound": 0.9 * cost, "status": "time_limit", "solver": "some-solver", "seconds": 2.0}
    task = bm.Task(X, Y, **names)
    return Result(permutation=np.array(permutation), cost=cost, trace=trace, task=task, **values)


def shown(result: Result, kernels: tuple[np.ndarray, np.ndarray] | None = None, **details: Any) -> Match:
    """A match of given kernels, or of any, with names, a title and settings."""
    names = {side: details.pop(side, None) for side in ("source_names", "target_names")}
    about = {key: details.pop(key) for key in ("title", "settings") if key in details}
    n = len(result.permutation)
    m = n if names["target_names"] is None else len(names["target_names"])
    given = kernels or tuple(np.abs(np.subtract.outer(np.arange(k), np.arange(k))) for k in (n, m))
    task = bm.Task(kernels=given, standardize=False, **names)
    trust = details.get("trust")
    if isinstance(trust, bm.Assessment):
        details["trust"] = replace(trust, match=result.permutation, task_digest=task.digest)
    return Match(replace(result, task=task, **about), **details)


def classified(labelled: bool = True) -> Match:
    """Seven clusters matched with five classes, of which one is called something evil."""
    X, Y, _ = sets(7, 5)
    result = bm.match(X, Y, solver="two-opt", rng=0)
    members = np.repeat(np.arange(7), [9, 8, 7, 6, 5, 4, 3])
    classes = [max(int(j), 0) for j in result.permutation]
    labels = [classes[c] if k % 4 else 4 for k, c in enumerate(members)] if labelled else None
    scores = ClassifierScores(0.75, 0.8, 0.8) if labelled else None
    names = ["ant", "bee", "cat", "dog", EVIL[0]]
    truth = [int(j) for j in result.permutation] if labelled else None
    clusters = Clusters(members.tolist(), classes, names, labels, scores)
    task = result.task.changed(source_names=tuple(f"cluster {c}" for c in range(7)), target_names=tuple(names))
    return Match(replace(result, task=task), truth=truth, clusters=clusters)


def write_pages(folder: Path) -> dict[str, Path]:
    """A page of each kind."""
    X, Y, truth = sets(10)
    swapped = truth.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    names = {"source_names": [f"thing {i}" for i in range(10)], "target_names": [f"word {j}" for j in range(10)]}
    trust = Doubt(np.linspace(0.3, 1.0, 10), ambiguous=[[0, 1]], regret=np.arange(10.0))
    images = [np.full((20, 30, 3), 25 * i, dtype=np.uint8) for i in range(10)]
    few, many, partial = sets(9, 6)
    more, most, _ = sets(6, 9)
    large, other, order = sets(500)
    evil = found(X[:4], Y[:4], range(4), source_names=(*EVIL, "x"), target_names=("x", *EVIL))
    matches = {
        "match": Match(found(X, Y, swapped, **names), truth=truth.tolist()),
        "trust": Match(found(X, Y, truth), trust=trust, source_images=images, target_images=images),
        "cka": Match(bm.match(X, Y, distortion="cka", solver="two-opt", rng=0)),
        "few": Match(found(few, many, partial)),
        "many": Match(bm.match(more, most, solver="two-opt", rng=0)),
        "problem": Match(bm.solve(PROBLEM, "brute-force")),
        "evil": Match(replace(evil, title=EVIL[0], settings={EVIL[1]: EVIL[2]})),
        "large": Match(found(large, other, order), truth=order.tolist()),
        "classes": classified(),
    }
    return {name: write_report(folder / f"{name}.html", match) for name, match in matches.items()}
