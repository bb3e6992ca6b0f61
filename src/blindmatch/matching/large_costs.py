"""The cost of a match of very many items, without a matrix of all their relations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.alignment.crew import Crew
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.distortions import GromovWasserstein, InnerProduct
from blindmatch.validation import FloatArray, IntArray

EXACT = 20_000  # items up to which a cost is summed over all pairs; beyond, it is estimated from random pairs
_CELLS = 2**21  # relations that a thread holds at once
_DRAWN, _FEWEST = 2**22, 2**14  # random pairs of an estimate, at most and at least
_DRAWN_PER_SECOND = 2**19
_BATCHES = 32  # batches of random pairs, whose scatter gives the error of an estimate
_ROWS = 2**12  # random pairs that are looked at together
_OTHERS = 512  # items to which an estimate looks at the relations of each item


class PointSide:
    """Euclidean distances of points, from inner products: relative to the spread of the set they are good to 1e-8."""

    def __init__(self, points: NDArray[Any]) -> None:
        self._points = np.asarray(points, dtype=np.float64)
        self._points = self._points - self._points.mean(axis=0)
        self._squares = np.einsum("ij,ij->i", self._points, self._points)

    def __len__(self) -> int:
        return len(self._points)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Distances of some points to some points."""
        products = self._points[rows] @ self._points[columns].T
        products *= -2.0
        products += self._squares[rows][:, None]
        products += self._squares[columns]
        np.maximum(products, 0.0, out=products)
        return np.asarray(np.sqrt(products, out=products))

    def single(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Distances of pairs of points."""
        found = np.empty(len(rows))
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            found[part] = np.linalg.norm(self._points[rows[part]] - self._points[columns[part]], axis=1)
        return found


class KernelSide:
    """Entries of a given matrix."""

    def __init__(self, kernel: FloatArray) -> None:
        self._kernel = kernel

    def __len__(self) -> int:
        return len(self._kernel)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """A part of the matrix."""
        return self._kernel[np.ix_(rows, columns)]

    def single(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Some of its entries."""
        return np.asarray(self._kernel[rows, columns])


Side = PointSide | KernelSide  # the relations inside one set


@dataclass(frozen=True)
class Estimate:
    """A cost; `error` is its standard error, 0 where it was summed over all pairs."""

    value: float
    error: float = 0.0


class Relations:
    """Both sides on their common scale, and the distortion of any match of their items.

    The distortion is ``GromovWasserstein`` or ``InnerProduct``, whose scale is a mean and a standard deviation. Costs
    are summed over all pairs if `exact`, and otherwise estimated in about `seconds` seconds.
    """

    def __init__(
        self,
        distortion: Distortion,
        source: Side,
        target: Side,
        *,
        crew: Crew,
        rng: np.random.Generator,
        exact: bool = True,
        seconds: float = math.inf,
    ) -> None:
        refuse(distortion, (len(source), len(target)))
        self.distortion, self.source, self.target, self._crew, self.exact = distortion, source, target, crew, exact
        self._seed = int(rng.integers(2**63))
        self._drawn = int(np.clip(min(seconds, 1e6) * _DRAWN_PER_SECOND, _FEWEST, _DRAWN))
        self._scales = [self._scale(side) for side in (source, target)]

    def items(self, partners: IntArray) -> FloatArray:
        """The loss of each matched source, summed over its relations to all others: (n,), 0 for the unmatched.

        An estimate looks at its relations to a random part of them.
        """
        matched = np.flatnonzero(partners >= 0)
        sums = np.zeros(len(partners))
        if self.exact or len(matched) <= _OTHERS:
            sums[matched] = self._summed(matched, partners[matched])
        else:
            drawn = np.random.default_rng(self._seed).choice(matched, _OTHERS, replace=False)
            sums[matched] = self.between(matched, drawn, partners) * (len(matched) / _OTHERS)
        return sums

    def between(self, rows: IntArray, others: IntArray, partners: IntArray) -> FloatArray:
        """The loss of each of `rows`, summed over its relations to `others`: all of them are matched."""
        sums = np.zeros(len(rows))
        tall = max(1, _CELLS // max(len(others), 1))
        for part, values in self._crew.blocks(
            len(rows), tall, lambda part: self._losses(rows[part], others, partners).sum(axis=1)
        ):
            sums[part] = values
        return sums

    def cost(self, partners: IntArray) -> Estimate:
        """The loss of a match, summed over all ordered pairs of matched items."""
        matched = np.flatnonzero(partners >= 0)
        if len(matched) < 2:
            return Estimate(0.0)
        if self.exact:
            return Estimate(float(self._summed(matched, partners[matched]).sum()))
        count = len(matched) * (len(matched) - 1)
        rng = np.random.default_rng(self._seed)
        means = []
        for _ in range(_BATCHES):
            self._crew.check()
            i, k = _different(len(matched), self._drawn // _BATCHES, rng)
            a, b = (
                self.source.single(matched[i], matched[k]),
                self.target.single(*(partners[matched[x]] for x in (i, k))),
            )
            if len(matched) == len(self.source) == len(self.target) and self.distortion.standardize:
                # The same pairs give the scale: what is left of its error is that of a correlation.
                a, b = ((side - side.mean()) / max(side.std(), 1e-300) for side in (a, b))
            else:
                a, b = ((side - mean) * factor for side, (mean, factor) in zip((a, b), self._scales, strict=True))
            means.append(float(self.distortion.loss(a, b).mean()))
        return Estimate(count * float(np.mean(means)), count * float(np.std(means) / np.sqrt(_BATCHES - 1)))

    def _summed(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Loss of each row with all others; each unordered pair is looked at once."""
        n = len(rows)
        sums = np.zeros(n)
        partners = np.full(len(self.source), -1, dtype=np.intp)
        partners[rows] = columns

        def work(part: slice) -> tuple[FloatArray, FloatArray]:
            losses = self._losses(rows[part], rows[part.start :], partners)
            return losses.sum(axis=1), losses[:, part.stop - part.start :].sum(axis=0)

        for part, (down, across) in self._crew.blocks(n, max(1, _CELLS // n), work):
            sums[part] += down
            sums[part.stop :] += across
        return sums

    def _losses(self, rows: IntArray, others: IntArray, partners: IntArray) -> FloatArray:
        parts = []
        for side, (mean, factor), at in (
            (self.source, self._scales[0], (rows, others)),
            (self.target, self._scales[1], (partners[rows], partners[others])),
        ):
            relations = side.block(*at)
            relations -= mean
            relations *= factor
            parts.append(relations)
        a, b = parts
        both = np.flatnonzero(np.isin(rows, others))
        if len(both):  # no item has a relation to itself
            order = np.argsort(others, kind="stable")
            at_other = order[np.searchsorted(others, rows[both], sorter=order)]
            a[both, at_other] = b[both, at_other] = 0.0
        return self.distortion.loss(a, b)

    def _scale(self, side: Side) -> tuple[float, float]:
        """Mean of the relations, and one over their standard deviation."""
        if not self.distortion.standardize:
            return 0.0, 1.0
        n = len(side)
        if self.exact:
            everything = np.arange(n)

            def work(part: slice) -> tuple[float, float]:
                block = side.block(everything[part], everything[part.start :])
                block[np.arange(len(block)), np.arange(len(block))] = 0.0
                inner, outer = block[:, : len(block)], block[:, len(block) :]
                return float(inner.sum() + 2 * outer.sum()), float((inner**2).sum() + 2 * (outer**2).sum())

            sums = np.sum([value for _, value in self._crew.blocks(n, max(1, _CELLS // n), work)], axis=0)
            mean, square = sums / max(1, n * (n - 1))
        else:
            i, k = _different(n, self._drawn, np.random.default_rng(self._seed))
            drawn = side.single(i, k)
            mean, square = drawn.mean(), (drawn**2).mean()
        deviation = np.sqrt(max(square - mean**2, 0.0))
        # Rounding leaves a tiny deviation in constant relations.
        return (float(mean), float(1 / deviation)) if deviation > 1e-7 * abs(mean) else (float(mean), 0.0)


def summed_by_blocks(distortion: Distortion) -> bool:
    """Return True if the cost of a match can be summed without matrices of all relations."""
    return type(distortion) in (GromovWasserstein, InnerProduct)


def refuse(distortion: Distortion, sizes: tuple[int, int]) -> None:
    """Raise a ValueError where a distortion needs matrices of all relations."""
    if not summed_by_blocks(distortion):
        raise ValueError(
            f"distortion={type(distortion).__name__} needs matrices of all relations, which are too large for "
            f"{sizes[0]} and {sizes[1]} items; 'gw' and 'inner-product' do not"
        )


def _different(n: int, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Random pairs of different numbers below n."""
    first = rng.integers(n, size=count)
    second = (first + rng.integers(1, n, size=count)) % n
    return first, second
