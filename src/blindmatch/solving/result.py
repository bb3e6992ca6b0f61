"""What a solver gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from blindmatch.proof.certificate import Certificate
from blindmatch.solvers.base import Proof
from blindmatch.solvers.progress import Progress, Status
from blindmatch.validation import IntArray

_OPTIMAL = 1e-6  # of the cost; a larger gap of an optimal match is rounding of a cost that is zero or nearly so


@dataclass(frozen=True, eq=False)
class Result:
    """A match, what it costs, and what is proved about it.

    Attributes
    ----------
    permutation
        Source i is paired with target permutation[i].
    cost
        ``problem.objective(permutation)``.
    lower_bound
        No permutation costs less: ``lower_bound <= optimum <= cost``. None if the solver proves nothing.
    status
        "optimal": proved, no permutation is cheaper by more than one part in a million of the cost (or 1e-12 of the
        size of the numbers that are summed). "time_limit" and "interrupted": the run was cut short. "stalled": the
        bound rises no further. "heuristic": no claim.
    certificate
        The proof of the lower bound, for ``bm.verify``. None where there is none. After Ctrl-C a large one is put in
        order when it is first asked for.
    trace
        Bound and cost against time.
    """

    permutation: IntArray
    cost: float
    lower_bound: float | None
    status: Status
    solver: str
    seconds: float
    proof: Certificate | Proof | None = field(default=None, repr=False)
    trace: tuple[Progress, ...] = field(default=(), repr=False)
    message: str = ""

    @cached_property
    def certificate(self) -> Certificate | None:
        """The proof of the lower bound."""
        return self.proof.make(None) if isinstance(self.proof, Proof) else self.proof

    @property
    def gap(self) -> float | None:
        """(cost - lower_bound) / |cost|; 0.0 where they are equal but for rounding, None where nothing is proved.

        None as well where a match of cost 0 is not proved to be the best: no share of 0 tells what could be saved.
        """
        gap = relative_gap(self.cost, self.lower_bound)
        # So small a cost is itself rounding: a share of it says nothing, and what is optimal leaves nothing to save.
        if self.status == "optimal" and self.lower_bound is not None and (gap is None or gap > _OPTIMAL):
            return 0.0
        return gap

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The match as pairs (source, target)."""
        return [(i, int(j)) for i, j in enumerate(self.permutation) if j >= 0]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        return {
            "permutation": self.permutation.tolist(),
            "cost": self.cost,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "status": self.status,
            "solver": self.solver,
            "seconds": self.seconds,
            "message": self.message,
        }


def relative_gap(cost: float, lower_bound: float | None) -> float | None:
    """(cost - lower_bound) / |cost|, None where there is no finite bound or the cost is zero but the gap is not."""
    if lower_bound is None or lower_bound == float("-inf"):
        return None
    if cost == lower_bound:
        return 0.0
    return (cost - lower_bound) / abs(cost) if cost else None
