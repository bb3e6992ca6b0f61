"""Run a solver on a problem so that the promises of the result hold, whatever the solver does."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from blindmatch.errors import shown, unknown_name
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate
from blindmatch.proof.checker import verify_in_time
from blindmatch.proof.spectral import projection_bound
from blindmatch.solvers import SOLVERS
from blindmatch.solvers.base import CHECK_SECONDS, Budget, Callback, Outcome, Proof, Solver
from blindmatch.solvers.feasible import feasible_permutation, forced_pairs
from blindmatch.solvers.progress import Status
from blindmatch.solving.memory import refuse_if_too_large
from blindmatch.solving.result import Result
from blindmatch.validation import as_generator, at_least, positive

RELATIVE_TOLERANCE = 1e-6  # the paper's epsilon
_HASTE = 0.3  # seconds of computing for the check of a proof after Ctrl-C: enough for n = 70 or so; for larger ones
_LARGEST_IN_HASTE = 200  # the projection bound, up to this size
_LARGEST_ROOT_IN_HASTE = 100  # the root of a proof tree, up to this size
_BYTES_IN_HASTE = 1 << 24  # of duals that are put in order: larger proofs are made when somebody asks for them
_CHECKING = 0.3  # share of a time limit that is kept for the check
ROUNDING_TOLERANCE = 1e-12  # of the size of the numbers that are summed: below it float64 cannot tell costs apart


def solve(
    problem: QAP,
    solver: str | Solver = "auto",
    *,
    time_limit: float | None = None,
    rng: int | np.random.Generator | None = None,
    callback: Callback | None = None,
    threads: int | None = None,
) -> Result:
    """Solve a quadratic assignment problem.

    Parameters
    ----------
    problem
        What to solve.
    solver
        A name from ``bm.SOLVERS`` or a solver object with options of your own.
    time_limit
        Seconds; the best so far is returned when they are over.
    rng
        A seed or a generator. The same seed gives the same result, unless a time limit cut the run short.
    callback
        Called with a ``Progress`` now and then. If it raises, the run stops and the exception goes on to you, with the
        best result so far as its attribute ``result``.
    threads
        How many to use; all cores by default.

    Examples
    --------
    >>> import blindmatch as bm
    >>> problem = bm.QAP([[0, 1, 2], [1, 0, 3], [2, 3, 0]], [[0, 4, 1], [4, 0, 1], [1, 1, 0]])
    >>> result = bm.solve(problem, rng=0)
    >>> result.status, result.cost
    ('optimal', 18.0)
    """
    if not isinstance(problem, QAP):
        raise ValueError(f"problem={shown(problem)} is no QAP; bm.QAP(...) or a distortion's .problem(X, Y) makes one")
    chosen = as_solver(solver)
    if time_limit is not None:
        positive(time_limit, "time_limit")
    if threads is not None:
        at_least(threads, 1, "threads")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={shown(callback)}; expected a function of one argument")
    feasible_permutation(problem)  # or a ValueError
    generator = as_generator(rng)
    budget = Budget(_solving_time(problem, chosen, time_limit), threads, callback)

    forced = forced_pairs(problem)
    rest, rows, columns = problem.reduced(forced) if forced else (problem, np.arange(problem.n), np.arange(problem.n))
    _refuse(rest, chosen)
    outcome = _run_shuffled(rest, chosen, budget, generator)

    permutation = np.empty(problem.n, dtype=np.intp)
    for i, j in forced:
        permutation[i] = j
    permutation[rows] = columns[outcome.permutation]
    proof = Proof.of(outcome.certificate)
    if proof is not None and forced:
        proof = proof.changed(Certificate.lifted, problem.n, tuple(forced), rows, columns)
    result = _result(problem, replace(outcome, permutation=permutation), proof, budget, chosen.name)
    if outcome.checkpoint is not None and result.status != "interrupted":
        outcome.checkpoint.unlink(missing_ok=True)
    if budget.error is not None:
        budget.error.result = result  # type: ignore[attr-defined]
        raise budget.error
    return result


def as_solver(solver: str | Solver) -> Solver:
    """Look a solver up by its name; an object is returned as it is."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise unknown_name("solver", solver, SOLVERS)
        return SOLVERS[solver]()
    if isinstance(solver, type) or not callable(solver) or not hasattr(solver, "capabilities"):
        raise ValueError(f"solver={shown(solver)} is neither a name nor a solver object")
    return solver


def tolerance(problem: QAP, cost: float) -> float:
    """How far below the cost a proved bound may be for the cost to count as optimal."""
    if problem.granularity > 0:  # costs are exact, and this far apart: nothing less will do
        return problem.granularity / 2
    return max(RELATIVE_TOLERANCE * abs(cost), ROUNDING_TOLERANCE * problem.scale)


def _solving_time(problem: QAP, solver: Solver, time_limit: float | None) -> float | None:
    """The time limit less what the check of a certificate will take, as far as there is room for it."""
    if time_limit is None or not solver.capabilities.bound:
        return time_limit
    return time_limit - min(CHECK_SECONDS * problem.n**4, _CHECKING * time_limit)


def _checked(problem: QAP, proof: Proof, seconds: float, threads: int) -> tuple[Certificate | Proof, float, bool]:
    """The certificate, what it proves, and whether all of it was checked; large ones are not even made in haste."""
    try:
        if seconds < math.inf and proof.nbytes > _BYTES_IN_HASTE:
            in_time = problem.n <= _LARGEST_ROOT_IN_HASTE
            return proof, verify_in_time(problem, proof.make(1), seconds)[0] if in_time else -math.inf, False
        certificate = proof.make(None)
    except KeyboardInterrupt:  # whoever presses it again does not wait for the proof
        return proof, -math.inf, False
    return certificate, *verify_in_time(problem, certificate, seconds, threads)


def _checking_time(proof: Proof, budget: Budget) -> float:
    """Seconds for the check of a proof: infinite, unless somebody waits and it would take far longer than is left."""
    if budget.interrupted:
        return _HASTE
    room = 2 * _CHECKING * budget.time_limit + max(0.0, budget.remaining)
    return math.inf if CHECK_SECONDS * proof.work / budget.threads <= max(_HASTE, room) else _HASTE


def _refuse(problem: QAP, solver: Solver) -> None:
    can = solver.capabilities
    if not can.linear and problem.normal_form.linear.any():
        raise ValueError(f"solver={solver.name!r} cannot use a linear term (or diagonals that act as one)")
    if not can.forbidden and problem.forbidden is not None and problem.forbidden.any():
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
    refuse_if_too_large(problem, solver)


def _run_shuffled(problem: QAP, solver: Solver, budget: Budget, rng: np.random.Generator) -> Outcome:
    """Run on a shuffled copy: where costs tie, the order of the input must not decide."""
    rows, columns = rng.permutation(problem.n), rng.permutation(problem.n)
    shuffled = problem.permuted(rows, columns)
    if hasattr(solver, "permuted"):  # it was given something that follows the numbering of the problem
        solver = solver.permuted(rows, columns)
    start = feasible_permutation(shuffled)
    budget.offer(start, shuffled.objective(start))
    try:
        outcome = solver(shuffled, budget=budget, rng=rng)
    except (KeyboardInterrupt, MemoryError) as error:  # what was found before is kept; the latter is raised in the end
        budget.fail(error)
        outcome = Outcome(start, "interrupted")
    assert budget.best is not None
    # The budget keeps what was reported on the way, and when that was depends on threads. It counts where it is really
    # better, because a run was cut short: among costs that differ by rounding alone, the solver's own choice stands.
    rounding = 0.0 if shuffled.exact else ROUNDING_TOLERANCE * shuffled.scale
    if shuffled.objective(budget.best[1]) < shuffled.objective(outcome.permutation) - rounding:
        outcome = replace(outcome, permutation=budget.best[1])
    permutation = np.empty(problem.n, dtype=np.intp)
    permutation[rows] = columns[outcome.permutation]
    proof = Proof.of(outcome.certificate)
    if proof is not None:
        proof = proof.changed(Certificate.unshuffled, rows, columns)
    return replace(outcome, permutation=permutation, certificate=proof)


def _result(problem: QAP, outcome: Outcome, proof: Proof | None, budget: Budget, name: str) -> Result:
    """Re-score on the caller's own data: nothing that the solver claims is taken over unchecked."""
    cost = problem.objective(outcome.permutation)
    if not problem.allows(outcome.permutation):
        raise RuntimeError(f"solver {name!r} used a forbidden pair: please report this")
    status: Status = outcome.status
    notes = [outcome.message] if outcome.message else []
    bound = outcome.lower_bound
    certificate: Certificate | Proof | None = proof
    if proof is not None:
        seconds = _checking_time(proof, budget)
        try:
            certificate, bound, whole = _checked(problem, proof, seconds, budget.threads)
        except ValueError as error:  # the match is kept, whatever is wrong with its proof
            bound, whole = -math.inf, True
            notes.append(f"the proof was refused: {error}; please report this")
        if not whole:
            status = "interrupted" if budget.interrupted or seconds == math.inf else "time_limit"
            bound = max(bound, projection_bound(problem) if problem.n <= _LARGEST_IN_HASTE else -math.inf)
            notes.append(
                "the check of the proof was cut short: bm.verify(problem, result.certificate) says all it proves"
            )
    if bound is not None:
        bound = min(bound, cost) if not math.isnan(bound) else -math.inf
        if cost - bound <= tolerance(problem, cost):
            status = "optimal"
        elif status == "optimal":
            status = "stalled"
            notes.append(
                "the proof closes on the solver's scale, but float64 has too few digits to say so of this cost"
            )
    return Result(
        permutation=outcome.permutation,
        cost=cost,
        lower_bound=bound,
        status=status,
        solver=name,
        seconds=budget.seconds,
        proof=certificate,
        trace=tuple(budget.trace),
        message="; ".join(notes),
    )
