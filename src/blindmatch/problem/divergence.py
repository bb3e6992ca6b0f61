"""The divergence a log(a/b) - a + b of positive numbers without cancellation, and how wrong it may be in float64."""

from __future__ import annotations

import math

import numpy as np

from blindmatch.validation import FloatArray

_EPS = 2.0**-53
_TERMS = 17  # of the series below: the next one is below a tenth of the rounding error
# Relative errors, each at least twice what was counted: those of log and log1p are up to 4 units in the last place.
_NEAR, _FAR, LOG_ERROR = 128 * _EPS, 32 * _EPS, 16 * _EPS


def log_ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    """log(a / b), with a relative error of at most LOG_ERROR however close the numbers are."""
    near = np.abs(a - b) <= b / 2  # then the difference is exact (Sterbenz 1974)
    return np.where(near, np.log1p(np.where(near, a - b, 0.0) / b), np.log(a / b))


def divergence(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The divergence a log(a/b) - a + b, elementwise, and a bound on its error.

    With x = (a - b) / b it is b (x^2 - (1 + x) (x - log(1 + x))), and with s = x / (2 + x) the last bracket is
    s x - 2 (s^3 / 3 + s^5 / 5 + ...): nothing cancels where x is small.

    >>> value, error = divergence(np.array([1e15 + 1]), np.array([1e15]))
    >>> bool(abs(value[0] - 5e-16) < 1e-29 > error[0])
    True
    """
    a, b = np.broadcast_arrays(a, b)
    near = np.abs(a - b) <= b / 2
    x = np.where(near, a - b, 0.0) / b
    s = x / (2 + x)
    series = np.zeros_like(x)
    for k in reversed(range(_TERMS)):
        series = series * s**2 + 1 / (2 * k + 3)
    small = b * (x**2 - (1 + x) * (s * x - 2 * s**3 * series))
    product = a * np.log(a / b)
    large = product - (a - b)
    error = np.where(near, _NEAR * small, _FAR * (np.abs(product) + np.abs(a - b)))
    return np.where(near, small, large), np.where(error > 0, error + 8 * math.ulp(0.0), 0.0)
