"""Several relations that correspond, graphs in place of relations, and relations from one side to the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from blindmatch.errors import shown, unknown_name
from blindmatch.geometry.kernels import offset_of
from blindmatch.geometry.relations import EDGE_WEIGHTS, Names, graph_layers
from blindmatch.problem.distortion import Distortion, as_sides, weighted
from blindmatch.problem.distortions import GromovWasserstein, InnerProduct
from blindmatch.problem.exact_sums import split_products, split_sum, sum_of_products
from blindmatch.problem.qap import QAP, FactorPair, exchange_gains, rest_of
from blindmatch.validation import FloatArray, IntArray, as_floats, as_square


def as_edge_weights(given: str | Sequence[str], kernels: Any) -> tuple[str, ...]:
    """The transformations of weights, one or several."""
    ways = (given,) if isinstance(given, str) else tuple(given)
    for way in ways:
        if way not in EDGE_WEIGHTS:
            raise unknown_name("edge_weights", way, EDGE_WEIGHTS)
    if not ways or (kernels is None and ways != ("none",)):
        raise ValueError(f"edge_weights={shown(given)}; expected one or more, for the graphs of kernels=")
    return ways


def with_nodes(kernels: Any, ways: tuple[str, ...]) -> tuple[Any, tuple[Names | None, Names | None]]:
    """Kernels in which graphs are matrices, and the names of the nodes of both sides.

    With several ways to transform the weights, there is a layer for each way and each layer that was given.
    """
    layered = layer_pairs(kernels)
    pairs = [kernels] if layered is None else layered
    if kernels is None or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        return kernels, (None, None)  # what is wrong with them is said later
    (ours, one), (theirs, other) = (
        graph_layers([pair[at] for pair in pairs], name) for at, name in enumerate(("source", "target"))
    )
    if ways != ("none",):
        ours, theirs = (
            [as_square(matrix, f"{name}, layer {at + 1}") for at, matrix in enumerate(side)]
            for side, name in ((ours, "source"), (theirs, "target"))
        )
    found = [tuple(map(EDGE_WEIGHTS[way], pair)) for way in ways for pair in zip(ours, theirs, strict=True)]
    return (found[0] if layered is None and len(found) == 1 else found), (one, other)


def layer_pairs(kernels: Any) -> list[Any] | None:
    """The pairs of kernels of layers; None if there is one pair of kernels, or none."""
    first = kernels[0] if isinstance(kernels, list | tuple) and kernels else None
    if not isinstance(first, list | tuple) or not first:
        return None
    one = first[0]
    if not (isinstance(one, str | Path) or hasattr(one, "edges") or issparse(one) or np.ndim(one) >= 2):
        return None
    return list(kernels)


def as_layers(
    pairs: list[Any] | None, distortions: Sequence[Distortion], points: tuple[Any, Any]
) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """The relations of each layer, checked: all of the same sizes; there are no `points` beside them."""
    layers: list[tuple[FloatArray, FloatArray]] = []
    for at, (pair, distortion) in enumerate(zip(pairs or (), distortions, strict=False)):
        layers.append(as_sides(*points, pair, distortion.metrics, f"kernels[{at}]"))
        sizes, first = (tuple(map(len, each)) for each in (layers[at], layers[0]))
        if sizes != first:
            raise ValueError(f"kernels[{at}] relates {sizes} items and kernels[0] {first}; expected the same items")
    return tuple(layers)


def one_each(distortion: Any, count: int) -> list[Any]:
    """A distortion for each layer."""
    if not isinstance(distortion, list | tuple):
        return [distortion] * count
    if len(distortion) != count:
        raise ValueError(f"distortion has {len(distortion)} items; expected one, or {count}: one for each layer")
    return list(distortion)


Weigh = Callable[[FloatArray], FloatArray]
_MOST = 1e100  # so that no square overflows
LARGEST = 24  # items up to which the term is written as n^2 products of matrices, which every solver takes


@dataclass(frozen=True, eq=False)
class Crossed:
    """The term that compares ``there[i, p[k]]``, from source i to a target, with ``back[p[i], k]``, its mirror image.

    Its loss is `weight` (of the layer) times the squared difference, or minus the product if `squared` is False. Both
    matrices are divided by their standard deviations if the kernels are standardised; then squared differences lose
    what all numbers have in common. `given` has the matrices as they were.
    """

    there: FloatArray
    back: FloatArray
    squared: bool
    weight: float
    given: tuple[FloatArray, FloatArray]

    @classmethod
    def of(
        cls,
        given: Any,
        sizes: tuple[int, int],
        distortion: Distortion,
        weight: float,
        weigh: Weigh,
    ) -> Crossed:
        """Check one pair of the argument of ``bm.match``; `weight` is that of its layer."""
        try:
            there, back = given
        except (TypeError, ValueError):
            raise ValueError("crossed: expected two matrices: sources by targets, and targets by sources") from None
        if type(distortion) not in (GromovWasserstein, InnerProduct):
            raise ValueError(f"crossed is given with distortion={distortion!r}; expected 'gw' or 'inner-product'")
        n, m = sizes
        if n != m:
            raise ValueError(f"crossed is given for {n} sources and {m} targets; expected equal numbers")
        matrices, raw = [], []
        for at, matrix in enumerate((there, back)):
            array = as_floats(matrix, f"crossed[{at}]")
            if array.shape != (n, n):
                raise ValueError(f"crossed[{at}] has shape {array.shape}; expected {(n, n)}")
            if np.abs(array).max() > _MOST:
                most = f"{np.abs(array).max():.3g}"
                raise ValueError(f"crossed[{at}] holds numbers up to {most}; expected up to {_MOST:g}")
            array = weigh(array)
            raw.append(array)
            spread = float(array.std()) if distortion.standardize else 1.0
            matrices.append(array / (spread or 1.0))
        squared = isinstance(distortion, GromovWasserstein)
        offset = offset_of(*matrices) if squared else 0.0
        return cls(matrices[0] - offset, matrices[1] - offset, squared, weight, (raw[0], raw[1]))

    def permuted(self, rows: IntArray, columns: IntArray) -> Crossed:
        """The same in another order, as ``QAP.permuted``."""
        return replace(self, there=self.there[np.ix_(rows, columns)], back=self.back[np.ix_(columns, rows)])

    def cost(self, permutation: IntArray) -> float:
        """The sum of the losses under a permutation, rounded up."""
        mine, theirs = self.there[:, permutation], self.back[permutation]
        squares = [(mine, mine), (theirs, theirs)] if self.squared else []
        total = sum_of_products([*squares, ((-2.0 if self.squared else -1.0) * mine, theirs)], np.zeros(1))
        return sum_of_products([(np.array([self.weight]), np.array([total]))], np.zeros(1))

    def swap_costs(self, match: IntArray) -> FloatArray:
        """(n, n) what exchanging the partners of two sources adds to the sum of the losses."""
        mine, theirs = self.there[:, match], self.back[match]
        moved = exchange_gains(theirs.T @ mine + mine @ theirs.T) + exchange_gains(mine) * exchange_gains(theirs)
        return np.asarray((-2.0 if self.squared else -1.0) * self.weight * moved)

    def shares(self) -> FloatArray:
        """(n, n) what the losses of each pair cost at least: a linear term, no cost is below it.

        Row i of `there` and row j of `back` differ least, and have the largest product, if both are sorted; so do
        column j of `there` and column i of `back`. The cost is the sum over the rows, and over the columns: half of
        each counts. A sum of n products is wrong by less than n + 2 roundings of the squares, and by the smallest
        number where a product underflows: both are subtracted.
        """
        eps, tiny = np.finfo(float).eps, np.nextafter(0.0, 1.0)
        total = np.zeros_like(self.there)
        for one, other in ((self.there, self.back), (self.back.T, self.there.T)):
            A, B = np.sort(one, axis=1), np.sort(other, axis=1)
            squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1)
            error = 4 * (len(A) + 4) * (eps * squares + tiny)
            total += (np.maximum(squares - 2 * A @ B.T - error, 0.0) if self.squared else -A @ B.T - error) / 2
        total *= self.weight
        return np.asarray(total - 1e-15 * np.abs(total) - 2 * tiny)

    def added_to(self, problem: QAP) -> QAP:
        """The problem with this term, as a sum of products: exact, with n^2 of them.

        The cost of i with j and k with l is -2 weight there[i, l] back[j, k]. For each entry (a, b) of the relations
        among sources, which is `weight` at i = a, k = b, that is the product with -2 back[j, b] there[a, l].
        """
        n = problem.n
        if not self.weight:
            return problem
        if n > LARGEST:
            raise ValueError(
                f"crossed is given for {n} items; a problem for any solver has up to {LARGEST}: solver='auto' searches"
            )
        factor = -2.0 if self.squared else -1.0
        factors: list[FactorPair] = []
        lacking: list[FactorPair] = []
        for a in np.flatnonzero(self.there.any(axis=1)):
            for b in np.flatnonzero(self.back.any(axis=0)):
                entry = np.zeros((n, n))
                entry[a, b] = self.weight
                low, lost = split_products(factor * self.back[:, b, None], self.there[a])
                factors.append((entry, low))
                lacking += [(entry, lost)] if lost.any() else []
        weight, sides = np.array(self.weight), (self.there, self.back)
        squares = [weighted(weight, split_products(one, one)) for one in sides] if self.squared else []
        rest = problem.rest
        values = np.concatenate([[problem.constant], *(low.ravel() for low, _ in squares)])
        lost = np.concatenate([[0.0 if rest is None else rest.constant], *(more.ravel() for _, more in squares)])
        constant, short = split_sum(values, lost)
        whole = QAP.from_factors([*problem.factors, *factors], problem.linear, constant, forbidden=problem.forbidden)
        more = () if rest is None else rest.factors
        linear = None if rest is None or not rest.linear.any() else rest.linear
        return whole.changed(rest=rest_of(n, [*more, *lacking], linear, short))


def as_crossed(
    given: Any,
    sizes: tuple[int, int],
    layers: Sequence[tuple[Distortion, float]],
    ways: tuple[str, ...],
) -> tuple[Crossed, ...]:
    """The argument `crossed`: a pair of matrices, or one for each layer that was given; `ways` as in `with_nodes`."""
    if given is None:
        return ()
    several = isinstance(given, list | tuple) and len(given) > 0 and isinstance(given[0], list | tuple)
    pairs = list(given) if several and len(given[0]) and np.ndim(given[0][0]) == 2 else [given]
    count = len(layers) // len(ways)
    if len(pairs) != count:
        raise ValueError(f"crossed has {len(pairs)} pairs of matrices; expected {count}: one for each layer")
    each = [(pair, EDGE_WEIGHTS[way]) for way in ways for pair in pairs]
    return tuple(
        Crossed.of(pair, sizes, distortion, weight, weigh)
        for (pair, weigh), (distortion, weight) in zip(each, layers, strict=True)
    )
