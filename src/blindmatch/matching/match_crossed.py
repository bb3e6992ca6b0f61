"""Search for a match with edges between the sides, where there are too many items for an assignment problem.

Frank-Wolfe steps over doubly stochastic matrices (FAQ, Vogelstein et al. 2015; with edges between the sides, Pedigo et
al. 2023), then pairwise exchanges. After some random starts, each begins halfway between two of the best matches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blindmatch.machine import available_bytes, one_blas_thread
from blindmatch.problem.layers import Crossed
from blindmatch.problem.optimality import tolerance
from blindmatch.problem.qap import QAP, FactorPair, exchange_gains
from blindmatch.problem.task import Task
from blindmatch.proof.certificate import Certificate, Node
from blindmatch.proof.duration import projection_seconds
from blindmatch.proof.spectral import cheap_bound
from blindmatch.solvers.base import Budget, Callback
from blindmatch.solvers.dual_ascent import DualAscent
from blindmatch.solvers.relaxation import assignment, barycentre, halfway, random_start
from blindmatch.solving.result import Result, attach_result
from blindmatch.solving.run import solve
from blindmatch.validation import FloatArray, IntArray

_RESTARTS, _RANDOM = 100, 30  # starts; the first of them are random, the others lie between two matches that were found
_KEPT = 10  # of those matches, the cheapest ones
_STEPS, _SMALL = 40, 0.01  # of Frank-Wolfe: the most, and a step so short (times sqrt(n)) that it is the last
_LEVEL_1 = DualAscent.capabilities.max_size or 0  # items up to which level 1 is tried
_SPARE = 5.0  # the estimate of the time of the projection bound is that much too high here: it has margins
_SEARCHING = 0.6  # of the time limit; what is left is for the bound


@dataclass(frozen=True, eq=False)
class Landscape:
    """sum <A, P B P'> + <L, P> + sum tr(there' P back P) over matrices P, without its constant."""

    factors: Sequence[FactorPair]
    linear: FloatArray
    crossed: Sequence[FactorPair]

    @classmethod
    def of(cls, inner: QAP, terms: Sequence[Crossed]) -> Landscape:
        """Of the relations inside both sides and between them."""
        crossed = [((-2.0 if term.squared else -1.0) * term.weight * term.there, term.back) for term in terms]
        return cls(inner.factors, inner.linear, crossed)

    def gradient(self, P: FloatArray) -> FloatArray:
        """The derivative at P."""
        total = self.linear
        for A, B in self.factors:
            total = total + A @ P @ B.T + A.T @ P @ B
        for there, back in self.crossed:
            total = total + back.T @ P.T @ there + there @ P.T @ back.T
        return np.asarray(total)

    def curvature(self, D: FloatArray) -> float:
        """The quadratic part at D."""
        inside = sum(float(((A @ D @ B.T) * D).sum()) for A, B in self.factors)
        return inside + sum(float(((there @ D.T) * (D @ back)).sum()) for there, back in self.crossed)

    def descend(self, P: FloatArray, budget: Budget) -> IntArray:
        """Frank-Wolfe from P, then the nearest permutation."""
        n = len(P)
        for _ in range(_STEPS):
            if budget.stopped:
                break
            gradient = self.gradient(P)
            D = -P
            D[np.arange(n), assignment(gradient)] += 1.0
            slope, bend = float((gradient * D).sum()), self.curvature(D)
            # Where all numbers share a large offset, rounding may leave a slope above 0 and a bend of next to nothing.
            length = max(0.0, min(1.0, -slope / (2 * bend))) if bend > 0 else float(slope + bend < 0)
            P = P + length * D
            if length * np.linalg.norm(D) < _SMALL * np.sqrt(n):
                break
        return assignment(-P)

    def polish(self, p: IntArray, budget: Budget) -> IntArray:
        """The best exchange of two partners, again and again, as long as it lowers the cost."""
        p, rows = p.copy(), np.arange(len(p))
        while not budget.stopped:
            P = np.zeros((len(p), len(p)))
            P[rows, p] = 1.0
            gradient = self.gradient(P)[:, p]
            change = exchange_gains(gradient)
            for there, back in self.crossed:
                change += exchange_gains(there[:, p]) * exchange_gains(back[p])
            for A, B in self.factors:
                change += exchange_gains(A) * exchange_gains(B[np.ix_(p, p)])
            r, s = np.unravel_index(int(np.argmin(change)), change.shape)
            least = 1e-9 * float(np.abs(change).max()) + 1e-12 * float(np.abs(gradient).max())  # more than rounding
            if not change[r, s] < -least:
                break
            p[[r, s]] = p[[s, r]]
        return p


def match_crossed(
    task: Task,
    *,
    time_limit: float | None,
    rng: np.random.Generator,
    callback: Callback | None = None,
    threads: int | None = None,
) -> Result:
    """The best of several starts; in the bound, each pair has a least cost of its edges between the sides."""
    if task.hints.known or task.hints.forbidden is not None:
        raise ValueError(
            f"crossed is given for {task.sizes[0]} items, and so are known or forbidden pairs: one of them"
        )
    n = task.bounding.n  # numbers that overflow are refused now
    inner, rows, columns = task.halves.problem, rng.permutation(n), rng.permutation(n)
    # In any order of the items: where assignments tie, the order would decide.
    terms = [term.permuted(rows, columns) for term in task.crossed]
    landscape = Landscape.of(inner.permuted(rows, columns), terms)
    budget = Budget(None if time_limit is None else _SEARCHING * time_limit, threads, callback)
    done, kept = 0, list[tuple[float, IntArray]]()
    try:  # Ctrl-C may fall anywhere
        with budget.interruptible(), one_blas_thread():
            for number in range(_RESTARTS):
                start = random_start(n, rng) if number else barycentre(n)
                if number >= _RANDOM and len(kept) > 1:
                    parents = rng.choice(len(kept), 2, replace=False)
                    start = (halfway(kept[parents[0]][1]) + halfway(kept[parents[1]][1])) / 2
                lowest = landscape.polish(landscape.descend(start, budget), budget)
                p = np.empty(n, dtype=np.intp)
                p[rows] = columns[lowest]
                cost = task.cost(p)
                budget.offer(p, cost)
                if not any(math.isclose(cost, other, rel_tol=1e-9) for other, _ in kept):
                    kept = sorted([*kept, (cost, lowest)], key=lambda one: one[0])[:_KEPT]
                done += 1
                if not budget.report(None, None, done):
                    break
        result = _with_bound(task, budget, columns[np.argsort(rows)], done == _RESTARTS, time_limit)
    except KeyboardInterrupt:
        if budget.best is None:
            raise
        budget.interrupted = True
        result = _with_bound(task, budget, budget.best[1], False, time_limit)
    if budget.error is not None:
        attach_result(budget.error, result)
        raise budget.error
    return result


def _with_bound(task: Task, budget: Budget, first: IntArray, whole: bool, time_limit: float | None) -> Result:
    """The best match of a search that is whole or cut short, else the first, with a bound unless Ctrl-C came."""
    n, problem = task.bounding.n, task.bounding
    best = first if budget.best is None else budget.best[1]
    cost, status = task.cost(best), "heuristic" if whole else budget.stop_status
    certificate, bound, name = None, None, ""
    left = None if time_limit is None else max(time_limit - budget.seconds, 1e-3)
    if n <= _LEVEL_1 and DualAscent().memory(problem) <= available_bytes() and not budget.interrupted:
        found = solve(problem, DualAscent(), time_limit=left, rng=0, threads=budget.threads)
        certificate, bound, name = found.certificate, found.lower_bound, found.bound_name
        status = found.status if found.status == "interrupted" else status
    elif not budget.interrupted and (left is None or projection_seconds(n) < _SPARE * left):
        certificate, (bound, name) = Certificate(n, (Node(spectral=True),)), cheap_bound(problem)
    if bound is not None and cost - bound <= tolerance(problem, cost) and status != "interrupted":
        status = "optimal"
    note = f"{n} items with relations between the sides: searched; a bound counts those of each pair alone"
    return Result(
        permutation=best,
        cost=cost,
        lower_bound=None if bound is None else min(bound, cost),
        status=status,
        solver="crossed search",
        seconds=budget.seconds,
        trace=tuple(budget.trace),
        notes=(note,),
        proof=certificate,
        bound_name=name,
    )
