"""The doubly nonnegative bound: its parts, its strength, and its place in branch and bound."""

import numpy as np
import pytest
from qaplib import needs_qaplib, qaplib
from sampled import sampled
from scipy.linalg import null_space
from strategies import optimum, random_problem, rng_of, slack

import blindmatch as bm
from blindmatch.solvers.base import Budget
from blindmatch.solvers.eigen import Equations, Face
from blindmatch.solvers.lowrank import LowRankSplitting
from blindmatch.solvers.semidefinite import Semidefinite
from blindmatch.solvers.semidefinite_stage import PairCosts
from blindmatch.solvers.splitting import Splitting


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_the_basis_of_the_face(share):
    rng = rng_of(0)
    allowed = (rng.random((6, 6)) >= share) | np.eye(6, dtype=bool)
    face = Face(Equations(allowed), np.float64)
    rows, columns = np.nonzero(allowed)
    equations = np.zeros((12, len(rows) + 1))
    equations[:, 0] = -1
    equations[rows, 1 + np.arange(len(rows))] = equations[6 + columns, 1 + np.arange(len(rows))] = 1
    V = face.extend(np.eye(face.dimension))
    assert V.shape == null_space(equations).shape
    assert np.allclose(equations @ V, 0)
    assert np.allclose(V.T @ V, np.eye(face.dimension))
    M = rng.standard_normal((len(V), len(V)))
    assert np.allclose(face.restrict(M + M.T), V.T @ (M + M.T) @ V)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_the_multipliers_of_the_equations(share):
    """LD' + DL' is what the projection onto the face takes away."""
    rng = rng_of(1)
    allowed = (rng.random((6, 6)) >= share) | np.eye(6, dtype=bool)
    equations = Equations(allowed)
    L = equations.L.toarray()
    S = rng.standard_normal((len(L), len(L)))
    S += S.T
    assert np.allclose(equations.sums(S), S @ L)
    D = equations.multipliers(S @ L, 0.7)
    face = Face(equations, np.float64)
    V = face.extend(np.eye(face.dimension))
    rest = S - 0.7 * np.eye(len(S))
    assert np.allclose(L @ D.T + D @ L.T, rest - V @ (V.T @ rest @ V) @ V.T)


@pytest.mark.parametrize("kind", ["symmetric", "sum", "asymmetric"])
def test_centring_changes_costs_by_duals(kind):
    """At the root and where two pairs are fixed: by the same amount for all permutations, and pair by pair."""
    problem = random_problem(3, 7, kind, linear=True)
    costs = PairCosts(problem)
    left = np.array([0, 2, 3, 5, 6]), np.array([1, 2, 3, 4, 6])
    for part in (costs, costs.reduced([(1, 5), (4, 0)], *left)):
        n = part.n
        C = part.centred_matrix(np.ones((n, n), dtype=bool))[1:, 1:] / part.scale
        of_rows, of_columns, _ = part.offset_duals()
        full = sum(np.einsum("ik,jl->ijkl", A, B) for A, B in part.factors)
        difference = full - C.reshape(n, n, n, n)
        for i, j, k, m in np.ndindex(n, n, n, n):
            if i != k and j != m:
                moved = of_rows[i, k] + of_rows[k, i] + of_columns[j, m] + of_columns[m, j]
                assert 2 * difference[i, j, k, m] == pytest.approx(moved, abs=1e-9)
        values = []
        for seed in range(5):
            p = rng_of(seed).permutation(n)
            x = (p[:, None] == np.arange(n)).ravel()
            values.append(
                x @ C @ x
                - part.linear[np.arange(n), p].sum()
                - sum((A * B[np.ix_(p, p)]).sum() for A, B in part.factors)
            )
        assert np.allclose(values, values[0])


def test_nearly_constant_kernels_lose_nothing():
    """A constant on both matrices changes no difference of costs: the bound must stay about the same."""
    rng = rng_of(4)
    A, B = (matrix + matrix.T for matrix in np.triu(rng.random((2, 10, 10)), 1))
    gaps = []
    for shift in (0.0, 30.0):
        kernels = [matrix + shift * (1 - np.eye(10)) for matrix in (A, B)]
        problem = bm.QAP(*kernels, constant=-shift * (A.sum() + B.sum() + 90 * shift))
        result = bm.solve(problem, Semidefinite(rounds=1), rng=0, threads=1)
        assert result.status == "stalled"
        gaps.append(result.cost - result.lower_bound)
    assert gaps[1] < 1.1 * gaps[0]


def test_the_steps_get_to_a_point_of_both_sets():
    problem = random_problem(4, 5)
    allowed = np.ones((5, 5), dtype=bool)
    splitting = Splitting(PairCosts(problem).centred_matrix(allowed), allowed, 5.0, np.float64)
    for _ in range(400):
        splitting.project()
        splitting.advance()
    assert splitting.residual < 1e-2
    marginals = splitting.marginals()
    assert np.allclose(marginals.sum(axis=0), 1, atol=1e-2)
    assert np.allclose(marginals.sum(axis=1), 1, atol=1e-2)


@needs_qaplib
@sampled(("name", "least", "best"), [("nug12", 567, 578), ("had12", 1650, 1652), ("rou12", 231000, 235528)], quick=1)
def test_it_is_far_above_level_one(name, least, best):
    problem = qaplib(name)
    result = bm.solve(problem, "semidefinite", rng=0, threads=1)
    assert least <= result.lower_bound <= best
    assert result.lower_bound > bm.solve(problem, "dual-ascent", rng=0, threads=1).lower_bound
    assert bm.verify(problem, result.certificate) == result.lower_bound


def test_rounds_limit_the_run():
    problem = random_problem(1, 9)
    short = bm.solve(problem, Semidefinite(rounds=1), rng=0, threads=1)
    long = bm.solve(problem, Semidefinite(), rng=0, threads=1)
    assert short.lower_bound <= long.lower_bound <= long.cost
    with pytest.raises(ValueError, match="rounds=0"):
        Semidefinite(rounds=0)


def test_constants_of_columns_do_not_weaken_it():
    rng = rng_of(5)
    A, B = (matrix + matrix.T for matrix in rng.integers(0, 10, (2, 8, 8)))
    linear, columns = rng.integers(0, 50, (8, 8)), rng.integers(0, 1000, 8)
    plain = bm.solve(bm.QAP(A, B, linear=linear), Semidefinite(rounds=2), rng=0, threads=1)
    moved = bm.solve(bm.QAP(A, B, linear=linear + columns), Semidefinite(rounds=2), rng=0, threads=1)
    assert abs(moved.lower_bound - columns.sum() - plain.lower_bound) <= 2


def test_without_a_time_limit_its_work_is_limited(monkeypatch):
    monkeypatch.setattr("blindmatch.solvers.semidefinite._MOST_WORK", 0.0)
    problem = random_problem(1, 12, integer=True)
    result = bm.solve(problem, "semidefinite", rng=0, threads=1)
    assert (result.status, result.message) == (
        "stalled",
        "the semidefinite bound ended after 20 steps; a time_limit allows more",
    )
    assert "ended" not in bm.solve(problem, "semidefinite", rng=0, threads=1, time_limit=60).message


def test_small_problems_do_without(monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr("blindmatch.solvers.branch_and_bound.Strengthened", never)
    assert bm.solve(random_problem(0, 8), "auto", rng=0).status == "optimal"
    assert Budget(1.0).remaining <= 1.0
    bm.solve(random_problem(0, 60), "auto", rng=0, time_limit=1.0)  # no time for a single step


def test_nothing_left_to_choose():
    one = bm.QAP(np.zeros((3, 3)), np.ones((3, 3)), forbidden=~np.eye(3, dtype=bool))
    assert bm.solve(one, "semidefinite", rng=0).permutation.tolist() == [0, 1, 2]
    assert bm.match(np.ones((1, 3)), np.ones((1, 3)), solver="semidefinite").status == "optimal"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [5e-324, 1e-318, 1e-300, 1e150])
def test_costs_of_any_size_are_bounded(scale: float) -> None:
    A, B = np.random.default_rng(0).integers(0, 9, size=(2, 7, 7))
    problem = bm.QAP((A + A.T) * scale, B + B.T)
    result = bm.solve(problem, "semidefinite", rng=0)
    assert result.lower_bound <= bm.solve(problem, "brute-force").cost
    assert result.status == ("stalled" if scale == 5e-324 else "optimal")


@pytest.mark.parametrize(
    ("source", "target", "linear", "constant"),
    [
        # level 1 rules out all but one permutation, but its float32 duals cannot prove the last unit of that one
        ([[1, 2], [1, 2]], [[6, 5], [5, 0]], [[-138448503201574, 138448503201579], [138448503201581, 1]], 3),
        # the splitting does
        ([[12, 5], [13, 12]], [[14, -1], [-1, 2]], [[-1, 1], [-2, -2]], -(2**49)),
    ],
)
def test_integers_beyond_the_digits_of_float32(source, target, linear, constant):
    unit = 1644785442726 if constant < 0 else 1
    problem = bm.QAP(source, unit * np.array(target), linear, constant)
    result = bm.solve(problem, "semidefinite", rng=0)
    best = bm.solve(problem, "brute-force").cost
    assert result.lower_bound <= best == result.cost


@pytest.mark.parametrize("kind", ["symmetric", "sum", "asymmetric"])
def test_a_slack_of_low_rank_proves_true_bounds_on_any_number_of_threads(monkeypatch, kind):
    problem = random_problem(5, 8, kind, linear=True, forbidden=0.1)
    whole = bm.solve(problem, Semidefinite(rounds=3), rng=0, threads=1)
    monkeypatch.setattr("blindmatch.solvers.semidefinite._LOW_RANK_ABOVE", 0)
    bounds = []
    for threads in (1, 3):
        low = bm.solve(problem, Semidefinite(rounds=6), rng=0, threads=threads)
        assert low.lower_bound <= optimum(problem) + slack(problem)
        assert low.lower_bound >= whole.lower_bound - 0.3 * abs(whole.cost - whole.lower_bound) - 0.05 * problem.scale
        bounds.append(low.lower_bound)
    assert bounds[0] == bounds[1]


def test_a_low_rank_projection_is_exact_for_its_directions():
    """P = Q (s - level) Q + FF' lies in the face, has trace n + 1 and is not negative in the directions of F."""
    problem = random_problem(2, 7)
    allowed = np.ones((7, 7), dtype=bool)
    allowed[0, 3] = allowed[5, 1] = False
    splitting = LowRankSplitting(PairCosts(problem), allowed, 1)
    for _ in range(12):
        splitting.project()
        splitting.advance()
    splitting.project()
    dual = splitting.dual()
    equations = Equations(allowed)
    L = equations.L.toarray()
    P = splitting.s.astype(float) - splitting.level * np.eye(len(L)) + (dual.F @ dual.F.T) / splitting.beta
    P -= (L @ dual.D.T + dual.D @ L.T) / splitting.beta
    assert np.allclose(P @ L, 0, atol=1e-4)
    assert np.trace(P) == pytest.approx(8, abs=1e-3)
    U = np.linalg.qr(dual.F)[0]
    assert np.linalg.eigvalsh(U.T @ (P + P.T) @ U / 2)[0] > -1e-3
