"""What float64 can get wrong in a check, and the range in which the bounds on those errors hold.

The model. Each operation of the checker is one of IEEE 754 double precision with gradual underflow: its result is wrong
by a factor of at most 1 + EPS, and a product by a further TINY, which is all that is left where the result is below the
normal range. (Sums and differences are exact there.) A sum of m terms, in whatever order, is wrong by at most m * EPS
times the sum of their absolute values. Higher powers of EPS are covered by rounding the factors up.

Other machines. ARM compilers, and BLAS anywhere, may fuse a product and a sum into one operation. Its result is rounded
once, where the model counts two roundings: the error is never larger than the one that is subtracted. Sums may be taken
in any order, and no step needs two roundings to be the same (there are no error-free transformations). LAPACK and scipy
are not trusted with an error constant: `spectral.py` measures the residuals of what they return. The argument does need
infinities, NaN and gradual underflow, so neither numpy nor the core may be compiled with -ffast-math; they are not.

The range. No intermediate result overflows, because every number that enters is bounded:

- a problem has n <= LARGEST_SIZE items and a scale of at most 1e200 (`QAP` refuses more), so that the product of two
  entries of a factor pair is at most 1e200 and the linear term of a problem with fixed pairs at most 3e200;
- a dual is at most LARGEST_DUAL in absolute value; a certificate with a larger or infinite one or a NaN is refused;
- so is one whose factor has an entry above LARGEST_FACTOR: an entry of FF' is a sum of at most n^2 + 1 products of two,
  which is below LARGEST_DUAL.

The longest sum in a check has fewer than 8 n^2 terms of that size: at most 8 * 2^32 * 1e250 < 1e261, and the largest
float is above 1e308. All of it runs under `guarded()`, so that a hole in this argument raises a FloatingPointError, and
the certificate proves nothing. The only infinities are those of pairs that no permutation may use.
"""

from __future__ import annotations

import math

import numpy as np

from blindmatch.validation import BoolArray, FloatArray

EPS = 2.0**-53
TINY = 2.0**-1074
LARGEST_SIZE = 2**16
LARGEST_DUAL = 1e250
LARGEST_FACTOR = 1e120


def guarded() -> np.errstate:
    """Raise a FloatingPointError at an overflow, a division by zero or an undefined result.

    Underflow is let pass: tiny products vanish in honest checks, and every error bound has a multiple of TINY for them.
    """
    return np.errstate(all="raise", under="ignore")


def lowered(value: float, size: float, operations: int) -> float:
    """`value` less a bound on the rounding error of that many operations on numbers that sum up to `size`."""
    return value - operations * (EPS * size + TINY)


def assignment_bounds(
    costs: FloatArray, allowed: BoolArray, column_duals: FloatArray, constant: float
) -> tuple[float, FloatArray]:
    """Lower bounds on constant + sum_i costs[i, p_i] over permutations p of allowed pairs: of all, and through a pair.

    Any column duals b will do: the cost is sum_j b_j + sum_i slack[i, p_i] with slack[i, j] = costs[i, j] - b_j, and
    each slack is at least the least of its row, a_i. A bound is +inf where no such permutation exists.

    Rounding: `costs` may be rounded once (the error is then below EPS * (|slack| + |b|)), a slack is rounded once, and
    where |slack_ij| > |a_i|, it exceeds a_i by more than its error. So the sum of all a and b is wrong by at most
    EPS * (2 sum |a| + sum |b|), its own rounding adds EPS times their size, and the subtraction of the error as much.
    A bound through a pair adds slack - a, with errors of 3 EPS |slack| + EPS |a| and EPS times the result.
    """
    if not allowed.any(axis=1).all():
        return math.inf, np.full(costs.shape, math.inf)
    slack = costs - column_duals
    alpha = slack.min(axis=1, where=allowed, initial=math.inf)
    size = float(np.abs(alpha).sum() + np.abs(column_duals).sum() + abs(constant))
    total = math.fsum([*alpha.tolist(), *column_duals.tolist(), constant])
    bounds = total + (slack - alpha[:, None])
    bounds -= 8 * EPS * (size + np.abs(slack) + np.abs(bounds)) + TINY
    return lowered(total, size, 8), np.where(allowed, bounds, math.inf)
