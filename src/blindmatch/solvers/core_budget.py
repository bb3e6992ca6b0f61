"""The part of a budget that the C++ core uses: what `src/core/python/budget.h` reads and calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class CoreBudget(Protocol):
    """What every run in the core needs."""

    @property
    def remaining(self) -> float:
        """Seconds left when the run begins; may be infinite."""

    @property
    def interrupted(self) -> bool:
        """Whether the run must end at once, before it begins."""

    @property
    def orphaned(self) -> bool:
        """Whether the main thread has ended; asked every 50 ms."""

    def fail(self, error: BaseException) -> None:
        """Keep an exception of a signal handler or of a report; the run stops."""


class BoundBudget(CoreBudget, Protocol):
    """What the bounds need."""

    def report(
        self, lower_bound: float, cost: float, iteration: int, proof_size: float, nodes: int, open_nodes: int, /
    ) -> bool:
        """Record progress; returning False stops the run. A proof of size 1 has one stage for all pairs."""

    @property
    def keep_state(self) -> Callable[[memoryview], float] | None:
        """Keeps the state of a tree with checkpoints, and returns the seconds until the next."""


class SearchBudget(CoreBudget, Protocol):
    """What the searches need."""

    def keep(self, permutation: NDArray[np.int32], cost: float, /) -> None:
        """Keep the best permutation so far, for a run that is stopped."""

    def report(self, lower_bound: None, cost: float, /) -> bool:
        """Record progress; returning False stops the run."""
