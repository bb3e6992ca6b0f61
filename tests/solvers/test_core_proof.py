"""What the core proved, as a certificate that is made when somebody asks for it."""

import gc
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import blindmatch as bm
from blindmatch import _core
from blindmatch.proof.certificate import Certificate, Node, Stage
from blindmatch.solvers.base import Budget, Outcome, Proof, Solver
from blindmatch.solvers.core_problem import RescaledProblem, core_problem, root_proof, stage_of

N = 5


def core_stage(u, v, column_duals, mask):
    return SimpleNamespace(u=u, v=v, column_duals=column_duals, forbidden=mask)


@pytest.fixture(params=[np.float32, np.float64])
def duals(request):
    """Duals as the core holds them, and the same in the certificate's order, eight times as large."""
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal((2, N, N, N)).astype(request.param)
    column_duals, mask = rng.standard_normal(N), (rng.random((N, N)) < 0.2).astype(np.uint8)
    plain = Stage(8 * u.transpose(1, 2, 0), 8 * v.transpose(1, 2, 0), 8 * column_duals, mask.astype(bool))
    return core_stage(u, v, column_duals, mask), plain


def same(a: Stage, b: Stage) -> bool:
    fields = ("U", "V", "column_duals", "forbidden")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in fields) and a.size == b.size


def test_the_duals_in_the_order_of_the_certificate(duals):
    core, plain = duals
    stage = stage_of(core, exponent=3)
    assert type(stage) is Stage
    assert same(stage, plain)
    assert stage.U.dtype == plain.U.dtype


def test_a_proof_says_how_large_it_is_before_it_is_made(duals):
    core, plain = duals
    proof = root_proof(N, -3, [core])
    made = proof.make(None)
    assert same(made.nodes[0].stages[0], plain)
    assert proof == Proof(proof.make, Proof.of(made).work, made.nbytes)


def test_changes_are_made_when_the_certificate_is(duals):
    core, plain = duals
    rng = np.random.default_rng(1)
    orders = [(rng.permutation(N), rng.permutation(N)) for _ in range(2)]
    proof, expected = root_proof(N, -3, [core]), Certificate(N, (Node(stages=(plain,)),))
    for order in orders:
        proof, expected = proof.changed(Certificate.unshuffled, *order), expected.unshuffled(*order)
    for certificate in (proof.make(None), pickle.loads(pickle.dumps(proof)).make(1)):  # noqa: S301
        assert same(certificate.nodes[0].stages[0], expected.nodes[0].stages[0])


def test_numbers_beyond_float32_are_kept_in_float64():
    u = np.ones((N, N, N), dtype=np.float32)
    stage = stage_of(core_stage(u, u, np.zeros(N), np.zeros((N, N), dtype=np.uint8)), exponent=-400)
    assert stage.U.dtype == np.float64
    assert (stage.U == 2.0**-400).all()


def test_infinite_duals_of_columns_count_as_zero():
    u = np.zeros((2, 2, 2))
    core = core_stage(u, u, np.array([np.inf, np.nan]), np.zeros((2, 2), dtype=np.uint8))
    assert (stage_of(core).column_duals == 0).all()


def test_a_large_proof_is_not_made_in_haste():
    """After Ctrl-C nobody waits for half a gigabyte to be put in order; it is there for whoever asks."""
    problem = bm.GromovWasserstein().problem(*np.random.default_rng(0).standard_normal((2, 9, 4)))
    made = []

    class Interrupted(Solver):
        name, capabilities = "interrupted", bm.SOLVERS["dual-ascent"]().capabilities

        def __call__(self, problem, *, budget, rng):
            outcome = bm.SOLVERS["dual-ascent"]()(problem, budget=budget, rng=rng)
            budget.fail(KeyboardInterrupt())

            def make(count):
                made.append(count)
                return outcome.certificate.make(count)

            return Outcome(outcome.permutation, "interrupted", Proof(make, 1e12, self.nbytes))

    for nbytes, asked in ((1 << 30, [1]), (1, [None])):
        made.clear()
        solver = Interrupted()
        solver.nbytes = nbytes
        result = bm.solve(problem, solver, rng=0)
        assert made == asked
        assert 0 < result.lower_bound <= result.cost
        assert bm.verify(problem, result.certificate) >= result.lower_bound
        assert result.certificate is result.certificate


def test_what_the_core_found_lives_as_long_as_its_arrays():
    """They are views: of an array that outlives everything else, the numbers stay."""
    rng = np.random.default_rng(0)
    flow = rng.integers(0, 10, (9, 9)) * (rng.random((9, 9)) < 0.4)
    grid = np.array([(i // 3, i % 3) for i in range(9)])
    scaled = RescaledProblem.of(bm.QAP(flow + flow.T, np.abs(grid[:, None] - grid[None]).sum(-1)))
    options = _core.DualAscentOptions(target=scaled.target, memory_limit=0, seed=0, threads=1)
    tree = _core.BranchAndBoundOptions(root=options, proof_limit=1 << 30)
    start = np.arange(9, dtype=np.int32)

    def found():
        return _core.branch_and_bound(scaled.core, tree, start, scaled.budget(Budget()))

    u, permutation = found().proof[-1].stages[-1].u, found().permutation
    gc.collect()
    for _ in range(3):  # whoever reuses the memory of what was freed
        found()
    again = found()
    assert len(again.proof) > 1
    assert np.array_equal(u, again.proof[-1].stages[-1].u)
    assert np.array_equal(permutation, again.permutation)
    assert not u.flags.writeable
    root, *others = again.proof
    assert (root.parent, root.pair) == (None, None)
    assert all(node.parent is not None and node.pair is not None for node in others)
    assert root.line is not None
    assert others[-1].line is None


def test_the_core_refuses_what_does_not_fit():
    problem = bm.GromovWasserstein().problem(np.eye(4), np.eye(4))
    scaled, budget = RescaledProblem.of(problem), Budget()
    options = _core.DualAscentOptions(target=scaled.target, memory_limit=0, seed=0, threads=1)
    short, whole, small = np.arange(3, dtype=np.int32), np.arange(4, dtype=np.int32), np.zeros((3, 3, 3), np.float32)
    with pytest.raises(ValueError, match="initial"):
        _core.dual_ascent(scaled.core, options, short, None, scaled.budget(budget))
    with pytest.raises(ValueError, match="start"):
        _core.dual_ascent(
            scaled.core, options, whole, _core.Stage.from_certificate(small, small), scaled.budget(budget)
        )
    with pytest.raises(ValueError, match="cubes"):
        _core.Stage.from_certificate(small, np.zeros((3, 3, 4), np.float32))
    with pytest.raises(TypeError, match="RescaledBudget"):
        _core.dual_ascent(scaled.core, options, whole, None, object())


def test_duals_are_taken_once():
    problem = bm.GromovWasserstein().problem(np.eye(4), np.eye(4))
    ascent = _core.HahnGrant(
        core_problem(problem), factorized=True, lap="jonker-volgenant", evaluate_laps=True, threads=1
    )
    ascent.take_duals()
    with pytest.raises(ValueError, match="taken"):
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
