"""Branch and bound with the doubly nonnegative bound at every node.

A child starts from its parent's dual, with the fixed pair folded in. This dual proves the parent's bound for that pair.
A few steps then achieve what took hundreds at the root. So the trees are small: hundreds of nodes where level 1 needs
hundreds of thousands.
"""

from __future__ import annotations

import heapq
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate, Node
from blindmatch.solvers.base import Budget
from blindmatch.solvers.checkpoint import TreeFile
from blindmatch.solvers.semidefinite_node import (
    Bounded,
    NodeBounder,
    Symmetry,
    children_elsewhere,
    choose_line,
    line_penalties,
)
from blindmatch.solvers.semidefinite_stage import PairCosts
from blindmatch.solvers.shared_tree import Tasks
from blindmatch.solvers.two_opt import improve

if TYPE_CHECKING:
    from blindmatch.solvers.strengthened import EarlierNodes

_NODE_SECONDS = 2e-9  # of a node, over n^6
_WAVE = 8  # nodes that are bounded at the same time; constant, so that the tree does not depend on the threads
_OPEN_BYTES = 1 << 30  # memory of the relaxations of open nodes; above it, the tree is searched depth first
CHECKS = 1.3  # time to check the whole proof, divided by the sum over its nodes

# The bound that a child inherits, its number, its parent, and its pair among the rows and columns the parent leaves.
OpenNode = tuple[float, int, Bounded, int, int]


class SemidefiniteTree:
    """The tree below a root that is already bounded.

    The budget has an incumbent. A proof of more than `proof_limit` bytes is dropped. `file` is the checkpoint.
    """

    def __init__(
        self,
        problem: QAP,
        costs: PairCosts,
        budget: Budget,
        symmetries: tuple[Symmetry, ...],
        proof_limit: int,
        file: TreeFile | None = None,
    ) -> None:
        self.problem, self.budget, self.symmetries, self.file = problem, budget, symmetries, file
        self._penalties = line_penalties(problem)
        self.bounder = NodeBounder(problem, costs, budget, lambda: self.out_of_time)
        self.nodes: list[Node] = []  # the certificate
        self.count = self._counted = 0
        self._node_seconds = _NODE_SECONDS * float(problem.n - 1) ** 6
        self.proof_bytes, self.proof_limit = 0, proof_limit
        self.check_seconds = 0.0
        self.root_bound = -math.inf
        self._open: list[OpenNode] = []
        self._open_bytes = 0
        self._parents: dict[int, Bounded] = {}  # parents of nodes that are open or being bounded
        self._pushed = 0
        self._settled = 0  # number of nodes that are closed or branched on; the newest node may be neither
        self._closed = math.inf  # the least bound of the closed nodes
        self._torn = False  # whether an exception interrupted a step, so that open nodes may be missing
        self._tasks: Tasks[list[OpenNode]] | None = None

    def begin(self, root: Bounded) -> None:
        """Branch on the root."""
        self.root_bound = root.view.bound
        self._keep(root, -1)
        self._settle(root)

    def take_up(self, earlier: EarlierNodes) -> None:
        """Continue the tree of an earlier run."""
        self.root_bound = earlier.bounded[0].view.bound
        for node, proof in zip(earlier.bounded, earlier.proofs, strict=True):
            self._keep(node, proof.parent)
        for node in earlier.bounded:
            self._settle(node, earlier)

    @property
    def target(self) -> float:
        """The bound that proves the incumbent optimal."""
        return self.budget.target(self.problem)

    @property
    def bound(self) -> float:
        """The lower bound for all permutations: the least bound of open and closed nodes."""
        if self._torn:
            return self.root_bound
        out = [] if self._tasks is None else self._tasks.out.values()
        open_ = (entry[0] for group in (self._open, *out) for entry in group)
        return max(self.root_bound, min(self._closed, min(open_, default=math.inf)))

    @property
    def out_of_time(self) -> bool:
        """Whether the remaining time is needed to check the proof."""
        return self.budget.stopped or self.budget.remaining < CHECKS * self.check_seconds

    @property
    def certificate(self) -> Certificate:
        """The proof of the tree so far, if it was not dropped."""
        return Certificate(self.problem.n, tuple(self.nodes), symmetries=self.symmetries)

    @property
    def ended(self) -> bool:
        """Whether no node is open, or the budget has ended."""
        return not self._open or self.out_of_time

    def run(self, most: int | None = None) -> None:
        """Bound nodes until none is open, the budget ends or there are `most`. LAPACK must run on one thread."""
        pool = ThreadPoolExecutor(max(1, min(self.budget.threads, _WAVE)))
        try:
            while not self.ended and (most is None or self.count < most) and self._wave(pool):
                pass
        except BaseException as error:  # Ctrl-C, a thread that failed: the best so far is kept
            self._torn = True
            self.budget.fail(error)  # the threads see it before their next step
        finally:
            pool.shutdown(cancel_futures=True)
            self._save()

    def run_on(self, tasks: Tasks[list[OpenNode]], largest: int) -> None:
        """The same on the workers of an executor, which get groups of nodes.

        A group has at most `largest` nodes, and fewer if there would not be enough groups for all workers.
        """
        self._tasks = tasks

        def hand_out(room: int) -> bool:
            group = self._take(min(largest, 1 + len(self._open) // (2 * room)))
            parents = {id(parent): replace(parent, stages=(), match=None) for _, _, parent, _, _ in group}
            children = [(parents[id(parent)], i, j) for _, _, parent, i, j in group]
            if group:
                tasks.submit(group, children_elsewhere, self.problem, children, self.target, self.budget.remaining)
            return bool(group)

        def take_in(group: list[OpenNode], nodes: list[Bounded | None] | None) -> None:
            for entry, node in zip(group, nodes or [None] * len(group), strict=True):
                self._take_in(entry, node)

        try:
            self._torn = not tasks.work(hand_out, take_in, lambda: self._report() and not self.out_of_time, self.budget)
        finally:
            self._save()

    def _wave(self, pool: ThreadPoolExecutor) -> bool:
        """Bound the next few nodes at the same time, and use the results in the order of the nodes."""
        target, left = self.target, self.budget.nodes_left
        taken = self._take(_WAVE if left is None else min(_WAVE, left))
        jobs = [pool.submit(self.bounder.child, parent, i, j, target) for _, _, parent, i, j in taken]
        whole = True
        for entry, job in zip(taken, jobs, strict=True):
            whole &= self._take_in(entry, job.result() if not self.budget.interrupted else None)
        return whole and self._report()

    def _take(self, most: int) -> list[OpenNode]:
        """The next nodes to bound."""
        target = self.target
        taken: list[OpenNode] = []
        while self._open and len(taken) < most:
            entry = self._pop()
            if entry[0] >= target:  # a better permutation was found since
                self._closed = min(self._closed, entry[0])
                self._release(entry[2])
            else:
                taken.append(entry)
        return taken

    def _take_in(self, entry: OpenNode, node: Bounded | None) -> bool:
        """Add a bounded node to the tree; if it was not bounded, reopen it and return False."""
        if node is None:
            heapq.heappush(self._open, entry)
            return False
        self._keep(node, entry[2].index)
        self._settle(node)
        self._release(entry[2])
        return True

    def _report(self) -> bool:
        if self.file is not None and self.file.due:
            self._save()
        counted, self._counted = self.count - self._counted, self.count
        self.budget.count_nodes(counted)
        self.budget.spend(counted * self._node_seconds)
        waiting = len(self._open)
        bound = min(self.bound, self.target)
        return self.budget.report(bound, None, self.count, phase="semidefinite tree", open_nodes=waiting)

    def _save(self) -> None:
        """Update the checkpoint. Without a proof there is nothing to write."""
        if self.file is None or not self.nodes or self.budget.best is None:
            return
        starts = {index: node.relaxation for index, node in self._parents.items() if node.relaxation is not None}
        self.file.write(self.nodes[: self._settled], starts, self.symmetries, self.budget.best[1])

    def _pop(self) -> OpenNode:
        """Take the node with the lowest bound, so that the global bound rises; the newest if memory is short."""
        if self._open_bytes <= _OPEN_BYTES:
            return heapq.heappop(self._open)
        newest = max(range(len(self._open)), key=lambda at: self._open[at][1])
        self._open[newest], self._open[-1] = self._open[-1], self._open[newest]
        entry = self._open.pop()
        heapq.heapify(self._open)
        return entry

    def _keep(self, node: Bounded, parent: int) -> None:
        """Number a node and append it to the proof; drop the proof if it becomes too large."""
        node.index = self.count
        self.count += 1
        self.check_seconds += node.check_seconds
        if node.index > 0 and not self.nodes:
            return
        self.nodes.append(Node(parent, node.pair, node.stages, spectral=node.pair is None))
        self.proof_bytes += Certificate(self.problem.n, (self.nodes[-1],)).nbytes
        if self.proof_bytes > self.proof_limit:
            self.nodes = []
            self.check_seconds = 0.0

    def _release(self, parent: Bounded) -> None:
        """Note that a child is done. After the last one, free the relaxation of the parent."""
        parent.waiting -= 1
        if not parent.waiting:
            del self._parents[parent.index]
            self._open_bytes -= parent.relaxation.nbytes if parent.relaxation is not None else 0
            parent.relaxation = None

    def _settle(self, node: Bounded, earlier: EarlierNodes | None = None) -> None:
        """Close a node, or branch on it."""
        if node.match is not None and self.problem.allows(node.match):
            match = improve(self.problem, node.match)
            self.budget.offer(match, self.problem.objective(match))
            node.match = None
        target = self.target
        if node.view.complete or node.view.bound >= target:
            self._closed = min(self._closed, node.view.bound)
        else:
            self._branch(node, target, earlier)
        self._settled = node.index + 1

    def _branch(self, node: Bounded, target: float, earlier: EarlierNodes | None) -> None:
        """Open the children of a node, on the best line or on the one that an earlier run chose."""
        bounds = np.maximum(node.view.pair_bounds, node.view.bound)
        self._closed = min(self._closed, float(bounds[bounds >= target].min(initial=math.inf)))
        chosen = None if earlier is None else earlier.proofs[node.index].line
        line = choose_line(node.view, bounds, target, self.symmetries, self._penalties, chosen)
        if self.nodes:
            self.nodes[node.index] = replace(self.nodes[node.index], line=line.line, skipped=line.skipped)
        children = line.children if earlier is None else earlier.left(node, line)
        if not children:
            return
        node.waiting, self._parents[node.index] = len(children), node
        self._open_bytes += node.relaxation.nbytes if node.relaxation is not None else 0
        for i, j in children:
            self._pushed += 1
            heapq.heappush(self._open, (float(bounds[i, j]), -self._pushed, node, i, j))
