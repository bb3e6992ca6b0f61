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
from blindmatch.solvers.semidefinite import SemidefiniteRun, root_stages

_SMALLEST, _LARGEST = 16, 64  # below, the tree is faster; above, a step takes too long
_STEP = 1.3e-10  # seconds of a step, over the third power of the dimension
_STEPS = 40  # that must be affordable
_LOOK_NODES = 1e8  # over n^4: what the tree does first takes about a second,
_LOOK_SHARE = 0.25  # or, over n^2, as long as about ten steps

# The tree up to a number of nodes, and whether this limit ended it.
Tree = Callable[[QAP, Budget, np.random.Generator, int | None], tuple[Outcome, bool]]


def worth_a_try(problem: QAP, budget: Budget) -> bool:
    """Whether there is time for enough steps of the splitting."""
    if not _SMALLEST <= problem.n <= _LARGEST:
        return False
    return _STEPS * _step_seconds(problem) <= budget.remaining


def _step_seconds(problem: QAP) -> float:
    return _STEP * float(problem.n - 1) ** 6


def strengthened(tree: Tree, problem: QAP, budget: Budget, rng: np.random.Generator) -> Outcome:
    """A look at the tree, the splitting, the tree on the pairs that are left; one proof of all of it."""
    # A count and not a clock: the same seed gives the same result.
    nodes = max(_LOOK_NODES / problem.n**4, _LOOK_SHARE * problem.n**2)
    first, full = tree(problem, budget, rng, int(nodes))
    if not full or budget.stopped or not worth_a_try(problem, budget):
        return first
    run = SemidefiniteRun(problem, budget, root_stages(first))
    middle = run.run(None)
    if middle.status != "stalled" or budget.stopped:
        return replace(middle, message=f"{first.message}; semidefinite bound")
    rest = QAP.from_factors(problem.factors, problem.linear, problem.constant, forbidden=~run.allowed)
    last, _ = tree(rest, budget, rng, None)
    note = f"{last.message}; semidefinite bound at the root"
    proof = Proof.of(last.certificate)
    if proof is None:
        # Pairs that the tree does not know of cost at least what ruled them out.
        bound = min(last.lower_bound or -math.inf, run.floor)
        if last.status != "optimal" or bound < run.bound:  # a proof is worth more than the few per cent that it lacks
            return replace(middle, permutation=last.permutation, status=last.status, message=note)
        return replace(last, lower_bound=bound, message=note)
    return replace(last, certificate=_joined(root_stages(middle), proof.make(None)), message=note)


def _joined(stages: tuple[Stage, ...], tree: Certificate) -> Certificate:
    """The proof of the tree, whose root also has the stages that came before."""
    first, *others = tree.nodes
    return replace(tree, nodes=(replace(first, stages=stages + first.stages), *others))
