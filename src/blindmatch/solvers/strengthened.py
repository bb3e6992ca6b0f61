"""Branch and bound with the doubly nonnegative bound, where level 1 does not end soon.

Level 1 and a short look at its tree come first, so problems that they settle take no longer. Then the splitting takes
over at the root, and at every node below it as far as its steps are short enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from blindmatch.machine import one_blas_thread
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate, Node
from blindmatch.solvers.base import Budget, Outcome, Proof
from blindmatch.solvers.pair_costs import PairCosts
from blindmatch.solvers.progress import Status
from blindmatch.solvers.semidefinite import SemidefiniteRun, root_stages
from blindmatch.solvers.semidefinite_branching import Symmetry
from blindmatch.solvers.semidefinite_checkpoint import TreeFile
from blindmatch.solvers.semidefinite_resume import EarlierNodes
from blindmatch.solvers.semidefinite_tree import CHECKS, OpenNode, SemidefiniteTree
from blindmatch.solvers.tasks import Tasks

_SMALLEST, _LARGEST = 12, 64  # below, the tree of level 1 is faster; above, a step takes too long
_LARGEST_TREE = 42  # items; with more pairs than these have, a node takes minutes, and Ctrl-C waits too long
_LARGE = 26  # items: below, level 1 ends in seconds by itself
_SLOW = 0.1  # of the gap: a report of level 1 that closes less is slow
_FEWEST = 3  # reports of level 1 before it may end: the first ones may come before it has really begun
_FAR, _NEAR = 0.33, 0.03  # shares of the first gap: above, one slow report ends level 1; below, none does
_STEP = 1e-10  # seconds of a step, over the third power of the dimension
_STEPS = 40  # number of steps that must be affordable
_NODE_STEPS = 20  # steps of most nodes, about
_HERE = 4.0  # seconds, about, of nodes that are bounded in this process before any go to an executor
_TASK = 0.5  # seconds, about, of a group of nodes that goes to an executor
_LOOK_NODES = 3e7  # divided by n^4: nodes of the first level-1 tree, a second or two
_LOOK_SHARE = 0.08  # times n^2: nodes of the first level-1 tree, as long as a few steps


class Patience:
    """Ends the root of level 1 where it gets nowhere: its linear program takes long, and closes what it can close fast.

    What the core reports there depends on the seed alone, so this does as well.
    """

    def __init__(self, n: int) -> None:
        self.over = False
        self._endless = n < _LARGE
        self._first = self._last = math.inf
        self._reports = 0
        self._slow = 0  # of them, one after the other

    def lasts(self, gap: float) -> bool:
        """Whether to go on after a report of the root."""
        if self._endless or gap <= 0:
            return True
        self._first = gap if self._first == math.inf else self._first
        self._reports += 1
        self._slow = self._slow + 1 if gap > (1 - _SLOW) * self._last else 0
        self._last = gap
        patient = self._reports < _FEWEST or self._slow < (1 if gap > _FAR * self._first else 2)
        self.over = not patient and gap > _NEAR * self._first
        return not self.over


# The tree of level 1 up to a number of nodes, and whether this limit or a lack of patience ended it.
Tree = Callable[[QAP, Budget, np.random.Generator, int | None, Patience | None], tuple[Outcome, bool]]


def worth_a_try(problem: QAP, budget: Budget) -> bool:
    """Whether there is time for enough steps of the splitting."""
    if not _SMALLEST <= problem.n <= _LARGEST:
        return False
    return _STEPS * _step_seconds(problem) <= budget.remaining


def _step_seconds(problem: QAP) -> float:
    return _STEP * float(problem.n - 1) ** 6


def _node_seconds(problem: QAP) -> float:
    return _NODE_STEPS * _step_seconds(problem)


@dataclass(frozen=True)
class Strengthened:
    """A look at the tree of level 1, the splitting at the root, and the tree below it; one proof of all of it.

    With an executor, its workers bound the nodes of the tree, but for the first ones. With a file, the last two are
    kept there, and taken up again.
    """

    problem: QAP
    budget: Budget
    proof_limit: int
    executor: Executor | None = None
    file: TreeFile | None = None

    def run(self, tree: Tree, rng: np.random.Generator) -> Outcome:
        """From the beginning, or from what the file has."""
        if self.file is not None and self.file.exists:
            return self._resume(self.file)
        problem, budget = self.problem, self.budget
        # A count and not a clock: the same seed gives the same result.
        nodes = max(_LOOK_NODES / problem.n**4, _LOOK_SHARE * problem.n**2)
        first, full = tree(problem, budget, rng, int(nodes), Patience(problem.n))
        if not full or budget.stopped:
            return first
        if not worth_a_try(problem, budget):  # the look took the time that the steps would have needed
            return tree(problem, budget, rng, None, None)[0]
        look = Proof.of(first.certificate)
        symmetries = () if look is None else look.make(1).symmetries
        return self._from_root(SemidefiniteRun(problem, budget, root_stages(first)), symmetries, first.message)

    def _resume(self, file: TreeFile) -> Outcome:
        problem, budget = self.problem, self.budget
        file.load()
        best = file.incumbent
        budget.offer(best, problem.objective(best))
        root, symmetries = file.node(0), file.symmetries
        notes = [f"resumed with {len(file)} node{'' if len(file) == 1 else 's'}"]
        notes += ["the end of the checkpoint was incomplete and is done again"] if file.torn else []
        if root.line is None:
            with file.refusing():
                start = file.relaxation(0, problem.n)
                run = SemidefiniteRun(problem, budget, root.stages, start=start)
            return self._from_root(run, symmetries, "; ".join(notes))
        earlier = EarlierNodes(file)
        with one_blas_thread():
            earlier.read(problem, lambda seconds: budget.stopped or budget.remaining < CHECKS * seconds)
        if len(earlier.bounded) < len(file):
            notes.append(f"the time was too short for more than {len(earlier.bounded)} of them")
        proof = Certificate(problem.n, (Node(stages=root.stages if earlier.bounded else (), spectral=True),))
        outcome = Outcome(best, budget.stop_status, proof, message="; ".join([*notes, "semidefinite bound"]))
        if not earlier.bounded:
            return outcome
        grown = SemidefiniteTree(problem, PairCosts(problem), budget, symmetries, self.proof_limit, file)
        grown.take_up(earlier)
        return self._grow(grown, outcome)

    def _from_root(self, run: SemidefiniteRun, symmetries: tuple[Symmetry, ...], note: str) -> Outcome:
        middle = self._root(run, symmetries)
        note = f"{note}; semidefinite bound"
        if middle.status != "stalled" or self.budget.stopped or run.allowed.sum() > _LARGEST_TREE**2:
            error = "" if self.file is None else self.file.error
            return replace(middle, message="; ".join(filter(None, (note, middle.message, error))))
        grown = SemidefiniteTree(self.problem, run.costs, self.budget, symmetries, self.proof_limit, self.file)
        grown.begin(run.as_root())
        return self._grow(grown, replace(middle, message=note))

    def _root(self, run: SemidefiniteRun, symmetries: tuple[Symmetry, ...]) -> Outcome:
        """The splitting at the root; what it has proved is kept from time to time, and when it ends."""
        file, unwritten = self.file, None
        if file is None:
            return run.run(None, _LARGEST_TREE**2)

        def keep(run: SemidefiniteRun) -> None:
            nonlocal unwritten
            assert run.budget.best is not None
            unwritten = run.all_stages, run.relaxation, symmetries, run.budget.best[1]
            if file.due:
                file.write_root(*unwritten)
                unwritten = None

        try:
            return run.run(None, _LARGEST_TREE**2, keep)
        finally:  # also at SIGTERM
            if unwritten is not None:
                file.write_root(*unwritten)

    def _grow(self, grown: SemidefiniteTree, root: Outcome) -> Outcome:
        seconds = _node_seconds(self.problem)
        with one_blas_thread():
            grown.run(None if self.executor is None else grown.count + int(_HERE / seconds))
            if self.executor is None or grown.ended:
                return _outcome(grown, root)
            tasks: Tasks[list[OpenNode]] = Tasks(self.executor)
            grown.run_on(tasks, largest=max(1, int(_TASK / seconds)))
        return replace(_outcome(grown, root, tasks.losses("groups of nodes")), executor=self.executor)


def _outcome(tree: SemidefiniteTree, root: Outcome, losses: str = "") -> Outcome:
    assert tree.budget.best is not None
    error = "" if tree.file is None else tree.file.error
    note = "; ".join(filter(None, (f"{root.message} at {tree.count} nodes", losses, error)))
    closed = tree.bound >= tree.target
    status: Status = "optimal" if closed else tree.budget.stop_status
    result = replace(root, permutation=tree.budget.best[1], status=status, message=note)
    if tree.nodes:
        return replace(result, certificate=tree.certificate)
    note += f"; the proof of the tree exceeded proof_limit={tree.proof_limit} bytes and was dropped"
    if not closed:  # the root's proof is worth more than the few per cent that it lacks
        return replace(result, message=note)
    return replace(result, certificate=None, lower_bound=tree.problem.round_up(tree.bound), message=note)
