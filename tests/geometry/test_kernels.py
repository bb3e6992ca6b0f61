import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from strategies import rng_of, seeds

import blindmatch as bm
from blindmatch.geometry import kernels


def points(seed, n=8, d=5):
    return rng_of(seed).standard_normal((n, d))


@given(seeds, st.integers(1, 12), st.integers(1, 6))
def test_distances_are_distances(seed, n, d):
    X = points(seed, n, d)
    matrix = kernels.distances(X)
    assert matrix.shape == (n, n)
    assert (matrix == matrix.T).all()
    assert not np.diag(matrix).any()
    expected = [[np.linalg.norm(a - b) for b in X] for a in X]
    np.testing.assert_allclose(matrix, expected, rtol=1e-12)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
def test_distances_survive_an_offset(offset):
    """|x|^2 + |y|^2 - 2xy would be off by 1e-4 at an offset of 1e6."""
    X = np.round(points(0) * 64) / 64
    np.testing.assert_allclose(kernels.distances(X + offset), kernels.distances(X), rtol=1e-12)


def test_distances_of_near_points():
    X = np.array([[1.0, 1.0], [1.0 + 1e-12, 1.0], [1e3, 0.0]])
    assert kernels.distances(X)[0, 1] == pytest.approx(1e-12, rel=1e-3)
    assert kernels.distances(np.ones((4, 3))).tolist() == np.zeros((4, 4)).tolist()


@given(seeds)
def test_inner_products(seed):
    X = points(seed)
    np.testing.assert_allclose(kernels.inner_products(X), X @ X.T, rtol=1e-12)
    assert (kernels.inner_products(X) == kernels.inner_products(X).T).all()


@given(seeds)
def test_centring_is_hkh(seed):
    K = rng_of(seed).standard_normal((7, 7))
    H = np.eye(7) - 1 / 7
    np.testing.assert_allclose(kernels.centred(K), H @ K @ H, atol=1e-13)


@given(seeds)
def test_a_symmetric_kernel_stays_exactly_symmetric(seed):
    K = kernels.inner_products(points(seed))
    for matrix in (kernels.centred(K), kernels.cka_kernel(K), kernels.standardized(K)):
        assert (matrix == matrix.T).all()


@given(seeds, st.sampled_from([1e-150, 1e-6, 1.0, 1e6, 1e150]), st.floats(-3, 3))
def test_standardized_has_mean_zero_and_deviation_one_off_the_diagonal(seed, size, shift):
    K = size * (rng_of(seed).standard_normal((9, 9)) + shift)
    matrix = kernels.standardized(K)
    off = matrix[~np.eye(9, dtype=bool)]
    assert abs(off.mean()) < 1e-12
    assert off.std() == pytest.approx(1.0, abs=1e-12)
    assert not np.diag(matrix).any()


@given(seeds, st.floats(0.1, 50), st.floats(-50, 50))
def test_standardizing_forgets_scale_and_shift(seed, scale, shift):
    K = rng_of(seed).standard_normal((6, 6))
    np.testing.assert_allclose(kernels.standardized(scale * K + shift), kernels.standardized(K), atol=1e-10)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, 1e300])
@pytest.mark.parametrize("function", [kernels.standardized, kernels.cka_kernel])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 11])
def test_a_constant_kernel_becomes_zero_not_noise(function, n, value):
    assert not function(np.full((n, n), value)).any()


@pytest.mark.parametrize("function", [kernels.standardized, kernels.cka_kernel])
def test_rounding_noise_is_no_kernel(function):
    noise = rng_of(0).integers(-2, 3, (9, 9)) * 2.0**-52
    assert not function(1.0 + noise).any()


def test_a_constant_kernel_of_equal_points_becomes_zero():
    X = np.tile(points(0, 1, 64), (13, 1))
    assert not kernels.cka_kernel(kernels.inner_products(X)).any()
    assert not kernels.standardized(kernels.distances(X)).any()


@given(seeds, st.integers(1, 7))
def test_knn_kernel_marks_the_k_most_similar_others(seed, k):
    S = rng_of(seed).standard_normal((8, 8))
    kernel = kernels.knn_kernel(S, k)
    assert not np.diag(kernel).any()
    for i in range(8):
        others = sorted((j for j in range(8) if j != i), key=lambda j, i=i: -S[i, j])
        assert set(np.flatnonzero(kernel[i])) == set(others[:k])
    np.testing.assert_allclose(kernel[kernel > 0], 1 / np.sqrt(8 * k))


@pytest.mark.parametrize("k", [0, 3, 10])
def test_knn_needs_enough_points(k):
    with pytest.raises(ValueError, match=rf"^k={k}; expected 1 <= k <= 2"):
        kernels.knn_kernel(np.eye(3), k)


def test_unit_rows():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [-2.0, 0.0]])
    assert kernels.unit_rows(X).tolist() == [[0.6, 0.8], [0.0, 0.0], [-1.0, 0.0]]


@pytest.mark.parametrize("exponent", [-1000, -560, -400, 400, 530, 1000])
def test_squares_that_overflow_or_vanish(exponent):
    """Powers of two only move the point: the digits must stay the same."""
    X = points(0)
    Y = np.ldexp(X, exponent)
    if exponent < 500:  # else they are infinite, which is refused
        np.testing.assert_allclose(np.ldexp(kernels.distances(Y), -exponent), kernels.distances(X), rtol=1e-14)
    np.testing.assert_allclose(kernels.unit_rows(Y), kernels.unit_rows(X), rtol=1e-14)
    Y[1:] = X[1:]  # one such row changes nothing for the others
    Y[3] = 0.0
    unit = kernels.unit_rows(Y)
    np.testing.assert_allclose(unit[0], kernels.unit_rows(X)[0], rtol=1e-14)
    assert not unit[3].any()
    ordinary = [1, 2, 4, 5, 6, 7]
    assert (unit[ordinary] == X[ordinary] / np.linalg.norm(X, axis=1, keepdims=True)[ordinary]).all()


@given(seeds, st.floats(-90, 90))
def test_ordinary_numbers_are_computed_as_they_are(seed, power):
    X = points(seed) * 10**power
    assert (kernels.distances(X) == squareform(pdist(X))).all()
    assert (kernels.unit_rows(X) == X / np.linalg.norm(X, axis=1, keepdims=True)).all()


def test_inner_products_that_vanish_are_refused():
    with pytest.raises(ValueError, match=r"^embeddings hold no number above .*e-170; their inner products underflow"):
        kernels.inner_products(points(0) * 1e-170)
    assert not kernels.inner_products(np.zeros((3, 2))).any()
    X = points(0)
    np.testing.assert_allclose(kernels.inner_products(X * 2.0**-500) * 2.0**1000, kernels.inner_products(X), atol=1e-15)


@pytest.mark.parametrize(("scale", "normalize"), [(1e-300, False), (1e-170, False), (1e-170, True), (1e160, True)])
def test_a_match_of_huge_or_tiny_numbers_is_right(scale, normalize):
    X, order = points(3), rng_of(1).permutation(8)
    found = bm.match(X * scale, X[order] * scale, distortion=bm.GromovWasserstein(normalize=normalize), rng=0)
    assert order[found.permutation].tolist() == list(range(8))


@pytest.mark.parametrize(
    "function", [kernels.distances, kernels.inner_products, kernels.cka_kernel, kernels.standardized]
)
def test_inputs_are_not_written_to(function):
    K = points(0, 5, 5)
    before = K.copy()
    function(K)
    assert (before == K).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_unit_rows_of_fewer_digits(dtype):
    points = np.array([[3, 4], [0, 0], [6e-8, 8e-8], [3e4, 4e4]]).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = kernels.unit_rows(points)
    assert scaled.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(scaled.astype(float), axis=1), [1, 0, 1, 1], atol=2e-3)
