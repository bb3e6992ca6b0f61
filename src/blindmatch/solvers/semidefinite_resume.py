"""Resume the tree of an earlier run from its checkpoint.

The checker decides what each node proves, and each symmetry is tested. So a forged file cannot lead to a false bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import COLUMN, ROW, Node, Pair
from blindmatch.proof.checker import NodeView
from blindmatch.proof.rounding import guarded
from blindmatch.proof.stage_check import Effort
from blindmatch.solvers.checkpoint import TreeFile
from blindmatch.solvers.semidefinite_node import Bounded, BranchingLine


@dataclass
class EarlierNodes:
    """The nodes of an earlier run, parents before children, and the pairs that they fix."""

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
