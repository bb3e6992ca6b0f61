import math
from copy import copy, deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import KINDS, all_costs, all_permutations, problems, random_problem, rng_of, seeds
from test_validation import NOT_MATRICES

import blindmatch as bm


def cost_by_loops(problem, p):
    total = problem.constant
    for i in range(problem.n):
        total += problem.linear[i, p[i]]
        for k in range(problem.n):
            for A, B in problem.factors:
                total += A[i, k] * B[p[i], p[k]]
    return total


def cost_by_tensor(problem, p):
    i = np.arange(problem.n)
    return problem.constant + problem.dense()[i[:, None], p[:, None], i[None, :], p[None, :]].sum()


@given(problems(), seeds)
def test_objective_is_the_double_sum(problem, seed):
    p = rng_of(seed).permutation(problem.n)
    assert problem.objective(p) == pytest.approx(cost_by_loops(problem, p), abs=1e-12 * problem.scale)


@given(problems(), seeds)
def test_dense_tensor_gives_the_objective(problem, seed):
    p = rng_of(seed).permutation(problem.n)
    assert cost_by_tensor(problem, p) == pytest.approx(problem.objective(p), abs=1e-12 * problem.scale)


@given(problems(forbidden=0.4), seeds)
def test_permuted_is_the_same_problem(problem, seed):
    rng = rng_of(seed)
    rows, columns, q = (rng.permutation(problem.n) for _ in range(3))
    p = np.empty_like(q)
    p[rows] = columns[q]
    other = problem.permuted(rows, columns)
    assert other.objective(q) == pytest.approx(problem.objective(p), abs=1e-12 * problem.scale)
    assert other.allows(q) == problem.allows(p)


@given(problems(min_size=2, forbidden=0.4), seeds, st.data())
def test_reduced_costs_the_same(problem, seed, data):
    p = rng_of(seed).permutation(problem.n)
    count = data.draw(st.integers(0, problem.n - 1))
    fixed = [(int(i), int(p[i])) for i in rng_of(seed + 1).permutation(problem.n)[:count]]
    rest, rows, columns = problem.reduced(fixed)
    assert rest.n == problem.n - count
    assert np.all(np.diff(rows) > 0)
    assert np.all(np.diff(columns) > 0)
    q = np.searchsorted(columns, p[rows])
    assert rest.objective(q) == pytest.approx(problem.objective(p), abs=1e-12 * problem.scale)
    if problem.forbidden is not None:
        left = problem.forbidden[np.ix_(rows, columns)]
        assert (rest.forbidden == left).all() if left.any() else rest.forbidden is None


@pytest.mark.parametrize("kind", KINDS)
def test_known_pairs_leave_exactly_the_permutations_that_use_them(kind):
    problem = random_problem(3, 5, kind, linear=True)
    known = [(1, 4), (3, 0)]
    fixed = problem.with_known_pairs(known)
    for p in all_permutations(5):
        assert fixed.allows(p) == all(p[i] == j for i, j in known)
        assert fixed.objective(p) == problem.objective(p)
    assert problem.forbidden is None


def test_known_pairs_may_be_repeated_but_not_contradict():
    problem = random_problem(0, 4)
    assert problem.with_known_pairs([(0, 1), (0, 1)]).allows([1, 0, 2, 3])
    for pairs in ([(0, 1), (0, 2)], [(0, 1), (2, 1)]):
        with pytest.raises(ValueError, match=r"^known_pairs=.*contradicts"):
            problem.with_known_pairs(pairs)
    with pytest.raises(ValueError, match=r"^known_pairs=.*contradicts"):
        random_problem(0, 4, forbidden=1.0).with_known_pairs([(0, 1)])


@given(problems(), seeds)
def test_normal_form_equals_the_objective(problem, seed):
    p = rng_of(seed).permutation(problem.n)
    form = problem.normal_form
    total = form.constant + sum(form.linear[i, p[i]] for i in range(problem.n))
    for A, B in form.factors:
        sign = 1 if (A == A.T).all() else -1
        assert (sign * A == A.T).all()
        assert (sign * B == B.T).all()
        assert not np.diag(A).any()
        assert not np.diag(B).any()
        total += sum(2 * A[i, k] * B[p[i], p[k]] for i in range(problem.n) for k in range(i))
    assert total == pytest.approx(problem.objective(p), abs=1e-12 * problem.scale)


@pytest.mark.parametrize(("kind", "pairs"), [("symmetric", 1), ("mixed", 1), ("asymmetric", 2), ("sum", 3)])
def test_normal_form_is_as_short_as_it_can_be(kind, pairs):
    problem = random_problem(1, 5, kind)
    assert len(problem.normal_form.factors) == pairs
    assert problem.symmetric == (pairs == 1)


@given(problems(min_size=2, max_size=5, integer=True), st.integers(1, 4), st.integers(1, 3))
def test_granularity_divides_all_differences_of_costs(problem, a, b):
    scaled = bm.QAP.from_factors([(a * A, b * B) for A, B in problem.factors], a * b * problem.linear, problem.constant)
    _, costs = all_costs(scaled)
    step = scaled.granularity
    if step == 0:
        assert np.ptp(costs) == 0
    else:
        assert step >= a * b
        assert not np.any((costs - costs[0]) % step)


@given(problems(min_size=2, max_size=5, integer=True), st.floats(-1, 1, allow_nan=False))
def test_round_up_raises_to_a_cost_at_most(problem, fraction):
    costs = np.unique(all_costs(problem)[1])
    for cost, before in zip(costs, [-math.inf, *costs], strict=False):
        bound = cost - abs(fraction) * min(1.0, cost - before)
        rounded = problem.round_up(bound)
        assert bound <= rounded or problem.granularity == 0
        assert rounded <= cost
        assert problem.round_up(cost) == cost


def test_round_up_leaves_what_it_cannot_know():
    assert random_problem(0, 4).round_up(0.3) == 0.3
    integer = random_problem(0, 4, integer=True)
    assert integer.round_up(-math.inf) == -math.inf
    assert integer.round_up(math.inf) == math.inf
    assert integer.round_up(-1e300) <= -1e299


def test_symmetric_integers_differ_by_even_numbers():
    A = [[0, 1, 2], [1, 0, 5], [2, 5, 0]]
    assert bm.QAP(A, A).granularity == 2.0
    assert bm.QAP(A, A, np.eye(3)).granularity == 1.0
    assert bm.QAP(np.array(A) * 1e15, np.array(A) * 1e3).granularity == 0.0  # beyond exact integers


@pytest.mark.parametrize("values", NOT_MATRICES.values(), ids=NOT_MATRICES.keys())
@pytest.mark.parametrize("argument", ["source_cost", "target_cost", "linear"])
def test_bad_matrices_are_named(argument, values):
    if values is None and argument == "linear":
        return  # that is the default
    arguments = {"source_cost": np.eye(2), "target_cost": np.eye(2), argument: values}
    with pytest.raises(ValueError, match=rf"^{argument}\b"):
        bm.QAP(**arguments)


@pytest.mark.parametrize("argument", ["source_cost", "target_cost", "linear", "forbidden"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 2)])
def test_wrong_shapes_are_named(argument, shape):
    arguments = {"source_cost": np.eye(3), "target_cost": np.eye(3)}
    if argument == "source_cost" and shape == (2, 2):
        argument = "target_cost"  # there may be fewer sources than targets, not more
    arguments[argument] = np.zeros(shape, dtype=bool)
    with pytest.raises(ValueError, match=rf"^{argument}\b"):
        bm.QAP(**arguments)


@pytest.mark.parametrize("constant", [np.nan, np.inf, "1", None, [1.0], 1j])
def test_bad_constant(constant):
    with pytest.raises(ValueError, match=r"^constant\b"):
        bm.QAP(np.eye(2), np.eye(2), constant=constant)


@pytest.mark.parametrize("mask", [np.zeros((2, 2)), np.zeros(4, dtype=bool), [[True], [True, False]], "ab", 1])
def test_bad_masks(mask):
    with pytest.raises(ValueError, match=r"^forbidden\b"):
        bm.QAP(np.eye(2), np.eye(2), forbidden=mask)


@pytest.mark.parametrize("values", [1e200, 1e300])
def test_costs_that_overflow_are_refused(values):
    with pytest.raises(ValueError, match=r"^source_cost, target_cost.*expected"):
        bm.QAP(np.full((3, 3), values), np.full((3, 3), values))


@pytest.mark.parametrize(
    "factors", [[], [np.eye(2)[0]], [3], [(np.eye(2),)], [(np.eye(2), np.eye(2)), (np.eye(3),) * 2]]
)
def test_bad_factors(factors):
    with pytest.raises(ValueError, match=r"^factors\b"):
        bm.QAP.from_factors(factors)


@pytest.mark.parametrize("pairs", [[(0, 0), (0, 1)], [(0, 0), (1, 0)], [(0, 3)], [(0, 0), (1, 1), (2, 2)], [0]])
def test_bad_pairs_to_fix(pairs):
    with pytest.raises(ValueError, match=r"^pairs\b"):
        random_problem(0, 3).reduced(pairs)


def test_bad_orders():
    problem = random_problem(0, 3)
    with pytest.raises(ValueError, match=r"^rows\b"):
        problem.permuted([0, 1, 1], [0, 1, 2])
    with pytest.raises(ValueError, match=r"^columns\b"):
        problem.permuted([0, 1, 2], [0, 1])
    with pytest.raises(ValueError, match=r"^permutation\b"):
        problem.objective([0, 1, 1])


def test_dense_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="n=65"):
        bm.QAP(np.eye(65), np.eye(65)).dense()


def test_inputs_are_copied_and_never_written_to():
    rng = rng_of(0)
    arrays = {name: rng.standard_normal((4, 4)) for name in ("source_cost", "target_cost", "linear")}
    arrays["forbidden"] = rng.random((4, 4)) < 0.2
    before = {name: array.copy() for name, array in arrays.items()}
    problem = bm.QAP(**arrays)
    cost = problem.objective([1, 0, 2, 3])
    _ = problem.normal_form, problem.dense(), problem.permuted([1, 0, 2, 3], [3, 2, 1, 0]), problem.reduced([(0, 1)])
    for name, array in arrays.items():
        assert (array == before[name]).all()
        array[:] = 0
    assert problem.objective([1, 0, 2, 3]) == cost


@pytest.mark.parametrize("copied", [lambda problem: problem, copy, deepcopy])
def test_a_problem_cannot_be_changed(copied):
    """Nor can a copy: what is known of the numbers, such as the step between costs, would no longer hold."""
    problem = bm.QAP(np.eye(3), np.eye(3), np.eye(3), forbidden=np.eye(3, dtype=bool))
    problem = copied(problem)
    for array in (*problem.factors[0], problem.linear, problem.forbidden):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 7


def test_forbidding_nothing_is_forbidding_nothing():
    assert bm.QAP(np.eye(3), np.eye(3), forbidden=np.zeros((3, 3), dtype=bool)).forbidden is None


def test_repr_says_what_is_in_it():
    assert repr(random_problem(0, 4)) == "QAP(n=4)"
    assert (
        repr(random_problem(0, 4, "sum", linear=True, forbidden=1.0))
        == "QAP(n=4, 2 factor pairs, linear, 12 forbidden pairs)"
    )
