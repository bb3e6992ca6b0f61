"""The principal axes of a space."""

import numpy as np
import pytest
from strategies import rng_of

from blindmatch.alignment import frame


@pytest.mark.parametrize("points", [5, 12])
def test_few_points_in_many_dimensions_have_the_same_axes(points: int) -> None:
    X = rng_of(points).standard_normal((points, 4 * points)) + 3.0
    mean, variances, axes = frame.moments(X, "X", 4 * points)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(mean, X.mean(axis=0))
    assert len(variances) == points - 1  # centring takes one
    np.testing.assert_allclose(axes.T @ axes, np.eye(points - 1), atol=1e-12)
    np.testing.assert_allclose((axes * variances) @ axes.T, centred.T @ centred / points, atol=1e-12)
    by_covariance = frame._by_covariance(X, mean, "X", 4 * points)
    np.testing.assert_allclose(variances, by_covariance[0][: points - 1], rtol=1e-10)


@pytest.mark.parametrize("shape", [(9, 40), (90, 40)])
def test_the_leading_axes_are_the_first_of_all(shape: tuple[int, int]) -> None:
    X = rng_of(0).standard_normal(shape)
    _, variances, axes = frame.moments(X, "X", 40)
    _, first, leading = frame.moments(X, "X", 5)
    assert leading.shape == (40, 5)
    np.testing.assert_allclose(first, variances[:5], rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.diag(axes[:, :5].T @ leading)), 1.0, rtol=1e-10)


@pytest.mark.parametrize("shape", [(4, 16), (16, 4)])
def test_points_whose_squares_overflow_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="X holds numbers so large that their squares overflow"):
        frame.moments(1e200 * rng_of(0).standard_normal(shape), "X", 4)


def test_the_axes_above_the_noise_are_those_of_the_signal() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(600, 80))
    signal = 4 * rng.normal(size=(600, 7)) @ np.linalg.qr(rng.normal(size=(80, 7)))[0].T
    assert frame.axes_above_noise(noise) == 0
    assert frame.axes_above_noise(signal + noise) == frame.axes_above_noise(1e3 * (signal + noise)) == 7
