"""The progress of a run, and the reasons why it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from blindmatch.validation import IntArray

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
