"""Other matches: swaps of two partners, the best match without each pair, other good matches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from blindmatch.problem.qap import QAP, swap_costs
from blindmatch.solvers.relaxation import feasible_permutation
from blindmatch.solvers.two_opt import TwoOpt
from blindmatch.trust.search import MOST, Part, quick_search, run_until_deadline
from blindmatch.validation import FloatArray, IntArray

RESTARTS = 60  # local searches from random starts, for matches of nearly the same cost
TIE = 0.01  # a swap that changes the cost by less than this share of a typical swap is a tie


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Other matches than the one that was found.

    Attributes
    ----------
    cost
        Of the match itself.
    swaps
        (n, n) what exchanging the partners of two sources adds to the cost; inf where that is forbidden.
    unit
        What a typical swap adds: the unit for differences of costs.
    without
        (n,) the least cost found without each source's pair; inf where there is no such match.
    matches, costs
        Different matches that were found, the match itself first.
    """

    cost: float
    swaps: FloatArray
    unit: float
    without: FloatArray
    matches: IntArray
    costs: FloatArray

    @property
    def consensus(self) -> FloatArray:
        """(n,) share of the matches of nearly the same cost in which a pair occurs.

        Their weight decreases with their cost, and is zero from the cost of a typical swap on.
        """
        weights = np.clip(1 - (self.costs - self.cost) / self.unit, 0.0, 1.0) if self.unit > 0 else self._ties
        same = self.matches == self.matches[0]
        return np.asarray(weights @ same / weights.sum())

    @property
    def _ties(self) -> FloatArray:
        return np.asarray(self.costs <= self.costs[0], dtype=np.float64)

    def limit(self, slack: float) -> float:
        """Differences of costs up to this count as none; `slack` is what rounding may do."""
        return max(TIE * self.unit, slack)

    def choices(self, slack: float) -> IntArray:
        """(n,) how many partners each source has among this match, its swaps and the matches of (nearly) its cost."""
        equal = self.matches[np.abs(self.costs - self.cost) <= self.limit(slack)]
        count = np.zeros(len(self.swaps), dtype=np.intp)
        for i, row in enumerate(np.abs(self.swaps) <= self.limit(slack)):
            count[i] = len({*equal[:, i], *self.matches[0][row], self.matches[0][i]})
        return count

    @property
    def better(self) -> float:
        """How much cheaper the best match found on the way is; 0.0 if none is."""
        return max(0.0, self.cost - float(self.costs.min()))


def find_alternatives(problem: QAP, match: IntArray, rows: IntArray, part: Part) -> Alternatives:
    """Look for other matches: each pair of `rows` forbidden in turn, and local searches from random starts."""
    cost = problem.objective(match)
    swaps = swap_costs(problem, match)
    found: dict[bytes, tuple[IntArray, float]] = {match.tobytes(): (match, cost)}

    def keep(other: IntArray, price: float) -> None:
        found.setdefault(other.tobytes(), (other, price))

    without = np.full(problem.n, math.inf)
    i, k = np.unravel_index(np.argmin(swaps, axis=1) + problem.n * np.arange(problem.n), swaps.shape)
    for a, b in zip(i, k, strict=True):
        if math.isfinite(swaps[a, b]):
            keep(swapped(match, int(a), int(b)), cost + float(swaps[a, b]))
    for row in rows if problem.n <= MOST else ():  # of more items, swaps must do
        other = without_pair(problem, int(row), int(match[row]))
        if other is None:
            continue
        best = quick_search(other, part)
        if best is None:
            break
        keep(*best)
    for _ in range(RESTARTS if problem.n <= MOST else RESTARTS // 6):
        local = run_until_deadline(problem, TwoOpt(restarts=1, kicks=0), part)
        if local is None:
            break
        keep(*local)
    matches, costs = np.array([m for m, _ in found.values()]), np.array([c for _, c in found.values()])
    for row in range(problem.n):
        others = costs[matches[:, row] != match[row]]
        without[row] = others.min() if len(others) else math.inf
    real = swaps[np.ix_(rows, rows)][np.triu_indices(len(rows), 1)]
    typical = real[np.isfinite(real) & (real > 1e-12 * problem.scale)]
    unit = float(np.median(typical)) if len(typical) else 0.0
    return Alternatives(cost, swaps, unit, without, matches, costs)


def without_pair(problem: QAP, i: int, j: int) -> QAP | None:
    """The problem in which source i must not be paired with target j; None if then no match is left."""
    mask = np.zeros((problem.n, problem.n), dtype=bool) if problem.forbidden is None else problem.forbidden.copy()
    mask[i, j] = True
    other = problem.changed(forbidden=mask)
    try:
        feasible_permutation(other)
    except ValueError:
        return None
    return other


def swapped(match: IntArray, i: int, k: int) -> IntArray:
    """The match with the partners of i and k exchanged."""
    other = match.copy()
    other[[i, k]] = match[[k, i]]
    return other


def interchangeable(found: Alternatives, rows: IntArray, slack: float) -> list[list[int]]:
    """Groups of sources whose partners can be exchanged at (nearly) no cost: duplicates, mirror images, ties.

    Each other match of (nearly) the same cost moves some partners around in cycles; the sources of a cycle are
    interchangeable.
    """
    limit = found.limit(slack)
    group = {int(row): int(row) for row in rows}

    def root(item: int) -> int:
        while group[item] != item:
            item = group[item]
        return item

    def join(a: int, b: int) -> None:
        if a in group and b in group:
            group[max(root(a), root(b))] = min(root(a), root(b))

    for a, b in np.argwhere(np.abs(found.swaps) <= limit):
        join(int(a), int(b))
    place = np.argsort(found.matches[0])
    for match, cost in zip(found.matches, found.costs, strict=True):
        if abs(cost - found.cost) <= limit:  # a cheaper one shows that the match is not the best, not a tie
            for a, b in enumerate(place[match]):
                join(a, int(b))
    groups: dict[int, list[int]] = {}
    for item in group:
        groups.setdefault(root(item), []).append(item)
    return sorted(sorted(members) for members in groups.values() if len(members) > 1)
