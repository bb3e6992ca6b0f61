"""Work on an executor: tasks, and pieces of the tree of level 1 for workers, who send back what they proved."""

from __future__ import annotations

import atexit
import importlib.metadata
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar

from blindmatch import _core
from blindmatch.machine import usable_cores
from blindmatch.problem.qap import QAP
from blindmatch.proof.parallel import submitted
from blindmatch.solvers.base import Budget
from blindmatch.solvers.checkpoint import Checkpoint
from blindmatch.solvers.core_problem import RescaledBudget, RescaledProblem
from blindmatch.solvers.progress import Limits

_FIRST_WORKER = 10.0  # seconds to wait until a Dask scheduler has a worker
_FIRST_ANSWER = 30.0  # seconds to wait until a worker answers
_AHEAD = 2  # tasks per worker: one runs, one waits
_LOSSES = 10  # tasks that may be lost in a row before the run gives up
_TICK = 0.2  # seconds between two checks for Ctrl-C and the time limit

Key = TypeVar("Key")


class Tasks(Generic[Key]):
    """The submitted tasks of one run, each with a key that identifies its work."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.out: dict[Future[Any], Key] = {}
        self.redone = 0  # tasks that were lost
        self._lost = 0  # tasks lost since the last result

    def submit(self, key: Key, function: Callable[..., Any], *arguments: Any) -> None:
        """Send out a task."""
        self.out[submitted(self.executor, function, *arguments)] = key

    def work(
        self,
        hand_out: Callable[[int], bool],
        take_in: Callable[[Key, Any], object],
        go_on: Callable[[], bool],
        budget: Budget,
    ) -> bool:
        """Hand out tasks and take in their results until no task is out or `go_on` says no; False after an exception.

        `hand_out` gets the number of tasks that may be out and submits one, or returns False. The result of a task that
        was lost or called back is None. As in every run, the budget records an exception.
        """
        try:
            while True:
                room = _AHEAD * _places(self.executor)
                while len(self.out) < room and hand_out(room):
                    pass
                if not self.out:
                    return True
                done, _ = wait(self.out, timeout=_TICK, return_when=FIRST_COMPLETED)
                for future in done:
                    result = self._result(future)
                    take_in(self.out.pop(future), result)
                if not go_on():
                    return True
        except BaseException as error:  # Ctrl-C, SIGTERM or a broken executor: the best so far is kept
            budget.fail(error)
            return False
        finally:
            while self.out:
                future, key = self.out.popitem()
                future.cancel()
                take_in(key, None)

    def losses(self, what: str) -> str:
        """A note about lost tasks; empty if there were none."""
        return f"{self.redone} {what} were lost and done again" if self.redone else ""

    def _result(self, future: Future[Any]) -> Any:
        try:
            result = future.result()
        except BrokenExecutor as error:
            raise RuntimeError(f"the executor broke down ({error}); a checkpoint would let a new run resume") from error
        except BaseException as error:
            killed = isinstance(error, CancelledError) or type(error).__name__ == "KilledWorker"  # Dask's
            self.redone += 1
            self._lost += 1
            if not killed or self._lost > _LOSSES:
                raise
            return None
        self._lost = 0
        return result


def greet(executor: Executor) -> None:
    """Check that a worker answers and has this version of blindmatch; raise a clear error otherwise."""
    version = importlib.metadata.version("blindmatch")
    client = getattr(executor, "_client", None)  # Dask's
    if client is not None:
        refuse_no_workers(client, _FIRST_WORKER)
    where = f"executor={type(executor).__name__}" if client is None else f"the Dask scheduler at {_address(client)}"
    try:
        executor.submit(refuse_version, version).result(timeout=_FIRST_ANSWER)
    except FutureTimeoutError:
        raise ValueError(f"{where}: no worker answered within {_FIRST_ANSWER:g} s; is one of them free?") from None
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{where}: a worker cannot import blindmatch {version} ({error})") from None


def refuse_no_workers(client: Any, seconds: float) -> None:
    """Wait for the first worker of a Dask client; the client itself would wait forever."""
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError:
        address = _address(client)
        raise ValueError(f"the Dask scheduler at {address} has no workers; start some: dask worker {address}") from None


def refuse_version(version: str) -> None:
    """In the process of a worker: refuse tasks of another version."""
    own = importlib.metadata.version("blindmatch")
    if own != version:
        raise ValueError(f"a worker has blindmatch {own}, this process has {version}; install the same version on both")


def _address(client: Any) -> str:
    return str(client.scheduler.address)


def _places(executor: Any) -> int:
    """How many tasks an executor works on at the same time; this machine's cores if it does not say."""
    if hasattr(executor, "_client"):  # Dask's
        return max(1, int(sum(executor._client.nthreads().values())))
    return int(getattr(executor, "_max_workers", 0) or usable_cores())


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

    def __init__(self, tree: _core.SharedTree, executor: Executor, work: Work, budget: Budget) -> None:
        self.tree, self.work, self.budget = tree, work, budget
        self.tasks: Tasks[int] = Tasks(executor)
        self.shortest = _SHORTEST  # seconds of work on a piece; doubled if one node takes longer

    def run(self, scaled: RescaledBudget, file: Checkpoint | None) -> None:
        """Work until the tree is done."""
        tree = self.tree

        def go_on() -> bool:
            left = self.budget.nodes_left
            enough = left is not None and tree.nodes >= left
            told = scaled.report(tree.bound, tree.cost, tree.nodes, tree.proof_nodes, tree.nodes, tree.open)
            if file is not None and file.due:
                file.replace(tree.encoded())
            return told and not enough

        try:
            self.tasks.work(self._hand_out, self._take_in, go_on, self.budget)
        finally:
            if file is not None:
                file.replace(tree.encoded())

    def _hand_out(self, room: int) -> bool:
        age, left = self.budget.seconds, max(self.budget.remaining, 0.0)
        number, piece = self.tree.take(1 + self.tree.open // (2 * room))
        if piece:
            seconds = min(max(min(_SHARE * age, _LONGEST), self.shortest), left)
            self.tasks.submit(number, grow, self.work, piece, seconds)
        return bool(piece)

    def _take_in(self, number: int, piece: bytes | None) -> None:
        if piece is None:
            self.tree.give_back(number)
            return
        nodes = self.tree.nodes
        self.tree.absorb(number, piece)
        if self.tree.nodes == nodes:  # no node was finished in time, so the work was wasted
            self.shortest *= 2
