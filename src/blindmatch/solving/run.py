"""Run a solver on a problem and check everything that the result claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor
from dataclasses import replace
from functools import cache
from typing import Any, TextIO

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown, unknown_name
from blindmatch.machine import one_blas_thread
from blindmatch.problem.fingerprint import fingerprint
from blindmatch.problem.optimality import tolerance
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate
from blindmatch.proof.checker import verify_in_time
from blindmatch.proof.convex import convex_bound
from blindmatch.proof.duration import check_seconds, stage_seconds_at_least, stage_work
from blindmatch.proof.spectral import cheap_bound
from blindmatch.solvers import SOLVERS
from blindmatch.solvers.base import Budget, Callback, Outcome, Proof, Solver
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solvers.progress import Limits, Status
from blindmatch.solvers.relaxation import feasible_permutation
from blindmatch.solving.limits import fitting, keep_what_is_done
from blindmatch.solving.log import RunLog, as_stream
from blindmatch.solving.pool import Finds, as_pool_size, prove_pool
from blindmatch.solving.result import Result, attach_result
from blindmatch.solving.shuffled import Shuffled
from blindmatch.validation import IntArray, as_generator, as_sequence, at_least, boolean, positive, refuse_other

_HASTE = 0.3  # CPU seconds for the check of a proof after Ctrl-C: enough up to about n = 70
_LARGEST_IN_HASTE = 200  # largest n for which the projection bound is computed if that check does not finish
_LARGEST_ROOT_IN_HASTE = 100  # largest n for which only the root of a proof tree is checked if time is short
_BYTES_A_SECOND = 5.6e7  # duals converted per second; a certificate that takes too long is built on first access
_CHECKING = 0.45  # largest share of a time limit that is reserved for the check
_POOL_SWAPS = 10  # for each item: of the search in each part of the proof of a pool
_OVERRUN = 0.1  # share of a time limit by which the check may exceed it
# The name of the bound of each solver.
BOUNDS = {
    "auto": "branch and bound",
    "branch-and-bound": "branch and bound",
    "dual-ascent": "level-1 RLT",
    "factorized-hahn-grant": "level-1 RLT",
    "hahn-grant": "level-1 RLT",
    "brute-force": "enumeration",
}


def solve(
    problem: QAP,
    solver: str | Solver = "auto",
    *,
    time_limit: float | None = None,
    rng: int | np.random.Generator | None = None,
    callback: Callback | None = None,
    threads: int | None = None,
    start: ArrayLike | None = None,
    starts: Sequence[ArrayLike] = (),
    gap_limit: float | None = None,
    cost_limit: float | None = None,
    bound_limit: float | None = None,
    node_limit: int | None = None,
    solution_limit: int | None = None,
    work_limit: float | None = None,
    pool_size: int = 1,
    maximize: bool = False,
    log: bool | TextIO = False,
) -> Result:
    """Solve a quadratic assignment problem.

    Parameters
    ----------
    problem
        The problem.
    solver
        A name from ``bm.SOLVERS``, or a solver object with its own options.
    time_limit
        Seconds. When they run out, the best result so far is returned.
    rng
        A seed or a generator. The same seed gives the same result, unless a time limit stops the run.
    callback
        Called regularly with a ``Progress``; if it returns True, the run stops with status "interrupted". If it raises,
        the run stops and the exception propagates, with the best result so far as its attribute ``result``; so does an
        exception in the solver.
    threads
        Number of threads; all cores by default.
    start, starts
        A permutation to begin with, for example the result of an earlier run or of another program; or several. The
        result costs no more than any of them. Solvers that search (auto, branch-and-bound, dual-ascent, tabu, two-opt,
        faq) improve them, and use starts of their own too. A start with a forbidden pair is not used.
    gap_limit
        Stop at this relative gap between bound and cost: 0.01 is 1 %.
    cost_limit, bound_limit
        Stop once the cost is at most, or the proved bound at least this.
    node_limit
        Stop after this many nodes of branch and bound, the root included.
    solution_limit
        Stop after the solver has found a better match this often. A search tells only now and then what it has found,
        so the count, and with it the result, may depend on the clock.
    work_limit
        Stop after this much work. A unit takes about a second on one core, and is the same work on every machine: the
        result does not depend on the clock.
    pool_size
        How many different matches ``result.pool`` should have: the cheapest that were found. If the best one is proved
        and nothing else limits the run, all of them are proved to be the cheapest.
    maximize
        Look for the largest cost instead of the least one: ``result.upper_bound`` is then what is proved.
    log
        True prints a log as solvers do (``docs/operations-research.md`` explains it); or an open text file for it.

    The status of the result names the limit that ended the run.

    Examples
    --------
    >>> import blindmatch as bm
    >>> problem = bm.QAP([[0, 1, 2], [1, 0, 3], [2, 3, 0]], [[0, 4, 1], [4, 0, 1], [1, 1, 0]])
    >>> result = bm.solve(problem, rng=0)
    >>> result.status, result.cost
    ('optimal', 18.0)
    >>> bm.solve(problem, rng=0, pool_size=3).pool.costs.tolist()
    [18.0, 18.0, 24.0]
    """
    refuse_other(problem, QAP, "problem", "use bm.QAP(...) or a distortion's .problem(X, Y)")
    chosen = as_solver(solver)
    time_limit = None if time_limit is None else positive(time_limit, "time_limit")
    if threads is not None:
        at_least(threads, 1, "threads")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={shown(callback)}; expected a function of one argument")
    feasible_permutation(problem)  # raises a ValueError if there is none
    generator = as_generator(rng)
    limits = Limits(gap_limit, cost_limit, bound_limit, node_limit, solution_limit, work_limit)
    pool_size = as_pool_size(pool_size, problem)
    if solution_limit is not None and solution_limit < pool_size:
        raise ValueError(f"solution_limit={solution_limit} ends a run before it has a pool of pool_size={pool_size}")
    options: dict[str, Any] = {
        "time_limit": time_limit,
        "rng": rng,
        "threads": threads,
        "start": start,
        "starts": starts,
    }
    stream = as_stream(log)
    if stream is not None:
        lines = RunLog(stream)
        lines.begin(problem, chosen, threads, time_limit, limits)
        options |= {**vars(limits), "pool_size": pool_size, "maximize": maximize}
        with lines.ticking():
            logged = solve(problem, chosen, callback=lines.heard_by(callback), **options)
        lines.end(logged)
        return logged
    if boolean(maximize, "maximize"):
        return _maximize(problem, chosen, callback, limits, pool_size, options)
    finds = Finds(problem, pool_size)
    budget = Budget(time_limit, threads, callback, limits)
    budget.time_limit = _solving_time(problem, chosen, budget.time_limit, budget.threads)
    budget.naming = BOUNDS.get(chosen.name, chosen.name)

    given = [] if start is None else [problem.completed(start, "start")]
    given += [
        problem.completed(one, f"starts[{at}]") for at, one in enumerate(as_sequence(starts, "starts", "permutations"))
    ]
    shuffled = Shuffled.of(problem, generator)
    _refuse(shuffled.problem, chosen)
    _refuse_limits(limits, chosen)
    chosen, note = fitting(shuffled.problem, chosen)
    chosen = chosen.permuted(shuffled.shuffled_rows, shuffled.shuffled_columns)
    if pool_size > 1:
        budget.on_found = lambda permutation: finds.add(shuffled.restored(permutation))
    budget.starts = tuple(shuffled.renumbered(one) for one in given if problem.allows(one))
    first = feasible_permutation(shuffled.problem)
    for one in (first, *budget.starts):
        budget.offer(one, shuffled.problem.objective(one))
    budget.begin(shuffled.restored)

    outcome, result = Outcome(first, "interrupted"), None
    try:  # not a context manager: Ctrl-C may fall between its functions
        with budget.interruptible(), one_blas_thread():
            outcome = chosen(shuffled.problem, budget=budget, rng=generator)
            outcome = replace(outcome, notes=(*outcome.notes, note))
        result = _result(problem, shuffled.undone(outcome, budget), budget, chosen.name, time_limit)
        if outcome.on_checked is not None and result.status not in ("interrupted", "time_limit"):  # it was checked
            outcome.on_checked()
    except KeyboardInterrupt:
        if result is None:  # during the check: repeat it in a hurry
            budget.interrupted, outcome = True, replace(outcome, status="interrupted")
            result = _result(problem, shuffled.undone(outcome, budget), budget, chosen.name, time_limit)
    if budget.error is None:
        try:
            result = _with_pool(result, finds, budget, time_limit)
        except KeyboardInterrupt:  # what the pool has is kept
            budget.interrupted = True
            result = _with_pool(result, finds, budget, time_limit)
    if budget.error is not None:
        attach_result(budget.error, result)
        raise budget.error
    return result


def _with_pool(result: Result, finds: Finds, budget: Budget, time_limit: float | None) -> Result:
    """The result with its pool, and with the first match of that, which may be cheaper."""
    problem = finds.problem
    finds.add(problem.completed(result.permutation))
    room = math.inf if time_limit is None else time_limit
    complete = result.status == "optimal"
    if finds.size > 1:
        finds.look_around(lambda: budget.seconds < room and not budget.interrupted)
        limits = budget.limits
        complete = complete and limits.node_limit is None and limits.work_limit is None

        def solve_part(part: QAP, enough: float) -> tuple[IntArray, float, float] | None:
            left = room - budget.seconds
            if left <= 0 or not budget.report(None, None, phase="pool"):
                return None
            found = solve(
                part,
                BranchAndBound(swaps=_POOL_SWAPS),
                time_limit=None if left == math.inf else left,
                rng=0,
                callback=lambda _: not budget.report(None, None, phase="pool"),
                threads=budget.threads,
                bound_limit=None if enough == math.inf else enough,
            )
            if found.status not in ("optimal", "bound_limit") or found.lower_bound is None:
                return None
            return part.completed(found.permutation), found.cost, found.lower_bound

        known = result.lower_bound is not None and finds.worst <= result.lower_bound + tolerance(problem, finds.worst)
        complete = complete and (known or prove_pool(finds, solve_part))
    pool = finds.pool(complete)
    if not np.array_equal(pool[0], result.permutation):  # as cheap, or cheaper
        cost, bound, status = float(pool.costs[0]), result.lower_bound, result.status
        if bound is not None:
            bound = min(bound, cost)
            status = "optimal" if cost - bound <= tolerance(problem, cost) else status
        result = replace(result, permutation=pool[0], cost=cost, lower_bound=bound, status=status).sealed()
    return replace(result, pool=pool)


def _maximize(
    problem: QAP,
    solver: Solver,
    callback: Callback | None,
    limits: Limits,
    pool_size: int,
    options: dict[str, Any],
) -> Result:
    """Minimise the problem whose costs have the other sign."""
    told: Callback | None = None if callback is None else lambda now: callback(now.negated())
    opposite = vars(limits.negated())
    try:
        result = solve(problem.negated(), solver, callback=told, pool_size=pool_size, **opposite, **options)
    except BaseException as error:
        found = getattr(error, "result", None)
        if isinstance(found, Result):
            attach_result(error, found.of_maximum(problem))
        raise
    return result.of_maximum(problem)


def as_solver(solver: str | Solver) -> Solver:
    """Return a solver by its name; an object is returned unchanged."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise unknown_name("solver", solver, SOLVERS)
        return SOLVERS[solver]()
    if not isinstance(solver, Solver):
        raise ValueError(
            f"solver={shown(solver)} is neither a name nor a solver object (of a class derived from "
            "blindmatch.solvers.base.Solver)"
        )
    return solver


def _solving_time(problem: QAP, solver: Solver, time_limit: float, threads: int) -> float:
    """The time limit minus the time to check the certificate, if the check can be done within the limit at all."""
    if time_limit == math.inf or not solver.capabilities.bound:
        return time_limit
    n, most = problem.n, _CHECKING * time_limit
    if stage_seconds_at_least(n**2, n) > most * threads:
        return time_limit
    return time_limit - min(check_seconds(stage_work(n**2, n), n, threads), most)


def _check(
    problem: QAP, proof: Proof, seconds: float, threads: int, executor: Executor | None
) -> tuple[Certificate | Proof, float, bool]:
    """The certificate, its bound, and whether all of it was checked. If time is short, a large one is not built."""
    with keep_what_is_done() as interrupted:
        if proof.nbytes > _BYTES_A_SECOND * seconds:
            in_time = problem.n <= _LARGEST_ROOT_IN_HASTE
            return proof, verify_in_time(problem, proof.make(1), seconds)[0] if in_time else -math.inf, False
        certificate = proof.make(None)
    if interrupted:  # a second Ctrl-C: do not wait for the proof
        return proof, -math.inf, False
    try:
        return certificate, *verify_in_time(problem, certificate, seconds, threads, executor)
    except (RuntimeError, CancelledError):  # the executor broke down or was shut down
        return certificate, *verify_in_time(problem, certificate, seconds, threads)


def _checking_time(problem: QAP, proof: Proof, budget: Budget, time_limit: float | None) -> float:
    """CPU seconds for the check of a proof: no limit, except after Ctrl-C or if it would exceed the time limit."""
    if budget.interrupted:
        return _HASTE
    if time_limit is None:
        return math.inf
    room = max(_HASTE, max(0.0, time_limit - budget.seconds) + _OVERRUN * time_limit)
    return math.inf if check_seconds(proof.work, problem.n, budget.threads) <= room else room


def _refuse(problem: QAP, solver: Solver) -> None:
    can = solver.capabilities
    if not can.linear and problem.normal_form.linear.any():
        raise ValueError(f"solver={solver.name!r} cannot use a linear term (or diagonals that act as one)")
    if not can.forbidden and problem.forbidden is not None:
        raise ValueError(f"solver={solver.name!r} cannot use forbidden pairs")
    if not can.asymmetric and not problem.symmetric:
        raise ValueError(f"solver={solver.name!r} cannot use asymmetric matrices or sums of factor pairs")
    if not can.unequal and len(problem.factors) > 1:
        raise ValueError(f"solver={solver.name!r} cannot use sums of factor pairs (unequal sizes lead to them)")
    if can.max_size is not None and problem.n > can.max_size:
        raise ValueError(
            f"solver={solver.name!r} takes problems up to n={can.max_size}; this one has n={problem.n}; "
            "solver='auto' takes any size"
        )


def _refuse_limits(limits: Limits, solver: Solver) -> None:
    """Refuse limits that would never end a run of this solver."""
    can = solver.capabilities
    for name in limits.given:
        if name in can.ignores:
            raise ValueError(f"solver={solver.name!r} cannot keep a {name}")
        if name in ("gap_limit", "bound_limit", "node_limit") and not can.bound:
            raise ValueError(f"solver={solver.name!r} proves no bound, so {name} would never end it")


def _result(problem: QAP, outcome: Outcome, budget: Budget, name: str, time_limit: float | None) -> Result:
    """Recompute the cost on the caller's data, and the bound from the certificate if there is one."""
    cost = problem.objective(outcome.permutation)
    if not problem.allows(outcome.permutation):
        raise RuntimeError(f"solver {name!r} used a forbidden pair: please report this")
    status: Status = outcome.status
    notes = [note for note in outcome.notes if note]
    bound, proof = outcome.lower_bound, Proof.of(outcome.certificate)
    certificate: Certificate | Proof | None = proof
    projection = cache(lambda: cheap_bound(problem) if problem.n <= _LARGEST_IN_HASTE else (-math.inf, "projection"))
    if proof is not None:
        seconds = _checking_time(problem, proof, budget, time_limit)
        try:
            certificate, bound, whole = _check(problem, proof, seconds, budget.threads, outcome.executor)
        except ValueError as error:  # the match is kept even if its proof is refused
            bound, whole = -math.inf, True
            notes.append(f"the proof was refused: {error}; please report this")
        if not whole:
            status = "interrupted" if budget.interrupted or seconds == math.inf else "time_limit"
            bound = max(bound, projection()[0])
            notes.append("the check of the proof was stopped: result.verify() computes the full bound")
    if bound is not None:
        bound = min(bound, cost) if not math.isnan(bound) else -math.inf
        if cost - bound <= tolerance(problem, cost):
            status = "optimal"
        elif (reached := budget.limits.reached(bound, cost, budget.solutions)) is not None:
            status = reached
        elif status in ("optimal", "gap_limit", "bound_limit"):
            status = "stalled"
            notes.append(
                "the gap closes on the solver's scale, but float64 has too few digits to prove it for this cost"
            )
    if isinstance(certificate, Certificate):
        certificate = certificate.marked(fingerprint(problem))
    elif certificate is not None:
        certificate = certificate.changed(Certificate.marked, fingerprint(problem))
    return Result(
        task=problem,
        permutation=outcome.permutation[: problem.sources],
        cost=cost,
        lower_bound=bound,
        status=status,
        solver=name,
        seconds=budget.seconds,
        proof=certificate,
        trace=tuple(budget.trace),
        notes=tuple(notes),
        bound_name=_bound_name(problem, bound, certificate, name, projection),
    ).sealed()


def _bound_name(
    problem: QAP,
    bound: float | None,
    proof: Certificate | Proof | None,
    solver: str,
    projection: Callable[[], tuple[float, str]],
) -> str:
    """Which lower bound this is; empty if nothing is proved."""
    if bound is None or bound == -math.inf:
        return ""
    if proof is None:
        return BOUNDS.get(solver, solver)
    cheap, name = projection()
    if bound <= problem.round_up(cheap):
        return name
    if not isinstance(proof, Certificate):
        return "level-1 RLT" if BOUNDS.get(solver) == "level-1 RLT" else "branch and bound"
    point = proof.nodes[0].point
    if point is not None and not proof.forced and bound <= problem.round_up(convex_bound(problem, point)):
        return "convex quadratic"
    stages = [stage for node in proof.nodes for stage in node.stages]
    if not stages:
        return name
    if len(proof.nodes) > 1:
        return "branch and bound"
    return "semidefinite" if any(stage.factor is not None for stage in stages) else "level-1 RLT"
