"""A suggested price for items that stay unmatched, from how many are matched at each price."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown
from blindmatch.problem.task import Task, as_task
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.result import Result
from blindmatch.solving.run import solve

_PRICES = 12  # number of prices to try
_LEAST = 0.02  # the lowest price, as a share of the mean loss of a random pairing, times the number of items
_MOST, _USUAL = 0.3, 0.15  # the highest price to suggest, and the one without a plateau, in the same unit
_LARGEST = 400  # items on both sides together, up to which a price is suggested


@dataclass(frozen=True)
class Price:
    """A price, and the curve that it comes from: how many pairs a quick search matches at each price, ascending."""

    price: float
    curve: tuple[tuple[float, int], ...]

    @property
    def text(self) -> str:
        """The curve in words, with a range where the same number of pairs is matched."""
        parts = []
        for matched, points in groupby(self.curve, key=lambda point: point[1]):
            prices = [f"{price:.3g}" for price, _ in points]
            several = f"prices from {prices[0]} to {prices[-1]}"
            pairs = "1 pair" if matched == 1 else f"{matched} pairs"
            parts.append(f"{pairs} at {f'a price of {prices[0]}' if len(prices) == 1 else several}")
        return ", ".join(parts)

    def noted(self, result: Result) -> Result:
        """The result, with the price in its message."""
        note = f"unmatched_cost={self.price!r} was suggested"
        return replace(result, message="; ".join(filter(None, [result.message, note])))


def task_with_price(
    source: ArrayLike | Task | None,
    target: ArrayLike | None,
    *,
    unmatched_cost: float | Literal["auto"] | None,
    max_unmatched: int | None,
    **options: Any,
) -> tuple[Task, Price | None]:
    """A task from the arguments of ``bm.match``, and its price if that was to be suggested."""
    found = None
    if isinstance(unmatched_cost, str) and unmatched_cost != "auto":
        raise ValueError(f"unmatched_cost={shown(unmatched_cost)}; expected a number of at least 0, or 'auto'")
    if isinstance(unmatched_cost, str) and not isinstance(source, Task):
        found = suggested_price(Task.of(source, target, **options))
    price = unmatched_cost if found is None else found.price
    return as_task(source, target, **options, unmatched_cost=price, max_unmatched=max_unmatched), found


def suggested_price(task: Task) -> Price:
    """Suggest an `unmatched_cost` for a task without one.

    Prices from a fiftieth of what a random pair costs to all of it are tried with a quick search. Outliers leave a
    plateau: a range of prices at which the same number of pairs, at least half of all and not all, is matched. The
    middle of the widest plateau is suggested, as far as it is below 0.3 times what a random pair costs. If there is
    none, 0.15 times that.
    """
    if not math.isfinite(task.distortion.least_loss):
        raise ValueError("unmatched_cost='auto' needs losses that are not negative: distortion gw, gaussian or kl")
    if sum(task.sizes) > _LARGEST:
        raise ValueError(f"unmatched_cost='auto' is for up to {_LARGEST} items on both sides together; give a price")
    K, G = task.kernels
    (A, B), (source, _), (target, _) = task.distortion.terms(K, G)
    random = float(source.mean() + target.mean() + A.mean() * B.mean())
    prices = np.geomspace(_LEAST, 1.0, _PRICES) * random * min(task.sizes)
    curve = tuple((float(price), _matched(task, float(price))) for price in prices)
    full = min(task.sizes)
    plateaus: dict[int, list[float]] = {}
    for price, matched in curve:
        if full / 2 <= matched < full and price <= _MOST * random * full:
            plateaus.setdefault(matched, []).append(price)
    found = _USUAL * random * full
    if plateaus:
        widest = max(plateaus, key=lambda matched: (len(plateaus[matched]), matched))
        found = math.sqrt(plateaus[widest][0] * plateaus[widest][-1])
    return Price(float(f"{found:.3g}"), curve)  # a number to pass on


def _matched(task: Task, price: float) -> int:
    """How many pairs a quick search matches at a price."""
    priced = replace(task, hints=replace(task.hints, unmatched_cost=price, max_unmatched=min(task.sizes)))
    found = solve(priced.problem, Tabu(iterations=20 * priced.problem.n), rng=0)
    return int((priced.reduced(found.permutation) >= 0).sum())
