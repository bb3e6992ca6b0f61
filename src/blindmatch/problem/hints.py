"""What is known about the pairs, apart from the relations inside each set, and the problem with these hints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.problem.distortion import Layer, layered_problem
from blindmatch.problem.exact_sums import split_products
from blindmatch.problem.optimality import ROUNDING_TOLERANCE
from blindmatch.problem.qap import LARGEST_COST, QAP, rest_of
from blindmatch.validation import BoolArray, FloatArray, as_array, as_floats, as_pairs, at_least, not_negative


@dataclass(frozen=True, eq=False)
class Hints:
    """Known pairs, forbidden pairs, similarities and the price of unmatched items, checked."""

    sizes: tuple[int, int]  # how many sources and targets there are
    known: tuple[tuple[int, int], ...] = ()  # pairs that must be used
    forbidden: BoolArray | None = None  # (n, m), True where a pair must not be used
    reward: FloatArray | None = None  # (n, m), by how much each pair lowers the cost
    unmatched_cost: float | None = None  # of each item without a partner; None: as many as possible must be matched
    max_unmatched: int = 0  # the largest number of items of the smaller set that may stay unmatched
    excess: FloatArray | None = None  # (n, m), by how much each reward is too high, because it was rounded up
    similarity: tuple[FloatArray, float] | None = None  # (n, m) and its weight, as they were given

    @classmethod
    def of(
        cls,
        sizes: tuple[int, int],
        *,
        known_pairs: Iterable[tuple[int, int]] = (),
        forbidden_pairs: Iterable[tuple[int, int]] | ArrayLike = (),
        similarity: ArrayLike | None = None,
        similarity_weight: float = 1.0,
        unmatched_cost: float | None = None,
        max_unmatched: int | None = None,
    ) -> Hints:
        """Check the arguments, which are those of ``bm.match``."""
        weight = not_negative(similarity_weight, "similarity_weight")
        if similarity is None and weight != 1.0:
            raise ValueError(f"similarity_weight={similarity_weight!r} needs a similarity")
        if max_unmatched is not None and unmatched_cost is None:
            raise ValueError(f"max_unmatched={max_unmatched!r} needs an unmatched_cost")
        price = None if unmatched_cost is None else not_negative(unmatched_cost, "unmatched_cost")
        reward, excess, given = None, None, None
        if similarity is not None:
            given = as_floats(similarity, "similarity"), weight
            if given[0].shape != sizes:
                raise ValueError(f"similarity has shape {given[0].shape}; expected {sizes}, sources by targets")
            with np.errstate(over="ignore", invalid="ignore"):
                low, excess = split_products(np.array(-weight), given[0])
            reward = -low
            if not np.isfinite(reward).all():
                raise ValueError(f"similarity_weight={similarity_weight!r} times similarity is infinite")
        if price is not None and price > (largest := LARGEST_COST / (2 * sum(sizes))):
            raise ValueError(f"unmatched_cost={unmatched_cost!r}; expected at most {largest:.1g}: sums may overflow")
        most = min(sizes) if max_unmatched is None else min(at_least(max_unmatched, 0, "max_unmatched"), *sizes)
        return cls(
            sizes,
            tuple(as_pairs(known_pairs, sizes, "known_pairs")),
            _mask(forbidden_pairs, sizes),
            reward,
            price,
            0 if price is None else most,
            excess,
            given,
        )

    def problem(self, layers: Sequence[Layer], dummies: int | None = None) -> QAP:
        """The problem of the relations of both sides, with these hints.

        It has ``max(n, m) + dummies`` items a side: sources, then dummies; targets, then dummies. An item whose partner
        is a dummy stays unmatched. Up to `dummies` items of the smaller set can, by default as many as allowed.
        """
        n, m = self.sizes
        problem = layered_problem(layers, self.max_unmatched if dummies is None else dummies)
        linear = np.zeros((problem.n, problem.n))
        if self.unmatched_cost is not None:
            linear[:n, m:] = linear[n:, :m] = self.unmatched_cost
        if self.reward is not None:
            linear[:n, :m] = -self.reward
        mask = None
        if self.forbidden is not None:
            mask = np.zeros((problem.n, problem.n), dtype=bool)
            mask[:n, :m] = self.forbidden
        if linear.any() or mask is not None:
            problem = problem.changed(linear=linear, forbidden=mask, rest=self._rest(problem))
        return problem.with_known_pairs(self.known) if self.known else problem

    def _rest(self, problem: QAP) -> QAP | None:
        """What a problem with these rewards lacks because of rounding."""
        if self.excess is None or not self.excess.any():
            return problem.rest
        linear = np.zeros((problem.n, problem.n))
        linear[: self.sizes[0], : self.sizes[1]] = self.excess
        factors, constant = ((), 0.0) if problem.rest is None else (problem.rest.factors, problem.rest.constant)
        return rest_of(problem.n, factors, linear, constant)

    def enough_dummies(self, least_loss: float, cost: float, scale: float) -> int:
        """The number of dummies that is enough if a match of this cost is known: leaving more unmatched costs more."""
        if not self.unmatched_cost or not math.isfinite(least_loss):
            return self.max_unmatched
        spare = cost - self._floor(least_loss) + ROUNDING_TOLERANCE * scale
        most = (spare / self.unmatched_cost - abs(self.sizes[0] - self.sizes[1])) / 2  # infinite for a tiny price
        return math.floor(min(max(most, 0.0), self.max_unmatched) + 1e-9)

    def cost_beyond(self, least_loss: float, dummies: int, scale: float) -> float:
        """A match that leaves more than `dummies` items of the smaller set unmatched costs at least this."""
        if dummies >= self.max_unmatched:
            return math.inf
        if self.unmatched_cost is None or not math.isfinite(least_loss):
            return -math.inf
        price = self.unmatched_cost * (2 * (dummies + 1) + abs(self.sizes[0] - self.sizes[1]))
        return price + self._floor(least_loss) - ROUNDING_TOLERANCE * scale

    def _floor(self, least_loss: float) -> float:
        """A lower bound on the cost of any match, without the price of unmatched items."""
        relations = min(least_loss, 0.0) * min(self.sizes) ** 2
        if self.reward is None:
            return relations
        best = np.maximum(self.reward, 0.0)
        return relations - float(min(best.max(axis=0).sum(), best.max(axis=1).sum()))


def _mask(forbidden: Any, sizes: tuple[int, int]) -> BoolArray | None:
    """Pairs, or a matrix of booleans, as a matrix; None if nothing is forbidden."""
    if hasattr(forbidden, "__array__") or isinstance(forbidden, list | tuple):
        array = as_array(forbidden, "forbidden_pairs")
        if array.dtype == bool and array.size:
            if array.shape != sizes:
                raise ValueError(f"forbidden_pairs has shape {array.shape}; expected {sizes}, sources by targets")
            return array.copy() if array.any() else None
        forbidden = array if array.ndim == 2 else forbidden
    pairs = as_pairs(forbidden, sizes, "forbidden_pairs")
    mask = np.zeros(sizes, dtype=bool)
    for pair in pairs:
        mask[pair] = True
    return mask if pairs else None
