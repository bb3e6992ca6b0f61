"""bm.match: from embeddings or kernels to the enumerated optimum, with a proof."""

import numpy as np
import pytest
from strategies import all_costs, embeddings, optimum, rng_of, slack
from test_validation import NOT_MATRICES

import blindmatch as bm
from blindmatch.problem.distortions import DISTORTIONS
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant

QUICK = FactorizedHahnGrant(primal_heuristic=False)
needs_auto = pytest.mark.skipif("auto" not in bm.SOLVERS, reason="the solver 'auto' does not exist yet")


@needs_auto
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_eight_classes_reach_the_enumerated_optimum(seed, noise):
    X, Y = embeddings(seed, 8, noise, dimension=6)
    check_proved(X, Y, seed)


@pytest.mark.slow
@needs_auto
def test_ten_classes_reach_the_enumerated_optimum():
    X, Y = embeddings(10, 10, 0.7, dimension=8)
    check_proved(X, Y, 0)


def check_proved(X, Y, seed):
    problem = bm.GromovWasserstein().problem(X, Y)
    result = bm.match(X, Y, rng=seed)
    best = optimum(problem)
    assert result.status == "optimal"
    assert result.cost == pytest.approx(best, abs=1e-6 * best)
    assert result.lower_bound <= best + slack(problem)
    assert result.lower_bound >= best * (1 - 1e-6) - slack(problem)
    assert result.cost == problem.objective(result.permutation)
    assert result.lower_bound == min(bm.verify(problem, result.certificate), result.cost)


@needs_auto
@pytest.mark.parametrize("distortion", ["gw", "cka", "mutual-knn", "kl", "inner-product"])
def test_every_distortion_is_solved_to_the_optimum(distortion):
    X, Y = embeddings(3, 7, 0.5, dimension=6)
    result = bm.match(X, Y, distortion=distortion, rng=0)
    problem = DISTORTIONS[distortion]().problem(X, Y)
    assert result.status == "optimal"
    assert result.cost == pytest.approx(optimum(problem), abs=1e-6 * abs(optimum(problem)))


@pytest.mark.parametrize("seed", range(4))
def test_the_papers_solver_on_seven_classes(seed):
    X, Y = embeddings(seed, 7, 0.3, dimension=6)
    result = bm.match(X, Y, solver="factorized-hahn-grant", rng=0)
    problem = bm.GromovWasserstein().problem(X, Y)
    p, costs = all_costs(problem)
    assert result.cost == pytest.approx(costs.min(), rel=1e-9)
    assert (result.permutation == p[costs.argmin()]).all()
    assert result.lower_bound <= costs.min() + slack(problem)


def test_a_shuffled_copy_is_found_whatever_the_units():
    rng = rng_of(0)
    X = rng.standard_normal((12, 5))
    p = rng.permutation(12)
    turned = X @ np.linalg.qr(rng.standard_normal((5, 5)))[0]
    result = bm.match(X, 1e-3 * turned[np.argsort(p)] + 7, solver=QUICK, rng=0)
    assert (result.permutation == p).all()
    assert result.status == "optimal"


def test_kernels_instead_of_embeddings():
    X, Y = embeddings(0, 7)
    distortion = bm.GromovWasserstein(standardize=False)
    kernels = distortion.kernels(X, Y)
    for standardize in (True, False):
        a = bm.match(X, Y, standardize=standardize, solver=QUICK, rng=0)
        b = bm.match(kernels=kernels, standardize=standardize, solver=QUICK, rng=0)
        assert a.cost == b.cost
        assert (a.permutation == b.permutation).all()


def test_standardize_changes_the_cost_as_it_says():
    X, Y = embeddings(0, 7)
    plain = bm.match(X, Y, standardize=False, solver=QUICK, rng=0)
    assert plain.cost == bm.GromovWasserstein(standardize=False).problem(X, Y).objective(plain.permutation)
    configured = bm.match(X, Y, distortion=bm.GromovWasserstein(standardize=False), solver=QUICK, rng=0)
    assert configured.cost == plain.cost


def test_known_pairs_are_kept_and_proved():
    X, Y = embeddings(1, 7, noise=1.0)
    known = [(0, 4), (5, 5)]
    result = bm.match(X, Y, known_pairs=known, solver=QUICK, rng=0)
    assert all(result.permutation[i] == j for i, j in known)
    problem = bm.GromovWasserstein().problem(X, Y).with_known_pairs(known)
    assert result.lower_bound <= optimum(problem) + slack(problem)
    assert bm.verify(problem, result.certificate) == pytest.approx(result.lower_bound, abs=slack(problem))


@pytest.mark.parametrize("pairs", [[(0, 7)], [(-1, 0)], [(0, 1), (0, 2)], [(0, 1), (2, 1)], [0], 5, [(0.5, 1)], ["ab"]])
def test_bad_known_pairs(pairs):
    X, Y = embeddings(1, 7)
    with pytest.raises(ValueError, match=r"^known_pairs\b"):
        bm.match(X, Y, known_pairs=pairs, solver=QUICK)


@pytest.mark.parametrize("values", NOT_MATRICES.values(), ids=NOT_MATRICES.keys())
@pytest.mark.parametrize("argument", ["source", "target"])
def test_bad_embeddings_are_named(argument, values, capfd):
    arguments = {"source": np.eye(3), "target": np.eye(3), argument: values}
    with pytest.raises(ValueError, match=r"^source and target" if values is None else rf"^{argument}\b"):
        bm.match(**arguments, solver="random")
    assert capfd.readouterr() == ("", "")


def test_unknown_names_suggest_the_nearest():
    X, Y = embeddings(1, 4)
    with pytest.raises(ValueError, match=r"^distortion='cak' is not known; did you mean 'cka'\?"):
        bm.match(X, Y, distortion="cak")
    with pytest.raises(ValueError, match=r"^solver='rendom' is not known; did you mean 'random'\?"):
        bm.match(X, Y, solver="rendom")
    for wrong in (3, None, bm.CKA):
        with pytest.raises(ValueError, match=r"^distortion="):
            bm.match(X, Y, distortion=wrong, solver="random")


@pytest.mark.parametrize("n", [1, 2])
def test_tiny_sets(n):
    result = bm.match(rng_of(0).random((n, 3)), rng_of(1).random((n, 2)), solver=QUICK, rng=0)
    assert sorted(result.permutation) == list(range(n))
    assert result.status == "optimal"


def test_inputs_are_not_written_to():
    X, Y = embeddings(1, 6)
    before = X.copy(), Y.copy()
    bm.match(X, Y, solver=QUICK, rng=0)
    assert (before[0] == X).all()
    assert (before[1] == Y).all()


def test_duplicates_and_equal_points_are_matched_somehow():
    X = np.ones((6, 3))
    result = bm.match(X, X, solver=QUICK, rng=0)
    assert result.cost == 0.0
    assert result.status == "optimal"


def test_constant_kernels_leak_no_truth():
    ones = np.ones((10, 10))
    right = [
        (bm.match(kernels=(ones, ones), solver=QUICK, rng=s).permutation == np.arange(10)).sum() for s in range(100)
    ]
    assert abs(np.mean(right) - 1.0) < 0.4
