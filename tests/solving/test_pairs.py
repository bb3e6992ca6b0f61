"""Known and forbidden pairs in `bm.solve`."""

import numpy as np
import pytest
from hypothesis import given, settings
from solving.liar import refusing
from strategies import KINDS, optimum, problems, random_problem, rng_of, slack

import blindmatch as bm


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


@pytest.mark.parametrize("solver", ["branch-and-bound", bm.BranchAndBound(proof_limit=0), "brute-force"])
def test_a_bound_allows_for_the_rounding_of_forced_pairs(solver):
    known = [(0, 0), (1, 1), (2, 2)]
    linear = np.zeros((5, 5))
    linear[[0, 1, 2], [0, 1, 2]] = 1e16, -1.0, -1e16  # in float64 they sum up to 0, in truth to -1
    problem = bm.QAP(np.full((5, 5), 0.5), np.full((5, 5), 0.25), linear).with_known_pairs(known)
    result = bm.solve(problem, solver, rng=0)
    assert result.lower_bound <= 25 * 0.5 * 0.25 - 1
