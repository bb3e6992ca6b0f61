"""Branch and bound on the dual ascent: the optimum, with a proof tree that can be checked without the solver."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import numpy as np

from blindmatch import _core
from blindmatch.errors import shown
from blindmatch.problem.qap import QAP
from blindmatch.proof.rounding import TINY
from blindmatch.solvers.base import MOST_BYTES, MOST_STEPS, Budget, Capabilities, Outcome, Solver
from blindmatch.solvers.checkpoint import Checkpoint, TreeFile
from blindmatch.solvers.core_problem import RescaledProblem, tree_proof
from blindmatch.solvers.dual_ascent import (
    SWAPS,
    final_status,
    first_match,
    no_time_for_duals,
    relaxation_bytes,
    without_duals,
)
from blindmatch.solvers.progress import Status
from blindmatch.solvers.shared_tree import ROOT_NODES, Coordinator, Work, greet
from blindmatch.solvers.strengthened import Patience, Strengthened, strengthened_bytes, worth_a_try
from blindmatch.validation import as_executor, at_least, boolean, positive

_NODE_SECONDS = 1e-7  # of a node of level 1, over n^4


@dataclass(frozen=True)
class BranchAndBound(Solver):
    """Exact, given enough time: dual ascent at the root, then branching on the partners of one row or column.

    Parameters
    ----------
    memory_limit
        Bytes that the first-order method at the root (about 4 n^4) and the semidefinite bound (70 n^4 up to 43 items,
        36 n^4 beyond) may use; one that needs more is left out.
    proof_limit
        Bytes of the proof tree; a larger tree is dropped, and the result (with its bound) is kept.
    checkpoint
        A file with the state of the run (open nodes, duals, incumbent), written at a time limit, on Ctrl-C, on SIGTERM
        and every `checkpoint_interval` seconds; less often if that would take more than a tenth of the time, or more
        than 4 MB a second on average. Finished nodes of the semidefinite tree are appended, so the file takes about as
        much as the proof. A run that finds this file resumes from it; the problem and the seed must be the same. What
        it reads is checked as every proof is. A run that completes removes the file after its proof has been checked. A
        full disk does not stop the run; the message of the result reports it.
    semidefinite
        Use the doubly nonnegative bound (the solver `semidefinite`), at the root and at the nodes of a new tree, if the
        first nodes of the level-1 tree do not close the gap and there is time for enough steps. This needs 12 to 104
        items, and a tree needs at most as many remaining pairs as 42 items have. A checkpoint of an earlier run on
        level 1 alone is resumed on level 1.
    swaps
        Swaps of the search for the first match, for each item.
    executor
        Where to work on the tree: any ``concurrent.futures.Executor``, such as a pool of processes, or a Dask client.
        The root is computed here; then nodes of the semidefinite tree, or pieces of the tree of level 1, go to the
        workers, which send back what they proved. None: the threads of this process. The same seed may lead to another
        of several equally good matches.
    """

    memory_limit: int = 4 << 30
    proof_limit: int = 1 << 30
    checkpoint: str | Path | None = None
    checkpoint_interval: float = 60.0
    semidefinite: bool = True
    swaps: int = SWAPS
    executor: Any = field(default=None, repr=False, compare=False)

    name: ClassVar[str] = "branch-and-bound"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True, exact=True, forbidden=True, max_size=600, cubic_memory=85, note="ours; exact, with a proof tree"
    )

    def __post_init__(self) -> None:
        at_least(self.memory_limit, 0, "memory_limit", MOST_BYTES)
        at_least(self.proof_limit, 0, "proof_limit", MOST_BYTES)
        at_least(self.swaps, 1, "swaps", MOST_STEPS >> 10)  # for each of at most 600 items
        boolean(self.semidefinite, "semidefinite")
        positive(self.checkpoint_interval, "checkpoint_interval")
        if self.executor is not None:
            as_executor(self.executor)
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | Path):
            raise ValueError(f"checkpoint={shown(self.checkpoint)}; expected a path")
        if self.checkpoint is not None and not Path(self.checkpoint).absolute().parent.is_dir():
            raise ValueError(f"checkpoint={str(self.checkpoint)!r}: its folder does not exist")
        if self.checkpoint is not None and Path(self.checkpoint).is_dir():
            raise ValueError(f"checkpoint={str(self.checkpoint)!r}: it is a folder; expected a file")
        if self.checkpoint is not None and Path(self.checkpoint).exists() and not Path(self.checkpoint).is_file():
            raise ValueError(f"checkpoint={str(self.checkpoint)!r}: it is a pipe or a device; expected a file")

    def memory(self, problem: QAP) -> int:
        """Bytes that the root takes at its peak; the tree adds at most `proof_limit`, and as much for open nodes."""
        splitting = strengthened_bytes(problem) if self.semidefinite else 0
        more = splitting if splitting <= self.memory_limit else 0
        return super().memory(problem) + max(more, relaxation_bytes(problem, self.memory_limit))

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Search, ascend, branch. After the first nodes, use the semidefinite bound if it may help."""
        executor = None if self.executor is None else as_executor(self.executor)
        if executor is not None:
            greet(executor)
        file = None if self.checkpoint is None else TreeFile(Path(self.checkpoint), problem, self.checkpoint_interval)
        resumes = file is not None and file.exists
        if resumes and not self.semidefinite:
            raise ValueError(f"{self.checkpoint} has a tree of the semidefinite bound: it needs semidefinite=True")
        if not resumes and not (self.semidefinite and worth_a_try(problem, budget, self.memory_limit)):
            return self.tree(problem, budget, rng)[0]
        with self._stop_cleanly():
            outcome = Strengthened(problem, budget, self.proof_limit, executor, file).run(self.tree, rng)
        return replace(outcome, on_checked=self._on_checked(outcome.status))

    def tree(
        self,
        problem: QAP,
        budget: Budget,
        rng: np.random.Generator,
        node_limit: int | None = None,
        patience: Patience | None = None,
    ) -> tuple[Outcome, bool]:
        """Run the tree on level 1 alone; also return whether the node limit or a lack of patience ended it."""
        shared = self.executor is not None and node_limit is None
        start = first_match(problem, budget, rng, self.swaps)
        if no_time_for_duals(problem, budget):
            return without_duals(problem, start, budget), False
        scaled = RescaledProblem.of(problem, budget.limits)
        wanted = ROOT_NODES if shared else node_limit
        most = _nodes_allowed(problem, budget)
        options = self._options(problem, scaled, budget, rng, _least(wanted, most))
        file = None if self.checkpoint is None else Checkpoint(Path(self.checkpoint), self.checkpoint_interval)
        saved, keep_state = (None, None) if file is None else (file.saved, file.replace)
        with self._stop_cleanly():
            root_lasts = None if patience is None else patience.lasts
            try:
                told = scaled.budget(budget, root_lasts, keep_state)
                tree = _core.branch_and_bound(scaled.core, options, start, told, saved)
            except ValueError as error:
                if saved is None:
                    raise
                raise ValueError(f"checkpoint={str(self.checkpoint)!r}: {error}; delete it to begin anew") from None
            if shared and tree.full and (most is None or tree.nodes < most) and not budget.stopped:
                return self._shared(problem, scaled, options, tree, budget, file), False
        _count(tree, problem, scaled, budget)
        if node_limit is not None and tree.nodes > max(node_limit, 1) and not budget.stopped:
            return self.tree(problem, budget, rng)  # resumed from a checkpoint of level 1 alone: continue there
        return self._outcome(problem, scaled, tree, budget, file), tree.full or (patience is not None and patience.over)

    def _shared(
        self,
        problem: QAP,
        scaled: RescaledProblem,
        options: _core.BranchAndBoundOptions,
        root: _core.TreeResult,
        budget: Budget,
        file: Checkpoint | None,
    ) -> Outcome:
        """Let the executor finish the tree after its first nodes."""
        work = Work(problem, budget.limits, _may_have_symmetries(problem), self.proof_limit)
        tree = _core.SharedTree(scaled.core, options, root)
        coordinator = Coordinator(tree, as_executor(self.executor), work, budget)
        coordinator.run(scaled.budget(budget), file)
        stopped = _core.BoundStatus.interrupted if budget.interrupted else _core.BoundStatus.time_limit
        result = tree.finish(stopped)
        _count(result, problem, scaled, budget)
        outcome = self._outcome(problem, scaled, result, budget, file)
        notes = (*outcome.notes, coordinator.tasks.losses("pieces"))
        return replace(outcome, notes=notes, executor=coordinator.tasks.executor)

    def _options(
        self, problem: QAP, scaled: RescaledProblem, budget: Budget, rng: np.random.Generator, node_limit: int | None
    ) -> _core.BranchAndBoundOptions:
        root = _core.DualAscentOptions(
            target=scaled.target,
            memory_limit=self.memory_limit,
            seed=int(rng.integers(2**63)),
            threads=budget.threads,
        )
        return _core.BranchAndBoundOptions(
            root=root,
            proof_limit=self.proof_limit,
            node_limit=node_limit,
            cost_limit=scaled.cost_limit(budget.limits),
            symmetry=_may_have_symmetries(problem),
            checkpoint_interval=math.inf if self.checkpoint is None else self.checkpoint_interval,
        )

    def _outcome(
        self,
        problem: QAP,
        scaled: RescaledProblem,
        tree: _core.TreeResult,
        budget: Budget,
        file: Checkpoint | None,
    ) -> Outcome:
        match = tree.permutation.astype(np.intp)
        status = final_status(tree.status, budget)
        notes: tuple[str, ...] = (
            f"{tree.nodes} node{'' if tree.nodes == 1 else 's'}",
            "" if file is None else file.error,
        )
        on_checked = self._on_checked(status)
        if not tree.proof:
            notes += (f"the proof exceeded proof_limit={self.proof_limit} bytes and was dropped",)
            # The core proved this in float64, for the normal form; allow for the rounding of the conversion, and for
            # products that vanish on the problem's own scale.
            tiny = 0.0 if problem.vanishes else 4 * problem.n**2 * len(problem.factors) * TINY
            safe = problem.round_up(scaled.cost(tree.bound) - 1e-13 * problem.scale - tiny)
            return Outcome(match, status, lower_bound=safe, notes=notes, on_checked=on_checked)
        proof = tree_proof(problem.n, scaled.exponent, tree)
        return Outcome(match, status, proof, notes=notes, on_checked=on_checked)

    def _on_checked(self, status: Status) -> Callable[[], object] | None:
        """Remove the checkpoint of a run that is complete, once its proof has been checked."""
        if self.checkpoint is None or status not in ("optimal", "stalled"):
            return None
        return partial(Path(self.checkpoint).unlink, missing_ok=True)

    def _stop_cleanly(self) -> AbstractContextManager[None]:
        return _sigterm_stops() if self.checkpoint is not None else nullcontext()


@contextmanager
def _sigterm_stops() -> Iterator[None]:
    """Let SIGTERM stop the run cleanly: it becomes a SystemExit that is raised after the checkpoint is written."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _node_seconds(problem: QAP) -> float:
    """About what a node of level 1 takes; the work limit counts with it."""
    return _NODE_SECONDS * float(problem.n) ** 4


def _nodes_allowed(problem: QAP, budget: Budget) -> int | None:
    """The number of nodes that the limits allow; None for any number."""
    work = budget.limits.work_limit
    by_work = None if work is None else max(1, int(min((work - budget.work) / _node_seconds(problem), MOST_BYTES)))
    return _least(budget.nodes_left, by_work)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _count(tree: _core.TreeResult, problem: QAP, scaled: RescaledProblem, budget: Budget) -> None:
    """Count what a tree took, and see whether it reached a limit."""
    match = tree.permutation.astype(np.intp)
    budget.offer(match, problem.objective(match))
    budget.report(scaled.cost(tree.bound), None, tree.nodes, nodes=tree.nodes, phase="tree")
    budget.count_nodes(tree.nodes)
    budget.spend(_node_seconds(problem) * tree.nodes)


def _may_have_symmetries(problem: QAP) -> bool:
    """Whether a symmetry of the normal form is also one of the matrices themselves, which the checker tests."""
    matrices = [matrix for pair in problem.factors for matrix in pair]
    plain = all(matrix.any() and not np.diag(matrix).any() and (matrix == matrix.T).all() for matrix in matrices)
    return plain and not problem.linear.any()
