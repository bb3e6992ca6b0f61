"""Enumeration of all permutations with pruning; the reference for testing all other solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from blindmatch import _core
from blindmatch.problem.qap import QAP
from blindmatch.proof.rounding import TINY
from blindmatch.solvers.base import Budget, Capabilities, Outcome, Solver
from blindmatch.solvers.core_problem import core_problem

_MARGIN = 1e-13  # times the problem's scale: slack for rounding when the core prunes


@dataclass(frozen=True)
class BruteForce(Solver):
    """Exact enumeration by depth-first search, in C++ on all threads, up to n = 12."""

    name: ClassVar[str] = "brute-force"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True,
        certificate=False,
        exact=True,
        forbidden=True,
        max_size=12,
        note="enumeration",
        ignores=("node_limit", "work_limit"),
    )

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Search the whole tree, or as much of it as the budget allows."""
        found = _core.enumerate(
            core_problem(problem), seed=int(rng.integers(2**63)), threads=budget.threads, budget=budget
        )
        permutation = found.permutation.astype(np.intp)
        if not found.completed:
            return Outcome(permutation, budget.stop_status)
        # No compared sum has a larger error than this; sums of integers are exact.
        exact = problem.exact or problem.vanishes
        margin = 0.0 if exact else 4 * (_MARGIN * problem.scale + TINY * len(problem.factors) * problem.n**2)
        return Outcome(permutation, "optimal", lower_bound=found.cost - margin)
