"""How clearly each pair of a match stands out, judged by a rotation that did not see the pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blindmatch.alignment.assign import Candidates, Links
from blindmatch.alignment.crew import Crew
from blindmatch.alignment.frame import Points
from blindmatch.alignment.neighbours import adjusted_nearest
from blindmatch.alignment.rotation import procrustes, unit
from blindmatch.validation import FloatArray, IntArray

_FOLDS = 2
_RIVALS = 10  # candidates of each item that a pair is compared with
# constant, margin, logit of the share of positive margins, support, margin times that logit (if positive), CSLS, CSLS
# times that logit (if positive)
_LOGISTIC = (-2.51, 0.14, -0.04, 2.03, 4.42, 1.21, 1.24)


@dataclass(frozen=True, eq=False)
class Margins:
    """How clearly the pairs of a match stand out; nan for sources without a partner."""

    above: FloatArray  # (n,) by how much the CSLS of each pair is above that of the best rival pair of either item
    own: FloatArray  # (n,) that CSLS: items without a true partner have rivals as poor as their pair
    unit: float  # what both are measured in: how far the candidates of an item usually are apart


class SimilarityRanking:
    """The best partners of each source, by CSLS after the rotation; computed when they are asked for.

    Source and target are (n, c) and (m, c) rows of unit length in the common space.
    """

    def __init__(self, source: Points, target: Points, threads: int = 1) -> None:
        self._source, self._target, self._threads = source, target, threads

    @property
    def most(self) -> int:
        """How many targets there are."""
        return len(self._target)

    def best(self, count: int) -> IntArray:
        """Indices of the targets, best first: (n, count)."""
        return adjusted_nearest(self._source, self._target, count, Crew(self._threads))


def held_out_margins(
    source: Points, target: Points, partners: IntArray, *, rng: np.random.Generator, crew: Crew
) -> Margins:
    """Compare each pair with its rivals.

    A rotation that was fitted to a pair flatters it, and the more so the more dimensions there are. So each half of the
    pairs is judged by the rotation that fits the other half.
    """
    crew.check()
    rows = np.flatnonzero(partners >= 0)
    fold = rng.permutation(len(rows)) % _FOLDS
    turned = source.copy()
    for number in range(_FOLDS):
        others, mine = rows[fold != number], rows[fold == number]
        turned[mine] = source[mine] @ procrustes(source[others], target[partners[others]])
    alone = np.setdiff1d(np.arange(len(source)), rows)
    turned[alone] = source[alone] @ procrustes(source[rows], target[partners[rows]])
    a = unit(turned)
    return _margins(Candidates(_RIVALS).links(a, target, crew), a, target, partners)


def _margins(found: Links, a: Points, b: Points, partners: IntArray) -> Margins:
    rows = np.flatnonzero(partners >= 0)
    own = np.full(len(a), np.nan)
    cosines = np.einsum("ij,ij->i", a[rows], b[partners[rows]])
    own[rows] = 2 * cosines - found.of_a[rows] - found.of_b[partners[rows]]
    other = partners[found.rows] != found.columns
    row_rival, column_rival = np.full(len(a), -np.inf), np.full(len(b), -np.inf)
    np.maximum.at(row_rival, found.rows[other], found.scores[other])
    np.maximum.at(column_rival, found.columns[other], found.scores[other])
    rival = np.full(len(a), np.nan)
    rival[rows] = np.maximum(row_rival[rows], column_rival[partners[rows]])
    order = np.lexsort((found.scores, found.rows))
    ends = np.flatnonzero(np.diff(np.append(found.rows[order], -1)))
    starts = np.concatenate([[0], ends[:-1] + 1])
    widths = found.scores[order][ends] - found.scores[order][(starts + ends) // 2]
    return Margins(own - rival, own, float(np.median(widths)))


def features(margins: Margins, support: int) -> FloatArray:
    """(n, 7) what the confidence depends on, in the order of `_LOGISTIC`; nan for the unmatched."""
    above, own = margins.above, margins.own
    known = ~np.isnan(above)
    share = float(np.clip((above[known] > 0).mean(), 0.01, 0.99)) if known.any() else 0.01
    if margins.unit > 0:
        above, own = np.clip(above / margins.unit, -2.0, 1.0), np.clip(own / margins.unit, -2.0, 3.0)
    else:
        above = own = np.where(known, 0.0, np.nan)
    logit = float(np.log(share / (1 - share)))
    clear = max(logit, 0.0)
    whole = (np.full(len(above), value) for value in (1.0, logit, float(support > 0)))
    constant, logits, supported = whole
    return np.column_stack([constant, above, logits, supported, clear * above, own, clear * own])


def confidence(margins: Margins, support: int) -> FloatArray:
    """The probability that each pair is right; nan for the unmatched.

    A logistic model of the margin, of the CSLS, of the share of pairs with a positive margin, and of whether another
    start supports the match. It was fitted to problems whose truth is known, with noise and with outliers
    (``benchmarks/large_confidence.py`` does it again).
    """
    return np.asarray(1 / (1 + np.exp(-(features(margins, support) @ np.array(_LOGISTIC)))))
