"""The match of sets that are too large for an assignment problem: no n x n matrix, no bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from blindmatch.alignment.crew import Crew, Ending
from blindmatch.machine import one_blas_thread
from blindmatch.matching.coordinate_matches import Matches, Spaces, given_pairs, matches, points_or_relations, settle
from blindmatch.matching.large_costs import (
    EXACT,
    Estimate,
    KernelSide,
    PointSide,
    Relations,
    Side,
    refuse,
    summed_by_blocks,
)
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.hints import Hints
from blindmatch.problem.task import QUADRATIC, UNEQUAL, Task
from blindmatch.solvers.base import Budget, Callback
from blindmatch.solvers.progress import Status
from blindmatch.solving.result import Result, attach_result
from blindmatch.validation import IntArray

_PAIR_SECONDS = 4e-7  # for each pair of items, to build the assignment problem and hand it to a solver
_BUILDING = 0.2  # largest share of the time limit to build the assignment problem
# of the time limit: when the match is to be there, when its cost is summed, and when all is known
_MATCHING, _SUMMING, _ENDING = 0.75, 0.85, 0.95


def in_haste(sizes: tuple[int, int], distortion: Distortion, hints: Hints, time_limit: float | None) -> bool:
    """Return True if building the assignment problem takes too much of a time limit, and is not needed."""
    if time_limit is None or hints.reward is not None or not summed_by_blocks(distortion):
        return False
    return _PAIR_SECONDS * (max(sizes) + hints.max_unmatched) ** 2 > _BUILDING * time_limit


def match_large(
    task: Task,
    *,
    time_limit: float | None = None,
    rng: np.random.Generator,
    callback: Callback | None = None,
    threads: int | None = None,
) -> Result:
    """Match by coordinates; the cost is summed by blocks, or estimated where that would take too long."""
    hints, distortion, (sides, precomputed) = task.hints, task.distortion, points_or_relations(task)
    if hints.reward is not None:
        raise ValueError(
            f"similarity is given for {hints.sizes[0]} and {hints.sizes[1]} items; it is used for up to {QUADRATIC} "
            f"items on each side ({UNEQUAL}, if sizes differ or items may stay unmatched)"
        )
    if task.given_layers:
        raise ValueError(f"kernels has layers of {max(hints.sizes)} items; expected up to {UNEQUAL}")
    refuse(distortion, hints.sizes)
    run = Run(time_limit, threads, callback)
    run.step("principal axes", 0.0)
    with one_blas_thread():
        spaces = Spaces.of(sides, distortion, precomputed)
    found = matches(
        spaces, given_pairs(hints), rng=rng, threads=threads, remaining=lambda: run.left(_MATCHING), step=run.step
    )
    run.interrupted |= found.found.ended == "interrupted"
    relations = [KernelSide(side) if precomputed else PointSide(distortion.prepared(side)) for side in sides]
    judge = Judge(distortion, (relations[0], relations[1]), hints, found, run, int(rng.integers(2**63)))
    partners, cost, notes = judge.best()
    status: Status = "interrupted" if run.interrupted else found.found.ended or "heuristic"
    result = Result(
        permutation=partners,
        cost=cost.value,
        lower_bound=None,
        status=status,
        solver="alignment",
        seconds=0.0,
        trace=tuple(run.trace),
    )
    result = found.judge(result, partners, lambda: run.left(_ENDING))
    count = "1 start" if found.found.starts == 1 else f"{found.found.starts} starts"
    words = f"matched by coordinates, without a bound; support {result.support} of {count}"
    words += "" if result.support else ": do not believe this match"
    result = replace(result, seconds=run.seconds, notes=(*notes, words))
    if run.error is not None:
        attach_result(run.error, result)
        raise run.error
    return result


class Run(Budget):
    """The budget of one match."""

    cost: float | None = None

    def left(self, share: float) -> float:
        """Seconds until this share of the time limit is over; none after an interruption."""
        return 0.0 if self.interrupted else share * self.time_limit - self.seconds

    def step(self, phase: str, share: float) -> None:
        """Report what is being done, and how much of it is done."""
        self.report(None, self.cost, round(100 * share), phase=phase)
        self.interrupted |= self.reached is not None  # by the callback: there are no other limits here


@dataclass(frozen=True, eq=False)
class Judge:
    """Costs of large matches, with the price of what stays unmatched."""

    distortion: Distortion
    sides: tuple[Side, Side]
    hints: Hints
    found: Matches
    run: Run
    seed: int

    def best(self) -> tuple[IntArray, Estimate, list[str]]:
        """The cheapest match, its cost, and what is to be said about it."""
        with one_blas_thread():
            if max(self.hints.sizes) <= EXACT:
                ending, best = Ending(), None
                with ending.record():
                    best = self._cheapest(exact=True)
                self.run.interrupted |= ending.why == "interrupted"
                if best is not None:
                    return best
            return self._cheapest(exact=False)

    def _cheapest(self, *, exact: bool) -> tuple[IntArray, Estimate, list[str]]:
        run, every = self.run, self.found.all
        # A result needs a cost: an estimate is not cut short, it looks at fewer pairs.
        crew = Crew(self.found.threads, lambda: run.left(_SUMMING) if exact else math.inf)
        candidates = every if exact else every[: 1 if run.interrupted else 2]
        seconds = max(run.left(_ENDING), 0.0) / (2 + len(candidates))  # two scales, and each candidate
        drawn = np.random.default_rng(self.seed)
        relations = Relations(self.distortion, *self.sides, crew=crew, rng=drawn, exact=exact, seconds=seconds)
        judged: list[tuple[IntArray, Estimate]] = []
        for number, partners in enumerate(candidates):
            run.step("cost", number / len(candidates))
            if self.hints.unmatched_cost is not None:
                hasty = not exact and run.left(_SUMMING) <= 0
                partners = self._prune(relations, partners, crew, hasty=hasty)
            judged.append((partners, self._with_price(relations.cost(partners), partners)))
            run.cost = min(cost.value for _, cost in judged)
        partners, cost = min(judged, key=lambda entry: entry[1].value)
        note = f"the cost is estimated from random pairs of items: +- {cost.error:.2g} (standard error)"
        return partners, cost, [] if exact else [note]

    def _prune(self, relations: Relations, partners: IntArray, crew: Crew, *, hasty: bool) -> IntArray:
        """Without the pairs that are not worth their price: the cheapest of a few ways to choose them.

        The pairs that are kept fit the rotation, and all items are assigned again. Mutual neighbours fit it too: items
        without a partner hardly have any. If `hasty`, pairs are given up and that is all.
        """
        kept = self._worth(relations, partners)
        if hasty:
            return kept
        tried = [kept]
        mutual = self.found.mutual(partners, crew)
        if (mutual >= 0).sum() >= min(self.hints.sizes) - self.hints.max_unmatched:
            tried.append(self._worth(relations, mutual))
        for start in (kept, mutual):
            if (start >= 0).sum() > 1:
                again = settle(self.found.spaces.placed, start, self.found.given, crew)
                tried.append(self._worth(relations, again))
        return min(tried, key=lambda match: self._with_price(relations.cost(match), match).value)

    def _worth(self, relations: Relations, partners: IntArray) -> IntArray:
        price, most = self.hints.unmatched_cost, self.hints.max_unmatched
        assert price is not None
        return without_outliers(relations, partners, price, most, self.found.given.anchors.source)

    def _with_price(self, cost: Estimate, partners: IntArray) -> Estimate:
        if self.hints.unmatched_cost is None:
            return cost
        matched = int((partners >= 0).sum())
        return Estimate(cost.value + self.hints.unmatched_cost * (sum(self.hints.sizes) - 2 * matched), cost.error)


_AT_ONCE = 0.05  # share of the pairs that is given up together: outliers make the others look worse than they are
_ROUNDS = 200


def without_outliers(relations: Relations, partners: IntArray, price: float, most: int, kept: IntArray) -> IntArray:
    """Give up the pairs that cost more than their two items would alone, the worst first; restore those that pay.

    Each item without a partner costs the price, on either side. At most `most` items of the smaller set may stay
    unmatched. The pairs of the sources in `kept` are known. Where costs are estimated, nothing is taken back.
    """
    sums = relations.items(partners)  # a pair counts twice, as a source and as a partner: 2 * sums against 2 * price
    alone = partners.copy()
    spare = most - (min(len(relations.source), len(relations.target)) - int((partners >= 0).sum()))
    fixed = np.zeros(len(partners), dtype=bool)
    fixed[kept] = True
    for _ in range(_ROUNDS):
        matched = np.flatnonzero((alone >= 0) & ~fixed)
        costly = matched[sums[matched] > price]
        count = min(len(costly), spare, max(1, int(_AT_ONCE * len(matched))))
        if count <= 0:
            break
        worst = costly[np.argsort(-sums[costly], kind="stable")[:count]]
        alone[worst] = -1
        spare -= count
        if relations.exact:
            left, sums = np.flatnonzero(alone >= 0), sums.copy()
            sums[left] -= relations.between(left, worst, partners)
            sums[worst] = 0.0
        else:
            sums = relations.items(alone)
    return _with_better(relations, alone, partners, price) if relations.exact else alone


def _with_better(relations: Relations, alone: IntArray, partners: IntArray, price: float) -> IntArray:
    """Take back pairs, one by one, that cost less than the price beside all that are left."""
    gone, left = np.flatnonzero((alone < 0) & (partners >= 0)), np.flatnonzero(alone >= 0)
    if not len(gone) or not len(left):
        return alone
    costs = relations.between(gone, left, partners)
    for at in np.argsort(costs, kind="stable"):
        if costs[at] >= price:
            break
        alone[gone[at]] = partners[gone[at]]
        others = np.delete(np.arange(len(gone)), at)
        costs[others] += relations.between(gone[others], gone[[at]], partners)
    return alone
