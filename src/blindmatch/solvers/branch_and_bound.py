"""Branch and bound on the dual ascent: the optimum, with a proof tree that can be checked without the solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from blindmatch import _core
from blindmatch.certificate import Certificate, Node, Pair
from blindmatch.problem import QAP
from blindmatch.solvers.base import Budget, Capabilities, Outcome
from blindmatch.solvers.core_problem import ScaledProblem
from blindmatch.solvers.dual_ascent import final_status, first_match
from blindmatch.validation import at_least


@dataclass(frozen=True)
class BranchAndBound:
    """Exact, given time: the root is the dual ascent, then rows or columns take each of their partners.

    Parameters
    ----------
    memory_limit
        Bytes that the first-order method at the root may use.
    proof_limit
        Bytes of the proof tree; a larger one is dropped, and the result (with its bound) kept.
    """

    memory_limit: int = 4 << 30
    proof_limit: int = 1 << 30

    name: ClassVar[str] = "branch-and-bound"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True, exact=True, forbidden=True, max_size=600, note="ours; exact, with a proof tree"
    )

    def __post_init__(self) -> None:
        at_least(self.memory_limit, 0, "memory_limit")
        at_least(self.proof_limit, 0, "proof_limit")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Search, ascend, branch."""
        start = first_match(problem, budget, rng)
        scaled = ScaledProblem.of(problem)
        permutation, status, bound, nodes, proof, symmetries = _core.branch_and_bound(
            scaled.core,
            scaled.granularity,
            self.memory_limit,
            self.proof_limit,
            _may_have_symmetries(problem),
            int(rng.integers(2**63)),
            budget.threads,
            start,
            scaled.budget(budget, check_seconds=1e-3 + 1e-8 * problem.n**4),
        )
        match = permutation.astype(np.intp)
        status = final_status(status, budget)
        if not proof:
            message = f"{nodes} nodes; the proof outgrew proof_limit={self.proof_limit} bytes and was dropped"
            return Outcome(match, status, lower_bound=problem.round_up(scaled.cost(bound)), message=message)
        tree = tuple(
            Node(parent, _pair(pair), scaled.stages(stages), _pair(line), parent < 0, tuple(skipped))
            for parent, pair, stages, line, skipped in proof
        )
        images = tuple((side, image.astype(np.intp)) for side, image in symmetries)
        certificate = Certificate(problem.n, tree, symmetries=images)
        return Outcome(match, status, certificate, message=f"{nodes} nodes")


def _may_have_symmetries(problem: QAP) -> bool:
    """Whether a symmetry of the normal form is one of the matrices themselves, which is what the checker looks at."""
    matrices = [matrix for pair in problem.factors for matrix in pair]
    plain = all(matrix.any() and not np.diag(matrix).any() and (matrix == matrix.T).all() for matrix in matrices)
    return plain and not problem.linear.any()


def _pair(values: tuple[int, int]) -> Pair | None:
    return None if values[0] < 0 else values
