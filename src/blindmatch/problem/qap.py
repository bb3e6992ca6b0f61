"""The quadratic assignment problem: min <A, P B P^T> + <L, P> + c over permutations, with A and B sums of factors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindmatch.problem.exact_sums import sum_of_products
from blindmatch.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_floats,
    as_pairs,
    as_permutation,
    as_square,
)

Scalar = TypeVar("Scalar", np.float64, np.bool_)
FactorPair = tuple[FloatArray, FloatArray]
_LARGEST_ACCURATE = 300  # items up to which an accurate cost takes at most a hundredth of a second
LARGEST_COST = 1e200  # sums and products of such costs stay far from overflow
_LEAST_EXPONENT = -900  # of the largest number of a matrix: the digits of most others are then within float64


@dataclass(frozen=True)
class NormalForm:
    """The problem as the solvers see it: zero diagonals, and each factor pair either symmetric or antisymmetric.

    Of a pair, one matrix may be multiplied and the other one divided by a power of two. The cost of pairing both i with
    j and k with l is then 2 * sum_f A_f[i, k] * B_f[j, l].
    """

    factors: tuple[FactorPair, ...]
    linear: FloatArray
    constant: float
    forbidden: BoolArray | None


def cost_scale(factors: Iterable[FactorPair], linear: FloatArray, constant: float) -> float:
    """Size of the numbers that are summed up to a cost."""
    with np.errstate(over="ignore", invalid="ignore"):
        quadratic = sum(float(np.abs(A).sum() * np.abs(B).max()) for A, B in factors)
    return abs(constant) + quadratic + float(np.abs(linear).max(axis=1).sum())


class QAP:
    """A quadratic assignment problem.

    The cost of a permutation p is ``sum_ik A[i, k] * B[p[i], p[k]] + sum_i L[i, p[i]] + constant``.

    Parameters
    ----------
    source_cost, target_cost
        A and B, both (n, n).
    linear
        L, (n, n): the cost of pairing source i with target j by itself.
    constant
        Added to every cost.
    forbidden
        (n, n) booleans; True at [i, j] means that source i must not be paired with target j. None allows all pairs.

    Examples
    --------
    >>> problem = QAP([[0, 1], [1, 0]], [[0, 5], [5, 0]], linear=[[0, 1], [2, 0]])
    >>> problem.objective([1, 0])
    13.0
    """

    def __init__(
        self,
        source_cost: ArrayLike,
        target_cost: ArrayLike,
        linear: ArrayLike | None = None,
        constant: float = 0.0,
        *,
        forbidden: ArrayLike | None = None,
    ) -> None:
        A = as_square(source_cost, "source_cost")
        B = as_square(target_cost, "target_cost", len(A))
        self._set(((A, B),), linear, constant, forbidden)

    @classmethod
    def from_factors(
        cls,
        factors: Iterable[tuple[ArrayLike, ArrayLike]],
        linear: ArrayLike | None = None,
        constant: float = 0.0,
        *,
        forbidden: ArrayLike | None = None,
    ) -> QAP:
        """A problem whose quadratic part is a sum of products, one for each pair (A, B) of `factors`."""
        pairs: list[FactorPair] = []
        for index, factor in enumerate(factors):
            try:
                A, B = factor
            except (TypeError, ValueError):
                raise ValueError(f"factors[{index}] is not a pair of matrices (A, B)") from None
            size = len(pairs[0][0]) if pairs else None
            source = as_square(A, f"factors[{index}][0]", size)
            pairs.append((source, as_square(B, f"factors[{index}][1]", len(source))))
        if not pairs:
            raise ValueError("factors is empty; expected at least one pair (A, B)")
        problem = cls.__new__(cls)
        problem._set(tuple(pairs), linear, constant, forbidden)
        return problem

    @classmethod
    def from_qaplib(cls, path: str | Path) -> QAP:
        """Read a QAPLIB ``.dat`` file."""
        from blindmatch.io.qaplib import read_dat

        return cls(*read_dat(path))

    def _set(
        self,
        factors: tuple[FactorPair, ...],
        linear: ArrayLike | None,
        constant: float,
        forbidden: ArrayLike | None,
    ) -> None:
        n = len(factors[0][0])
        self._keep(
            factors,
            np.zeros((n, n)) if linear is None else as_square(linear, "linear", n),
            float(as_floats(constant, "constant", ndim=0)),
            None if forbidden is None else _as_mask(forbidden, n),
        )
        if not self.scale <= LARGEST_COST:
            raise ValueError(
                f"source_cost, target_cost, linear and constant sum up to {self.scale:.3g}; expected up to "
                f"{LARGEST_COST:g}"
            )

    def _keep(
        self, factors: tuple[FactorPair, ...], linear: FloatArray, constant: float, forbidden: BoolArray | None
    ) -> None:
        """Store arrays that are valid and not shared with anyone."""
        self.n = len(linear)
        self.factors, self.linear, self.constant = factors, linear, constant
        self.forbidden = forbidden if forbidden is not None and forbidden.any() else None
        for array in (*(matrix for pair in factors for matrix in pair), linear, self.forbidden):
            if array is not None:
                array.setflags(write=False)

    def __getstate__(self) -> tuple[tuple[FactorPair, ...], FloatArray, float, BoolArray | None]:
        """What a copy or a pickle keeps: no cached number, in case somebody changes the arrays of a copy."""
        return self.factors, self.linear, self.constant, self.forbidden

    def __setstate__(self, state: tuple[tuple[FactorPair, ...], FloatArray, float, BoolArray | None]) -> None:
        """Keep the arrays read-only: a copy by pickle or deepcopy would not be."""
        self._keep(*state)

    def __repr__(self) -> str:
        extras = [f"{len(self.factors)} factor pairs"] if len(self.factors) > 1 else []
        extras += ["linear"] if self.linear.any() else []
        extras += [f"{int(self.forbidden.sum())} forbidden pairs"] if self.forbidden is not None else []
        return f"QAP(n={self.n}{''.join(', ' + extra for extra in extras)})"

    def objective(self, permutation: ArrayLike) -> float:
        """Cost of a permutation: source i is paired with target permutation[i].

        Up to 300 items it is never below the exact cost of these numbers, and above it only in the last digit of a
        float64. Beyond that, it is a sum in float64.
        """
        p = as_permutation(permutation, self.n)
        linear = self.linear[np.arange(self.n), p]
        pairs = [(A, _taken(B, p, p)) for A, B in self.factors]
        if self.n <= _LARGEST_ACCURATE and not self.exact:
            return sum_of_products(pairs, np.append(linear, self.constant))
        return sum(float((A * B).sum()) for A, B in pairs) + float(linear.sum()) + self.constant

    def allows(self, permutation: ArrayLike) -> bool:
        """Whether a permutation uses no forbidden pair."""
        p = as_permutation(permutation, self.n)
        return self.forbidden is None or not self.forbidden[np.arange(self.n), p].any()

    @property
    def allowed(self) -> BoolArray:
        """(n, n) True where a pair is not forbidden; a new array each time."""
        return np.ones((self.n, self.n), dtype=bool) if self.forbidden is None else ~self.forbidden

    def permuted(self, rows: ArrayLike, columns: ArrayLike) -> QAP:
        """The same problem in another order: its source a is our rows[a], its target b is our columns[b].

        A permutation q of the new problem means p[rows[a]] = columns[q[a]] here, at the same cost.
        """
        r, c = as_permutation(rows, self.n, "rows"), as_permutation(columns, self.n, "columns")
        return self._derived(r, c, self.linear[np.ix_(r, c)], self.constant)

    def reduced(self, pairs: Sequence[tuple[int, int]]) -> tuple[QAP, IntArray, IntArray]:
        """Fix pairs: return the remaining problem and the indices of its sources and targets in this one.

        The cost of the fixed pairs with each other goes into the constant, and their cost with the rest into the linear
        term.
        """
        fixed = as_pairs(pairs, (self.n, self.n), "pairs")
        i, j = (np.array([pair[side] for pair in fixed], dtype=np.intp) for side in (0, 1))
        if len(set(i.tolist())) < len(i) or len(set(j.tolist())) < len(j):
            raise ValueError(f"pairs={fixed} uses an item twice")
        rows, columns = (np.delete(np.arange(self.n), side) for side in (i, j))
        if not len(rows):
            raise ValueError(f"pairs={fixed} leaves nothing free")
        constant = self.constant + float(self.linear[i, j].sum())
        linear = _taken(self.linear, rows, columns)
        for A, B in self.factors:
            constant += float((_taken(A, i, i) * _taken(B, j, j)).sum())
            linear += _taken(A, rows, i) @ _taken(B, columns, j).T + _taken(A, i, rows).T @ _taken(B, j, columns)
        return self._derived(rows, columns, linear, constant), rows, columns

    def _derived(self, rows: IntArray, columns: IntArray, linear: FloatArray, constant: float) -> QAP:
        """The problem of these sources and targets, without validating numbers that are already valid."""
        problem = QAP.__new__(QAP)
        problem._keep(
            tuple((_taken(A, rows, rows), _taken(B, columns, columns)) for A, B in self.factors),
            linear,
            constant,
            None if self.forbidden is None else _taken(self.forbidden, rows, columns),
        )
        return problem

    def with_known_pairs(self, pairs: Iterable[Any]) -> QAP:
        """The same problem with the given pairs (source, target) required."""
        mask = ~self.allowed
        known = as_pairs(pairs, (self.n, self.n), "known_pairs")
        for i, j in known:
            if mask[i, j]:
                raise ValueError(f"known_pairs={known} contradicts itself or the forbidden pairs at ({i}, {j})")
            mask[i, :] = mask[:, j] = True
            mask[i, j] = False
        return QAP.from_factors(self.factors, self.linear, self.constant, forbidden=mask)

    def dense(self) -> FloatArray:
        """The whole cost tensor C with cost(P) = constant + sum_ijkl C[i, j, k, l] P[i, j] P[k, l]; n^4 numbers."""
        if self.n > 64:
            raise ValueError(f"n={self.n}: the dense tensor would hold {self.n**4:.2g} numbers; expected n <= 64")
        tensor = sum(np.einsum("ik,jl->ijkl", A, B) for A, B in self.factors)
        i, j = np.ogrid[: self.n, : self.n]
        tensor = np.asarray(tensor)
        tensor[i, j, i, j] += self.linear
        return tensor

    @cached_property
    def symmetric(self) -> bool:
        """Whether the cost can be written with one symmetric factor pair."""
        form = self.normal_form
        return len(form.factors) == 1 and bool((form.factors[0][0] == form.factors[0][0].T).all())

    @cached_property
    def normal_form(self) -> NormalForm:
        """Zero diagonals, symmetric or antisymmetric factor pairs."""
        linear = self.linear.copy()
        factors: list[FactorPair] = []
        for A, B in self.factors:
            linear += np.outer(np.diag(A), np.diag(B))
            (As, Aa), (Bs, Ba) = map(_split, _balanced(A, B))
            factors += [(As, Bs)] if As.any() and Bs.any() else []
            factors += [(Aa, Ba)] if Aa.any() and Ba.any() else []
        if not factors:
            factors = [(np.zeros_like(linear), np.zeros_like(linear))]
        return NormalForm(tuple(factors), linear, self.constant, self.forbidden)

    @cached_property
    def scale(self) -> float:
        """Magnitude of the numbers that add up to a cost: rounding errors are a small multiple of eps times this."""
        return cost_scale(self.factors, self.linear, self.constant)

    @cached_property
    def vanishes(self) -> bool:
        """Whether every cost is zero because all numbers are zero, not because products underflow in float64."""
        products = any(A.any() and B.any() for A, B in self.factors)
        return not products and not self.linear.any() and self.constant == 0.0

    @cached_property
    def exact(self) -> bool:
        """Whether all numbers are integers small enough that float64 computes their sums and products exactly."""
        arrays = [matrix for pair in self.factors for matrix in pair] + [self.linear, np.array([self.constant])]
        if self.scale >= 2.0**52 or any((array != np.rint(array)).any() for array in arrays):
            return False
        return all(np.abs(array).max() < 2.0**52 for array in arrays)

    @cached_property
    def granularity(self) -> float:
        """Costs differ by multiples of this number; 0.0 if no such step is known (the data are not integers)."""
        if not self.exact:
            return 0.0
        step = _gcd(self.linear - self.linear[0, 0])
        for A, B in self.factors:
            # cost = sum over i < k of A_ik B_jl + A_ki B_lj; with both symmetric that is 2 A_ik B_jl
            both = bool((A == A.T).all() and (B == B.T).all())
            off = ~np.eye(self.n, dtype=bool)
            step = math.gcd(step, (2 if both else 1) * _gcd(A[off]) * _gcd(B[off]), _gcd(np.diag(A)) * _gcd(np.diag(B)))
        return float(step)

    def round_up(self, bound: float) -> float:
        """Raise a lower bound to the next value that a cost can take, if the data are integers."""
        step = self.granularity
        if step <= 0 or not math.isfinite(bound):
            return bound
        # All costs lie on a lattice that contains this one.
        anchor = self.objective(np.arange(self.n))
        return anchor + step * math.ceil((bound - anchor) / step)


def _taken(matrix: NDArray[Scalar], rows: IntArray, columns: IntArray) -> NDArray[Scalar]:
    """``matrix[np.ix_(rows, columns)]``, in less time for small ones."""
    return matrix.take(rows, axis=0).take(columns, axis=1)


def _balanced(A: FloatArray, B: FloatArray) -> FactorPair:
    """The same products of numbers that can be halved: where one matrix nearly vanishes, both times a power of two."""
    a, b = (math.frexp(float(np.abs(matrix).max()))[1] for matrix in (A, B))
    if min(a, b) > _LEAST_EXPONENT:
        return A, B
    return np.ldexp(A, (b - a) // 2), np.ldexp(B, -((b - a) // 2))


def _split(matrix: FloatArray) -> FactorPair:
    """Symmetric and antisymmetric part, both with a zero diagonal."""
    symmetric, antisymmetric = (matrix + matrix.T) / 2, (matrix - matrix.T) / 2
    np.fill_diagonal(symmetric, 0.0)
    return symmetric, antisymmetric


def _gcd(values: FloatArray) -> int:
    return int(np.gcd.reduce(np.abs(values).astype(np.int64), axis=None)) if values.size else 0


def _as_mask(values: ArrayLike, n: int) -> BoolArray:
    mask = as_array(values, "forbidden")
    if mask.dtype != bool or mask.shape != (n, n):
        raise ValueError(f"forbidden has dtype {mask.dtype} and shape {mask.shape}; expected booleans, ({n}, {n})")
    mask = mask.copy()
    mask.setflags(write=False)
    return mask
