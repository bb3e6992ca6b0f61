"""Stages that leave their duals in the core's order until somebody looks."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import blindmatch as bm
from blindmatch import _core
from blindmatch.proof.certificate import Certificate, Node, Stage
from blindmatch.solvers.base import Budget
from blindmatch.solvers.core_problem import CoreStage, core_problem

N = 5


@pytest.fixture(params=[np.float32, np.float64])
def pair(request):
    """The same duals twice: as the core holds them, and in the certificate's order."""
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal((2, N, N, N)).astype(request.param)
    column_duals, forbidden = rng.standard_normal(N), rng.random((N, N)) < 0.2
    plain = Stage(8 * u.transpose(1, 2, 0), 8 * v.transpose(1, 2, 0), column_duals, forbidden)
    return CoreStage.held(u, v, column_duals, forbidden, exponent=3), plain


def same(a: Stage, b: Stage) -> bool:
    fields = ("U", "V", "column_duals", "forbidden")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in fields) and a.size == b.size


def test_the_duals_are_those_of_a_plain_stage(pair):
    held, plain = pair
    assert same(held, plain)
    assert held.U.dtype == plain.U.dtype
    assert held.U is held.U  # put in order once


def test_renumbered_before_or_after_somebody_looked(pair):
    held, plain = pair
    rng = np.random.default_rng(1)
    orders = [(rng.permutation(N), rng.permutation(N)) for _ in range(2)]
    renumbered, expected = held, plain
    for order in orders:
        renumbered, expected = renumbered.permuted(*order), expected.permuted(*order)
    assert same(renumbered, expected)
    assert same(held, plain)
    assert same(held.permuted(*orders[0]), plain.permuted(*orders[0]))


def test_parts_can_be_replaced(pair):
    held, plain = pair
    other = np.zeros((N, N, N))
    assert same(replace(held, U=other), replace(plain, U=other))
    with pytest.raises(ValueError, match=r"U has .* shape \(2, 2\)"):
        replace(held, U=np.zeros((2, 2)))


def test_copies_and_pickles_are_plain_stages(pair):
    held, plain = pair
    for other in (copy.deepcopy(held), pickle.loads(pickle.dumps(held))):  # noqa: S301
        assert type(other) is Stage
        assert same(other, plain)


def test_the_certificate_is_saved_and_read(pair, tmp_path):
    held, plain = pair
    Certificate(N, (Node(stages=(held,)),)).save(tmp_path / "c.npz")
    assert same(Certificate.load(tmp_path / "c.npz").nodes[0].stages[0], plain)


def test_numbers_beyond_float32_are_kept_in_float64():
    u = np.ones((N, N, N), dtype=np.float32)
    held = CoreStage.held(u, u, np.zeros(N), np.zeros((N, N), dtype=bool), exponent=-400)
    assert held.U.dtype == np.float64
    assert (held.U == 2.0**-400).all()


@pytest.mark.parametrize(("lines", "shape"), [([0, 1, 9, 2, 3], (N, N, N)), ([0, 1], (N, N, N)), (range(N), (N, 2, N))])
def test_the_core_refuses_orders_that_do_not_fit(lines, shape):
    order = np.arange(N, dtype=np.int32)
    with pytest.raises(ValueError, match="expected"):
        _core.certificate_order(np.zeros(shape), np.array(lines, dtype=np.int32), order, order)


def test_a_solver_leaves_the_duals_in_the_core():
    """After Ctrl-C nobody waits for half a gigabyte to be put in order."""
    rng = np.random.default_rng(0)
    problem = bm.GromovWasserstein().problem(rng.standard_normal((9, 4)), rng.standard_normal((9, 4)))
    for name in ("dual-ascent", "factorized-hahn-grant", "branch-and-bound"):
        outcome = bm.SOLVERS[name]()(problem, budget=Budget(), rng=np.random.default_rng(0))
        moved = outcome.certificate.unshuffled(rng.permutation(9), rng.permutation(9))
        assert all(stage.__dict__["duals"][2] is not None for node in moved.nodes for stage in node.stages)


def test_duals_are_taken_once():
    problem = bm.GromovWasserstein().problem(np.eye(4), np.eye(4))
    ascent = _core.HahnGrant(core_problem(problem), True, "jonker-volgenant", True, 1)
    ascent.take_duals()
    with pytest.raises(RuntimeError, match="taken"):
        ascent.sweep(Budget())


def test_results_and_proofs_can_be_compared_and_hashed():
    """They hold arrays, which have no truth value; what is the same object is equal."""
    result = bm.match(np.eye(6), np.eye(6), rng=0)
    other = pickle.loads(pickle.dumps(result))  # noqa: S301
    assert result == result
    assert result != other
    assert result.certificate != other.certificate
    assert result.certificate.nodes[0] != other.certificate.nodes[0]
    assert len({result, other, result.certificate}) == 3
