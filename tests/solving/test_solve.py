"""What holds for everything that goes through solve(), whatever the solver."""

import json
import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from solving.liar import QUICK, Liar, refusing
from strategies import KINDS, all_costs, gw_problem, optimum, problems, random_problem, rng_of, slack

import blindmatch as bm
from blindmatch.problem.optimality import tolerance
from blindmatch.solvers.base import Capabilities, Outcome
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant

BOUNDING = ["factorized-hahn-grant", *(["auto"] if "auto" in bm.SOLVERS else [])]


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


# 6. what a solver cannot use, it refuses


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
        ("time_limit", 10**400),
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
