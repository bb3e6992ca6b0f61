"""A suggested price for items that stay unmatched, from how many are matched at each price."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from blindmatch.problem.task import Price, Task
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.run import solve

_PRICES = 12  # number of prices to try
_LEAST = 0.02  # the lowest price, as a share of the mean loss of a random pairing, times the number of items
_MOST, _USUAL = 0.3, 0.15  # the highest price to suggest, and the one without a plateau, in the same unit
_LARGEST = 400  # items on both sides together, up to which a price is suggested
_SHARE = 0.3  # of the time limit: for all prices together


def suggest_price(task: Task, time_limit: float | None = None) -> Price:
    """Suggest an `unmatched_cost` for a task without one, in 0.3 of the time limit of the match.

    Prices from a fiftieth of what a random pair costs to all of it are tried with a quick search. Outliers leave a
    plateau: a range of prices at which the same number of pairs, at least half of all and not all, is matched. The
    middle of the widest plateau is suggested, as far as it is below 0.3 times what a random pair costs. If there is
    none, 0.15 times that; the same if time is too short for all searches.
    """
    if not math.isfinite(task.least_loss):
        raise ValueError("unmatched_cost='auto' needs losses that are not negative: distortion gw, gaussian or kl")
    if sum(task.sizes) > _LARGEST:
        raise ValueError(f"unmatched_cost='auto' is for up to {_LARGEST} items on both sides together; give a price")
    terms = [layer.terms() for layer in task.layers]
    random = sum(float(s.mean() + t.mean() + A.mean() * B.mean()) for (A, B), (s, _), (t, _) in terms)
    prices = np.geomspace(_LEAST, 1.0, _PRICES) * random * min(task.sizes)
    curve = _curve(task, prices.tolist(), math.inf if time_limit is None else _SHARE * time_limit)
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


def _curve(task: Task, prices: list[float], seconds: float) -> tuple[tuple[float, int], ...]:
    """How many pairs a quick search matches at each price; empty if not all searches end in time.

    A search that is cut short says little, so the suggestion depends on all prices or on none. A search that takes more
    than twice its share of the time shows that there is too little.
    """
    end = time.perf_counter() + seconds
    curve = []
    for at, price in enumerate(prices):
        hints = replace(task.hints, unmatched_cost=price, max_unmatched=min(task.sizes))
        priced = task.changed(hints=hints, price_wanted=False)
        share = (end - time.perf_counter()) * min(1.0, 2 / (len(prices) - at))
        limit = None if math.isinf(share) else max(share, 1e-3)
        found = solve(priced.problem, Tabu(iterations=20 * priced.problem.n), time_limit=limit, rng=0)
        if found.status == "time_limit":
            return ()
        curve.append((price, int((priced.reduced(found.permutation) >= 0).sum())))
    return tuple(curve)
