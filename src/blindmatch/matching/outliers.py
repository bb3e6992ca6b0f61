"""Which pairs of a large match are not worth their cost, where items may stay unmatched for a price."""

from __future__ import annotations

import numpy as np

from blindmatch.matching.relations import Relations
from blindmatch.validation import FloatArray, IntArray

_AT_ONCE = 0.05  # share of the pairs that is given up together: outliers make the others look worse than they are
_ROUNDS = 200


def without_outliers(relations: Relations, partners: IntArray, price: float, most: int, kept: IntArray) -> IntArray:
    """Give up the pairs that cost more than their two items would alone, the worst first; restore those that pay.

    Each item without a partner costs the price, on either side. At most `most` items of the smaller set may stay
    unmatched. The pairs of the sources in `kept` are known. Where costs are estimated, nothing is taken back.
    """
    sums = relations.items(partners)  # a pair counts twice, as a source and as a partner: 2 * sums against 2 * price
    alone = partners.copy()
    spare = most - (min(len(relations.source), len(relations.target)) - int((partners >= 0).sum()))
    fixed = np.zeros(len(partners), dtype=bool)
    fixed[kept] = True
    for _ in range(_ROUNDS):
        matched = np.flatnonzero((alone >= 0) & ~fixed)
        costly = matched[sums[matched] > price]
        count = min(len(costly), spare, max(1, int(_AT_ONCE * len(matched))))
        if count <= 0:
            break
        worst = costly[np.argsort(-sums[costly], kind="stable")[:count]]
        alone[worst] = -1
        spare -= count
        sums = _without(relations, sums, alone, worst, partners) if relations.exact else relations.items(alone)
    return _with_better(relations, alone, partners, price) if relations.exact else alone


def _without(relations: Relations, sums: FloatArray, alone: IntArray, gone: IntArray, partners: IntArray) -> FloatArray:
    left = np.flatnonzero(alone >= 0)
    sums = sums.copy()
    sums[left] -= relations.between(left, gone, partners)
    sums[gone] = 0.0
    return sums


def _with_better(relations: Relations, alone: IntArray, partners: IntArray, price: float) -> IntArray:
    """Take back pairs, one by one, that cost less than the price beside all that are left."""
    gone, left = np.flatnonzero((alone < 0) & (partners >= 0)), np.flatnonzero(alone >= 0)
    if not len(gone) or not len(left):
        return alone
    costs = relations.between(gone, left, partners)
    for at in np.argsort(costs, kind="stable"):
        if costs[at] >= price:
            break
        alone[gone[at]] = partners[gone[at]]
        others = np.delete(np.arange(len(gone)), at)
        costs[others] += relations.between(gone[others], gone[[at]], partners)
    return alone
