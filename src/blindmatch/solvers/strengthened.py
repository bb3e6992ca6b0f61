"""Branch and bound with the doubly nonnegative bound, for problems that level 1 does not solve quickly.

Level 1 and a few nodes of its tree come first, so problems that they solve take no longer. Then the splitting bounds
the root again, and every node of a new tree if its steps are short enough.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np

from blindmatch.machine import available_bytes, one_blas_thread
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import COLUMN, ROW, Certificate, Node, Pair
from blindmatch.proof.checker import NodeView
from blindmatch.proof.rounding import guarded
from blindmatch.proof.stage_check import Effort
from blindmatch.solvers.base import Budget, Outcome, Proof
from blindmatch.solvers.checkpoint import TreeFile
from blindmatch.solvers.progress import Status
from blindmatch.solvers.semidefinite import ALL_DIRECTIONS_UP_TO, SemidefiniteRun, root_stages, semidefinite_bytes
from blindmatch.solvers.semidefinite_node import Bounded, BranchingLine, Symmetry
from blindmatch.solvers.semidefinite_stage import PairCosts
from blindmatch.solvers.semidefinite_tree import CHECKS, OpenNode, SemidefiniteTree
from blindmatch.solvers.shared_tree import Tasks

_SMALLEST, _LARGEST = 12, 104  # items; for fewer, the tree of level 1 is faster; for more, a step takes too long
_LARGEST_TREE = 42  # items; with more pairs than they have, a node takes minutes, and Ctrl-C would wait too long
_LARGE = 26  # items; with fewer, level 1 ends within seconds
_SLOW = 0.1  # a report of level 1 that closes less than this share of the gap is slow
_FEWEST = 3  # reports before level 1 may be ended: the first ones may come before it makes progress
# Shares of the first gap: above _FAR one slow report ends level 1, below _NEAR no number of them does, else two do.
_FAR, _NEAR = 0.33, 0.03
_STEP = 1e-10  # seconds of a step, divided by the cube of the dimension
_LOW_RANK_STEP = 1.5e-11  # the same with a slack of low rank
_STEPS = 40  # number of steps for which there must be time
_NODE_STEPS = 20  # approximate number of steps of a node
_HERE = 4.0  # seconds to bound nodes in this process before any are sent to an executor
_TASK = 0.5  # seconds of work in a group of nodes that is sent to an executor
_LOOK_NODES = 3e7  # divided by n^4: number of nodes of the first tree, which take a second or two
_LOOK_SHARE = 0.08  # times n^2: their least number, which takes as long as a few steps


class Patience:
    """Ends the root of level 1 when it makes no more progress: its linear program is slow, and gains most at first.

    It may go on where at most half of the items of a side have relations: the tree of level 1, which needs its duals,
    then places only these, and is small.
    The reports of the core depend only on the seed, so this decision does too.
    """

    def __init__(self, n: int, placed: int) -> None:
        self.over = False
        self._endless = n < _LARGE or 2 * placed <= n
        self._first = self._last = math.inf
        self._reports = 0
        self._slow = 0  # slow reports in a row

    def lasts(self, gap: float) -> bool:
        """Whether to continue after a report of the root."""
        if self._endless or gap <= 0:
            return True
        self._first = gap if self._first == math.inf else self._first
        self._reports += 1
        self._slow = self._slow + 1 if gap > (1 - _SLOW) * self._last else 0
        self._last = gap
        patient = self._reports < _FEWEST or self._slow < (1 if gap > _FAR * self._first else 2)
        self.over = not patient and gap > _NEAR * self._first
        return not self.over


# Runs the tree of level 1 up to a number of nodes; also returns whether this limit or a lack of patience ended it.
Tree = Callable[[QAP, Budget, np.random.Generator, int | None, Patience | None], tuple[Outcome, bool]]


def strengthened_bytes(problem: QAP) -> int:
    """What the splitting takes for problems of its sizes; 0 for others."""
    return semidefinite_bytes(problem) if _SMALLEST <= problem.n <= _LARGEST else 0


def worth_a_try(problem: QAP, budget: Budget, memory_limit: float = math.inf) -> bool:
    """Whether there is time for enough steps of the splitting, and memory for its matrices."""
    if not 0 < strengthened_bytes(problem) <= min(memory_limit, available_bytes()):
        return False
    return _STEPS * _step_seconds(problem) <= budget.remaining


def _placed(problem: QAP) -> int:
    """The number of items that have relations to others, on the side with fewer of them."""
    sides = zip(*problem.normal_form.factors, strict=True)
    return int(min(np.any([matrix.any(axis=1) for matrix in side], axis=0).sum() for side in sides))


def _step_seconds(problem: QAP) -> float:
    return (_LOW_RANK_STEP if problem.n**2 > ALL_DIRECTIONS_UP_TO else _STEP) * float(problem.n - 1) ** 6


@dataclass
class EarlierNodes:
    """The nodes of an earlier run, parents before children, and the pairs that they fix.

    The checker decides what each node proves, so a forged file cannot lead to a false bound.
    """

    file: TreeFile
    proofs: list[Node] = field(default_factory=list)
    bounded: list[Bounded] = field(default_factory=list)
    done: set[tuple[int, Pair | None]] = field(default_factory=set)  # parent and pair
    check_seconds: float = 0.0

    def read(self, problem: QAP, over: Callable[[float], bool]) -> None:
        """Read and check the nodes until `over` says that time is up; it gets the seconds spent on checks so far."""
        for index in range(len(self.file)):
            if over(self.check_seconds):
                return
            proof = self.file.node(index)
            with self.file.refusing(), guarded():
                self._add(problem, index, proof)

    def _add(self, problem: QAP, index: int, proof: Node) -> None:
        if (index == 0) != (proof.parent == -1 and proof.pair is None) or not -1 <= proof.parent < index:
            raise ValueError("a node without a parent")
        parent = None
        if index > 0:
            line, parent = self.proofs[proof.parent].line, self.bounded[proof.parent].view
            i, j = proof.pair or (-1, -1)
            on_line = line is not None and (i, j)[line[0]] == line[1]
            if not on_line or i not in parent.rows or j not in parent.columns or (proof.parent, (i, j)) in self.done:
                raise ValueError("not a child of its parent")
        start = time.thread_time()
        view = NodeView(problem, proof, parent, ())
        view.use_proofs(replace(proof, spectral=False), Effort())
        seconds = time.thread_time() - start
        if proof.line is not None:
            side, at = proof.line
            if side not in (ROW, COLUMN) or at not in (view.rows, view.columns)[side]:
                raise ValueError("a line that is not free")
        self.check_seconds += seconds
        self.done.add((proof.parent, proof.pair))
        self.proofs.append(proof)
        self.bounded.append(Bounded(proof.pair, view, proof.stages, check_seconds=seconds))

    def left(self, node: Bounded, line: BranchingLine) -> list[Pair]:
        """The children that are not bounded yet. If there are any, load the relaxation from which they start."""
        rows, columns = node.view.rows, node.view.columns
        left = [(i, j) for i, j in line.children if (node.index, (int(rows[i]), int(columns[j]))) not in self.done]
        if left:
            start = self.file.relaxation(node.index, len(rows))
            # Bounds differ in the last digits between machines: a pair may be allowed here that was ruled out there.
            node.relaxation = start if start is not None and all(start.allowed[pair] for pair in left) else None
        return left


@dataclass(frozen=True)
class Strengthened:
    """The first nodes of level 1, the splitting at the root, and the semidefinite tree; one proof covers all of it.

    With an executor, its workers bound all but the first nodes of the semidefinite tree. With a file, the root and that
    tree are saved in it, and an earlier run is resumed from it.
    """

    problem: QAP
    budget: Budget
    proof_limit: int
    executor: Executor | None = None
    file: TreeFile | None = None

    def run(self, tree: Tree, rng: np.random.Generator) -> Outcome:
        """Start from the beginning, or resume from the file."""
        if self.file is not None and self.file.exists:
            return self._resume(self.file)
        problem, budget = self.problem, self.budget
        # A number of nodes, not of seconds: the same seed gives the same result.
        nodes = max(_LOOK_NODES / problem.n**4, _LOOK_SHARE * problem.n**2)
        first, full = tree(problem, budget, rng, int(nodes), Patience(problem.n, _placed(problem)))
        if not full or budget.stopped:
            return first
        if not worth_a_try(problem, budget):  # the first nodes took the time that the steps need
            return tree(problem, budget, rng, None, None)[0]
        look = Proof.of(first.certificate)
        symmetries = () if look is None else look.make(1).symmetries
        return self._from_root(SemidefiniteRun(problem, budget, root_stages(first)), symmetries, *first.notes)

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
            return self._from_root(run, symmetries, *notes)
        earlier = EarlierNodes(file)
        with one_blas_thread():
            earlier.read(problem, lambda seconds: budget.stopped or budget.remaining < CHECKS * seconds)
        if len(earlier.bounded) < len(file):
            notes.append(f"the time was too short for more than {len(earlier.bounded)} of them")
        proof = Certificate(problem.n, (Node(stages=root.stages if earlier.bounded else (), spectral=True),))
        outcome = Outcome(best, budget.stop_status, proof, notes=(*notes, "semidefinite bound"))
        if not earlier.bounded:
            return outcome
        grown = SemidefiniteTree(problem, PairCosts(problem), budget, symmetries, self.proof_limit, file)
        grown.take_up(earlier)
        return self._grow(grown, outcome)

    def _from_root(self, run: SemidefiniteRun, symmetries: tuple[Symmetry, ...], *notes: str) -> Outcome:
        middle = self._root(run, symmetries)
        notes = (*notes, "semidefinite bound")
        if middle.status != "stalled" or self.budget.stopped or run.allowed.sum() > _LARGEST_TREE**2:
            error = "" if self.file is None else self.file.error
            return replace(middle, notes=(*notes, *middle.notes, error))
        grown = SemidefiniteTree(self.problem, run.costs, self.budget, symmetries, self.proof_limit, self.file)
        grown.begin(run.as_root())
        return self._grow(grown, replace(middle, notes=notes))

    def _root(self, run: SemidefiniteRun, symmetries: tuple[Symmetry, ...]) -> Outcome:
        """Run the splitting at the root; save what it has proved regularly and at the end."""
        file, unwritten = self.file, None
        if file is None:
            return run.run(None, _LARGEST_TREE**2)

        def keep(run: SemidefiniteRun) -> None:
            nonlocal unwritten
            assert run.budget.best is not None
            unwritten = run.all_stages, run.splitting.state, symmetries, run.budget.best[1]
            if file.due:
                file.write_root(*unwritten)
                unwritten = None

        try:
            return run.run(None, _LARGEST_TREE**2, keep)
        finally:  # also at SIGTERM
            if unwritten is not None:
                file.write_root(*unwritten)

    def _grow(self, grown: SemidefiniteTree, root: Outcome) -> Outcome:
        seconds = _NODE_STEPS * _step_seconds(self.problem)
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
    *before, last = root.notes
    notes = (*before, f"{last} at {tree.count} nodes", losses, error)
    closed = tree.bound >= tree.target
    status: Status = "optimal" if closed else tree.budget.stop_status
    result = replace(root, permutation=tree.budget.best[1], status=status, notes=notes)
    if tree.nodes:
        return replace(result, certificate=tree.certificate)
    notes += (f"the proof of the tree exceeded proof_limit={tree.proof_limit} bytes and was dropped",)
    if not closed:  # a checked proof of the root is worth more than a slightly higher bound without a proof
        return replace(result, notes=notes)
    return replace(result, certificate=None, lower_bound=tree.problem.round_up(tree.bound), notes=notes)
