"""The protocol of the solvers: a frozen dataclass of options that is called on a problem."""

from __future__ import annotations

import importlib
import importlib.util
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from blindmatch.errors import SolverUnavailable, shown
from blindmatch.machine import usable_cores
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate
from blindmatch.proof.duration import stage_work
from blindmatch.solvers.progress import NO_LIMITS, Limits, Progress, Reached, Status
from blindmatch.validation import IntArray

Callback = Callable[[Progress], object]

_SLOWEST = 4.0  # upper limit of `Budget.slowness`: a machine that is busy now may be idle a second later
MOST_BYTES, MOST_STEPS = 1 << 62, 1 << 40  # upper limits of options: far above any use, and within the core's integers
_MOST_THREADS = 1 << 20  # the core counts them in 32 bits; no machine starts as many


@dataclass(frozen=True)
class Dependency:
    """An optional package that a solver needs: the module, and the command that installs it."""

    module: str
    install: str

    @property
    def installed(self) -> bool:
        """Whether the module is installed, without importing it."""
        return importlib.util.find_spec(self.module) is not None

    def load(self, name: str, argument: str = "solver") -> Any:
        """Import the module; SolverUnavailable says which argument needs it, and how to install it."""
        try:
            return importlib.import_module(self.module)
        except ImportError as error:
            raise SolverUnavailable(
                f"{argument}={name!r} needs the module {self.module!r}, which cannot be imported ({error}); "
                f"to install it: {self.install}"
            ) from error


@dataclass(frozen=True)
class Capabilities:
    """What a solver can do; `solve` refuses everything else, so that no input is silently ignored.

    `unequal` means that it takes a sum of several factor pairs, which sets of unequal sizes lead to. Known pairs need
    no flag: `solve` fixes them, and the remaining problem has a linear term. `quadratic_memory`, `cubic_memory` and
    `quartic_memory` are bytes divided by n^2 (for each factor pair), n^3 and n^4, measured and rounded up. `ignores`
    names the limits of a run that the solver cannot keep.
    """

    bound: bool = False
    exact: bool = False
    linear: bool = True
    forbidden: bool = False
    asymmetric: bool = True
    unequal: bool = True
    max_size: int | None = None
    quadratic_memory: float = 110.0
    cubic_memory: float = 0.0
    quartic_memory: float = 0.0
    requires: Dependency | None = None
    certificate: bool = True
    ignores: tuple[str, ...] = ()
    note: str = ""

    def memory(self, problem: QAP) -> int:
        """Bytes that a run takes at its peak."""
        n, quadratic = problem.n, self.quadratic_memory * len(problem.factors)
        return int(quadratic * n**2 + self.cubic_memory * n**3 + self.quartic_memory * n**4)

    @property
    def installed(self) -> bool:
        """Whether everything that the solver needs is installed."""
        return self.requires is None or self.requires.installed


@dataclass(frozen=True)
class Proof:
    """A certificate that is built on demand: at n = 300 this reorders half a gigabyte of duals.

    `make` takes the number of nodes to build, the first ones of the tree, or None for all. Parents come before their
    children, so any number of nodes is a certificate. `work` is the sum over all stages of the number of pairs times
    the squared size, to which the time of a check is proportional. `nbytes` is the memory of the duals.
    """

    make: Callable[[int | None], Certificate]
    work: float
    nbytes: int

    @classmethod
    def of(cls, certificate: Certificate | Proof | None) -> Proof | None:
        """Wrap an existing certificate as a proof."""
        if not isinstance(certificate, Certificate):
            return certificate
        stages = [stage for node in certificate.nodes for stage in node.stages]
        work = sum(stage_work(stage.pair_count, stage.size, stage.rank) for stage in stages)
        return cls(lambda count: replace(certificate, nodes=certificate.nodes[:count]), work, certificate.nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        # The core's numbers stay in this process: what is pickled or copied is the certificate.
        return Proof.of, (self.make(None),)

    def changed(self, change: Callable[..., Certificate], *arguments: Any) -> Proof:
        """The proof of ``change(certificate, *arguments)``."""
        return replace(self, make=lambda count: change(self.make(count), *arguments))


@dataclass(frozen=True)
class Outcome:
    """The result of a solver, in the order of the problem that it was given.

    `lower_bound` is for solvers without a certificate (enumeration, third-party branch and bound); with a certificate,
    the checker computes the bound. `on_checked` is called once the result has been checked, unless the run or the
    check was stopped early: files that the solver kept until then, such as a checkpoint, can be deleted. `executor` is
    where the solver worked and its proof may be checked; None: in this process.
    """

    permutation: IntArray
    status: Status
    certificate: Certificate | Proof | None = None
    lower_bound: float | None = None
    notes: tuple[str, ...] = ()  # what else there is to know, empty ones do not count
    on_checked: Callable[[], object] | None = None
    executor: Executor | None = None


class Solver(ABC):
    """The base class of all solvers: frozen dataclasses of options."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    @abstractmethod
    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Solve; return the best match found when done or when the budget says stop."""

    def permuted(self, rows: IntArray, columns: IntArray) -> Solver:
        """The solver for ``problem.permuted(rows, columns)``: options that follow the numbering are renumbered."""
        return self

    def memory(self, problem: QAP) -> int:
        """Bytes that a run takes at its peak, with the check of its proof."""
        return self.capabilities.memory(problem)


class Budget:
    """Time, threads and incumbent of one run. `core_budget.py` says what the core uses of it."""

    def __init__(
        self,
        time_limit: float | None = None,
        threads: int | None = None,
        callback: Callback | None = None,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.interrupted = False  # by Ctrl-C, or by an exception, which `error` keeps
        self.limits = limits
        self.reached: Reached | None = None  # the limit that ended the run; "interrupted": the callback did
        self.nodes, self.work, self.solutions = 0, 0.0, 0
        self.phase = "search"  # of the reports that name none
        self.undo: Callable[[IntArray], IntArray] | None = None  # a match in the caller's numbering
        self.on_found: Callable[[IntArray], object] | None = None  # is told every match, for a pool
        self.error: BaseException | None = None
        self.start, self.cpu_start = time.perf_counter(), time.process_time()
        self.time_limit = math.inf if time_limit is None else time_limit
        self.threads = min(threads or usable_cores(), _MOST_THREADS)
        self.trace: list[Progress] = []
        self.best: tuple[float, IntArray] | None = None  # the best that solvers offered; depends only on the seed
        self.kept: tuple[float, IntArray] | None = None  # the best that searches reported; depends on the clock
        self.starts: tuple[IntArray, ...] = ()  # permutations that the caller gave; each was offered
        self._callback = callback
        self._cost = math.inf  # the least that was reported
        self._bound: float | None = None
        self._bound_name = ""
        self.naming = ""  # name of the bounds that are reported without a name

    def begin(self, undo: Callable[[IntArray], IntArray]) -> None:
        """Begin the run: what was offered so far is no solution that it found."""
        self.undo = undo
        self._cost = math.inf if self.best is None else self.best[0]

    def fail(self, error: BaseException) -> None:
        """Record an exception. The run stops, keeps its best match, and raises the exception unless it is Ctrl-C."""
        self.interrupted = True
        if self.error is None and not isinstance(error, KeyboardInterrupt):
            self.error = error

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C or an exception end the block but not the run: `fail` keeps the best so far."""
        try:
            yield
        except (KeyboardInterrupt, Exception) as error:
            self.fail(error)

    @property
    def seconds(self) -> float:
        """Seconds since the start of the run."""
        return time.perf_counter() - self.start

    @property
    def remaining(self) -> float:
        """Seconds left; may be infinite."""
        return self.time_limit - self.seconds

    @property
    def slowness(self) -> float:
        """Wall-clock seconds per CPU second: above 1 if other programs use the cores too."""
        computed = time.process_time() - self.cpu_start
        return min(max(1.0, self.seconds / computed), _SLOWEST) if computed > 0.1 else 1.0

    @property
    def stopped(self) -> bool:
        """Whether a solver should return now."""
        return self.interrupted or self.reached is not None or self.remaining <= 0 or self.orphaned

    @property
    def orphaned(self) -> bool:
        """Whether the main thread has ended: only that thread gets Ctrl-C, and Python waits for all others.

        The main thread itself must not ask: on Python 3.11 and 3.12, a Ctrl-C inside `is_alive` marks the thread as
        ended for the rest of the process. Other threads never get Ctrl-C.
        """
        main = threading.main_thread()
        if threading.get_ident() != main.ident and not main.is_alive():
            self.interrupted = True
            return True
        return False

    @property
    def stop_status(self) -> Status:
        """The status of a run that was stopped early."""
        return "interrupted" if self.interrupted else self.reached or "time_limit"

    @property
    def nodes_left(self) -> int | None:
        """How many nodes may still be bounded; None without a limit."""
        return None if self.limits.node_limit is None else max(0, self.limits.node_limit - self.nodes)

    def steps_left(self, seconds: float, wanted: int) -> int:
        """How many of the wanted steps, each of about as many seconds of one core, to do: the last one ends the work.

        The seconds must follow from the problem alone, so that the limit means the same everywhere.
        """
        if self.limits.work_limit is None:
            return wanted
        return min(wanted, 1 + max(0, int((self.limits.work_limit - self.work) / seconds)))

    def spend(self, seconds: float) -> None:
        """Count work that was or will be done."""
        self.work += seconds
        if self.limits.work_limit is not None and self.work >= self.limits.work_limit:
            self.reach("work_limit")

    def count_nodes(self, count: int) -> None:
        """Count nodes that were bounded."""
        self.nodes += count
        if self.nodes_left == 0:
            self.reach("node_limit")

    def reach(self, limit: Reached) -> None:
        """Record that a limit ends the run, unless another one did before."""
        self.reached = self.reached or limit

    def target(self, problem: QAP) -> float:
        """The bound that proves the best match optimal."""
        assert self.best is not None
        return self.limits.closing_bound(problem, self.best[0])

    def offer(self, permutation: NDArray[np.integer[Any]], cost: float) -> None:
        """Remember a permutation if it is the best so far: it survives Ctrl-C and a failing callback."""
        if self.best is None or cost < self.best[0]:
            self.best = (cost, np.array(permutation, dtype=np.intp))
        self._found(permutation)

    def _found(self, permutation: NDArray[np.integer[Any]]) -> None:
        if self.on_found is not None:
            self.on_found(np.array(permutation, dtype=np.intp))

    def keep(self, permutation: NDArray[np.integer[Any]], cost: float) -> None:
        """Remember what a search has so far, for a run that is stopped.

        A search reports when the clock says so. No solver may continue from this match, because its result would then
        depend on the clock.
        """
        if self.kept is None or cost < self.kept[0]:
            self.kept = (cost, np.array(permutation, dtype=np.intp))
        self._found(permutation)

    def report(
        self,
        lower_bound: float | None,
        cost: float | None,
        iteration: int = 0,
        bound: str | None = None,
        phase: str = "",
        nodes: int = 0,
        open_nodes: int = 0,
    ) -> bool:
        """Record progress and report it to the caller; return whether to continue.

        `bound` is the bound's name. `nodes` are those of the current tree, besides those that were counted before.
        """
        before = -math.inf if self._bound is None else self._bound
        if lower_bound is not None and before < lower_bound < math.inf:
            self._bound, self._bound_name = lower_bound, self.naming if bound is None else bound
        known = [found for found in (self.best, self.kept) if found is not None]
        cost = min([*([] if cost is None else [cost]), *(value for value, _ in known)], default=None)
        if cost is not None and cost < self._cost:
            self._cost = cost
            self.solutions += 1
        progress = Progress(
            self.seconds, iteration, self._bound, cost, phase or self.phase, self._bound_name, self.nodes + nodes,
            open_nodes,
        )  # fmt: skip
        self.trace.append(progress)
        over = self.stopped  # a slow callback must not be asked for what comes after the time limit
        reached = self.limits.reached(self._bound, cost, self.solutions)
        if reached is not None:
            self.reach(reached)
        if self._callback is not None and not over:
            try:
                if self._call(progress, known):
                    self.reach("interrupted")
            except BaseException as error:
                self.fail(error)
        return not self.stopped

    def _call(self, progress: Progress, known: list[tuple[float, IntArray]]) -> bool:
        """Whether the callback wants the run to stop."""
        assert self._callback is not None
        if known and self.undo is not None:
            best = min(known, key=lambda found: found[0])[1]
            progress = replace(progress, find=partial(self.undo, best))
        answer = self._callback(progress)
        if answer is not None and not isinstance(answer, bool | np.bool_):
            raise ValueError(f"callback returned {shown(answer)}; expected True to stop, None or False to go on")
        return bool(answer)
