"""The checker against enumeration and exact rational arithmetic: whatever it is given, its bound is a bound."""

import ast
import inspect
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proofs import branching_certificate, exact_bound, exact_cost, exact_optimum, plain, proved, random_stage, solved
from strategies import KINDS, all_costs, optimum, problems, random_problem, rng_of, seeds, slack

import blindmatch as bm
from blindmatch.proof import checker
from blindmatch.proof.certificate import Certificate, Node, Stage


@given(problems(max_size=5), seeds, st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 1e4, 1e12, 1e150, 1e300, 1e307]))
@settings(max_examples=150)
def test_random_duals_of_any_scale_prove_nothing_false(problem, seed, scale):
    stage = random_stage(rng_of(seed), problem.n, scale)
    bound = proved(problem, plain(stage))
    assert not math.isnan(bound)
    assert (scale < 1e250) == (bound > -math.inf) or problem.n == 1
    assert bound == -math.inf or Fraction(bound) <= exact_optimum(problem)


@given(problems(max_size=4), seeds, st.sampled_from([0.0, 0.3, 1.0, 50.0]), st.sampled_from(["f2", "f4", "f8"]))
@settings(max_examples=60)
def test_the_bound_is_the_exact_one_rounded_down_a_little(problem, seed, scale, dtype):
    stage = random_stage(rng_of(seed), problem.n, scale, np.dtype(dtype))
    exact = exact_bound(problem, stage)
    bound = bm.verify(problem, plain(stage))
    if problem.granularity == 0:
        assert Fraction(bound) <= exact
        size = problem.scale + scale * problem.n**3 * 5
        assert exact - Fraction(bound) <= Fraction(1e-12 * size)
    else:
        assert Fraction(bound) < exact + Fraction(problem.granularity)


@given(problems(min_size=2, max_size=5, integer=True, kind="symmetric"), seeds)
@settings(max_examples=30)
def test_integer_duals_lose_nothing_on_integer_problems(problem, seed):
    """All sums are exact, so the checker's margin must vanish when it rounds up to the lattice of costs."""
    rng = rng_of(seed)
    n = problem.n
    U, V = (2.0 * rng.integers(-5, 6, (n, n, n)) for _ in range(2))
    stage = Stage(U, V, np.zeros(n), np.zeros((n, n), dtype=bool))
    exact = exact_bound(problem, stage)
    bound = Fraction(bm.verify(problem, plain(stage)))
    assert bound <= exact_optimum(problem)
    if problem.granularity:  # 0 where all costs are equal
        assert exact <= bound < exact + Fraction(problem.granularity)


@pytest.mark.parametrize("kind", KINDS)
def test_solved_certificates_against_exact_arithmetic(kind):
    for integer in (True, False):
        problem = random_problem(2, 5, kind, integer=integer, linear=True)
        certificate, bound = solved(problem)
        exact = exact_bound(problem, certificate.nodes[0].stages[0])
        assert Fraction(bound) <= exact_optimum(problem)
        assert float(exact) - bound <= 1e-11 * problem.scale


def corruptions(stage, rng):
    """Damage to single numbers, to whole arrays, and bits flipped in memory."""
    for name in ("U", "V", "column_duals"):
        array = getattr(stage, name)
        for value in (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e16, -1e16, 5e-324):
            damaged = array.copy()
            damaged.flat[rng.integers(array.size)] = value
            yield replace(stage, **{name: damaged})
        for factor in (-1.0, 2.0, 1.001, 1 + 1e-9):
            yield replace(stage, **{name: factor * array})
        yield replace(stage, **{name: rng.permutation(array.ravel()).reshape(array.shape)})
        for _ in range(20):
            damaged = array.copy()
            bits = damaged.view(np.uint64)
            bits.flat[rng.integers(array.size)] ^= np.uint64(1) << np.uint64(rng.integers(64))
            yield replace(stage, **{name: damaged})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integer", [True, False])
def test_corrupted_duals_never_prove_too_much(kind, integer):
    problem = random_problem(4, 6, kind, integer=integer, linear=True)
    certificate, bound = solved(problem)
    best = optimum(problem) + (0 if integer else slack(problem))
    rng = rng_of(0)
    weaker = 0
    for stage in corruptions(certificate.nodes[0].stages[0], rng):
        damaged = proved(problem, plain(stage))
        assert damaged <= best
        weaker += damaged < bound - 1e-9 * abs(bound)
    assert weaker > 20


def test_noise_on_the_duals_lowers_the_bound():
    problem = random_problem(0, 6)
    certificate, bound = solved(problem)
    stage = certificate.nodes[0].stages[0]
    bounds = [bound]
    for size in (1e-3, 1e-1, 10.0):
        noise = size * rng_of(1).standard_normal(stage.U.shape)
        bounds.append(bm.verify(problem, plain(replace(stage, U=stage.U + noise))))
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[-1] + 1.0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_duals_of_lower_precision_prove_a_little_less(dtype):
    problem = random_problem(0, 6)
    certificate, bound = solved(problem)
    stage = certificate.nodes[0].stages[0]
    low = replace(stage, U=stage.U.astype(dtype), V=stage.V.astype(dtype))
    proved = bm.verify(problem, plain(low))
    assert proved <= optimum(problem) + slack(problem)
    assert proved >= bound - 50 * np.finfo(dtype).eps * problem.scale
    assert exact_bound(problem, low) >= Fraction(proved)


def test_entries_that_are_ignored_are_ignored():
    problem = random_problem(0, 5)
    certificate, bound = solved(problem)
    stage = certificate.nodes[0].stages[0]
    U, V, index = stage.U.copy(), stage.V.copy(), np.arange(5)
    U[index, :, index] = np.nan
    V[:, index, index] = -np.inf
    assert bm.verify(problem, plain(replace(stage, U=U, V=V))) == bound


@given(problems(min_size=2, max_size=5), seeds, st.floats(0.05, 0.95))
@settings(max_examples=60)
def test_pairs_forbidden_without_a_reason_prove_nothing(problem, seed, share):
    """A stage may leave pairs out only if something earlier speaks for them."""
    rng = rng_of(seed)
    mask = rng.random((problem.n, problem.n)) < share
    if not mask.any():
        mask[0, 0] = True
    assert bm.verify(problem, plain(random_stage(rng, problem.n, 0.1, forbidden=mask))) == -math.inf


@given(problems(min_size=2, max_size=5), seeds)
@settings(max_examples=60)
def test_stages_that_build_on_each_other(problem, seed):
    """What has a bound may be left out later; then the claim is the least of what is left and what was left out."""
    rng = rng_of(seed)
    certificate, bound = solved(problem, max_sweeps=5)
    first = certificate.nodes[0].stages[0]
    stages = [first]
    for _ in range(3):
        mask = rng.random((problem.n, problem.n)) < 0.4
        stages.append(
            replace(first, forbidden=mask) if rng.random() < 0.5 else random_stage(rng, problem.n, 0.3, forbidden=mask)
        )
    proved = bm.verify(problem, Certificate(problem.n, (replace(certificate.nodes[0], stages=tuple(stages)),)))
    assert proved >= bound
    assert Fraction(proved) <= exact_optimum(problem)


def test_a_pair_that_no_permutation_uses_hides_no_other():
    """A forgery that once worked: an infinite bound of one pair became NaN and silenced all pairs left out later."""
    problem = random_problem(0, 4, integer=True)
    p, costs = all_costs(problem)
    worst = p[costs.argmax()]
    zeros = np.zeros((4, 4, 4))
    for lone in range(4):
        for row in range(4):
            first = np.zeros((4, 4), dtype=bool)
            first[row, np.arange(4) != lone] = True  # row can only have `lone`: nobody else can
            second = np.ones((4, 4), dtype=bool)
            second[np.arange(4), worst] = False
            stages = tuple(Stage(zeros, zeros, np.zeros(4), mask) for mask in (first, second))
            assert bm.verify(problem, Certificate(4, (Node(stages=stages),))) <= costs.min()


@given(problems(min_size=2, max_size=5, forbidden=0.4), seeds)
@settings(max_examples=60)
def test_forbidden_pairs_of_the_problem_may_be_left_out(problem, seed):
    mask = None if problem.forbidden is None else problem.forbidden.copy()
    bound = bm.verify(problem, plain(random_stage(rng_of(seed), problem.n, 0.1, forbidden=mask)))
    assert bound == bm.verify(problem, plain(random_stage(rng_of(seed), problem.n, 0.1)))
    assert bound <= optimum(problem) + slack(problem)


def test_one_item_is_rounded_down():
    rng = rng_of(0)
    for _ in range(500):
        a, b, c, constant = rng.random(4) * 2.0 ** rng.integers(-3, 3, 4)
        problem = bm.QAP([[a]], [[b]], [[c]], constant)
        bound = bm.verify(problem, plain(random_stage(rng, 1)))
        assert Fraction(bound) <= exact_cost(problem, [0])
        assert bound == pytest.approx(problem.objective([0]), rel=1e-14)


def test_infeasible_problems_are_bounded_by_infinity():
    problem = bm.QAP(np.eye(3), np.eye(3), forbidden=np.ones((3, 3), dtype=bool))
    assert bm.verify(problem, plain(random_stage(rng_of(0), 3))) == math.inf


def test_the_checker_writes_to_nothing():
    problem = random_problem(0, 4)
    certificate = branching_certificate(problem, rng_of(0))
    copies = [(stage.U.copy(), stage.V.copy()) for node in certificate.nodes for stage in node.stages]
    for node in certificate.nodes:
        for stage in node.stages:
            for array in (stage.U, stage.V, stage.column_duals, stage.forbidden):
                array.setflags(write=False)
    bm.verify(problem, certificate)
    for (U, V), stage in zip(copies, (s for node in certificate.nodes for s in node.stages), strict=True):
        assert (U == stage.U).all()
        assert (V == stage.V).all()


@given(problems(min_size=1, max_size=5), seeds)
def test_the_projection_bound_is_a_bound(problem, seed):
    certificate = Certificate(problem.n, (Node(spectral=True),))
    bound = bm.verify(problem, certificate)
    assert math.isfinite(bound)
    assert Fraction(bound) <= exact_optimum(problem)


def test_the_projection_bound_survives_cancellation():
    """L_ij = a_i - a_j + small: cheap permutations through huge numbers, where scipy's assignment is not the best."""
    rng = rng_of(0)
    for _ in range(100):
        n = int(rng.integers(3, 6))
        a = 2.0**54 * rng.integers(-4, 5, n)
        problem = bm.QAP(np.zeros((n, n)), np.zeros((n, n)), (a[:, None] - a) + 4.0 * rng.integers(-6, 7, (n, n)))
        bound = bm.verify(problem, Certificate(n, (Node(spectral=True),)))
        assert Fraction(bound) <= exact_optimum(problem)


def test_the_trusted_base_imports_no_solver_and_no_core():
    """Only itself, the problem, validation, the number of cores, and for files the readers."""
    allowed = tuple(f"blindmatch.{name}" for name in ("proof", "problem", "validation", "machine", "io.files"))
    sources = list(Path(inspect.getfile(checker)).parent.glob("*.py"))
    assert len(sources) >= 6
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not name.startswith("blindmatch") or name.startswith(allowed), f"{source.name}: {name}"
