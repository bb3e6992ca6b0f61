"""Numbers at the ends of float64: no invalid bound, no wrong "optimal", and a word where precision ran out."""

import math
from fractions import Fraction

import numpy as np
import pytest
from strategies import all_permutations, embeddings, random_problem

import blindmatch as bm
from blindmatch.solvers.two_opt import TwoOpt

SCALES = [1e-320, 1e-310, 1e-300, 1e-200, 1e-150, 1e-100, 1e-30, 1.0, 1e30, 1e100, 1e150]
PROVING = ["branch-and-bound", "dual-ascent", "factorized-hahn-grant", "hahn-grant", "brute-force"]


def exact_optimum(problem: bm.QAP) -> Fraction:
    """The least cost, in rational arithmetic on the very numbers of the problem."""
    n = problem.n
    factors = [[[[Fraction(x) for x in row] for row in side] for side in pair] for pair in problem.factors]
    linear = [[Fraction(x) for x in row] for row in problem.linear]
    best = None
    for p in all_permutations(n).tolist():
        cost = Fraction(problem.constant) + sum(linear[i][p[i]] for i in range(n))
        for A, B in factors:
            cost += sum(A[i][k] * B[p[i]][p[k]] for i in range(n) for k in range(n))
        best = cost if best is None else min(best, cost)
    return best


def check(problem: bm.QAP, solver: str) -> bm.Result:
    """What holds in exact arithmetic, whatever the scale."""
    result = bm.solve(problem, solver, rng=0)
    best = exact_optimum(problem)
    assert result.cost == problem.objective(result.permutation)
    if result.lower_bound is not None and math.isfinite(result.lower_bound):
        assert Fraction(result.lower_bound) <= best
    if result.status == "optimal":
        allowed = max(Fraction(1, 10**6) * abs(Fraction(result.cost)), Fraction(1e-12) * Fraction(problem.scale))
        exact = problem.granularity > 0
        assert Fraction(result.cost) - best <= (0 if exact else allowed)
    return result


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("solver", PROVING)
def test_scales(solver: str, scale: float) -> None:
    for seed in range(3):
        base = random_problem(seed, 4, ("symmetric", "asymmetric", "mixed")[seed], linear=seed > 0)
        factors = [(A * scale, B) for A, B in base.factors]
        problem = bm.QAP.from_factors(factors, base.linear * scale, base.constant * scale)
        result = check(problem, solver)
        if scale >= 1e-300 and solver == "branch-and-bound":
            assert result.status == "optimal"


@pytest.mark.parametrize("scale", [1e-200, 1e-165, 1e-160, 1e-155, 1e-150, 1e60, 1e98])
@pytest.mark.parametrize("solver", PROVING)
def test_scales_of_both_sides(solver: str, scale: float) -> None:
    """Products of 1e-160 and 1e-160 have four digits left, of 1e-200 and 1e-200 none."""
    base = random_problem(1, 4)
    problem = bm.QAP.from_factors([(A * scale, B * scale) for A, B in base.factors])
    result = check(problem, solver)
    if scale >= 1e-150 and solver == "branch-and-bound":
        assert result.status == "optimal"
    if scale <= 1e-160 and solver in ("branch-and-bound", "dual-ascent"):
        assert result.status == "stalled"
        assert "float64" in result.message


@pytest.mark.parametrize("scale", [1e101, 1e150, 1e300])
def test_what_would_overflow_is_refused(scale: float) -> None:
    A = np.array([[0.0, 1.0], [2.0, 0.0]]) * scale
    with pytest.raises(ValueError, match=r"sum up to .*; expected up to 1e\+200"):
        bm.QAP(A, A)


@pytest.mark.parametrize("solver", PROVING)
def test_integers_near_two_to_the_53(solver: str) -> None:
    """Where sums are exact, "optimal" means it to the last unit; beyond, the bound stays true."""
    rng = np.random.default_rng(0)
    for size in (2**20, 2**23, 2**25, 2**26, 2**30, 2**40):
        A, B = rng.integers(size - 9, size, size=(2, 4, 4)).astype(float)
        check(bm.QAP(A, B), solver)
    far = float(2**53)
    check(bm.QAP(*rng.integers(0, 9, size=(2, 4, 4)).astype(float), constant=far), solver)


@pytest.mark.parametrize("solver", PROVING)
@pytest.mark.parametrize("kind", ["constant", "rank one", "zero", "one entry", "denormal entry"])
def test_poor_matrices(solver: str, kind: str) -> None:
    rng = np.random.default_rng(1)
    one = np.zeros((4, 4))
    one[0, 1] = one[1, 0] = 1.0
    tiny = rng.random((4, 4))
    tiny[0, 1] = 5e-324
    matrix = {
        "constant": np.full((4, 4), 1 / 3),
        "rank one": np.outer(rng.normal(size=4), rng.normal(size=4)),
        "zero": np.zeros((4, 4)),
        "one entry": one,
        "denormal entry": tiny,
    }[kind]
    result = check(bm.QAP(matrix, rng.random((4, 4))), solver)
    assert solver != "branch-and-bound" or result.status == "optimal"


def test_a_large_constant_hides_differences() -> None:
    """Costs of 1e20 and 1e20 + 1 are one number: no more is claimed than that."""
    rng = np.random.default_rng(2)
    A, B = rng.random((2, 5, 5))
    result = check(bm.QAP(A, B, constant=1e20), "branch-and-bound")
    assert result.cost - result.lower_bound <= 1e-11 * 1e20


@pytest.mark.parametrize("distortion", ["gw", "cka", "inner-product", "kl", "mutual-knn"])
@pytest.mark.parametrize(
    ("left", "right"), [(1e-150, 1.0), (1e150, 1.0), (1e-150, 1e150), (1e-30, 1e-30), (1e60, 1e60)]
)
def test_match_does_not_mind_the_scale(distortion: str, left: float, right: float) -> None:
    """Embeddings in any unit: the same match, the same cost, and a proof."""
    X, Y = embeddings(3, 6, noise=0.1)
    usual = bm.match(X, Y, distortion=distortion, rng=0)
    other = bm.match(X * left, Y * right, distortion=distortion, rng=0)
    assert (other.permutation == usual.permutation).all()
    assert other.cost == pytest.approx(usual.cost, rel=1e-9)
    assert other.lower_bound <= other.cost
    assert (usual.status, other.status) == ("optimal", "optimal")


def test_embeddings_that_overflow_are_refused() -> None:
    X, Y = embeddings(3, 6)
    with pytest.raises(ValueError, match="target holds numbers so large"):
        bm.match(X, Y * 1e200, rng=0)


@pytest.mark.parametrize("distortion", ["gw", "cka"])
def test_match_of_points_that_are_all_one(distortion: str) -> None:
    """Constant and rank-one kernels: every match is as good, or the mirror image is, and that is proved."""
    same = np.ones((5, 3))
    line = np.outer(np.arange(5.0), np.ones(3))
    for X, Y in ((same, same), (line, line), (same, line)):
        result = bm.match(X, Y, distortion=distortion, rng=0)
        assert result.status == "optimal"
        assert result.lower_bound <= result.cost


@pytest.mark.parametrize("seed", [0, 2, 8, 12])
def test_two_opt_ends_on_denormal_numbers(seed: int) -> None:
    """Products are rounded to multiples of 5e-324: swaps must not go round in circles on that."""
    rng = np.random.default_rng([seed, 3])
    n = int(rng.integers(4, 9))
    A, _ = rng.integers(-9, 10, size=(2, n, n)).astype(float)
    problem = bm.QAP(A * 5e-324, rng.normal(size=(n, n)))
    result = bm.solve(problem, TwoOpt(restarts=20), rng=0, threads=1, time_limit=20)
    assert result.status == "heuristic"


def test_no_bound_is_above_products_that_vanish_if_the_proof_is_dropped() -> None:
    A, B = np.array([[0.0, 1e-200], [2e-200, 0.0]]), np.array([[0.0, -1e-200], [1e-200, 0.0]])
    problem = bm.QAP(A, B)  # both costs are 0 in float64; the optimum is -1e-400
    result = bm.solve(problem, bm.BranchAndBound(proof_limit=0), rng=0)
    assert Fraction(result.lower_bound) <= exact_optimum(problem) < 0
    assert result.status != "optimal"


@pytest.mark.parametrize("solver", [*PROVING, "semidefinite"])
@pytest.mark.parametrize(("scale", "common"), [(1e-317, 1e-320), (1e-317, 1.0), (1e-140, 1e150)])
@pytest.mark.filterwarnings("error")
def test_what_all_permutations_pay_may_be_huge_beside_the_rest(solver: str, scale: float, common: float) -> None:
    A, B = np.array([[0, -1, 9], [-1, 0, 9], [9, 9, 0]]) * scale, np.array([[0, 4, 1], [-4, 0, 0], [0, 1, 0]]) * scale
    for problem in (bm.QAP(A, B, constant=common), bm.QAP(A, B, np.full((3, 3), common))):
        assert math.isfinite(check(problem, solver).lower_bound)


@pytest.mark.parametrize("solver", ["brute-force", "dropped proof", "gurobi", "scip"])
def test_denormal_numbers_times_huge_ones(solver: str) -> None:
    """Half of a denormal number is no number of float64: the symmetric part of such a matrix needs another scale."""
    if solver in ("gurobi", "scip") and not bm.SOLVERS[solver].capabilities.installed:
        pytest.skip(f"{solver} is not installed")
    for seed in range(4 if solver in ("gurobi", "scip") else 40):
        rng = np.random.default_rng(seed)
        A, B = 5e-324 * rng.integers(-9, 10, (3, 3)), 1e100 * rng.standard_normal((3, 3))
        problem = bm.QAP(*((A, B) if seed % 2 else (B, A)))
        chosen = bm.BranchAndBound(proof_limit=1) if solver == "dropped proof" else solver
        result = bm.solve(problem, chosen, rng=0)
        assert Fraction(result.lower_bound) <= exact_optimum(problem)
