"""What is matched: two sets, how they are compared, and what is known about the pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown
from blindmatch.geometry.columns import ColumnScaling, warn_of_units
from blindmatch.geometry.correlation import agreement
from blindmatch.geometry.metrics import Metric
from blindmatch.geometry.scaling import classical_scaling
from blindmatch.problem.distortion import Distortion, Kernels, as_sides
from blindmatch.problem.distortions import as_distortion
from blindmatch.problem.hints import Hints
from blindmatch.problem.qap import QAP
from blindmatch.validation import FloatArray, IntArray

_SAME_KERNEL = 0.8  # correlation of a kernel with that of the points which scaling finds for it

QUADRATIC = 3000  # items up to which the assignment problem is built: 200 bytes for each pair of items
UNEQUAL = 1000  # the same limit for problems of several factors: sets of unequal sizes, items that may stay unmatched

Pairs = Iterable[tuple[int, int]]


@dataclass(frozen=True)
class Price:
    """A suggested price of unmatched items, and how many pairs a quick search matches at each price, ascending.

    The curve is empty if time was too short to try prices.
    """

    price: float
    curve: tuple[tuple[float, int], ...]

    @property
    def text(self) -> str:
        """The curve in words, with a range where the same number of pairs is matched."""
        parts = [] if self.curve else ["no time to try prices"]
        for matched, points in groupby(self.curve, key=lambda point: point[1]):
            prices = [f"{price:.3g}" for price, _ in points]
            several = f"prices from {prices[0]} to {prices[-1]}"
            pairs = "1 pair" if matched == 1 else f"{matched} pairs"
            parts.append(f"{pairs} at {f'a price of {prices[0]}' if len(prices) == 1 else several}")
        return ", ".join(parts)


class Task:
    """Two sets to match, how they are compared, and what is known about the pairs.

    The cost of a match is the distortion's loss, summed over all ordered pairs of matched items, plus two optional
    terms::

        sum over matched i, k of loss(K[i, k], G[p[i], p[k]])
        - similarity_weight * sum over matched i of similarity[i, p[i]]
        + unmatched_cost * (number of unmatched sources + number of unmatched targets)

    Parameters
    ----------
    source, target
        (n, d) and (m, e) arrays: numpy, torch tensors, data frames, lists. If n < m every source gets a target of its
        own; if n > m every target is used, and ``permutation[i] == -1`` marks a source without a partner.
    kernels
        Instead of embeddings: (n, n) and (m, m) matrices of relations, for example distances, or the sparse adjacency
        matrices of two graphs. ``bm.fill_missing`` fills in missing relations (nan).
    distortion
        "gw" (Gromov-Wasserstein), "gaussian", "cka", "mutual-knn", "kl", "inner-product", or a configured object. A
        name may have options: "gaussian:bandwidth=0.48".
    standardize
        Bring both kernels to a common scale first, so that the two sides may have different units. The columns of one
        side are not changed: see `scale`.
    scale
        How to scale the columns of each side, for tables whose columns have units: "none"; "columns", z-scores;
        "robust", by median and quartiles; "log", z-scores after the logarithm of wide positive columns; "auto", which
        decides (`docs/embeddings.md` has the rule). With "none" a warning says when one column outweighs the others.
    metric, neighbors
        How dissimilar two items of one set are: "euclidean", "cosine", "correlation" or any other metric of scipy's
        ``cdist``; "geodesic", the length of the shortest path in a graph that joins each item to its nearest
        `neighbors` (50, or a fifth of the items if that is fewer), or "hops", the number of its edges. In the graph,
        "geodesic:cosine" uses another metric than the Euclidean. If the graph is not connected, its parts are joined by
        the shortest links, and a note says so. A pair of names, or of numbers, is for the source and the target.
        With `kernels`, only paths are available: along the edges of a sparse graph, or along nearest neighbours.
    known_pairs
        Pairs (source index, target index) that are known and must be kept.
    forbidden_pairs
        Pairs that must not be used, or an (n, m) matrix of booleans that is True there.
    similarity, similarity_weight
        (n, m) numbers, larger for pairs that seem more alike: a preference, not a constraint. One unit of similarity
        lowers the cost by `similarity_weight`. The loss is a sum over n^2 ordered pairs, and each item is part of
        2n - 1 of them: with "gw" a weight of n makes a unit of similarity count as much as half a unit of mean loss
        over all relations of the item, where a random pairing has a mean loss of 2; a weight of 1 only breaks ties.
    unmatched_cost
        What each item without a partner adds to the cost, on either side, so that outliers can stay unmatched. Without
        it as many items as possible are matched. An unmatched source and an unmatched target save what their pair would
        have cost: with ``unmatched_cost=t * n``, pairs are not formed if their relations to the others differ by a mean
        loss of more than about t. With "gw" a random pair has a mean loss of 2 and a perfect one 0, but an outlier gets
        the least bad of many partners, so try t = 0.3 first. With 0, nothing needs a partner. "auto" lets ``bm.match``
        suggest a price, by how many pairs quick searches match at twelve prices (up to 400 items on both sides
        together); ``result.task.price`` has it.
    max_unmatched
        The largest number of items of the smaller set that may stay unmatched; in the larger set, the difference of the
        sizes is added. A small number makes a proof easier.
    source_names, target_names
        The names of the items.

    Attributes
    ----------
    sides
        The embeddings of sources (n, d) and targets (m, e), with scaled columns; their kernels if `precomputed`.
    distortion, hints, source_names, target_names
        What was given, checked. The hints are known pairs, forbidden pairs, similarities, and the price of unmatched
        items. The names are None if there are none.
    precomputed
        Whether `sides` holds kernels.
    scalings
        How the columns of each side were scaled; None if they were not.
    price
        The price that was suggested; None if it was given, or if there is none.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> task = bm.Task(X, X[[3, 1, 0, 2]], known_pairs=[(0, 2)])
    >>> result = bm.match(task, rng=0)
    >>> result.permutation.tolist(), bool(np.isclose(bm.verify(task.problem, result.certificate), result.lower_bound))
    ([2, 1, 3, 0], True)
    """

    def __init__(
        self,
        source: ArrayLike | None = None,
        target: ArrayLike | None = None,
        *,
        kernels: Kernels | None = None,
        distortion: str | Distortion = "gw",
        standardize: bool = True,
        scale: str = "none",
        metric: str | tuple[str, str] = "euclidean",
        neighbors: int | tuple[int, int] | None = None,
        known_pairs: Pairs = (),
        forbidden_pairs: Pairs | ArrayLike = (),
        similarity: ArrayLike | None = None,
        similarity_weight: float = 1.0,
        unmatched_cost: float | Literal["auto"] | None = None,
        max_unmatched: int | None = None,
        source_names: Sequence[str] | None = None,
        target_names: Sequence[str] | None = None,
    ) -> None:
        self.distortion = as_distortion(distortion, standardize, metric, neighbors)
        self.precomputed = kernels is not None
        self.given_sides = as_sides(source, target, kernels, self.distortion.metrics)
        self.scalings = _scalings(self.given_sides, scale, self.precomputed)
        self.sides = self.given_sides
        if self.scalings is not None:
            self.sides = self.scalings[0].transform(self.sides[0]), self.scalings[1].transform(self.sides[1])
        if isinstance(unmatched_cost, str) and unmatched_cost != "auto":
            raise ValueError(f"unmatched_cost={shown(unmatched_cost)}; expected a number of at least 0, or 'auto'")
        self.price_wanted = unmatched_cost == "auto"
        self.price: Price | None = None
        self.hints = Hints.of(
            (len(self.sides[0]), len(self.sides[1])),
            known_pairs=known_pairs,
            forbidden_pairs=forbidden_pairs,
            similarity=similarity,
            similarity_weight=similarity_weight,
            unmatched_cost=0.0 if isinstance(unmatched_cost, str) else unmatched_cost,
            max_unmatched=max_unmatched,
        )
        self.source_names = _names(source_names, self.hints.sizes[0], "source_names")
        self.target_names = _names(target_names, self.hints.sizes[1], "target_names")

    def changed(self, **attributes: Any) -> Task:
        """The same task with other attributes, which are not checked."""
        other = object.__new__(Task)
        vars(other).update({name: value for name, value in vars(self).items() if name not in _COMPUTED} | attributes)
        return other

    def priced(self, price: Price) -> Task:
        """The same task with a suggested price."""
        hints = replace(self.hints, unmatched_cost=price.price)
        return self.changed(hints=hints, price=price, price_wanted=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the data and of how they are compared: what an assessment is about."""
        hints = self.hints
        plain = (self.distortion, self.precomputed, hints.known, hints.unmatched_cost, hints.max_unmatched)
        found = hashlib.sha256(repr(plain).encode())
        for array in (*self.sides, hints.forbidden, hints.reward):
            if array is not None:
                found.update(repr((array.shape, array.dtype.str)).encode())
                found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    @property
    def too_large(self) -> bool:
        """Whether the assignment problem is too large to be built."""
        size = max(self.sizes) + self.hints.max_unmatched
        return size > (QUADRATIC if self.sizes[0] == self.sizes[1] == size else UNEQUAL)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many sources and targets there are."""
        return self.hints.sizes

    def warn_of_units(self, stacklevel: int = 2) -> None:
        """Warn if one column of a side outweighs the others, and no scale was chosen."""
        if not self.precomputed and self.scalings is None:
            warn_of_units(zip(("source", "target"), self.sides, strict=True), stacklevel + 1)

    @cached_property
    def relations(self) -> tuple[FloatArray, FloatArray]:
        """Both kernels as they are, each on its own scale. They are computed once."""
        return self.sides if self.precomputed else self.distortion.kernels_of(*self.sides)

    @cached_property
    def kernels(self) -> tuple[FloatArray, FloatArray]:
        """Both kernels on their common scale: what is compared. They are computed once."""
        return self.distortion.scaled(self.relations[0]), self.distortion.scaled(self.relations[1])

    @property
    def euclidean(self) -> bool:
        """Whether the relations are Euclidean distances or inner products of embeddings, and nothing else is known."""
        return not self.precomputed and self.distortion.metrics == (Metric(), Metric())

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes about the relations: that a graph of neighbours was not connected and had to be joined."""
        notes = []
        for name, side, metric in zip(("source", "target"), self.sides, self.distortion.metrics, strict=True):
            if metric.path and not self.precomputed:
                parts = metric.components(replace(metric, path="").of_points(self.distortion.prepared(side)))
                if parts > 1:
                    notes.append(f"{name}: the graph of nearest neighbours had {parts} parts, joined by shortest links")
        return tuple(notes)

    @cached_property
    def points(self) -> tuple[FloatArray, FloatArray]:
        """Points with these kernels: the embeddings, or points that multidimensional scaling finds for kernels."""
        source, target = self.sides
        if self.precomputed:
            similar = self.distortion.similarities
            return classical_scaling(source, similar)[0], classical_scaling(target, similar)[0]
        return self.distortion.prepared(source), self.distortion.prepared(target)

    @cached_property
    def has_points(self) -> bool:
        """Whether there are points with these kernels. Inner products given as distances, for example, have none."""
        if not self.precomputed:
            return True
        pairs = [(self.kernels[side], self.kernel_of(self.points[side], side)) for side in (0, 1)]
        alike = [agreement(pair, np.arange(len(pair[0]))) for pair in pairs]
        return all(value is not None and value > _SAME_KERNEL for value in alike)

    @cached_property
    def problem(self) -> QAP:
        """The assignment problem in which as many items as allowed can stay unmatched."""
        if self.price_wanted:
            raise ValueError("unmatched_cost='auto' has no problem yet: bm.match suggests the price")
        return self.problem_with()

    def problem_with(
        self, source: FloatArray | None = None, target: FloatArray | None = None, *, dummies: int | None = None
    ) -> QAP:
        """The assignment problem with other points on one side or both, or with fewer dummies."""
        K = self.kernels[0] if source is None else self.kernel_of(source, 0)
        G = self.kernels[1] if target is None else self.kernel_of(target, 1)
        return self.hints.problem(self.distortion, K, G, dummies)

    def kernel_of(self, points: FloatArray, side: int) -> FloatArray:
        """The kernel of points of the source (0) or the target (1), on the scale of `kernels`."""
        # The points of a precomputed kernel were made to have these relations: their own are Euclidean.
        own = replace(self.distortion, metric="euclidean", neighbors=None) if self.precomputed else self.distortion
        return self.distortion.scaled(own.kernel(self.distortion.prepared(points), side))

    def enough_dummies(self, cost: float = 0.0, scale: float = 0.0) -> int:
        """How many dummies are enough if a match of this cost is known; `scale` is ``QAP.scale``."""
        return self.hints.enough_dummies(self.distortion, cost, scale)

    def of_size(self, size: int) -> tuple[QAP, float]:
        """The problem of `size` items a side, and the least cost of any match that it leaves out."""
        dummies = min(max(size - max(self.sizes), 0), self.hints.max_unmatched)
        problem = self.problem_with(dummies=dummies)
        return problem, self.hints.cost_beyond(self.distortion, dummies, problem.scale)

    def reduced(self, permutation: IntArray) -> IntArray:
        """A permutation of items and dummies as the partner of each source, -1 if that is a dummy."""
        n, m = self.sizes
        partners = permutation[:n].copy()
        partners[partners >= m] = -1
        return partners

    def completed(self, partners: IntArray, name: str = "result") -> IntArray:
        """The partner of each source (-1 for none) as a permutation of the items and dummies of `problem`."""
        full = with_dummies(partners, self.sizes[1], self.problem.n)
        if full is None:
            alone, most = int((partners < 0).sum()), self.problem.n - self.sizes[1]
            raise ValueError(f"{name} leaves {alone} sources unmatched; with these arguments at most {most} can be")
        return full


def _scalings(
    sides: tuple[FloatArray, FloatArray], scale: str, precomputed: bool
) -> tuple[ColumnScaling, ColumnScaling] | None:
    found = ColumnScaling.pair(*sides, scale)
    if scale == "none":
        return None
    if precomputed:
        raise ValueError(f"scale={scale!r} is for the columns of embeddings; kernels have none")
    return found


def with_dummies(partners: Sequence[int] | IntArray, m: int, size: int) -> IntArray | None:
    """Partners among m targets (-1 for none) as a permutation of `size` items and dummies; None if there is none.

    >>> with_dummies([1, -1], 2, 3).tolist()
    [1, 2, 0]
    """
    full = np.full(size, -1, dtype=np.intp)
    full[: len(partners)] = partners
    alone, used = np.flatnonzero(full[: len(partners)] < 0), full[full >= 0]
    if len(alone) > size - m or len(np.unique(used)) < len(used):
        return None
    full[alone] = np.arange(m, m + len(alone))  # each dummy is as good as the others
    full[len(partners) :] = np.setdiff1d(np.arange(size), full)
    return full


def _names(names: Sequence[str] | None, count: int, which: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) != count:
        raise ValueError(f"{which} has {len(names)} items; expected {count}")
    return tuple(map(str, names))


_COMPUTED = {name for name, value in vars(Task).items() if isinstance(value, cached_property)}
