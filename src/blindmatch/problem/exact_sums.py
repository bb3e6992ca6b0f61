"""Costs that are never below the exact ones, and numbers below them: sums, products and divergences with errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from blindmatch.validation import FloatArray

_EPS = float(np.finfo(float).eps)
_BLOCK = 2**18  # products that are summed together
_SPLITTER = 2.0**27 + 1  # cuts a float64 into two halves, whose products are exact


def sum_of_products(pairs: Iterable[tuple[FloatArray, FloatArray]], others: FloatArray) -> float:
    """The sum of all products of both arrays of each pair, and of other numbers, rounded up to the next float64.

    It is never below the exact sum. It is above it by at most one unit in the last place, and by about 1e-29 of the
    largest terms if these cancel.

    >>> sum_of_products([], np.array([1e16, 1.0, -1e16]))
    1.0
    >>> sum_of_products([(np.array([0.1]), np.array([3.0]))], np.zeros(1))
    0.30000000000000004
    """
    summands, terms, slack = [0.0], [others.ravel()], 0.0
    for left, right in _blocks(pairs):
        *parts, exponents = _products(left, right)
        for part in parts:
            terms.append(np.ldexp(part, exponents))
            lost = np.ldexp(terms[-1], -exponents) != part  # by underflow: half of the smallest number at most
            slack += math.ulp(0.0) * int(lost.sum())
        if len(left) == _BLOCK:
            summands += _summed(np.concatenate(terms))
            terms = [np.zeros(1)]
    return _rounded_up(*summands, *_summed(np.concatenate(terms)), slack)


def _blocks(pairs: Iterable[tuple[FloatArray, FloatArray]]) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Both arrays of each pair, flat and cut into blocks: each needs twenty arrays of its size."""
    for left, right in pairs:
        a, b = left.ravel(), right.ravel()
        for start in range(0, len(a), _BLOCK):
            yield a[start : start + _BLOCK], b[start : start + _BLOCK]


def _rounded_up(*summands: float) -> float:
    total = math.fsum(summands)
    return math.nextafter(total, math.inf) if math.fsum([*summands, -total]) > 0 else total


def split_sum(values: FloatArray, rests: FloatArray) -> tuple[float, float]:
    """The sum of `values` rounded down, and at least what it lacks of the sum of both arrays.

    >>> low, rest = split_sum(np.array([0.5, 2.0**-60]), np.array([2.0**-60]))
    >>> low, f"{rest:.3g}", f"{2.0**-59:.3g}"
    (0.5, '1.73e-18', '1.73e-18')
    """
    if not values.size:
        return 0.0, 0.0
    total, errors, slack = _summed(values.ravel())
    low = -_rounded_up(-total, -errors, slack)
    return low, max(_rounded_up(total, errors, slack, *_summed(rests.ravel()), -low), 0.0)


def split_products(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The elementwise products rounded down to float64, and at least what they lack; 0 where a product is exact.

    >>> low, rest = split_products(np.array([3.0, 1 + 2.0**-40]), np.array([0.5, 1 + 2.0**-40]))
    >>> low.tolist() == [1.5, 1 + 2.0**-39], [f"{one:.3g}" for one in rest], f"{2.0**-80:.3g}"
    (True, ['0', '8.27e-25'], '8.27e-25')
    """
    product, error, exponents = _products(a, b)
    nearest = np.ldexp(product, exponents)
    vanished = np.ldexp(nearest, -exponents) != product  # by half of the smallest number at most
    low = np.where((error < 0) | vanished, np.nextafter(nearest, -math.inf), nearest)
    rest = np.nextafter(nearest - low + np.ldexp(error, exponents), math.inf) + math.ulp(0.0)
    return low, np.where((error != 0) | vanished, rest, 0.0)


def _products(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.intc]]:
    """Products of the significands, their rounding errors (Dekker 1971), and the sums of the exponents."""
    (x, left), (y, right) = np.frexp(a), np.frexp(b)
    (x1, x2), (y1, y2) = _halves(x), _halves(y)
    product = x * y
    return product, x2 * y2 - (((product - x1 * y1) - x2 * y1) - x1 * y2), left + right


def _halves(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def _summed(terms: FloatArray) -> tuple[float, float, float]:
    """The float64 sum, the sum of its rounding errors (Knuth's two-sum), and how much the latter may be too low."""
    count, errors, magnitude = len(terms), 0.0, 0.0
    while len(terms) > 1:
        half = (len(terms) + 1) // 2
        a, b = terms[:half], np.zeros(half)
        b[: len(terms) - half] = terms[half:]
        terms = a + b
        apart = terms - a
        lost = (a - (terms - apart)) + (b - apart)
        errors += float(lost.sum())
        magnitude += float(np.abs(lost).sum())
    return float(terms[0]), errors, (2 * count + 64) * _EPS * magnitude


_UNIT = 2.0**-53
_TERMS = 17  # of the series below: the next one is below a tenth of the rounding error
# Relative errors, each at least twice what was counted: those of log and log1p are up to 4 units in the last place.
_NEAR, _FAR, LOG_ERROR = 128 * _UNIT, 32 * _UNIT, 16 * _UNIT


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
