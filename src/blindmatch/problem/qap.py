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

from blindmatch.notebook import html_table
from blindmatch.problem.exact_sums import sum_of_products
from blindmatch.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_floats,
    as_pairs,
    as_partners,
    as_permutation,
    as_square,
    at_least,
)

Scalar = TypeVar("Scalar", np.float64, np.bool_)
FactorPair = tuple[FloatArray, FloatArray]
_State = tuple[tuple[FactorPair, ...], FloatArray, float, BoolArray | None, Any, int]
_LARGEST_ACCURATE = 2000  # items up to which an accurate cost takes at most a tenth of a second
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

    The numbers of a problem that a distortion makes may be rounded down. What they lack is `rest`, a problem without
    negative numbers, or None. Costs include it. Bounds and proofs leave it out, and so hold for what was not rounded.

    With fewer sources than targets, n < m, each source gets a target of its own, and m - n targets stay free. The
    problem then has dummies as further sources, whose relations are zero: `n` is the number of targets, `sources` that
    of the sources, and a permutation lists the targets of the sources alone.

    Parameters
    ----------
    source_cost, target_cost
        A, (n, n), and B, (m, m) with n <= m.
    linear
        L, (n, m): the cost of pairing source i with target j by itself.
    constant
        Added to every cost.
    forbidden
        (n, m) booleans; True at [i, j] means that source i must not be paired with target j. None allows all pairs.

    Examples
    --------
    >>> problem = QAP([[0, 1], [1, 0]], [[0, 5], [5, 0]], linear=[[0, 1], [2, 0]])
    >>> problem.objective([1, 0])
    13.0
    >>> QAP([[0, 1], [1, 0]], [[0, 5, 4], [5, 0, 3], [4, 3, 0]]).objective([2, 1])
    6.0
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
        A, B = as_square(source_cost, "source_cost"), as_square(target_cost, "target_cost")
        if len(B) < len(A):
            raise ValueError(f"target_cost has shape {B.shape}; expected at least as many targets as sources, {len(A)}")
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
        """A problem whose quadratic part is a sum of products, one for each pair (A, B) of `factors`.

        The cost of a permutation p is ``sum_f sum_ik A_f[i, k] * B_f[p[i], p[k]] + sum_i L[i, p[i]] + constant``.
        """
        pairs: list[FactorPair] = []
        for index, factor in enumerate(factors):
            try:
                A, B = factor
            except (TypeError, ValueError):
                raise ValueError(f"factors[{index}] is not a pair of matrices (A, B)") from None
            n, m = (len(pairs[0][0]), len(pairs[0][1])) if pairs else (None, None)
            source, target = as_square(A, f"factors[{index}][0]", n), as_square(B, f"factors[{index}][1]", m)
            if len(target) < len(source):
                raise ValueError(f"factors[{index}][1] has shape {target.shape}; expected at least {len(source)} rows")
            pairs.append((source, target))
        if not pairs:
            raise ValueError("factors is empty; expected at least one pair (A, B)")
        problem = cls.__new__(cls)
        problem._set(tuple(pairs), linear, constant, forbidden)
        return problem

    @classmethod
    def _of(cls, *kept: Any) -> QAP:
        """A problem of arrays that are valid and not shared with anyone."""
        problem = cls.__new__(cls)
        problem._keep(*kept)
        return problem

    def changed(
        self, *, linear: ArrayLike | None = None, forbidden: ArrayLike | None = None, rest: QAP | None = None
    ) -> QAP:
        """The same problem with another linear term, other forbidden pairs or another rest."""
        problem = QAP.__new__(QAP)
        problem._set(
            self.factors,
            self.linear if linear is None else linear,
            self.constant,
            self.forbidden if forbidden is None else forbidden,
            self.rest if rest is None else rest,
            self.sources,
        )
        return problem

    def with_items(self, sources: int, targets: int) -> QAP:
        """The same problem, of which only the first items count: the others are dummies, any of which will do."""
        problem = self.changed()
        problem.sources, problem.targets = (at_least(count, 1, "count", self.n) for count in (sources, targets))
        return problem

    def negated(self) -> QAP:
        """The problem whose costs have the other sign: its least cost is our largest one."""
        if self.rest is not None:
            raise ValueError("maximize=True cannot be used on a problem that a distortion made: its costs are rounded")
        factors = tuple((-A, B) for A, B in self.factors)
        return QAP._of(factors, -self.linear, -self.constant, self.forbidden, None, self.sources)

    @classmethod
    def from_qaplib(cls, path: str | Path) -> QAP:
        """Read a QAPLIB ``.dat`` file; a third matrix is the linear term."""
        from blindmatch.io.qaplib import read_dat

        source_cost, target_cost, *linear = read_dat(path)
        return cls(source_cost, target_cost, linear[0] if linear else None)

    def _set(
        self,
        factors: tuple[FactorPair, ...],
        linear: ArrayLike | None,
        constant: float,
        forbidden: ArrayLike | None,
        rest: QAP | None = None,
        sources: int | None = None,
    ) -> None:
        """Store the caller's arrays; `sources` is the number of sources if dummies were already added."""
        rows, n = (len(matrix) for matrix in factors[0])
        self._keep(
            tuple((_padded(A, n, n), B) for A, B in factors),
            np.zeros((n, n)) if linear is None else _padded(_as_table(linear, "linear", rows, n), n, n),
            float(as_floats(constant, "constant", ndim=0)),
            None if forbidden is None else _padded(_as_mask(forbidden, rows, n), n, n),
            rest,
            rows if sources is None else sources,
        )
        if not self.scale <= LARGEST_COST:
            raise ValueError(
                f"source_cost, target_cost, linear and constant sum up to {self.scale:.3g}; "
                f"expected up to {LARGEST_COST:g}"
            )

    def _keep(
        self,
        factors: tuple[FactorPair, ...],
        linear: FloatArray,
        constant: float,
        forbidden: BoolArray | None,
        rest: QAP | None,
        sources: int | None = None,
    ) -> None:
        """Store arrays that are valid and not shared with anyone."""
        self.n = len(linear)
        self.sources, self.targets = self.n if sources is None else sources, self.n
        self.factors, self.linear, self.constant, self.rest = factors, linear, constant, rest
        self.forbidden = forbidden if forbidden is not None and forbidden.any() else None
        for array in (*(matrix for pair in factors for matrix in pair), linear, self.forbidden):
            if array is not None:
                array.setflags(write=False)

    def __getstate__(self) -> _State:
        """What a copy or a pickle keeps: no cached number, in case somebody changes the arrays of a copy."""
        return self.factors, self.linear, self.constant, self.forbidden, self.rest, self.sources

    def __setstate__(self, state: _State) -> None:
        """Keep the arrays read-only: a copy by pickle or deepcopy would not be."""
        self._keep(*state)

    def __repr__(self) -> str:
        extras = [f"{len(self.factors)} factor pairs"] if len(self.factors) > 1 else []
        extras += ["linear"] if self.linear.any() else []
        extras += [f"{int(self.forbidden.sum())} forbidden pairs"] if self.forbidden is not None else []
        size = f"n={self.n}" if self.sources == self.n else f"n={self.sources}, m={self.n}"
        return f"QAP({size}{''.join(', ' + extra for extra in extras)})"

    @property
    def source_cost(self) -> FloatArray:
        """A, as it was given; of a sum of several factor pairs, `factors` has them all."""
        return self._only[0][: self.sources, : self.sources]

    @property
    def target_cost(self) -> FloatArray:
        """B, as it was given."""
        return self._only[1]

    @property
    def _only(self) -> FactorPair:
        if len(self.factors) > 1:
            raise AttributeError(f"the cost is a sum of {len(self.factors)} factor pairs: see problem.factors")
        return self.factors[0]

    def completed(self, permutation: ArrayLike, name: str = "permutation") -> IntArray:
        """A permutation of sources and dummies; where there are dummies, the targets of the sources are enough."""
        array = as_array(permutation, name)
        if self.sources == self.n or array.shape != (self.sources,):
            return as_permutation(array, self.n, name)
        partners = as_partners(array, (self.sources, self.n), name)
        if partners.min() < 0:
            raise ValueError(f"{name}={array.tolist()} leaves a source without a target")
        return np.concatenate([partners, np.setdiff1d(np.arange(self.n), partners)])

    def _repr_html_(self) -> str:
        """What a notebook shows: what it is, then its numbers."""
        forbidden = 0 if self.forbidden is None else int(self.forbidden.sum())
        rows: dict[str, object] = {"items": self.n, "factor pairs": len(self.factors), "symmetric": self.symmetric}
        rows |= {"linear term": bool(self.linear.any()), "forbidden pairs": forbidden, "constant": self.constant}
        return f"<p><b>Quadratic assignment problem</b></p>{html_table({'': [*rows], 'value': [*rows.values()]})}"

    @classmethod
    def load(cls, path: str | Path) -> QAP:
        """Read what `save` writes: ``.dat`` (QAPLIB, also ``.txt``), ``.json``, ``.npz`` or ``.dd`` (graph matching).

        A ``.dd`` file is read if its edges cost what a QAP can cost.
        """
        from blindmatch.problem.problem_files import load_problem

        return load_problem(path)

    def save(self, path: str | Path) -> Path:
        """Write the problem for `load` and other programs.

        The ending decides: ``.dat`` (QAPLIB), ``.json``, ``.npz``, ``.dd`` (graph matching), or ``.lp`` and ``.mps``:
        the linearisation of Adams and Johnson as a mixed-integer program, for up to 40 items.
        """
        from blindmatch.problem.problem_files import save_problem

        save_problem(path, self)
        return Path(path)

    def objective(self, permutation: ArrayLike) -> float:
        """Cost of a permutation: source i is paired with target permutation[i].

        Up to 2,000 items it is never below the exact cost, and above it only in the last digit of a float64. Beyond
        that, it is a sum in float64.
        """
        p = self.completed(permutation)
        parts = (self,) if self.rest is None else (self, self.rest)
        linear = np.concatenate([np.append(part.linear[np.arange(self.n), p], part.constant) for part in parts])
        pairs = [(A, _taken(B, p, p)) for part in parts for A, B in part.factors]
        if self.n <= _LARGEST_ACCURATE and not self.exact:
            return sum_of_products(pairs, linear)
        return sum(float((A * B).sum()) for A, B in pairs) + float(linear.sum())

    def allows(self, permutation: ArrayLike) -> bool:
        """Whether a permutation uses no forbidden pair."""
        p = self.completed(permutation)
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
        rest = None if self.rest is None else self.rest.permuted(r, c)
        return self._derived(r, c, self.linear[np.ix_(r, c)], self.constant, rest)

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
        rest = None if self.rest is None else self.rest.reduced(fixed)[0]
        return self._derived(rows, columns, linear, constant, rest), rows, columns

    def _derived(self, rows: IntArray, columns: IntArray, linear: FloatArray, constant: float, rest: QAP | None) -> QAP:
        """The problem of these sources and targets, without validating numbers that are already valid."""
        factors = tuple((_taken(A, rows, rows), _taken(B, columns, columns)) for A, B in self.factors)
        forbidden = None if self.forbidden is None else _taken(self.forbidden, rows, columns)
        return QAP._of(factors, linear, constant, forbidden, rest)

    def with_known_pairs(self, pairs: Iterable[Any]) -> QAP:
        """The same problem with the given pairs (source, target) required."""
        mask = ~self.allowed
        known = as_pairs(pairs, (self.n, self.n), "known_pairs")
        for i, j in known:
            if mask[i, j]:
                raise ValueError(f"known_pairs={known} contradicts itself or the forbidden pairs at ({i}, {j})")
            mask[i, :] = mask[:, j] = True
            mask[i, j] = False
        return self.changed(forbidden=mask)

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
        return cost_scale(self.factors, self.linear, self.constant) + self.rounding

    @property
    def rounding(self) -> float:
        """The largest cost of the rest: what costs may be above those of the numbers that bounds are for."""
        return 0.0 if self.rest is None else self.rest.scale

    @cached_property
    def vanishes(self) -> bool:
        """Whether every cost is zero because all numbers are zero, not because products underflow in float64."""
        products = any(A.any() and B.any() for A, B in self.factors)
        return not products and not self.linear.any() and self.constant == 0.0 and self.rest is None

    @cached_property
    def exact(self) -> bool:
        """Whether all numbers are integers small enough that float64 computes their sums and products exactly."""
        arrays = [matrix for pair in self.factors for matrix in pair] + [self.linear, np.array([self.constant])]
        if self.scale >= 2.0**52 or self.rest is not None or any((array != np.rint(array)).any() for array in arrays):
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


def exchange_gains(matrix: FloatArray) -> FloatArray:
    """M_rs + M_sr - M_rr - M_ss: what a sum over the diagonal gains if r and s exchange their columns."""
    own = np.diagonal(matrix)
    return np.asarray(matrix + matrix.T - own - own[:, None])


def swap_costs(problem: QAP, p: IntArray) -> FloatArray:
    """(n, n) what exchanging the targets of two sources adds to the cost; inf where that is forbidden."""
    gradient, delta = problem.linear[:, p], np.zeros((problem.n, problem.n))
    for A, B in problem.factors:
        moved = _taken(B, p, p)
        gradient = gradient + A @ moved.T + A.T @ moved
        delta += exchange_gains(A) * exchange_gains(moved)
    delta += exchange_gains(gradient)
    allowed = problem.allowed[:, p]
    delta[~(allowed & allowed.T)] = math.inf
    np.fill_diagonal(delta, math.inf)
    return delta


def rest_of(
    n: int, factors: Iterable[FactorPair] = (), linear: FloatArray | None = None, constant: float = 0.0
) -> QAP | None:
    """What the rounded numbers of a problem lack; None if that is nothing."""
    pairs = tuple(factors)
    if not pairs and linear is None and not constant:
        return None
    return QAP._of(pairs, np.zeros((n, n)) if linear is None else linear, constant, None, None)


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


def _padded(matrix: NDArray[Scalar], rows: int, columns: int) -> NDArray[Scalar]:
    """The matrix with zeros below and to the right of it."""
    if matrix.shape == (rows, columns):
        return matrix
    whole = np.zeros((rows, columns), dtype=matrix.dtype)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return whole


def _as_table(values: ArrayLike, name: str, rows: int, columns: int) -> FloatArray:
    table = as_floats(values, name)
    if table.shape != (rows, columns):
        raise ValueError(f"{name} has shape {table.shape}; expected ({rows}, {columns})")
    return table


def _as_mask(values: ArrayLike, rows: int, columns: int) -> BoolArray:
    mask = as_array(values, "forbidden")
    if mask.dtype != bool or mask.shape != (rows, columns):
        raise ValueError(
            f"forbidden has dtype {mask.dtype} and shape {mask.shape}; expected booleans, ({rows}, {columns})"
        )
    mask = mask.copy()
    mask.setflags(write=False)
    return mask
