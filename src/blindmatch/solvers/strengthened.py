"""Branch and bound with the doubly nonnegative bound between the first nodes and the others.

Level 1 and a short look at the tree come first, so problems that they settle take no longer. Where the tree does not
end soon, the splitting takes over: it closes the gap, or rules out pairs before the tree goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate, Stage
from blindmatch.solvers.base import Budget, Outcome, Proof
from blindmatch.solvers.core_problem import RescaledBudget
from blindmatch.solvers.semidefinite import SemidefiniteRun, root_stages

_SMALLEST, _LARGEST = 14, 64  # below, the tree is faster; above, a step takes too long
_STEP = 1.3e-10  # seconds of a step, over the third power of the dimension
_STEPS = 40  # that must be affordable
_LOOK_STEPS = 10  # the tree may grow first for as long as so many steps take,
_LOOK_SHARE = 0.25  # or for this share of the root's time


class Glimpse:
    """A budget of the core that ends the tree when it has grown for a while."""

    def __init__(self, seconds: float) -> None:
        self.ended = False
        self._seconds = seconds
        self._began = math.inf

    def of(self, inner: RescaledBudget) -> Glimpse:
        """Watch this budget."""
        self._inner = inner
        return self

    @property
    def remaining(self) -> float:
        """Seconds left."""
        return self._inner.remaining

    @property
    def interrupted(self) -> bool:
        """Whether to stop at once."""
        return self._inner.interrupted

    @property
    def orphaned(self) -> bool:
        """Whether the main thread has ended."""
        return self._inner.orphaned

    def report(self, lower_bound: float, cost: float, iteration: int, proof_size: float = 0.0) -> bool:
        """Pass progress on; `iteration` is the number of nodes, 0 at the root."""
        go_on = self._inner.report(lower_bound, cost, iteration, proof_size)
        seconds = self._inner.inner.seconds
        if iteration > 0:
            self._began = min(self._began, seconds)
            self.ended = go_on and seconds - self._began > max(self._seconds, _LOOK_SHARE * self._began)
        return go_on and not self.ended

    def fail(self, error: BaseException) -> None:
        """Pass an exception on."""
        self._inner.fail(error)


Tree = Callable[[QAP, Budget, np.random.Generator, Glimpse | None], Outcome]


def worth_a_try(problem: QAP, budget: Budget) -> bool:
    """Whether there is time for enough steps of the splitting."""
    if not _SMALLEST <= problem.n <= _LARGEST:
        return False
    return _STEPS * _step_seconds(problem) <= budget.remaining


def _step_seconds(problem: QAP) -> float:
    return _STEP * float(problem.n - 1) ** 6


def strengthened(tree: Tree, problem: QAP, budget: Budget, rng: np.random.Generator) -> Outcome:
    """A look at the tree, the splitting, the tree on the pairs that are left; one proof of all of it."""
    glimpse = Glimpse(_LOOK_STEPS * _step_seconds(problem))
    first = tree(problem, budget, rng, glimpse)
    if not glimpse.ended or budget.stopped or not worth_a_try(problem, budget):
        return first
    run = SemidefiniteRun(problem, budget, root_stages(first))
    middle = run.run(None)
    if middle.status != "stalled" or budget.stopped:
        return replace(middle, message=f"{first.message}; semidefinite bound")
    rest = QAP.from_factors(problem.factors, problem.linear, problem.constant, forbidden=~run.allowed)
    last = tree(rest, budget, rng, None)
    note = f"{last.message}; semidefinite bound at the root"
    proof = Proof.of(last.certificate)
    if proof is None:
        # Pairs that the tree does not know of cost at least what ruled them out.
        bound = min(last.lower_bound or -math.inf, run.floor)
        if bound < run.bound:
            return replace(middle, permutation=last.permutation, status=last.status, message=note)
        return replace(last, lower_bound=bound, message=note)
    return replace(last, certificate=_joined(root_stages(middle), proof.make(None)), message=note)


def _joined(stages: tuple[Stage, ...], tree: Certificate) -> Certificate:
    """The proof of the tree, whose root also has the stages that came before."""
    first, *others = tree.nodes
    return replace(tree, nodes=(replace(first, stages=stages + first.stages), *others))
