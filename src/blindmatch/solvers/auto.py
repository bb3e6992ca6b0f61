"""The default solver: picks a solver by size and says which."""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from blindmatch.machine import one_blas_thread
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate, Node
from blindmatch.proof.convex import Spectrum, convex_bound, has_convex_bound, multipliers
from blindmatch.proof.duration import check_seconds, stage_work
from blindmatch.solvers.base import MOST_BYTES, Budget, Capabilities, Outcome, Proof, Solver
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solvers.dual_ascent import SWAPS
from blindmatch.solvers.faq import FAQ
from blindmatch.solvers.relaxation import extension_seconds
from blindmatch.solvers.strengthened import worth_a_try
from blindmatch.solvers.tabu import Tabu
from blindmatch.solvers.two_opt import improve
from blindmatch.validation import FloatArray, at_least, boolean

_TABU_WORK = 4e10  # swaps evaluated by a stream: about a minute
_MOST_SWAPS = 10_000  # for each item: few items do not need a minute
_BRIEF = 10  # swaps for each item, where the match is believed: a tenth of a second with 200 items
_STREAMS = 2  # a constant: the result must not depend on the number of threads
_BOUND_SECONDS = 3e-9  # of the projection bound on a busy machine, over n^3
_CONVEX_FROM = 40  # items; for fewer, other bounds are better and soon there
_BOUND = 400  # the projection bound takes 200 to 280 times as long as the eigenvalues of a quarter of the items
_DESCENTS = 3  # of FAQ: from samples, from sorted rows and from the barycentre; any of them may be the best
_SPARSE = 0.2  # share of the relations that differ from zero: where both sides have fewer, a descent comes first
_SEARCH_SHARE = 0.7  # of the time, at most, for the search before the bound
_LONG_SEARCH_SHARE = 0.9  # the same if no semidefinite bound is in reach: level 1 adds little where searches disagree
_BOUND_CHECKS = 4.0  # times the check of a set of duals: with less time, level 1 adds nothing to the projection bound
_CHECKED = 0.4  # of the time for solving: as much again is kept for the check


@dataclass(frozen=True)
class Auto(Solver):
    """Branch and bound while its duals fit into memory; for larger sizes FAQ and tabu search with the projection bound.

    Where two short searches disagree, branch and bound begins after a search that is as long as that of `tabu`.

    Parameters
    ----------
    largest
        Largest size for branch and bound, whose duals take about 10 n^3 bytes (270 MB at 300).
    search
        Search for a cheaper match; False takes the best of the starts that `solve` was given, and branch and bound
        searches only briefly.
    memory_limit
        Bytes that the bounds with n^4 numbers may use, as in `BranchAndBound`.
    """

    largest: int = 300
    search: bool = True
    memory_limit: int = 4 << 30

    name: ClassVar[str] = "auto"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True,
        exact=True,
        forbidden=True,
        note="branch-and-bound; faq + tabu + projection bound for large n",
    )

    def __post_init__(self) -> None:
        at_least(self.largest, 1, "largest")
        boolean(self.search, "search")
        at_least(self.memory_limit, 0, "memory_limit", MOST_BYTES)

    def memory(self, problem: QAP) -> int:
        """Bytes that a run takes at its peak: only branch and bound takes n^3 numbers."""
        solver = BranchAndBound(memory_limit=self.memory_limit) if problem.n <= self.largest else Tabu()
        return solver.memory(problem)

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Run the solver that fits the size."""
        if problem.n <= self.largest:
            if self.search:
                find_incumbent(problem, budget, rng)
            point = convex_point(problem, budget) if problem.n >= _CONVEX_FROM and not budget.stopped else None
            outcome = BranchAndBound(self.memory_limit, swaps=_BRIEF)(problem, budget=budget, rng=rng)
            proof = Proof.of(outcome.certificate)
            if point is not None and proof is not None and outcome.status != "optimal":
                outcome = replace(outcome, certificate=proof.changed(Certificate.with_point, point))
            first, *others = outcome.notes or ("",)
            return replace(outcome, notes=(f"branch-and-bound: {first}" if first else "branch-and-bound", *others))
        return self._search(problem, budget, rng)

    def _search(self, problem: QAP, budget: Budget, rng: np.random.Generator) -> Outcome:
        beyond = f"n={problem.n} is beyond branch and bound (n={self.largest})"
        chosen = bool(budget.starts) and not self.search
        room = budget.remaining if chosen else _CHECKED * budget.time_limit
        certificate, bound = None, "without a bound, for which there is no time"
        if _BOUND_SECONDS * problem.n**3 <= room or _bound_seconds(problem) <= room:
            certificate, bound = Certificate(problem.n, (Node(spectral=True),)), "with the projection bound"
        if chosen:
            assert budget.best is not None
            return Outcome(budget.best[1], "stalled", certificate, notes=(f"the best start, {bound}: {beyond}",))
        if problem.forbidden is None and budget.remaining > 2 * extension_seconds(problem.n, budget):
            FAQ(restarts=_DESCENTS, polish=False)(problem, budget=budget, rng=rng)
            assert budget.best is not None
            seed = int(rng.integers(2**63))
            best = improve(problem, budget.best[1], budget=budget, seed=seed, kicks=4 * problem.n)
            budget.offer(best, problem.objective(best))
        steps = min(max(1000, int(_TABU_WORK / problem.n**2)), _MOST_SWAPS * problem.n)
        search = Tabu(iterations=steps, streams=_STREAMS)
        outcome = search(problem, budget=budget, rng=rng)
        status = "stalled" if outcome.status == "heuristic" else outcome.status
        return replace(outcome, status=status, certificate=certificate, notes=(f"faq and tabu {bound}: {beyond}",))


def find_incumbent(problem: QAP, budget: Budget, rng: np.random.Generator) -> None:
    """Offer the match of a short search, or of as long a one as `tabu` does if two short searches disagree.

    The bound decides where it can. Where it cannot, the match is what the caller gets, so it has its share of the time.
    """
    as_tabu = deepcopy(
        rng
    )  # draws what `tabu` would draw: with the same seed and enough time, it finds no better match
    short = Tabu(iterations=SWAPS * max(problem.n, 10), streams=_STREAMS)
    costs = {_run(short, problem, budget, rng) for _ in range(2)}
    if len(costs) == 1 or budget.stopped or budget.limits.work_limit is not None:  # the bound needs work too
        return
    n, time_limit = problem.n, budget.time_limit
    bounded = budget.remaining > _BOUND_CHECKS * check_seconds(stage_work(n**2, n), n, budget.threads)
    share = _SEARCH_SHARE if worth_a_try(problem, budget) else _LONG_SEARCH_SHARE
    budget.time_limit = budget.seconds + (share if bounded else 1.0) * budget.remaining
    descents = [] if problem.forbidden is not None else [FAQ(restarts=_DESCENTS)]
    sparse = all(np.count_nonzero(matrix) <= _SPARSE * n**2 for pair in problem.factors for matrix in pair)
    first = [FAQ(restarts=1)] if descents and sparse else []
    try:
        for search in (*first, Tabu(), *descents):
            if not budget.stopped:
                _run(search, problem, budget, as_tabu if isinstance(search, Tabu) else rng)
    finally:
        budget.time_limit = time_limit


def _run(solver: Solver, problem: QAP, budget: Budget, rng: np.random.Generator) -> float:
    """The cost that a search finds; its match becomes the incumbent if it is the best."""
    match = solver(problem, budget=budget, rng=rng).permutation
    cost = problem.objective(match)
    budget.offer(match, cost)
    return cost


def _bound_seconds(problem: QAP) -> float:
    """About how long the projection bound takes here and now, where the machine may be idle."""
    part = problem.n // 4
    quarter = np.array(problem.factors[0][0][:part, :part], dtype=np.float64)
    start = time.perf_counter()
    np.linalg.eigvalsh(quarter)
    return _BOUND * (time.perf_counter() - start)


_STEPS, _FEWEST = 1000, 50
_MOST_SECONDS = 20.0
_STEP = 1.5e-9  # seconds of a step, over n^3
_SHARE = 0.8  # of the time that is left after the search
_LONGEST = 0.99  # weight of the earlier corner in a step's goal, at most
_FORBIDDEN = 1e6  # price of a forbidden pair, over the largest entry


def convex_point(problem: QAP, budget: Budget) -> FloatArray | None:
    """A doubly stochastic matrix at which the convex quadratic bound is good; None without the time or the bound."""
    seconds = min(_MOST_SECONDS, _SHARE * budget.remaining)
    steps = int(min(_STEPS, seconds / (_STEP * problem.n**3)))
    if steps < _FEWEST or not has_convex_bound(problem):
        return None
    with one_blas_thread():
        point = _descend(problem, steps, budget)
    budget.report(problem.round_up(convex_bound(problem, point)), None, bound="convex quadratic")
    return point


def _descend(problem: QAP, steps: int, budget: Budget) -> FloatArray:
    n = problem.n
    A, B = (matrix / np.abs(matrix).max() for matrix in problem.factors[0])
    unit = float(np.abs(problem.factors[0][0]).max()) * float(np.abs(problem.factors[0][1]).max())
    fixed = problem.linear / unit + np.outer(np.diag(A), np.diag(B))
    for matrix in (A, B):
        np.fill_diagonal(matrix, 0.0)
    fixed += np.outer(A.sum(axis=1), B.sum(axis=1)) * (2.0 / n)
    if problem.forbidden is not None:
        fixed[problem.forbidden] += _FORBIDDEN * np.abs(fixed).max()
    of_A, of_B = Spectrum(A), Spectrum(B)
    s, t, L, R = of_A.values, of_B.values[::-1], of_A.vectors, of_B.vectors[:, ::-1]
    p, q = multipliers(s, t)
    M = np.maximum(np.outer(s, t) - p[:, None] - q, 0.0)
    X, K = np.full((n, n), 1.0 / n), np.zeros((n - 1, n - 1))
    best, highest = X, -np.inf
    goal, goal_K = X, K  # where the last step went
    for _ in range(steps):
        slope = fixed + 2.0 * (L @ (M * K) @ R.T)
        rows, columns = linear_sum_assignment(slope)
        least = float(slope[rows, columns].sum())
        bound = least - float((M * K * K).sum())
        if bound > highest:
            best, highest = X, bound
        before, corner = goal_K - K, L[rows].T @ R[columns] - K
        length, across = (float((M * before * other).sum()) for other in (before, corner))
        # Conjugate to the last step; plain steps zigzag between the same corners.
        weight = min(max(across / (across - length), 0.0), _LONGEST) if across < 0.0 < length else 0.0
        goal, goal_K = weight * goal, K + weight * before + (1.0 - weight) * corner
        goal[rows, columns] += 1.0 - weight
        direction = goal_K - K
        curvature, descent = float((M * direction * direction).sum()), float((slope * (X - goal)).sum())
        if descent <= 0.0 or budget.stopped:
            break
        size = min(1.0, descent / (2.0 * curvature)) if curvature > 0.0 else 1.0
        X, K = X + size * (goal - X), K + size * direction
    return best
