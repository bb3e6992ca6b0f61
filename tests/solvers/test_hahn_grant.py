"""The paper's two algorithms: the same bounds sweep by sweep, true bounds, the promised memory and manners."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from clock import in_time
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import KINDS, gw_problem, optimum, problems, random_problem, rng_of, slack

import blindmatch as bm
from blindmatch import _core
from blindmatch.proof.certificate import Certificate
from blindmatch.solvers.base import Budget
from blindmatch.solvers.core_problem import core_problem
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant, HahnGrant

LAPS = ("jonker-volgenant", "auction", "hungarian")
EXACT_LAPS = ("jonker-volgenant", "hungarian")


def ascent(problem, *, factorized=True, lap="jonker-volgenant", evaluate_laps=False, threads=1):
    return _core.HahnGrant(
        core_problem(problem), factorized=factorized, lap=lap, evaluate_laps=evaluate_laps, threads=threads
    )


def bounds(problem, sweeps, **options):
    """The bound after each sweep."""
    run = ascent(problem, **options)
    found = []
    for _ in range(sweeps):
        assert run.sweep(Budget())
        found.append(run.bound)
    return np.array(found)


def dyadic_problem(seed, n, kind, lap):
    """Integers, and n - 1 a power of two: shares of leaders are exact, so that rounding decides no tie.

    The auction's epsilon starts at 0.1, which no binary number is; but it is cut at the scale of the costs, so on tiny
    costs it is one of them.
    """
    problem = random_problem(seed, n, kind, integer=True, linear=True)
    scale = 2.0**-40 if lap == "auction" else 1.0
    factors = [(scale * A, B) for A, B in problem.factors]
    return bm.QAP.from_factors(factors, scale * problem.linear, scale * problem.constant)


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric", "sum"])
@pytest.mark.parametrize("lap", LAPS)
@pytest.mark.parametrize("n", [2, 3, 5, 9, 17])
def test_both_algorithms_give_the_same_bounds(n, lap, kind):
    """The paper's equivalence proof. The bounds differ between sweeps, so that equality says something."""
    for seed in range(3):
        problem = dyadic_problem(seed, n, kind, lap)
        factorized, dense = (bounds(problem, 5, factorized=f, lap=lap) for f in (True, False))
        # (-inf where nothing is proved yet: the first sweep on costs of any sign)
        np.testing.assert_allclose(factorized, dense, rtol=0, atol=1e-9 * np.abs(factorized[-1]))
        assert n < 9 or len(np.unique(factorized)) == 5


@pytest.mark.parametrize("lap", EXACT_LAPS)
@pytest.mark.parametrize("n", [6, 10, 12])
def test_both_algorithms_on_any_data_while_no_tie_is_left_to_rounding(n, lap):
    for seed in range(5):
        problem = gw_problem(seed, n)
        factorized, dense = (bounds(problem, 3, factorized=f, lap=lap) for f in (True, False))
        np.testing.assert_allclose(factorized, dense, rtol=1e-9)


@given(problems(min_size=1, max_size=6), st.booleans(), st.sampled_from(LAPS))
@settings(max_examples=80)
def test_bounds_never_exceed_the_optimum(problem, factorized, lap):
    found = bounds(problem, 8, factorized=factorized, lap=lap)
    assert found.max() <= optimum(problem) + slack(problem)


@given(problems(min_size=1, max_size=6), st.booleans(), st.sampled_from(EXACT_LAPS))
@settings(max_examples=60)
def test_bounds_never_decrease(problem, factorized, lap):
    found = bounds(problem, 8, factorized=factorized, lap=lap)
    assert np.isfinite(found[1:]).all()
    assert (found[1:] - found[:-1]).min() >= -slack(problem)


def test_seven_items_enumerated():
    for seed, kind in enumerate(KINDS):
        problem = random_problem(seed, 7, kind, linear=True)
        found = bounds(problem, 30)
        assert found[-1] <= optimum(problem) + slack(problem)
        assert found[-1] > found[1]  # it ascends


@given(problems(min_size=1, max_size=6), st.integers(0, 4), st.sampled_from(LAPS))
@settings(max_examples=60)
def test_the_duals_prove_what_the_ascent_claims(problem, sweeps, lap):
    run = ascent(problem, lap=lap)
    for _ in range(sweeps):
        run.sweep(Budget())
    claimed = run.bound
    stage = run.take_duals()
    u, v, column_duals = stage.u, stage.v, stage.column_duals
    proved = bm.verify(problem, Certificate.from_duals(u.transpose(1, 2, 0), v.transpose(1, 2, 0), column_duals))
    assert proved >= claimed - 1e-9 * problem.scale
    assert proved <= optimum(problem) + slack(problem)


def test_a_claim_before_the_first_sweep_is_no_claim():
    """A negative linear term: only after its assignment problem does the bound hold."""
    problem = bm.QAP(np.zeros((3, 3)), np.zeros((3, 3)), linear=-np.ones((3, 3)))
    assert ascent(problem).bound == -np.inf


@pytest.mark.parametrize("lap", LAPS)
@pytest.mark.parametrize("factorized", [True, False])
def test_threads_change_nothing(factorized, lap):
    problem = gw_problem(5, 14)
    runs = []
    for threads in (1, 2, 4):
        run = ascent(problem, factorized=factorized, lap=lap, evaluate_laps=True, threads=threads)
        for _ in range(5):
            run.sweep(Budget())
        stage = run.take_duals()
        duals = [array.tolist() for array in (stage.u, stage.v, stage.column_duals)]
        runs.append((run.bound, run.cost, run.permutation.tolist(), *duals))
    assert runs[0] == runs[1] == runs[2]


def test_evaluated_laps_find_permutations_and_their_costs_are_true():
    problem = gw_problem(1, 12, noise=0.1)
    with_laps, without = (ascent(problem, evaluate_laps=on) for on in (True, False))
    for run in (with_laps, without):
        for _ in range(3):
            run.sweep(Budget())
        assert run.cost == pytest.approx(problem.objective(run.permutation), rel=1e-12)
    assert with_laps.cost <= without.cost


@pytest.mark.parametrize("solver", [FactorizedHahnGrant, HahnGrant])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_problems_are_solved(solver, n):
    for kind in KINDS:
        problem = random_problem(n, n, kind, linear=True)
        result = bm.solve(problem, solver(), rng=0)
        assert result.lower_bound <= optimum(problem) + slack(problem)
        if n < 3:
            assert result.status == "optimal"
            assert result.cost == pytest.approx(optimum(problem), abs=slack(problem))


@pytest.mark.parametrize("solver", [FactorizedHahnGrant, HahnGrant])
@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("lap", ["simplex", "", None, 3]),
        ("restarts", [0, -1, 1.5, "3", True]),
        ("tolerance", [-1e-9, float("nan")]),
        ("max_sweeps", [0, -1, 2.5, "3"]),
        ("tolerance", ["small", None, True]),
        ("evaluate_laps", ["no", 2, None]),
        ("primal_heuristic", ["no", 2, None]),
    ],
)
def test_options_are_checked(solver, option, values):
    for value in values:
        with pytest.raises(ValueError, match=rf"^{option}="):
            solver(**{option: value})


def test_max_sweeps_and_tolerance_stop():
    problem = gw_problem(0, 10, noise=1.0)
    short = bm.solve(problem, FactorizedHahnGrant(max_sweeps=2, primal_heuristic=False), rng=0)
    assert short.trace[-1].iteration == 2
    coarse, fine = (
        bm.solve(problem, FactorizedHahnGrant(tolerance=t, primal_heuristic=False), rng=0) for t in (1e-2, 1e-5)
    )
    assert coarse.trace[-1].iteration < fine.trace[-1].iteration
    assert coarse.lower_bound <= fine.lower_bound


def test_the_primal_heuristic_gives_the_first_cost():
    problem = gw_problem(0, 12, noise=1.0)
    start, plain = (
        bm.solve(problem, FactorizedHahnGrant(primal_heuristic=on, evaluate_laps=False, max_sweeps=1), rng=0)
        for on in (True, False)
    )
    assert start.cost < plain.cost


@pytest.mark.parametrize("solver", [FactorizedHahnGrant, HahnGrant])
def test_small_units_are_no_excuse_to_stop(solver):
    """The same problem in other units: powers of two change no digit, so nothing but the units may change."""
    problem = gw_problem(2, 8)
    unit = 2.0**-30
    tiny = bm.QAP.from_factors([(unit * A, B) for A, B in problem.factors], constant=unit * problem.constant)
    whole, part = (bm.solve(p, solver(primal_heuristic=False), rng=0) for p in (problem, tiny))
    assert part.lower_bound / unit >= whole.lower_bound - 1e-3 * abs(whole.cost)


def test_hahn_grant_refuses_what_does_not_fit_into_memory():
    with pytest.raises(ValueError, match=r"^solver='hahn-grant' takes problems up to n=128"):
        bm.solve(bm.QAP(np.eye(129), np.eye(129)), "hahn-grant")


def test_a_deadline_inside_a_sweep_is_honoured():
    rng = rng_of(0)
    X = rng.standard_normal((100, 16))
    run = ascent(bm.GromovWasserstein().problem(X, X[rng.permutation(100)]))
    for limit in (0.05, 0.3):
        assert not in_time(limit, lambda limit=limit: run.sweep(Budget(limit)))


MEMORY = """
    from pathlib import Path
    import numpy as np, blindmatch as bm
    from blindmatch import _core
    from blindmatch.solvers.base import Budget
    from blindmatch.solvers.core_problem import core_problem

    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 8))
    problem = core_problem(bm.GromovWasserstein().problem(X, X + 0.1 * rng.standard_normal((100, 8))))
    def peak():  # VmHWM; getrusage would count what the parent had when it forked
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    before = peak()
    run = _core.HahnGrant(problem, factorized=True, lap="jonker-volgenant", evaluate_laps=True, threads=2)
    run.sweep(Budget(1.0))
    run.take_duals()
    print(peak() - before)
"""


@pytest.mark.slow
def test_the_factorized_solver_needs_n_cubed_memory():
    """N=100: n^4 doubles are 763 MB; two n^3 arrays of doubles, and n^3 integers about 25 MB."""
    command = [sys.executable, "-c", textwrap.dedent(MEMORY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert 10 < float(done.stdout) < 100


def test_ctrl_c_between_two_sweeps_keeps_the_bound(monkeypatch):
    """The signal may come while Python runs and not the core."""
    problem = gw_problem(0, 12, noise=1.0)
    whole = FactorizedHahnGrant._verdict

    def pressed(self, problem, gain, bound, cost, sweep):
        if sweep == 3:
            raise KeyboardInterrupt
        return whole(self, problem, gain, bound, cost, sweep)

    monkeypatch.setattr(FactorizedHahnGrant, "_verdict", pressed)
    result = bm.solve(problem, FactorizedHahnGrant(primal_heuristic=False), rng=0)
    assert result.status == "interrupted"
    assert result.lower_bound == bm.verify(problem, result.certificate) > 0
    assert result.cost == problem.objective(result.permutation)


def test_a_check_that_takes_longer_than_the_limit_is_cut_short():
    """At n = 150 it takes seconds: whoever gives half a second gets the match, and the bound that there is time for."""
    problem = gw_problem(0, 150, noise=0.5)
    solver = bm.SOLVERS["factorized-hahn-grant"](restarts=1)
    result = in_time(0.5, lambda: bm.solve(problem, solver, time_limit=0.5, rng=0), attempts=5)
    assert result.status == "time_limit"
    assert "result.verify()" in result.message
    assert 0 < result.lower_bound <= result.cost
