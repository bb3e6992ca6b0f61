"""The best matches instead of the best one: what a run found, its neighbours, and a proof that none is missing.

The proof partitions all permutations as Murty (1968) does for linear assignment: those that agree with a match in their
first i rows and differ in the next one, for each i. Branch and bound shows of each part that it holds nothing cheaper
than the last match of the pool, or finds its best match, whose part is then divided in the same way.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np

from blindmatch.problem.optimality import tolerance
from blindmatch.problem.qap import QAP, swap_costs
from blindmatch.solvers.relaxation import feasible_permutation
from blindmatch.validation import BoolArray, FloatArray, IntArray, at_least

_MOST = 10_000  # matches: each is a row of n numbers, and its neighbours are looked at


@dataclass(frozen=True, eq=False)
class Pool(Sequence[IntArray]):
    """Different matches, the best first.

    Attributes
    ----------
    permutations, costs
        (k, n) and (k,).
    complete
        Whether it is proved that no other match is better than any of these.
    """

    permutations: IntArray
    costs: FloatArray
    complete: bool = False

    def __len__(self) -> int:
        return len(self.permutations)

    @overload
    def __getitem__(self, index: int) -> IntArray: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[IntArray]: ...
    def __getitem__(self, index: int | slice) -> IntArray | Sequence[IntArray]:
        """One match, or several."""
        return self.permutations[index]

    def __repr__(self) -> str:
        kind = "the best of all" if self.complete else "the best found"
        return f"Pool({len(self)} permutations, {kind}, costs {self.costs.min():.7g} to {self.costs.max():.7g})"


def as_pool_size(size: int, problem: QAP) -> int:
    """The number of matches that a pool should have: at most as many as there are."""
    at_least(size, 1, "pool_size", _MOST)
    n, m = problem.sources, problem.n
    if m <= 10 and size > math.perm(m, n):
        raise ValueError(f"pool_size={size}; {n} sources and {m} targets have only {math.perm(m, n)} permutations")
    return size


@dataclass
class Finds:
    """The cheapest matches of a problem so far, at most `size` of them."""

    problem: QAP
    size: int
    matches: dict[tuple[int, ...], tuple[float, IntArray]] = field(default_factory=dict)

    def add(self, permutation: IntArray) -> None:
        """Keep a permutation of the problem if it is new, allowed and among the cheapest."""
        key = tuple(np.minimum(permutation[: self.problem.sources], self.problem.targets).tolist())
        if key in self.matches or not self.problem.allows(permutation):
            return
        cost = self.problem.objective(permutation)
        if cost >= self.worst:
            return
        self.matches[key] = (cost, permutation.copy())
        if len(self.matches) > self.size:
            del self.matches[max(self.matches, key=lambda other: (self.matches[other][0], other))]

    @property
    def worst(self) -> float:
        """The cost that a further match must stay below."""
        return math.inf if len(self.matches) < self.size else max(cost for cost, _ in self.matches.values())

    @property
    def sorted(self) -> list[tuple[float, IntArray]]:
        """Costs and permutations, the cheapest first."""
        keys = sorted(self.matches, key=lambda key: (self.matches[key][0], key))
        return [self.matches[key] for key in keys]

    def pool(self, complete: bool) -> Pool:
        """The pool, with the partners of the sources alone."""
        costs, matches = zip(*self.sorted[: self.size], strict=True)  # one more if Ctrl-C came while one was added
        return Pool(np.array(matches)[:, : self.problem.sources], np.array(costs), complete)

    def look_around(self, go_on: Callable[[], bool]) -> None:
        """Add what a swap of two partners makes of the matches, cheapest first, until there is nothing new."""
        seen: set[tuple[int, ...]] = set()
        while not seen or go_on():
            new = [key for key in self.matches if key not in seen]
            if not new:
                return
            key = min(new, key=lambda key: (self.matches[key][0], key))
            seen.add(key)
            for neighbour in _neighbours(self.problem, self.matches[key][1], self.size):
                self.add(neighbour)


def _neighbours(problem: QAP, p: IntArray, most: int) -> Iterator[IntArray]:
    """The cheapest permutations that differ from `p` by one swap."""
    delta = swap_costs(problem, p)
    rows, columns = np.triu_indices(problem.n, 1)
    differ = np.minimum(p[rows], p[columns]) < problem.targets  # two dummies are the same
    usable = np.isfinite(delta[rows, columns]) & (rows < problem.sources) & differ
    rows, columns = rows[usable], columns[usable]
    for at in np.argsort(delta[rows, columns], kind="stable")[:most]:
        other = p.copy()
        other[[rows[at], columns[at]]] = p[[columns[at], rows[at]]]
        yield other


# Solves a problem until its bound reaches a cost: the best match, its cost and the bound; None if it was stopped.
SolvePart = Callable[[QAP, float], tuple[IntArray, float, float] | None]


def prove_pool(finds: Finds, solve_part: SolvePart) -> bool:
    """Find all matches that are cheaper than the last of a full pool; False if the proof was stopped.

    The pool holds the best match, which is proved.
    """
    problem = finds.problem
    cost, best = finds.sorted[0]
    parts: list[tuple[float, int, IntArray, BoolArray, int]] = [(cost, 0, best, ~problem.allowed, 0)]
    made = 0
    while parts and parts[0][0] < finds.worst:
        _, _, match, forbidden, depth = heapq.heappop(parts)
        for row in range(depth, problem.sources):
            mask = forbidden.copy()
            mask[:row], mask[:, match[:row]] = True, True
            mask[np.arange(row), match[:row]] = False
            mask[row, match[row] if match[row] < problem.targets else slice(problem.targets, None)] = True
            part = problem.changed(forbidden=mask)
            try:
                feasible_permutation(part)
            except ValueError:  # nothing is left
                continue
            found = solve_part(part, finds.worst)
            if found is None:
                return False
            permutation, cost, bound = found
            finds.add(permutation)
            if bound < finds.worst - tolerance(problem, finds.worst if finds.worst < math.inf else cost):
                made += 1
                heapq.heappush(parts, (cost, made, permutation, mask, row))
    return True
