"""LocalCKA (Maniparambil et al. 2024) without known pairs: the CKA kernels, and one LAP on a linearised score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from blindmatch.geometry.kernels import centred
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Budget, Capabilities, Outcome, Solver
from blindmatch.solvers.relaxation import assignment
from blindmatch.validation import FloatArray


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
        score = problem.linear + sum(_local_cost(centred(A), centred(B)) for A, B in problem.factors)
        return Outcome(assignment(score), "heuristic")


def _local_cost(A: FloatArray, B: FloatArray) -> FloatArray:
    """The least that row i of A and row j of B can cost together: A_ii B_jj, the rest sorted against each other."""
    return np.asarray(np.outer(np.diag(A), np.diag(B)) + _sorted_rest(A) @ _sorted_rest(B)[:, ::-1].T)


def _sorted_rest(matrix: FloatArray) -> FloatArray:
    """The rows without their diagonal entries, sorted."""
    n = len(matrix)
    return np.sort(matrix[~np.eye(n, dtype=bool)].reshape(n, n - 1), axis=1)
