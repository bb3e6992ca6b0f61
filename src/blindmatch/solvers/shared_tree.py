"""Branch and bound on an executor: pieces of the tree go out to workers, and what they made of them comes back."""

from __future__ import annotations

import atexit
import importlib.metadata
import time
import uuid
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blindmatch import _core
from blindmatch.machine import usable_cores
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Budget
from blindmatch.solvers.core_problem import RescaledBudget, RescaledProblem

ROOT_NODES = 64  # bounded by the coordinator before pieces go out
_FIRST_ANSWER = 30.0  # seconds that the workers have to say that they are there
_SHORTEST, _LONGEST = 2.0, 30.0  # seconds of work on a piece,
_SHARE = 0.05  # which grow with the run: this share of its age
_AHEAD = 2  # pieces a worker: one is worked on, one waits
_LOSSES = 10  # pieces lost one after the other, without one that came back
_TICK = 0.2  # seconds between looks at Ctrl-C and the clock


@dataclass(frozen=True, eq=False)
class Work:
    """What a worker needs to know besides the piece; the same for all pieces of a run."""

    problem: QAP
    symmetry: bool
    proof_limit: int
    run: str = field(default_factory=lambda: uuid.uuid4().hex)  # tells runs apart


_current: dict[str, tuple[RescaledProblem, _core.BranchAndBoundOptions]] = {}  # of a worker: what its run prepared
atexit.register(_current.clear)  # nanobind complains of objects that outlive the interpreter


def grow(work: Work, piece: bytes, seconds: float) -> bytes:
    """Work on a piece for some seconds, in the process of a worker."""
    scaled, options = _prepared(work)
    budget = RescaledBudget(Budget(seconds, threads=1), scaled.exponent, check_seconds=0.0)
    return _core.grow_piece(scaled.core, options, piece, budget)


def refuse_version(version: str) -> None:
    """In the process of a worker: refuse pieces that another version cut."""
    own = importlib.metadata.version("blindmatch")
    if own != version:
        raise ValueError(f"a worker has blindmatch {own}, this process has {version}; install the same version on both")


def _prepared(work: Work) -> tuple[RescaledProblem, _core.BranchAndBoundOptions]:
    found = _current.get(work.run)
    if found is None:
        scaled = RescaledProblem.of(work.problem)
        found = scaled, tree_options(scaled, work.symmetry, work.proof_limit)
        _current.clear()
        _current[work.run] = found
    return found


def tree_options(scaled: RescaledProblem, symmetry: bool, proof_limit: int) -> _core.BranchAndBoundOptions:
    """Depth first, since open nodes that come back have to be sent; one thread."""
    root = _core.DualAscentOptions(target=scaled.target, memory_limit=0, seed=0, threads=1)
    return _core.BranchAndBoundOptions(root=root, proof_limit=proof_limit, open_limit=0, symmetry=symmetry)


def places(executor: Any) -> int:
    """How many pieces an executor works on at the same time; this machine's cores if it does not say."""
    if hasattr(executor, "_client"):  # Dask's
        return max(1, int(sum(executor._client.nthreads().values())))
    return int(getattr(executor, "_max_workers", 0) or usable_cores())


def greet(executor: Executor) -> None:
    """Make sure that workers answer and have this version; a clear error says what is wrong."""
    version = importlib.metadata.version("blindmatch")
    try:
        executor.submit(refuse_version, version).result(timeout=_FIRST_ANSWER)
    except FutureTimeoutError:
        raise ValueError(
            f"executor={executor!r}: no worker answered within {_FIRST_ANSWER:g} s; are there any?"
        ) from None
    except (ImportError, AttributeError) as error:
        raise ValueError(f"executor={executor!r}: a worker cannot import blindmatch {version} ({error})") from None


class Coordinator:
    """Hands out the pieces of a tree until none is left or the budget says stop."""

    def __init__(self, tree: _core.SharedTree, executor: Executor, work: Work) -> None:
        self.tree = tree
        self.executor = executor
        self.work = work
        self.out: dict[Future[bytes], int] = {}
        self.lost = 0  # pieces, since the last that came back
        self.redone = 0  # pieces in all
        self.shortest = _SHORTEST  # seconds of a piece; longer if a node takes longer than that
        self.checkpoint_error = ""

    def run(self, budget: Budget, scaled: RescaledBudget, checkpoint: Path | None, interval: float) -> None:
        """Work until the tree is done; what went wrong is kept by the budget, as in every run."""
        saved = time.monotonic()
        try:
            while True:
                self._hand_out(budget)
                if not self.out:
                    return
                done, _ = wait(self.out, timeout=_TICK, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take_in(future)
                if not scaled.report(self.tree.bound, self.tree.cost, self.tree.nodes, self.tree.proof_nodes):
                    return
                if checkpoint is not None and time.monotonic() - saved > interval:
                    self.save(checkpoint)
                    saved = time.monotonic()
        except BaseException as error:  # Ctrl-C, SIGTERM, a broken executor: the best so far is kept
            budget.fail(error)
        finally:
            self._call_back()
            if checkpoint is not None:
                self.save(checkpoint)

    def save(self, checkpoint: Path) -> None:
        """Write the checkpoint; a full disk does not stop the run."""
        try:
            self.tree.save(str(checkpoint))
            self.checkpoint_error = ""
        except RuntimeError as error:
            self.checkpoint_error = str(error)

    def _hand_out(self, budget: Budget) -> None:
        room = _AHEAD * places(self.executor)
        seconds = min(max(min(_SHARE * budget.seconds, _LONGEST), self.shortest), max(budget.remaining, 0.0))
        while len(self.out) < room:
            number, piece = self.tree.take(1 + self.tree.open // (2 * room))
            if not piece:
                return
            self.out[self.executor.submit(grow, self.work, piece, seconds)] = number

    def _take_in(self, future: Future[bytes]) -> None:
        number = self.out.pop(future)
        try:
            piece = future.result()
        except BaseException as error:
            self.tree.give_back(number)
            self.redone += 1
            self.lost += 1
            killed = isinstance(error, CancelledError) or type(error).__name__ == "KilledWorker"  # Dask's
            if isinstance(error, BrokenExecutor):
                raise RuntimeError(
                    f"the executor broke down ({error}); a checkpoint would let a new run resume"
                ) from error
            if not killed or self.lost > _LOSSES:
                raise
            return
        nodes = self.tree.nodes
        self.tree.absorb(number, piece)
        self.lost = 0
        if self.tree.nodes == nodes:  # not one node was done in time, and its work is lost
            self.shortest *= 2

    def _call_back(self) -> None:
        for future, number in self.out.items():
            future.cancel()
            self.tree.give_back(number)
        self.out.clear()
