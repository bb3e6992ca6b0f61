"""The progress of a run, what ends it besides the clock, and the reasons why it ended."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import numpy as np

from blindmatch.errors import shown
from blindmatch.problem.optimality import closing_bound
from blindmatch.problem.qap import QAP
from blindmatch.validation import IntArray, at_least, positive

Reached = Literal["gap_limit", "cost_limit", "bound_limit", "node_limit", "solution_limit", "work_limit", "interrupted"]
Status = Literal["optimal", "time_limit", "stalled", "heuristic", Reached]


@dataclass(frozen=True)
class Progress:
    """The state of a run at one moment, with costs on the caller's scale.

    Examples
    --------
    >>> Progress(1.0, 3, lower_bound=90.0, cost=100.0, nodes=7, open=4).gap
    0.1
    """

    seconds: float
    iteration: int
    lower_bound: float | None
    cost: float | None
    phase: str = ""  # what is being done
    bound: str = ""  # which lower bound it is
    nodes: int = 0  # nodes of branch and bound that are done
    open: int = 0  # nodes that wait
    find: Callable[[], IntArray] | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float | None:
        """What the bound leaves open, as a share of the cost; None as long as it is unknown."""
        if self.lower_bound is None or self.cost is None:
            return None
        return relative_gap(self.cost, self.lower_bound)

    @property
    def permutation(self) -> IntArray | None:
        """The best match so far; known only while the callback runs."""
        return None if self.find is None else self.find()

    def negated(self) -> Progress:
        """The same of a maximum: what was a bound from below is one from above."""
        bound, cost = (None if value is None else -value for value in (self.lower_bound, self.cost))
        return replace(self, lower_bound=bound, cost=cost)


def relative_gap(cost: float, lower_bound: float | None) -> float | None:
    """|cost - bound| / |cost|; None without a finite bound, or if the cost is zero but the gap is not."""
    if lower_bound is None or lower_bound in (float("-inf"), float("inf")):
        return None
    if cost == lower_bound:
        return 0.0
    return abs(cost - lower_bound) / abs(cost) if cost else None


_MOST = 1 << 62  # nodes and solutions: within the core's integers
_MARGIN = 1e-9  # share by which bounds must exceed a limit: the checker may find them lower in their last digits


@dataclass(frozen=True)
class Limits:
    """Everything but the clock that ends a run early, as in ``bm.solve``; None sets no limit."""

    gap_limit: float | None = None
    cost_limit: float | None = None
    bound_limit: float | None = None
    node_limit: int | None = None
    solution_limit: int | None = None
    work_limit: float | None = None

    def __post_init__(self) -> None:
        for name in ("gap_limit", "cost_limit", "bound_limit", "work_limit"):
            value = getattr(self, name)
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if value is not None and not (number and math.isfinite(value)):
                raise ValueError(f"{name}={shown(value)}; expected a finite number")
        if self.gap_limit is not None and not 0 <= self.gap_limit <= 1:
            raise ValueError(
                f"gap_limit={shown(self.gap_limit)}; expected a share of the cost from 0 to 1 (0.01 is 1 %)"
            )
        for name in ("node_limit", "solution_limit"):
            if getattr(self, name) is not None:
                at_least(getattr(self, name), 1, name, _MOST)
        if self.work_limit is not None:
            positive(self.work_limit, "work_limit")

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the limits that are set."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name) is not None)

    @property
    def gap(self) -> float:
        """The share of the cost that a bound may leave open."""
        return 0.0 if self.gap_limit is None else (1 - 1e-6) * self.gap_limit

    def bound_for(self, scale: float) -> float:
        """The bound that is enough, whatever the cost; infinite without a limit."""
        return math.inf if self.bound_limit is None else self.bound_limit + _MARGIN * scale

    def closing_bound(self, problem: QAP, cost: float) -> float:
        """The bound at which a search with an incumbent of this cost may end."""
        return min(closing_bound(problem, cost), cost - self.gap * abs(cost), self.bound_for(problem.scale))

    def reached(self, bound: float | None, cost: float | None, solutions: int) -> Reached | None:
        """Which limit a bound, a cost or a number of solutions has reached."""
        if self.cost_limit is not None and cost is not None and cost <= self.cost_limit:
            return "cost_limit"
        if self.bound_limit is not None and bound is not None and bound >= self.bound_limit:
            return "bound_limit"
        known = bound is not None and cost is not None
        if self.gap_limit is not None and known and cost - bound <= self.gap_limit * abs(cost):  # type: ignore[operator,arg-type]
            return "gap_limit"
        if self.solution_limit is not None and solutions >= self.solution_limit:
            return "solution_limit"
        return None

    def negated(self) -> Limits:
        """The limits of the problem whose costs have the other sign."""
        cost, bound = (None if value is None else -value for value in (self.cost_limit, self.bound_limit))
        return Limits(self.gap_limit, cost, bound, self.node_limit, self.solution_limit, self.work_limit)


NO_LIMITS = Limits()
