"""Branch and bound with the doubly nonnegative bound, where level 1 does not end soon.

Level 1 and a short look at its tree come first, so problems that they settle take no longer. Then the splitting takes
over at the root, and at every node below it as far as its steps are short enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Budget, Outcome, Proof
from blindmatch.solvers.progress import Status
from blindmatch.solvers.semidefinite import SemidefiniteRun, root_stages
from blindmatch.solvers.semidefinite_tree import SemidefiniteTree

_SMALLEST, _LARGEST = 12, 64  # below, the tree of level 1 is faster; above, a step takes too long
_LARGEST_TREE = 42  # above, a node takes minutes, and a step of it too long for Ctrl-C to wait
_STEP = 1.3e-10  # seconds of a step, over the third power of the dimension
_STEPS = 40  # that must be affordable
_LOOK_NODES = 3e7  # over n^4: what the tree does first takes a second or two,
_LOOK_SHARE = 0.08  # or, over n^2, as long as a few steps

# The tree of level 1 up to a number of nodes, and whether this limit ended it.
Tree = Callable[[QAP, Budget, np.random.Generator, int | None], tuple[Outcome, bool]]


def worth_a_try(problem: QAP, budget: Budget) -> bool:
    """Whether there is time for enough steps of the splitting."""
    if not _SMALLEST <= problem.n <= _LARGEST:
        return False
    return _STEPS * _step_seconds(problem) <= budget.remaining


def _step_seconds(problem: QAP) -> float:
    return _STEP * float(problem.n - 1) ** 6


def strengthened(tree: Tree, problem: QAP, budget: Budget, rng: np.random.Generator, proof_limit: int) -> Outcome:
    """A look at the tree of level 1, the splitting at the root, and the tree below it; one proof of all of it."""
    # A count and not a clock: the same seed gives the same result.
    nodes = max(_LOOK_NODES / problem.n**4, _LOOK_SHARE * problem.n**2)
    first, full = tree(problem, budget, rng, int(nodes))
    if not full or budget.stopped:
        return first
    if not worth_a_try(problem, budget):  # the look took the time that the steps would have needed
        return tree(problem, budget, rng, None)[0]
    look = Proof.of(first.certificate)
    run = SemidefiniteRun(problem, budget, root_stages(first))
    middle = run.run(None)
    note = f"{first.message}; semidefinite bound"
    if middle.status != "stalled" or budget.stopped or problem.n > _LARGEST_TREE:
        return replace(middle, message="; ".join(filter(None, (note, middle.message))))
    symmetries = () if look is None else look.make(1).symmetries
    grown = SemidefiniteTree(problem, run.costs, budget, run.as_root(), symmetries, proof_limit)
    with run.blas.limit(limits=1, user_api="blas"):
        grown.run()
    return _outcome(grown, middle, f"{note} at {grown.count} nodes")


def _outcome(tree: SemidefiniteTree, root: Outcome, note: str) -> Outcome:
    assert tree.budget.best is not None
    closed = tree.bound >= tree.target
    status: Status = "optimal" if closed else tree.budget.stop_status
    result = replace(root, permutation=tree.budget.best[1], status=status, message=note)
    if tree.nodes:
        return replace(result, certificate=tree.certificate)
    note += f"; the proof of the tree exceeded proof_limit={tree.proof_limit} bytes and was dropped"
    if not closed:  # the root's proof is worth more than the few per cent that it lacks
        return replace(result, message=note)
    return replace(result, certificate=None, lower_bound=tree.problem.round_up(tree.bound), message=note)
