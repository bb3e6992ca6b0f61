"""The result of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from blindmatch.problem.optimality import RELATIVE_TOLERANCE
from blindmatch.proof.certificate import Certificate
from blindmatch.solvers.base import Proof
from blindmatch.solvers.progress import Progress, Status
from blindmatch.validation import FloatArray, IntArray, at_least


class Ranking(Protocol):
    """Ranks all targets as partners of each source."""

    @property
    def most(self) -> int:
        """How many targets there are."""

    def best(self, count: int) -> IntArray:
        """Indices of the best targets of each source, best first: (n, count)."""


@dataclass(frozen=True, eq=False)
class Result:
    """A match, its cost, and what is proved about it.

    Attributes
    ----------
    permutation
        Source i is paired with target permutation[i].
    cost
        ``problem.objective(permutation)``.
    lower_bound
        No permutation costs less: ``lower_bound <= optimum <= cost``. None if the solver proves nothing.
    bound
        Which bound that is: "projection", "level-1 RLT", "semidefinite", "branch and bound", "enumeration", or the name
        of a third-party solver; empty if there is none.
    status
        "optimal": proved that no permutation is cheaper by more than one part in a million of the cost (or 1e-12 of the
        magnitude of the summed numbers). "time_limit" and "interrupted": the run was stopped early. "stalled": the
        bound no longer rises. "heuristic": no claim.
    certificate
        The proof of the lower bound, for ``bm.verify``; None if there is none. After Ctrl-C, a large certificate is
        built when it is first accessed.
    trace
        Bound and cost over time.
    support
        For large matches by coordinates: how many other starts led to the same match. Do not believe a match without
        support. None if the match was found in another way.
    confidence
        For such matches: the probability that each pair is right, (n,), nan for sources without a partner.
    ranking
        Ranks the partners that `candidates` returns.
    left_out
        How many pairs `min_confidence` left out of the permutation. Cost and bound are those of the whole match.
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
    bound: str = ""
    support: int | None = None
    confidence: FloatArray | None = field(default=None, repr=False)
    ranking: Ranking | None = field(default=None, repr=False)
    left_out: int = 0

    def candidates(self, k: int = 5) -> IntArray:
        """The k best partners of each source, best first: (n, k) target indices.

        They are ranked by their similarity (CSLS) after the rotation that fits the match, when they are asked for.
        """
        if self.ranking is None:
            raise ValueError("this result has no candidates: they are known of matches of 30 items or more by bm.match")
        if at_least(k, 1, "k") > self.ranking.most:
            raise ValueError(f"k={k}; there are {self.ranking.most} targets")
        return self.ranking.best(k)

    @cached_property
    def certificate(self) -> Certificate | None:
        """The proof of the lower bound."""
        return self.proof.make(None) if isinstance(self.proof, Proof) else self.proof

    @property
    def gap(self) -> float | None:
        """(cost - lower_bound) / |cost|; 0.0 if they are equal up to rounding, None if nothing is proved.

        It is also None for a match of cost 0 that is not proved optimal, because a share of 0 is undefined.
        """
        gap = relative_gap(self.cost, self.lower_bound)
        # The cost is as small as its rounding error, so a relative gap means nothing; an optimal match has none.
        if self.status == "optimal" and self.lower_bound is not None and (gap is None or gap > RELATIVE_TOLERANCE):
            return 0.0
        return gap

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The match as pairs (source, target)."""
        return [(i, int(j)) for i, j in enumerate(self.permutation) if j >= 0]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        values = {
            "permutation": self.permutation.tolist(),
            "cost": self.cost,
            "lower_bound": self.lower_bound,
            "bound": self.bound,
            "gap": self.gap,
            "status": self.status,
            "solver": self.solver,
            "seconds": self.seconds,
            "message": self.message,
        }
        if self.support is not None:
            values["support"] = self.support
        if self.confidence is not None:
            values["confidence"] = [None if np.isnan(value) else float(value) for value in self.confidence]
        if self.left_out:
            values["left_out"] = self.left_out
        return values


def relative_gap(cost: float, lower_bound: float | None) -> float | None:
    """(cost - lower_bound) / |cost|; None without a finite bound, or if the cost is zero but the gap is not."""
    if lower_bound is None or lower_bound == float("-inf"):
        return None
    if cost == lower_bound:
        return 0.0
    return (cost - lower_bound) / abs(cost) if cost else None


def attach_result(error: BaseException, result: Result) -> None:
    """Give an exception the best result so far, as its attribute ``result``."""
    error.result = result  # type: ignore[attr-defined]
