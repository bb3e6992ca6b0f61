"""The invariants of DESIGN.md, one after the other, for everything that goes through solve()."""

import importlib
import inspect
import json
import math
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from clock import in_time
from hypothesis import given, settings
from proofs import branching_certificate
from sampled import sampled
from strategies import KINDS, all_costs, gw_problem, optimum, problems, random_problem, rng_of, slack

import blindmatch as bm
from blindmatch.problem.fingerprint import fingerprint
from blindmatch.problem.optimality import tolerance
from blindmatch.proof.checker import verify_in_time
from blindmatch.solvers.base import Capabilities, Outcome, Proof, Solver
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant

BOUNDING = ["factorized-hahn-grant", *(["auto"] if "auto" in bm.SOLVERS else [])]
QUICK = FactorizedHahnGrant(primal_heuristic=False)


@dataclass(frozen=True)
class Liar(Solver):
    """A solver that returns what the test tells it to."""

    outcome: Outcome
    name: ClassVar[str] = "liar"
    capabilities: ClassVar[Capabilities] = Capabilities(bound=True)

    def __call__(self, problem, *, budget, rng):
        return self.outcome


# 1. lower_bound <= optimum <= cost


@given(problems(max_size=6))
@settings(max_examples=40)
def test_bound_optimum_cost(problem):
    result = bm.solve(problem, QUICK, rng=0)
    best = optimum(problem)
    assert result.lower_bound <= best + slack(problem)
    assert result.cost >= best - slack(problem)
    assert result.lower_bound <= result.cost
    proved = bm.verify(problem, result.certificate)
    assert result.lower_bound == min(proved, result.cost)
    if result.status == "optimal":
        assert result.cost <= best + tolerance(problem, best) + slack(problem)


@pytest.mark.parametrize("solver", BOUNDING)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_problem(solver, kind):
    problem = random_problem(3, 6, kind, linear=True)
    result = bm.solve(problem, solver, rng=0)
    assert result.lower_bound <= optimum(problem) + slack(problem)
    assert result.cost >= optimum(problem) - slack(problem)
    bounds = [point.lower_bound for point in result.trace if point.lower_bound is not None]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= optimum(problem) + slack(problem)


def test_optimal_is_what_was_proved_not_what_was_claimed():
    problem = gw_problem(0, 6, noise=1.0)
    worst = all_costs(problem)[0][all_costs(problem)[1].argmax()]
    claims = bm.solve(problem, Liar(Outcome(worst, "optimal", bm.Certificate(6))), rng=0)
    assert claims.status == "stalled"
    assert claims.lower_bound == -math.inf
    assert claims.gap is None


def test_a_proof_that_is_refused_leaves_the_match():
    zeros = np.zeros((4, 4, 4))
    certificate = bm.Certificate.from_duals(zeros, zeros, np.full(4, math.nan))
    result = bm.solve(random_problem(0, 4), Liar(Outcome(np.arange(4), "optimal", certificate)), rng=0)
    assert (result.lower_bound, result.status) == (-math.inf, "stalled")
    assert "the proof was refused: certificate: column_duals of a stage goes from nan" in result.message


def test_a_bound_of_nan_is_no_bound():
    result = bm.solve(random_problem(0, 4), Liar(Outcome(np.arange(4), "optimal", lower_bound=math.nan)), rng=0)
    assert (result.lower_bound, result.status) == (-math.inf, "stalled")


def test_rounding_does_not_make_an_optimum():
    """Two costs that differ by three parts in a million: the worse one must not pass for optimal."""
    A = np.array([[0.0, 1.0], [0.0, 0.0]])
    B = np.array([[0.0, 1.0 + 3e-6], [1.0, 0.0]])
    problem = bm.QAP(A, B)
    lazy = Liar(Outcome(np.array([0, 1]), "optimal", lower_bound=1.0))
    for seed in range(8):
        result = bm.solve(problem, lazy, rng=seed)
        assert (result.status == "optimal") == (result.cost == 1.0)


# 2. cost == problem.objective(permutation)


@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "faq", "two-opt", "random"])
def test_the_cost_is_recomputed_on_the_callers_data(solver):
    for seed, kind in enumerate(KINDS):
        problem = random_problem(seed, 6, kind, linear=True)
        result = bm.solve(problem, solver, rng=seed)
        assert result.cost == problem.objective(result.permutation)
        assert sorted(result.permutation) == list(range(6))
        assert result.pairs == list(enumerate(result.permutation.tolist()))


# 3. inputs are never written to


@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "faq", "two-opt", "random"])
def test_inputs_are_never_written_to(solver):
    rng = rng_of(0)
    arrays = [rng.standard_normal((6, 6)) for _ in range(3)]
    before = [array.copy() for array in arrays]
    problem = bm.QAP(*arrays)
    kept = [array.copy() for array in (*problem.factors[0], problem.linear)]
    bm.solve(problem, solver, rng=0)
    for array, old in zip([*arrays, *problem.factors[0], problem.linear], before + kept, strict=True):
        assert (array == old).all()


# 4. input order gives no advantage


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "faq", "two-opt", "random"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_on_constant_matrices_accuracy_is_chance(solver, value):
    """The number of fixed points of a random permutation has mean 1 and variance 1, whatever n."""
    constant = np.full((8, 8), value)
    options = {"restarts": 1} if solver != "random" else {}
    configured = bm.SOLVERS[solver](**options)
    right = [
        (bm.solve(bm.QAP(-constant, constant), configured, rng=seed, threads=1).permutation == np.arange(8)).sum()
        for seed in range(150)
    ]
    assert abs(np.mean(right) - 1.0) < 4 / math.sqrt(150)
    assert len(set(right)) > 2


# 5. same seed, same result, whatever the threads


@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "faq", "two-opt", "random"])
def test_same_seed_same_result_whatever_the_threads(solver):
    problem = gw_problem(0, 10, noise=1.0)
    options = {"factorized-hahn-grant": {"restarts": 5, "max_sweeps": 30}, "random": {}}
    configured = bm.SOLVERS[solver](**options.get(solver, {"restarts": 5}))
    runs = [bm.solve(problem, configured, rng=5, threads=threads) for threads in (1, 2, 4, None)]
    runs.append(bm.solve(problem, configured, rng=np.random.default_rng(5)))
    for run in runs[1:]:
        assert (run.permutation == runs[0].permutation).all()
        assert (run.cost, run.lower_bound, run.status) == (runs[0].cost, runs[0].lower_bound, runs[0].status)


def test_other_seeds_give_other_permutations():
    problem = gw_problem(0, 10, noise=1.0)
    assert len({tuple(bm.solve(problem, "random", rng=seed).permutation) for seed in range(20)}) > 10


# 6. a time limit, Ctrl-C or an exception in the callback


@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "faq", "two-opt"])
@pytest.mark.parametrize("limit", [0.05, 1.0])
def test_a_time_limit_is_honoured(solver, limit):
    options = {} if solver == "factorized-hahn-grant" else {"restarts": 10**7}
    problem = gw_problem(0, 40, noise=1.0)
    run = partial(bm.solve, problem, bm.SOLVERS[solver](**options), time_limit=limit, rng=0)
    result = in_time(limit, run)
    assert result.status == "time_limit"
    assert result.cost == problem.objective(result.permutation)


def test_a_run_cut_short_has_a_valid_bound():
    problem = gw_problem(3, 7, noise=1.0)
    for limit in (1e-6, 1e-3, 0.01):
        result = bm.solve(problem, QUICK, time_limit=limit, rng=0)
        assert result.lower_bound <= optimum(problem) + slack(problem)
        assert result.lower_bound == min(bm.verify(problem, result.certificate), result.cost)


INTERRUPTED = """
    import os, signal, sys, threading, time
    import numpy as np, blindmatch as bm

    rng = np.random.default_rng(0)
    n = int(sys.argv[2])
    X = rng.standard_normal((n, 8))
    problem = bm.GromovWasserstein().problem(X, rng.standard_normal((n, 8)))
    options = dict(primal_heuristic=False) if sys.argv[1] == "factorized-hahn-grant" else dict(restarts=10**8)
    solver = bm.SOLVERS[sys.argv[1]](**options)
    bm.solve(problem, solver, time_limit=0.01)  # everything is imported now
    bounded = threading.Event()
    def press():
        if sys.argv[1] == "factorized-hahn-grant":
            bounded.wait()  # however slow the machine, there is a bound to keep
        time.sleep(0.3)
        global pressed
        pressed = time.process_time()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=press).start()
    seen = lambda progress: progress.lower_bound is not None and bounded.set()
    result = bm.solve(problem, solver, rng=0, callback=seen)
    waited = time.process_time() - pressed  # not the clock: the machine may be busy
    print(result.status, waited, result.cost == problem.objective(result.permutation), result.lower_bound)
"""


@sampled(("solver", "n"), [("factorized-hahn-grant", 60), ("two-opt", 60)], quick=1)
def test_ctrl_c_returns_the_incumbent(solver, n):
    """A real SIGINT, while the C++ core (or numpy) runs."""
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), solver, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    status, waited, scored, bound = done.stdout.split()
    assert status == "interrupted"
    assert float(waited) < 2.0
    assert scored == "True"
    assert solver != "factorized-hahn-grant" or math.isfinite(float(bound))


def test_ctrl_c_in_a_callback_is_an_interrupt():
    problem = gw_problem(3, 7, noise=1.0)

    def callback(progress):
        if progress.lower_bound is not None:
            signal.raise_signal(signal.SIGINT)

    result = bm.solve(problem, QUICK, callback=callback, rng=0)
    assert result.status == "interrupted"
    assert math.isfinite(result.lower_bound)
    assert result.lower_bound <= optimum(problem) + slack(problem)


def test_ctrl_c_while_the_proof_is_checked_keeps_the_result(monkeypatch):
    """The run is over, only the check is not: the match and its proof are kept, with what has been checked."""
    module = importlib.import_module("blindmatch.proof.stage_check")
    problem = gw_problem(3, 7, noise=1.0)
    whole = bm.solve(problem, QUICK, rng=0)

    def press(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "_charges", press)
        result = bm.solve(problem, QUICK, rng=0)
    assert result.status == "interrupted"
    assert (result.permutation == whole.permutation).all()
    assert result.lower_bound < whole.lower_bound
    assert "bm.verify" in result.message
    assert bm.verify(problem, result.certificate) == whole.lower_bound
    monkeypatch.setattr(module, "_charges", press)
    with pytest.raises(KeyboardInterrupt):  # whoever asks for the check alone hears of it
        bm.verify(problem, result.certificate)


PACKAGE = str(Path(bm.__file__).parent)


class Pressed(Solver):
    """Presses Ctrl-C when the `count`-th function after the end of its run is called."""

    name, capabilities = QUICK.name, QUICK.capabilities

    def __init__(self, count):
        self.count, self.files = count, []

    def __call__(self, problem, *, budget, rng):
        outcome = QUICK(problem, budget=budget, rng=rng)
        sys.settrace(self._trace)
        return outcome

    def _trace(self, frame, event, argument):
        file = frame.f_code.co_filename
        generator = frame.f_code.co_flags & inspect.CO_GENERATOR  # Python swallows what is raised where it closes one
        if file.startswith(PACKAGE) and not generator and not file.endswith("interrupts.py"):
            self.files.append(file)
            if len(self.files) == self.count:
                raise KeyboardInterrupt


def test_ctrl_c_after_the_search_keeps_the_match_wherever_it_falls():
    problem = gw_problem(3, 5, noise=1.0)
    whole = bm.solve(problem, QUICK, rng=0)
    count = -2
    while True:
        count += 3
        solver = Pressed(count)
        try:
            result = bm.solve(problem, solver, rng=0)
        finally:
            sys.settrace(None)
        assert result.cost == whole.cost, solver.files
        assert result.lower_bound <= whole.lower_bound
        if len(solver.files) < count:
            break
    assert count > 50  # functions were called, and each was interrupted once


@pytest.mark.parametrize("error", [ValueError, FloatingPointError, MemoryError])
def test_an_exception_in_a_solver_propagates_with_the_best_so_far(error):
    problem, best = gw_problem(0, 9, noise=1.0), []

    class Broken(Solver):
        name, capabilities = QUICK.name, QUICK.capabilities

        def __call__(self, problem, *, budget, rng):
            best.append(QUICK(problem, budget=budget, rng=rng))
            raise error("broken")

    with pytest.raises(error, match="broken") as caught:
        bm.solve(problem, Broken(), rng=0)
    assert caught.value.result.status == "interrupted"
    assert caught.value.result.cost == bm.solve(problem, QUICK, rng=0).cost


def test_a_check_that_is_cut_short_proves_what_it_has_seen():
    problem = random_problem(5, 7, "symmetric", integer=True)
    result = bm.solve(problem, "branch-and-bound", rng=0)
    proof = branching_certificate(problem, np.random.default_rng(0))
    best = optimum(problem)
    for seconds in (-1.0, 0.0, 1e-4, 1e-3, 1e-2):
        for certificate in (result.certificate, proof):
            bound, complete = verify_in_time(problem, certificate, seconds)
            assert bound <= best + slack(problem)
            assert bound <= bm.verify(problem, certificate)
            assert not complete or bound == bm.verify(problem, certificate)
    assert verify_in_time(problem, result.certificate, math.inf) == (result.lower_bound, True)


class StopError(Exception):
    pass


@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "faq", "two-opt"])
def test_an_exception_in_the_callback_propagates_with_the_result(solver):
    problem = gw_problem(0, 9, noise=1.0)

    def callback(progress):
        raise StopError("enough")

    with pytest.raises(StopError, match="enough") as caught:
        bm.solve(problem, solver, callback=callback, rng=0)
    result = caught.value.result
    assert result.status == "interrupted"
    assert result.cost == problem.objective(result.permutation)
    assert result.lower_bound is None or result.lower_bound <= result.cost


@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "faq", "two-opt"])
def test_a_callback_that_raised_is_not_called_again(solver):
    calls = []

    def callback(progress):
        calls.append(progress)
        raise StopError("enough")

    with pytest.raises(StopError):
        bm.solve(gw_problem(0, 9, noise=1.0), solver, callback=callback, rng=0)
    assert len(calls) == 1


@pytest.mark.parametrize("hints", [{}, {"unmatched_cost": 1.0}])
def test_an_exception_in_the_callback_of_a_match_has_the_callers_items(hints):
    rng = rng_of(0)

    def callback(progress):
        raise RuntimeError("enough")

    for n, m in ((5, 8), (8, 5)):
        X, Y = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
        with pytest.raises(RuntimeError, match="enough") as caught:
            bm.match(X, Y, solver=QUICK, callback=callback, rng=0, **hints)
        permutation = caught.value.result.permutation
        assert permutation.shape == (n,)
        assert -1 <= permutation.min() <= permutation.max() < m


def test_the_callback_sees_the_trace():
    seen = []
    result = bm.solve(gw_problem(0, 8), QUICK, callback=seen.append, rng=0)
    assert tuple(seen) == result.trace
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)
    costs = [p.cost for p in seen]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(result.cost, rel=1e-12)
    assert result.seconds >= seen[-1].seconds


def test_solving_in_another_thread():
    problem = gw_problem(0, 7)
    results = []
    thread = threading.Thread(target=lambda: results.append(bm.solve(problem, QUICK, rng=0)))
    thread.start()
    thread.join(60)
    assert results[0].cost == bm.solve(problem, QUICK, rng=0).cost


@dataclass(frozen=True)
class Renumbered(Liar):
    """A solver with an option that follows the numbering of the problem."""

    pair: tuple[int, int] = (1, 2)

    def permuted(self, rows, columns):
        place = int(np.argsort(rows)[self.pair[0]]), int(np.argsort(columns)[self.pair[1]])
        return replace(self, pair=place)

    def __call__(self, problem, *, budget, rng):
        rest = np.delete(np.arange(problem.n), self.pair[1]).tolist()
        found = [self.pair[1] if i == self.pair[0] else rest.pop() for i in range(problem.n)]
        return Outcome(np.array(found), "heuristic")


def test_options_that_follow_the_numbering_are_renumbered():
    problem = bm.QAP(np.zeros((5, 5)), np.zeros((5, 5)))
    for seed in range(5):
        assert bm.solve(problem, Renumbered(Outcome(np.arange(5), "heuristic")), rng=seed).permutation[1] == 2


def test_a_solver_is_told_when_its_result_has_been_checked():
    problem, told = random_problem(0, 4), []
    for status in ("heuristic", "interrupted"):
        bm.solve(problem, Liar(Outcome(np.arange(4), status, on_checked=partial(told.append, status))), rng=0)
    assert told == ["heuristic"]


def test_a_solver_is_derived_from_the_base_class():
    class Lookalike:
        name, capabilities = "lookalike", Capabilities()

        def __call__(self, problem, *, budget, rng):
            return Outcome(np.arange(problem.n), "heuristic")

    with pytest.raises(ValueError, match=r"neither a name nor a solver object .*Solver"):
        bm.solve(random_problem(0, 4), Lookalike())


# 7. what a solver cannot use, it refuses


def refusing(**capabilities):
    class Refusing(Liar):
        pass

    Refusing.capabilities = Capabilities(**capabilities)
    return Refusing(Outcome(np.arange(4), "heuristic"))


@pytest.mark.parametrize(
    ("capabilities", "problem", "word"),
    [
        ({"linear": False}, random_problem(0, 4, linear=True), "linear"),
        ({"linear": False}, random_problem(0, 4, "diagonal"), "linear"),
        ({"linear": False}, random_problem(0, 5).with_known_pairs([(0, 0)]), "linear"),
        ({"forbidden": False}, random_problem(0, 4, forbidden=0.5), "forbidden"),
        ({"asymmetric": False}, random_problem(0, 4, "asymmetric"), "asymmetric"),
        ({"asymmetric": False}, random_problem(0, 4, "sum"), "asymmetric"),
        ({"max_size": 3}, random_problem(0, 4), "n=3"),
    ],
)
def test_a_solver_refuses_what_it_cannot_use(capabilities, problem, word):
    with pytest.raises(ValueError, match=rf"^solver='liar' .*{word}"):
        bm.solve(problem, refusing(**capabilities))


def test_and_takes_what_it_can():
    """One side symmetric is as good as both; a mask or a linear term of zeros is none."""
    picky = refusing(asymmetric=False, linear=False)
    mixed = bm.QAP(
        1.0 - np.eye(4), np.triu(np.ones((4, 4)), 1), np.zeros((4, 4)), forbidden=np.zeros((4, 4), dtype=bool)
    )
    for problem in (random_problem(0, 4), mixed):
        assert bm.solve(problem, picky, rng=0).status == "heuristic"


def test_the_papers_solver_refuses_forbidden_pairs():
    with pytest.raises(ValueError, match="forbidden"):
        bm.solve(random_problem(0, 6, forbidden=0.3), "factorized-hahn-grant")


# names, arguments


def test_unknown_solvers_suggest_the_nearest():
    with pytest.raises(ValueError, match=r"^solver='two-up' is not known; did you mean 'two-opt'\?"):
        bm.solve(random_problem(0, 3), "two-up")
    with pytest.raises(ValueError, match=r"^solver='xyz' is not known\. Known: .*faq"):
        bm.solve(random_problem(0, 3), "xyz")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("solver", 3),
        ("solver", None),
        ("solver", FactorizedHahnGrant),
        ("time_limit", 0),
        ("time_limit", -1.0),
        ("time_limit", math.nan),
        ("time_limit", "1"),
        ("threads", 0),
        ("threads", 1.5),
        ("rng", -1),
        ("rng", "seed"),
        ("rng", 1.5),
        ("callback", 3),
        ("starts", None),
        ("starts", 3),
        ("starts", "021"),
    ],
)
def test_bad_arguments_are_named(argument, value):
    with pytest.raises(ValueError, match=rf"^{argument}="):
        bm.solve(random_problem(0, 3), **({"solver": "random"} | {argument: value}))


@pytest.mark.parametrize("problem", [None, np.eye(3), "nug12"])
def test_what_is_no_problem(problem):
    with pytest.raises(ValueError, match=r"^problem="):
        bm.solve(problem, "random")
    with pytest.raises(ValueError, match=r"^problem="):
        bm.verify(problem, None)


@pytest.mark.parametrize("certificate", [None, "proof.npz", np.eye(3)])
def test_what_is_no_certificate(certificate):
    with pytest.raises(ValueError, match=r"^certificate="):
        bm.verify(random_problem(0, 3), certificate)


# known and forbidden pairs


@pytest.mark.parametrize("kind", KINDS)
def test_known_pairs_are_kept_and_the_proof_holds_on_the_whole_problem(kind):
    problem = random_problem(2, 6, kind, linear=True)
    known = [(4, 1), (0, 5)]
    fixed = problem.with_known_pairs(known)
    result = bm.solve(fixed, "factorized-hahn-grant", rng=0)
    assert all(result.permutation[i] == j for i, j in known)
    assert result.cost == problem.objective(result.permutation)
    assert result.lower_bound <= optimum(fixed) + slack(problem)
    assert set(result.certificate.forced) == set(known)
    assert bm.verify(fixed, result.certificate) == pytest.approx(result.lower_bound, abs=slack(problem))
    if not np.isclose(optimum(fixed), optimum(problem)):
        with pytest.raises(ValueError, match="not forced"):
            bm.verify(problem, result.certificate)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_known_pairs_that_fix_everything(n):
    problem = random_problem(1, n)
    p = rng_of(3).permutation(n)
    result = bm.solve(problem.with_known_pairs(list(enumerate(p))), "factorized-hahn-grant", rng=0)
    assert (result.permutation == p).all()
    assert result.status == "optimal"
    assert result.lower_bound == pytest.approx(problem.objective(p), abs=1e-12 * problem.scale)


def infeasible():
    nothing = np.ones((4, 4), dtype=bool)
    row = np.zeros((4, 4), dtype=bool)
    row[2] = True
    hall = np.zeros((4, 4), dtype=bool)
    hall[:3, 2:] = True
    clash = np.zeros((4, 4), dtype=bool)
    clash[:2, 1:] = True
    return {
        "nothing": nothing,
        "row": row,
        "column": row.T,
        "hall": hall,
        "clash": clash,
        "last": ~np.eye(4, k=1, dtype=bool),
    }


@pytest.mark.parametrize("mask", infeasible().values(), ids=infeasible().keys())
@pytest.mark.parametrize("solver", ["factorized-hahn-grant", "two-opt"])
def test_nothing_allowed_is_said(mask, solver):
    with pytest.raises(ValueError, match=r"^forbidden \(or known_pairs\) leaves no permutation"):
        bm.solve(bm.QAP(np.eye(4), np.eye(4), forbidden=mask), solver)


@given(problems(min_size=2, max_size=6, forbidden=0.5))
@settings(max_examples=25)
def test_forbidden_pairs_are_not_used(problem):
    result = bm.solve(problem, "two-opt", rng=0)
    assert problem.allows(result.permutation)
    assert result.cost >= optimum(problem) - slack(problem)


def test_a_solver_that_uses_a_forbidden_pair_is_found_out():
    """Half of all permutations of two are forbidden, and the cheat is tempted to use just those."""
    mask = np.zeros((4, 4), dtype=bool)
    mask[:2, 2:] = mask[2:, :2] = True
    problem = bm.QAP(np.zeros((4, 4)), np.zeros((4, 4)), linear=-1.0 * mask, forbidden=mask)
    found = 0
    for seed in range(20):
        try:
            assert problem.allows(bm.solve(problem, refusing(forbidden=True), rng=seed).permutation)
        except RuntimeError as error:
            found += "forbidden pair" in str(error)
    assert found > 5


def test_to_dict_is_plain():
    result = bm.solve(gw_problem(0, 5), QUICK, rng=0)
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["permutation"] == result.permutation.tolist()
    assert plain["cost"] == result.cost
    assert plain["gap"] == result.gap


def test_gaps():
    def gap(cost, bound):
        return bm.Result(np.arange(1), cost, bound, "stalled", "x", 0.0).gap

    assert gap(10.0, 9.0) == 0.1
    assert gap(-10.0, -11.0) == 0.1
    assert gap(0.0, 0.0) == 0.0
    assert gap(0.0, -1.0) is None
    assert gap(5.0, None) is None

    def proved(cost, bound):
        return bm.Result(np.arange(1), cost, bound, "optimal", "x", 0.0).gap

    assert proved(0.0, -1e-13) == 0.0  # all of it is rounding
    assert proved(-1e-14, -1e-13) == 0.0
    assert proved(10.0, 10.0 - 1e-6) == pytest.approx(1e-7)
    assert gap(5.0, -math.inf) is None


def test_a_certificate_that_is_built_later_knows_its_problem(monkeypatch):
    run = importlib.import_module("blindmatch.solving.run")
    monkeypatch.setattr(run, "_BYTES_A_SECOND", 0.0)  # as if it took long to build

    def press(_moment):
        raise KeyboardInterrupt

    problem = random_problem(3, 7)
    result = bm.solve(problem, QUICK, rng=0, callback=press)
    assert isinstance(result.proof, Proof)
    assert result.certificate.fingerprint == fingerprint(problem)
