"""Branch and bound on an executor: workers get pieces of the tree and send back what they proved."""

from __future__ import annotations

import atexit
import uuid
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import lru_cache

from blindmatch import _core
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Budget
from blindmatch.solvers.checkpoint import Checkpoint
from blindmatch.solvers.core_problem import RescaledBudget, RescaledProblem
from blindmatch.solvers.progress import Limits
from blindmatch.solvers.tasks import Tasks

ROOT_NODES = 64  # nodes that this process bounds before pieces are sent out
_SHORTEST, _LONGEST = 2.0, 30.0  # seconds of work on a piece
_SHARE = 0.05  # seconds of work on a piece, as a share of the age of the run


@dataclass(frozen=True)
class Work:
    """What a worker needs besides the piece; the same for all pieces of a run."""

    problem: QAP = field(compare=False)
    limits: Limits = field(compare=False)
    symmetry: bool = field(compare=False)
    proof_limit: int = field(compare=False)
    run: str = field(default_factory=lambda: uuid.uuid4().hex)  # tells runs apart


def grow(work: Work, piece: bytes, seconds: float) -> bytes:
    """Work on a piece for some seconds, in the process of a worker."""
    scaled, options = _prepared(work)
    budget = RescaledBudget(Budget(seconds, threads=1), scaled.exponent, scaled.size, check_seconds=0.0)
    return _core.grow_piece(scaled.core, options, piece, budget)


@lru_cache(maxsize=1)
def _prepared(work: Work) -> tuple[RescaledProblem, _core.BranchAndBoundOptions]:
    """In a worker: the problem and the options of its current run."""
    scaled = RescaledProblem.of(work.problem, work.limits)
    root = _core.DualAscentOptions(target=scaled.target, memory_limit=0, seed=0, threads=1)
    # Depth first (open_limit=0), because open nodes must be sent back.
    options = _core.BranchAndBoundOptions(root=root, proof_limit=work.proof_limit, open_limit=0, symmetry=work.symmetry)
    return scaled, options


atexit.register(_prepared.cache_clear)  # nanobind warns of objects that outlive the interpreter


class Coordinator:
    """Hands out the pieces of a tree until none is left or the budget says stop."""

    def __init__(self, tree: _core.SharedTree, executor: Executor, work: Work) -> None:
        self.tree = tree
        self.tasks: Tasks[int] = Tasks(executor)
        self.work = work
        self.shortest = _SHORTEST  # seconds of work on a piece; doubled if one node takes longer

    def run(self, budget: Budget, scaled: RescaledBudget, file: Checkpoint | None) -> None:
        """Work until the tree is done. As in every run, the budget records an error."""
        try:
            while True:
                self._hand_out(budget)
                if not self.tasks.out:
                    return
                for number, piece in self.tasks.finished():
                    self._take_in(number, piece)
                nodes, waiting = self.tree.nodes, self.tree.open
                done = budget.nodes_left is not None and nodes >= budget.nodes_left
                if (
                    not scaled.report(self.tree.bound, self.tree.cost, nodes, self.tree.proof_nodes, nodes, waiting)
                    or done
                ):
                    return
                if file is not None and file.due:
                    file.replace(self.tree.encoded())
        except BaseException as error:  # Ctrl-C, SIGTERM or a broken executor: keep the best match so far
            budget.fail(error)
        finally:
            for number in self.tasks.call_back():
                self.tree.give_back(number)
            if file is not None:
                file.replace(self.tree.encoded())

    def _hand_out(self, budget: Budget) -> None:
        room = self.tasks.room
        seconds = min(max(min(_SHARE * budget.seconds, _LONGEST), self.shortest), max(budget.remaining, 0.0))
        while len(self.tasks.out) < room:
            number, piece = self.tree.take(1 + self.tree.open // (2 * room))
            if not piece:
                return
            self.tasks.submit(number, grow, self.work, piece, seconds)

    def _take_in(self, number: int, piece: bytes | None) -> None:
        if piece is None:
            self.tree.give_back(number)
            return
        nodes = self.tree.nodes
        self.tree.absorb(number, piece)
        if self.tree.nodes == nodes:  # no node was finished in time, so the work was wasted
            self.shortest *= 2
