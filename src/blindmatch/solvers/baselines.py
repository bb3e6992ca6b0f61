"""Baselines: a random match, LocalCKA without known pairs, and the enumeration of all permutations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from blindmatch import _core
from blindmatch.geometry.kernels import centred
from blindmatch.problem.qap import QAP
from blindmatch.proof.rounding import TINY
from blindmatch.solvers.base import Budget, Capabilities, Outcome, Solver
from blindmatch.solvers.core_problem import core_problem
from blindmatch.solvers.relaxation import assignment
from blindmatch.validation import FloatArray


@dataclass(frozen=True)
class Random(Solver):
    """One permutation, drawn uniformly."""

    name: ClassVar[str] = "random"
    capabilities: ClassVar[Capabilities] = Capabilities(note="a baseline")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Draw."""
        return Outcome(rng.permutation(problem.n), "heuristic")


@dataclass(frozen=True)
class LocalCKA(Solver):
    """One assignment problem on the local CKA of each pair.

    The global CKA of a match is, up to scale, the inner product of the two kernels, each centred on both sides.
    Maniparambil et al. score a pair (i, j) by the CKA of a set of known pairs to which it is added. Here no pair is
    known, so the score of (i, j) is the most that row i of one kernel and row j of the other can contribute: the
    product of the two diagonal entries plus the inner product of the other entries, both sorted. As in the paper's
    tables it optimises CKA for any distortion of the problem, so its cost is rarely good. A linear term is added to the
    score.
    """

    name: ClassVar[str] = "local-cka"
    capabilities: ClassVar[Capabilities] = Capabilities(
        note="a baseline: one LAP on linearised CKA, whatever the distortion"
    )

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Solve the one assignment problem."""
        score = problem.linear + sum(_local_cost(A, B) for A, B in problem.factors)
        return Outcome(assignment(score), "heuristic")


def _local_cost(*kernels: FloatArray) -> FloatArray:
    """The least that row i of A and row j of B can cost together: A_ii B_jj, the rest sorted against each other."""
    A, B = map(centred, kernels)
    off = ~np.eye(len(A), dtype=bool)
    rest, other = (np.sort(matrix[off].reshape(len(A), -1), axis=1) for matrix in (A, B))
    return np.asarray(np.outer(np.diag(A), np.diag(B)) + rest @ other[:, ::-1].T)


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
