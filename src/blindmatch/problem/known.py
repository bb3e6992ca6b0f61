"""Pairs of other items that are known: their relations to the items, and a similarity that is learned from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from blindmatch.errors import shown
from blindmatch.geometry.kernels import unit_rows
from blindmatch.geometry.views import Views
from blindmatch.problem.distortion import Distortion
from blindmatch.validation import FloatArray, IntArray, as_floats

Sides = tuple[FloatArray, FloatArray]

FEWEST = 4  # known pairs from which a similarity is learned: two are held out, and two are left to learn from
_USUAL = 20  # the weight that is expected is 1 for so many pairs, and proportional to their number
_SPREAD = 0.7  # standard deviation of the logarithm of the weight around that
_WEIGHTS = np.geomspace(1 / 16, 16, 17)  # times the expected weight
_SHARPNESS = np.geomspace(0.02, 50, 25)  # of the logistic model of held-out swaps
_FOLDS, _FEW, _ROUNDS = 10, 20, 3  # parts of the known pairs that are held out in turn; of few pairs, in several ways


def ridge(penalty: float, known: Sides, items: Sides) -> FloatArray:
    """Cosines between items and what ridge regression on the known pairs predicts for them, in both directions."""
    total = np.zeros((len(items[0]), len(items[1])))
    means = known[0].mean(axis=0), known[1].mean(axis=0)
    for one, other in ((0, 1), (1, 0)):
        given, wanted = known[one] - means[one], known[other] - means[other]
        new, ends = items[one] - means[one], items[other] - means[other]
        products = given @ given.T
        shift = penalty * np.trace(products) / len(given) or 1.0
        weights = np.linalg.solve(products + shift * np.eye(len(given)), wanted)
        cosines = unit_rows(new @ given.T @ weights) @ unit_rows(ends).T
        total += cosines.T if one else cosines
    return total


def relative(known: Sides, items: Sides) -> FloatArray:
    """Relative representations: how alike the distances of two items to the known items are."""
    apart = []
    for one, other in zip(known, items, strict=True):
        found = cdist(other, one)
        found -= cdist(one, one).mean(axis=0)  # of known items that are far from all, as every item is
        apart.append(unit_rows(found - found.mean(axis=1, keepdims=True)))
    return np.asarray(apart[0] @ apart[1].T)


def similarity(known: Sides, items: Sides) -> FloatArray:
    """Ridge regression and relative representations, averaged: neither is better for every pair of models."""
    return _standardized(ridge(1.0, known, items)) + _standardized(relative(known, items))


@dataclass(frozen=True, eq=False)
class Known:
    """Other items of both spaces, row i of one being the partner of row i of the other, and what is learned from them.

    Attributes
    ----------
    given
        Their embeddings, (k, d) and (k, e).
    weight
        How much a standard deviation of the similarity lowers the cost, in losses of a random relation for each item; 0
        if there are too few pairs to learn from.
    right
        In how many of a hundred swaps of held-out pairs relations and similarity together prefer the right partners.
    """

    given: Sides
    weight: float = 0.0
    right: float = 0.0

    @classmethod
    def of(cls, known: Any, dimensions: tuple[int, int]) -> Known:
        """Check two arrays of known items, for sets of these dimensions."""
        if isinstance(known, Known):
            return known
        if not isinstance(known, tuple | list) or len(known) != 2:
            raise ValueError(f"known={shown(known)}; expected a pair of arrays: other sources, and their partners")
        columns = [side.columns if isinstance(side, Views) else side for side in known]
        given = as_floats(columns[0], "known[0]"), as_floats(columns[1], "known[1]")
        if len(given[0]) != len(given[1]):
            raise ValueError(
                f"known has {len(given[0])} sources and {len(given[1])} targets; row i must be the partner of row i"
            )
        for at, (side, own) in enumerate(zip(given, dimensions, strict=True)):
            if side.shape[1] != own:
                which = ("sources", "targets")[at]
                raise ValueError(f"known[{at}] has {side.shape[1]} columns; the {which} have {own}")
        _refuse_twins(given)
        return cls(given)

    @property
    def count(self) -> int:
        """How many pairs are known."""
        return len(self.given[0])

    @property
    def text(self) -> str:
        """What came from where, in a sentence."""
        pairs = "1 known pair" if self.count == 1 else f"{self.count} known pairs"
        if not self.weight:
            return f"{pairs} of other items: the relations to them count, but they are too few to learn a similarity"
        return (
            f"{pairs} of other items: the relations to them count, and a similarity learned from them (ridge "
            f"regression and relative representations) counts with weight {self.weight:.2g}, chosen on held-out pairs, "
            f"where {self.right:.0f} % of all swaps are refused"
        )

    def cost(self, distortion: Distortion, kernels: Sides, items: Sides, known: Sides) -> FloatArray:
        """(n, m) what each pair costs: its relations to the known items, less the similarity that is learned.

        `kernels` are the common kernels of the items and, after them, the known items; both are points in `items` and
        `known`.
        """
        total = relation_costs(distortion, kernels, self.count)
        if self.weight:
            unit = loss_unit(distortion, kernels) * (max(map(len, items)) + self.count)
            total -= self.weight * unit * _standardized(similarity(known, items))
        return total

    def learned(self, distortion: Distortion, kernels: Sides, known: Sides) -> Known:
        """With the weight of the similarity chosen by cross-validation on the known pairs alone.

        Pairs are held out in turn, and two of them are swapped. A logistic model of the extra cost of the swap, that
        of the relations and a weight times that of the similarity, says how likely the right partners are. A weight far
        from what is usual for so many pairs needs evidence.
        """
        if self.count < FEWEST:
            return self
        expected = self.count / _USUAL
        relations, swaps, share = _held_out(distortion, kernels, known)
        best = (np.inf, 0.0, 0.0)
        for weight in (expected * _WEIGHTS).tolist():
            extra = relations + weight / 2 * swaps
            margins = np.multiply.outer(_SHARPNESS / (1 + weight), extra)
            surprise = float((np.logaddexp(0, -margins) * share).sum(axis=1).min())
            surprise += (np.log(weight / expected) / _SPREAD) ** 2 / 2
            if surprise < best[0] - 1e-9:
                best = (surprise, weight, 100 * float(share[extra > 0].sum() / share.sum()))
        return Known(self.given, *best[1:])


def relation_costs(distortion: Distortion, kernels: Sides, known: int) -> FloatArray:
    """(n, m) the loss between the relations of source i and of target j to the last items, paired in order."""
    K, G = kernels
    n, m = len(K) - known, len(G) - known
    total = np.zeros((n, m))
    for k in range(known):
        total += distortion.loss(K[:n, n + k, None], G[None, :m, m + k])
        total += distortion.loss(K[n + k, :n, None], G[None, m + k, :m])
    return total


def loss_unit(distortion: Distortion, kernels: Sides) -> float:
    """The size of a loss: 1 for standardised kernels and squared differences."""
    one, other = (kernel[~np.eye(len(kernel), dtype=bool)] for kernel in kernels)
    return float(distortion.h1(one).std() * distortion.h2(other).std()) / 2


def _held_out(distortion: Distortion, kernels: Sides, known: Sides) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What swapping two held-out pairs costs: of relations, of the similarity, and how much each swap counts."""
    count, rng = len(known[0]), np.random.default_rng(0)
    unit = loss_unit(distortion, kernels) or 1.0
    relations: list[FloatArray] = []
    swaps: list[FloatArray] = []
    share: list[FloatArray] = []
    for _ in range(1 if count >= _FEW else _ROUNDS):
        for fold in np.array_split(rng.permutation(count), max(2, min(count // 2, _FOLDS))):
            rest = np.setdiff1d(np.arange(count), fold)
            order = np.concatenate([fold, rest])
            joint = kernels[0][np.ix_(order, order)], kernels[1][np.ix_(order, order)]
            first, second = np.triu_indices(len(fold), 1)
            costs = relation_costs(distortion, joint, len(rest)) / (2 * len(rest) * unit)
            relations.append(_swapped(costs, first, second))
            share.append(np.full(len(first), len(fold) / max(len(first), 1)))
            found = similarity((known[0][rest], known[1][rest]), (known[0][fold], known[1][fold]))
            swaps.append(-_swapped(found, first, second))
    weights = np.concatenate(share)
    return np.concatenate(relations), np.concatenate(swaps), weights * count / weights.sum()


def _swapped(matrix: FloatArray, i: IntArray, j: IntArray) -> FloatArray:
    return np.asarray(matrix[i, j] + matrix[j, i] - matrix[i, i] - matrix[j, j])


def _centred(matrix: FloatArray) -> FloatArray:
    return np.asarray(matrix - matrix.mean(axis=0) - matrix.mean(axis=1, keepdims=True) + matrix.mean())


def _standardized(matrix: FloatArray) -> FloatArray:
    """Without the means of rows and columns, which change no match, and of unit spread."""
    centred = _centred(matrix)
    return np.asarray(centred / (centred.std() or 1.0))


def _refuse_twins(given: Sides) -> None:
    """Say that a pair is repeated, or that an item has two partners."""
    seen: tuple[dict[bytes, int], dict[bytes, int]] = {}, {}
    for at, rows in enumerate(zip(*((side + 0.0) for side in given), strict=True)):
        first = [places.setdefault(row.tobytes(), at) for places, row in zip(seen, rows, strict=True)]
        if first[0] == first[1] < at:
            raise ValueError(f"known repeats pair {first[0]} at {at}; leave one of them out")
        for side in (0, 1):
            if first[side] < at:
                raise ValueError(
                    f"known[{side}] has the same item at {first[side]} and {at}, with two partners; keep one of them"
                )
