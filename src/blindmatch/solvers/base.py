"""What every solver is: a frozen dataclass of options, called on a problem."""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from blindmatch.errors import SolverUnavailable
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate
from blindmatch.solvers.progress import Progress, Status
from blindmatch.validation import IntArray

Callback = Callable[[Progress], object]

CHECK_SECONDS = 1e-8  # that the check of a proof takes for each pair of a stage, over n^2


@dataclass(frozen=True)
class Dependency:
    """An optional package that a solver needs: the module, and the line that installs it."""

    module: str
    install: str

    @property
    def installed(self) -> bool:
        """Whether the module is there, without importing it."""
        return importlib.util.find_spec(self.module) is not None

    def load(self, solver: str) -> Any:
        """Import the module; SolverUnavailable says how to get it."""
        try:
            return importlib.import_module(self.module)
        except ImportError as error:
            raise SolverUnavailable(
                f"solver={solver!r} needs the module {self.module!r}, which cannot be imported ({error}); "
                f"to install it: {self.install}"
            ) from error


@dataclass(frozen=True)
class Capabilities:
    """What a solver can do; `solve` refuses what it cannot, so that nothing is ever ignored.

    `unequal` is whether it takes a sum of several factor pairs, which is what sets of unequal sizes lead to. Known
    pairs need no word of their own: `solve` fixes them, and what is left has a linear term. `quadratic_memory`,
    `cubic_memory` and `quartic_memory` are bytes over n^2 (for each factor pair), n^3 and n^4, measured and rounded up;
    the cubic part up to the size `cubic_up_to`, if there is one.
    """

    bound: bool = False
    exact: bool = False
    linear: bool = True
    forbidden: bool = False
    asymmetric: bool = True
    unequal: bool = True
    max_size: int | None = None
    quadratic_memory: float = 200.0
    cubic_memory: float = 0.0
    cubic_up_to: int | None = None
    quartic_memory: float = 0.0
    requires: Dependency | None = None
    note: str = ""

    @property
    def installed(self) -> bool:
        """Whether this machine has what the solver needs."""
        return self.requires is None or self.requires.installed


@dataclass(frozen=True)
class Proof:
    """A certificate that is made when somebody asks for it: at n = 300 that puts half a gigabyte of duals in order.

    `make` takes the number of nodes to make, the first ones of the tree, or None for all of them: parents come before
    their children, so that any number of nodes is a certificate. `work` is the number of pairs in all stages, each
    times the square of the size, to which the time of a check is proportional, and `nbytes` the memory of the duals.
    """

    make: Callable[[int | None], Certificate]
    work: float
    nbytes: int

    @classmethod
    def of(cls, certificate: Certificate | Proof | None) -> Proof | None:
        """A certificate that is there already, as a proof."""
        if not isinstance(certificate, Certificate):
            return certificate
        stages = [stage for node in certificate.nodes for stage in node.stages]
        work = float(sum(np.count_nonzero(~stage.forbidden) * stage.size**2 for stage in stages))
        return cls(partial(_first_nodes, certificate), work, certificate.nbytes)

    def changed(self, change: Callable[..., Certificate], *arguments: Any) -> Proof:
        """The proof of ``change(certificate, *arguments)``."""
        return replace(self, make=partial(_changed, self.make, change, arguments))


@dataclass(frozen=True)
class Outcome:
    """What a solver found, in the order of the problem that it was given.

    `lower_bound` is for solvers whose proof is not a certificate (enumeration, other people's branch and bound);
    with a certificate the bound is what the checker makes of it. `checkpoint` is a file that nobody needs any more once
    the result has been checked.
    """

    permutation: IntArray
    status: Status
    certificate: Certificate | Proof | None = None
    lower_bound: float | None = None
    message: str = ""
    checkpoint: Path | None = None


def _first_nodes(certificate: Certificate, count: int | None) -> Certificate:
    return replace(certificate, nodes=certificate.nodes[:count])


def _changed(
    make: Callable[[int | None], Certificate],
    change: Callable[..., Certificate],
    arguments: tuple[Any, ...],
    count: int | None,
) -> Certificate:
    return change(make(count), *arguments)


class Solver(Protocol):
    """The protocol of all solvers."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Solve; return when done or when the budget says stop, with the best that was found."""
        ...


class Budget:
    """Time, threads and incumbent of one run. The core calls `report` and `fail`, reads `remaining` and `orphaned`."""

    def __init__(
        self,
        time_limit: float | None = None,
        threads: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.start = time.perf_counter()
        self.time_limit = math.inf if time_limit is None else time_limit
        self.threads = threads or len(os.sched_getaffinity(0))
        self.trace: list[Progress] = []
        self.interrupted = False  # by Ctrl-C, or by an exception in the callback, which `error` keeps
        self.error: BaseException | None = None
        self.best: tuple[float, IntArray] | None = None
        self._callback = callback
        self._bound: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.start

    @property
    def remaining(self) -> float:
        """Seconds left; may be infinite."""
        return self.time_limit - self.seconds

    @property
    def stopped(self) -> bool:
        """Whether a solver should return now."""
        return self.interrupted or self.remaining <= 0 or self.orphaned

    @property
    def orphaned(self) -> bool:
        """Whether the main thread has ended: Ctrl-C reaches that one alone, and Python waits for all others."""
        if not threading.main_thread().is_alive():
            self.interrupted = True
            return True
        return False

    @property
    def stop_status(self) -> Status:
        """The status of a run that was cut short."""
        return "interrupted" if self.interrupted else "time_limit"

    def offer(self, permutation: IntArray, cost: float) -> None:
        """Remember a permutation if it is the best so far: it survives Ctrl-C and a failing callback."""
        if self.best is None or cost < self.best[0]:
            self.best = (cost, np.array(permutation, dtype=np.intp))

    def report(self, lower_bound: float | None, cost: float | None, iteration: int = 0) -> bool:
        """Note progress and tell the caller; returns whether to go on."""
        if lower_bound is not None and math.isfinite(lower_bound):
            self._bound = lower_bound if self._bound is None else max(self._bound, lower_bound)
        if self.best is not None:
            cost = self.best[0] if cost is None else min(cost, self.best[0])
        progress = Progress(self.seconds, iteration, self._bound, cost)
        self.trace.append(progress)
        if self._callback is not None and not self.interrupted:
            try:
                self._callback(progress)
            except BaseException as error:
                self.fail(error)
        return not self.stopped

    def fail(self, error: BaseException) -> None:
        """Take an exception out of a callback or a signal handler: stop, keep the best, raise it later if need be."""
        self.interrupted = True
        if self.error is None and not isinstance(error, KeyboardInterrupt):
            self.error = error
