import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics.pairwise import rbf_kernel
from strategies import rng_of, seeds
from test_validation import NOT_MATRICES

import blindmatch as bm
from blindmatch.problem.distortions import DISTORTIONS

NAMES = sorted(DISTORTIONS)
options = st.fixed_dictionaries({"standardize": st.booleans(), "normalize": st.booleans()})


def distortion_of(name, n, **given_options):
    extra = {"k": min(3, n - 1)} if name == "mutual-knn" else {}
    return DISTORTIONS[name](**extra, **given_options)


def two_sets(seed, n, *, integer=False):
    rng = rng_of(seed)
    X, Y = rng.standard_normal((n, 5)), rng.standard_normal((n, 3))
    return (np.rint(3 * X), np.rint(3 * Y)) if integer else (X, Y)


def double_sum(distortion, K, G, p):
    """The definition: sum over all ordered pairs of l(K_ik, G_p(i)p(k))."""
    total = 0.0
    for i in range(len(K)):
        for k in range(len(K)):
            total += float(distortion.loss(K[i : i + 1, k], G[p[i] : p[i] + 1, p[k]])[0])
    return total


@pytest.mark.parametrize("name", NAMES)
@given(seeds, st.integers(2, 8), options, st.booleans())
def test_the_problem_is_the_double_sum(name, seed, n, given_options, integer):
    distortion = distortion_of(name, n, **given_options)
    X, Y = two_sets(seed, n, integer=integer)
    p = rng_of(seed).permutation(n)
    problem = distortion.problem(X, Y)
    K, G = distortion.kernels(X, Y)
    direct = double_sum(distortion, K, G, p)
    margin = 1e-11 * problem.scale
    assert problem.objective(p) == pytest.approx(direct, abs=margin)
    assert distortion.evaluate(X, Y, p) == pytest.approx(direct, abs=margin)
    if not (integer and name == "mutual-knn"):  # neighbours at equal distances are taken in the order of the items
        assert distortion.evaluate(X, Y[p]) == pytest.approx(direct, abs=margin)


@pytest.mark.parametrize("name", NAMES)
@given(seeds, st.booleans())
def test_precomputed_kernels_give_the_same_problem(name, seed, standardize):
    distortion = distortion_of(name, 6, standardize=standardize)
    X, Y = two_sets(seed, 6)
    p = rng_of(seed).permutation(6)
    raw = (distortion.kernel(X), distortion.kernel(Y))
    assert distortion.problem(kernels=raw).objective(p) == distortion.problem(X, Y).objective(p)
    assert distortion.evaluate(kernels=raw, permutation=p) == distortion.evaluate(X, Y, p)


@pytest.mark.parametrize("name", NAMES)
@given(seeds)
def test_the_loss_decomposes(name, seed):
    distortion = distortion_of(name, 6)
    a, b = np.abs(rng_of(seed).standard_normal((2, 50))) + 0.01
    whole = distortion.f1(a) + distortion.f2(b) - distortion.h1(a) * distortion.h2(b)
    np.testing.assert_allclose(whole, distortion.loss(a, b), atol=1e-12)


def test_the_losses_are_those_of_the_paper():
    a, b = np.array([0.5, 2.0]), np.array([3.0, 0.25])
    for distortion in (bm.GromovWasserstein(), bm.Gaussian()):
        assert distortion.loss(a, b).tolist() == ((a - b) ** 2).tolist()
    assert bm.KL().loss(a, b).tolist() == (a * np.log(a / b) - a + b).tolist()
    for distortion in (bm.CKA(), bm.MutualKNN(), bm.InnerProduct()):
        assert distortion.loss(a, b).tolist() == (-a * b).tolist()


def cka_by_the_book(X, Y):
    """Kornblith et al. 2019: ||Yc^T Xc||_F^2 / (||Xc^T Xc||_F ||Yc^T Yc||_F)."""
    Xc, Yc = X - X.mean(0), Y - Y.mean(0)
    return np.linalg.norm(Yc.T @ Xc) ** 2 / (np.linalg.norm(Xc.T @ Xc) * np.linalg.norm(Yc.T @ Yc))


@given(seeds, st.integers(3, 9))
def test_cka_is_cka_under_any_permutation(seed, n):
    X, Y = two_sets(seed, n)
    problem = bm.CKA().problem(X, Y)
    for p in (np.arange(n), rng_of(seed).permutation(n)):
        assert problem.objective(p) == pytest.approx(-cka_by_the_book(X, Y[p]), abs=1e-12)


def test_cka_of_a_set_with_itself_is_one():
    X, _ = two_sets(0, 7)
    assert bm.CKA().evaluate(X, 5 * X + 2) == pytest.approx(-1.0)
    assert bm.CKA().problem(X, X).symmetric


def mutual_knn_by_the_book(X, Y, k):
    """Huh et al. 2024: the mean share of common neighbours by inner product, the point itself left out."""
    shares = []
    for i in range(len(X)):
        neighbours = []
        for Z in (X, Y):
            order = sorted((j for j in range(len(X)) if j != i), key=lambda j, Z=Z: -float(Z[i] @ Z[j]))
            neighbours.append(set(order[:k]))
        shares.append(len(neighbours[0] & neighbours[1]) / k)
    return np.mean(shares)


@given(seeds, st.integers(3, 9), st.data())
def test_mutual_knn_is_mutual_knn_under_any_permutation(seed, n, data):
    k = data.draw(st.integers(1, n - 1))
    X, Y = two_sets(seed, n)
    problem = bm.MutualKNN(k=k).problem(X, Y)
    for p in (np.arange(n), rng_of(seed).permutation(n)):
        assert problem.objective(p) == pytest.approx(-mutual_knn_by_the_book(X, Y[p], k), abs=1e-12)


@given(seeds)
def test_mutual_knn_knows_no_scale(seed):
    X, Y = two_sets(seed, 7)
    plain, standardized = (bm.MutualKNN(k=2, standardize=s).problem(X, Y) for s in (False, True))
    assert plain.objective(np.arange(7)) == standardized.objective(np.arange(7))


@given(seeds, st.floats(-5, 5), st.floats(-5, 5))
def test_constant_shift_identity(seed, c, d):
    """The appendix: <A + c, P(B + d)P^T> differs from <A, PBP^T> by c*sum(B) + d*sum(A) + c*d*n^2, whatever P."""
    rng = rng_of(seed)
    A, B, n = rng.standard_normal((6, 6)), rng.standard_normal((6, 6)), 6
    p = rng.permutation(n)
    shifted = bm.QAP(A + c, B + d).objective(p) - c * B.sum() - d * A.sum() - c * d * n**2
    assert shifted == pytest.approx(bm.QAP(A, B).objective(p), abs=1e-10)


def test_random_pairings_cost_what_table_1_says():
    """Two random permutations of standardised kernels of size 10: 2 * 90 / 100 = 1.8 per n^2 (FACTS.md)."""
    rng = rng_of(0)
    costs = []
    for _ in range(200):
        problem = bm.GromovWasserstein().problem(rng.standard_normal((10, 8)), rng.standard_normal((10, 8)))
        costs += [problem.objective(rng.permutation(10)) / 100 for _ in range(5)]
    assert np.mean(costs) == pytest.approx(1.8, abs=0.02)


def test_standardizing_makes_gw_blind_to_units():
    X, Y = two_sets(0, 8)
    p = rng_of(1).permutation(8)
    costs = [bm.GromovWasserstein().problem(a * X, b * Y + 3).objective(p) for a, b in ((1, 1), (1e-3, 5e4))]
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_sets(name, n, standardize):
    if name == "mutual-knn" and n == 1:
        with pytest.raises(ValueError, match=r"^k=1; expected 1 <= k <= 0"):
            bm.MutualKNN(k=1).problem([[1.0]], [[2.0]])
        return
    distortion = distortion_of(name, n, standardize=standardize)
    X, Y = two_sets(0, n)
    assert distortion.problem(X, Y).objective(np.arange(n)) == pytest.approx(distortion.evaluate(X, Y), abs=1e-12)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_duplicates_and_constant_kernels_stay_finite(name, standardize):
    distortion = distortion_of(name, 6, standardize=standardize)
    X, Y = two_sets(0, 6)
    X[3] = X[1]
    for source, target in ((X, X), (X, np.ones((6, 2))), (np.zeros((6, 2)), Y)):
        problem = distortion.problem(source, target)
        p = rng_of(2).permutation(6)
        assert problem.objective(p) == pytest.approx(distortion.evaluate(source, target, p), abs=1e-12 * problem.scale)


def test_gw_with_itself_is_free():
    X, _ = two_sets(0, 8)
    p = rng_of(0).permutation(8)
    assert bm.GromovWasserstein().problem(X, X[np.argsort(p)]).objective(p) == pytest.approx(0.0, abs=1e-10)


def test_normalize_forgets_the_lengths_of_embeddings():
    X, Y = two_sets(0, 6)
    lengths = rng_of(1).uniform(0.1, 10, (6, 1))
    for name in NAMES:
        normal = distortion_of(name, 6, normalize=True)
        assert normal.evaluate(lengths * X, Y) == pytest.approx(normal.evaluate(X, Y), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("values", NOT_MATRICES.values(), ids=NOT_MATRICES.keys())
@pytest.mark.parametrize("argument", ["source", "target"])
def test_bad_embeddings_are_named(argument, values):
    arguments = {"source": np.ones((2, 3)), "target": np.ones((2, 3)), argument: values}
    with pytest.raises(ValueError, match=r"^source and target" if values is None else rf"^{argument}\b"):
        bm.GromovWasserstein().problem(**arguments)


@pytest.mark.parametrize(
    "kernels", [(np.eye(2),), (np.eye(2),) * 3, (np.ones((2, 3)), np.eye(2)), (np.eye(2), [[np.nan]])]
)
def test_bad_kernels_are_named(kernels):
    with pytest.raises(ValueError, match=r"^kernels\b"):
        bm.GromovWasserstein().problem(kernels=kernels)


def test_kernels_or_embeddings_but_not_both():
    with pytest.raises(ValueError, match=r"^kernels is given together with embeddings"):
        bm.CKA().problem(np.ones((2, 2)), kernels=(np.eye(2), np.eye(2)))
    with pytest.raises(ValueError, match=r"^source and target are needed"):
        bm.CKA().problem()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("standardize", [True, False])
def test_numbers_that_overflow_are_refused_quietly(name, standardize):
    distortion = distortion_of(name, 3, standardize=standardize)
    huge = np.array([[1e300, 0.0], [0.0, -1e300], [1e300, 1e300]])
    if name == "mutual-knn":
        huge = huge * 1e8
    with pytest.raises(ValueError, match=r"^source\b"):
        distortion.problem(huge, huge)


@given(seeds, st.floats(0.2, 3.0), st.sampled_from([1e-200, 1.0, 1e200]))
def test_gaussian_is_the_rbf_kernel_with_a_width_in_mean_distances(seed, bandwidth, unit):
    X, Y = two_sets(seed, 7)
    K, G = bm.Gaussian(bandwidth=bandwidth, standardize=False).kernels(kernels=tuple(unit * d for d in distances(X, Y)))
    for found, points in ((K, X), (G, Y)):
        mean = pdist(points).mean()
        np.testing.assert_allclose(found, 1 - rbf_kernel(points, gamma=(bandwidth * mean) ** -2), atol=1e-12)


def distances(*sets):
    return tuple(squareform(pdist(points)) for points in sets)


def test_gaussian_sees_who_is_near_where_distances_see_what_is_far():
    inside = np.array([[0, 1, 3], [0, 2, 6], [0, 4, 5], [0, 5, 9]], dtype=float)  # four groups of three
    source = (inside + 100 * np.array([[0], [1], [2], [3]])).reshape(-1, 1)
    target = (inside + 100 * np.array([[2], [0], [3], [1]])).reshape(-1, 1)  # elsewhere, but the same inside
    near = bm.match(source, target, distortion=bm.Gaussian(bandwidth=0.05), rng=0)
    assert near.status == "optimal"
    assert near.permutation.tolist() == list(range(12))
    far = bm.match(source, target, rng=0)
    assert far.cost < bm.GromovWasserstein().evaluate(source, target) / 2


@pytest.mark.parametrize("bandwidth", [5e-324, 1e-9, 1e9, 1e300])
def test_any_bandwidth_leaves_numbers(bandwidth):
    X, _ = two_sets(0, 6)
    K, _ = bm.Gaussian(bandwidth=bandwidth).kernels(X, X)
    assert np.isfinite(K).all()


def test_options_are_checked():
    for bandwidth in (0, -1.0, np.nan, np.inf, "0.5"):
        with pytest.raises(ValueError, match=r"^bandwidth="):
            bm.Gaussian(bandwidth=bandwidth)
    with pytest.raises(ValueError, match="non-negative"):
        bm.Gaussian().problem(kernels=(-np.ones((3, 3)), np.ones((3, 3))))
    for k in (0, 1.5, True, "5"):
        with pytest.raises(ValueError, match=r"^k="):
            bm.MutualKNN(k=k)
    for floor in (0, 1, -1.0, np.nan):
        with pytest.raises(ValueError, match=r"^floor="):
            bm.KL(floor=floor)
    with pytest.raises(ValueError, match="non-negative"):
        bm.KL().problem(kernels=(-np.ones((3, 3)), np.ones((3, 3))))


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_not_written_to(name):
    X, Y = two_sets(0, 6)
    K = (X @ X.T) ** 2
    before = X.copy(), Y.copy(), K.copy()
    distortion_of(name, 6).problem(X, Y)
    distortion_of(name, 6).problem(kernels=(K, K))
    for array, old in zip((X, Y, K), before, strict=True):
        assert (array == old).all()


def test_a_bandwidth_is_not_chosen_blindly():
    with pytest.raises(ValueError, match="bandwidth='auto'; expected a number above 0"):
        bm.Gaussian(bandwidth="auto")


def test_a_word_is_no_truth_value():
    with pytest.raises(ValueError, match=r"^standardize='no'; expected True or False"):
        bm.match(np.eye(3), np.eye(3), standardize="no")


@pytest.mark.parametrize("seed", range(5))
def test_gaussian_compares_what_differs_however_large_the_offset_of_all_distances(seed):
    """The numbers are exact in float64; before, a copy and others cost the same to seven digits, or all of them did."""
    rng = rng_of(seed)
    near = np.triu(rng.integers(1, 1000, (5, 5)), 1) * 2.0**-10
    near, p = near + near.T, rng.permutation(5)
    K = near + 2.0**30 * (1 - np.eye(5))
    result = bm.match(kernels=(K, K[np.ix_(p, p)]), distortion="gaussian", rng=0)
    assert p[result.permutation].tolist() == list(range(5))
    assert result.cost < 1e-25
    # Around one distance, the saturation is a straight line: what is left is how the distances differ.
    found, plain = (one().kernels(kernels=(K, K))[0] for one in (bm.Gaussian, bm.GromovWasserstein))
    np.testing.assert_allclose(found, plain, atol=1e-7)
