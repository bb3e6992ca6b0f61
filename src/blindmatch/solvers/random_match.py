"""A random permutation: the simplest baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Budget, Capabilities, Outcome, Solver


@dataclass(frozen=True)
class Random(Solver):
    """One permutation, drawn uniformly."""

    name: ClassVar[str] = "random"
    capabilities: ClassVar[Capabilities] = Capabilities(note="a baseline")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Draw."""
        return Outcome(rng.permutation(problem.n), "heuristic")
