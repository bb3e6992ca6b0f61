"""What is matched: two sets, how they are compared, and what is known about the pairs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown
from blindmatch.geometry.column_scaling import ColumnScaling, warn_of_units
from blindmatch.geometry.correlation import agreement
from blindmatch.geometry.kernels import classical_scaling
from blindmatch.geometry.metrics import Metric
from blindmatch.geometry.views import Views, as_weights
from blindmatch.problem.distortion import Distortion, Kernels, Layer, as_sides
from blindmatch.problem.distortions import as_distortion
from blindmatch.problem.exact_sums import sum_of_products
from blindmatch.problem.hints import Hints
from blindmatch.problem.known import Known
from blindmatch.problem.layers import LARGEST as MOST_CROSSED
from blindmatch.problem.layers import as_crossed, as_edge_weights, as_layers, layer_pairs, one_each, with_nodes
from blindmatch.problem.qap import QAP
from blindmatch.problem.sides import GivenSides
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

    The cost of a match is the distortion's loss, summed over all ordered pairs of matched items, plus optional
    terms::

        sum over matched i, k of loss(K[i, k], G[p[i], p[k]])
        + 2 * sum over matched i and known pairs k of loss(K[i, k], G[p[i], k]), less a similarity learned from them
        - similarity_weight * sum over matched i of similarity[i, p[i]]
        + unmatched_cost * (number of unmatched sources + number of unmatched targets)

    Parameters
    ----------
    source, target
        (n, d) and (m, e) arrays (numpy, torch, JAX, lists), ``bm.Views`` of several models, or tables: paths, data
        frames of pandas, polars or pyarrow, lists of dictionaries. Of a table, the numeric columns are used, and the
        index or a column of text names the items (`docs/tables.md` has the rules). If n < m every source gets a target
        of its own; if n > m every target is used, and ``permutation[i] == -1`` marks a source without a partner.
    kernels
        Instead of embeddings: (n, n) and (m, m) matrices of relations, for example distances, or the sparse adjacency
        matrices of two graphs, networkx graphs, or paths of lists of edges. ``bm.fill_missing`` fills in missing
        relations (nan). Several relations that correspond are layers, a list of such pairs: the cost is the weighted
        sum of their losses.
    weights
        How much each layer counts; by default 1.
    crossed
        Relations between the sides, for two halves of one graph: (n, n) from source i to target j, and (n, n) from
        target j to source i; of layers, a list of such pairs. The squared differences of ``there[i, p[k]]`` and
        ``back[p[i], k]`` are added to the cost. Up to 24 items the match is proved; more are searched.
    edge_weights
        What is done to the weights of graphs first, those of `kernels` and of `crossed`: "none"; "log", of one plus the
        weight; "binary", whether there is an edge; "ranks", the rank among the edges. Of several, such as
        ("none", "log", "binary"), there is a layer for each.
    distortion
        "gw" (Gromov-Wasserstein), "gaussian", "cka", "mutual-knn", "kl", "inner-product", or a configured object. A
        name may have options: "gaussian:bandwidth=0.48". For layers also a list, with one for each.
    standardize
        Bring both kernels to a common scale first, so that the two sides may have different units. The columns of one
        side are not changed: see `scale`.
    scale
        How to scale the columns of each side, for tables whose columns have units: "none"; "columns", z-scores;
        "robust", by median and quartiles; "log", z-scores after the logarithm of wide positive columns; "auto", which
        decides (`docs/tables.md` has the rule). With "none" a warning says when one column outweighs the others.
    missing
        What to do about missing cells (nan): None refuses them; "drop" leaves their rows out; "median" fills in the
        median of the column; "distance" measures distances over the cells that both rows have.
    metric, neighbors
        How dissimilar two items of one set are: "euclidean", "cosine", "correlation" or any other metric of scipy's
        ``cdist``; "geodesic", the length of the shortest path in a graph that joins each item to its nearest
        `neighbors` (50, or a fifth of the items if that is fewer), or "hops", the number of its edges. In the graph,
        "geodesic:cosine" uses another metric than the Euclidean. If the graph is not connected, its parts are joined by
        the shortest links, and a note says so. "gower" is for tables with columns of text: the mean over all columns of
        differences of numbers, as a share of their range, and of whether texts differ; missing cells do not count.
        A pair of names, or of numbers, is for the source and the target.
        With `kernels`, only paths are available: along the edges of a sparse graph, or along nearest neighbours.
    known_pairs
        Pairs (source index, target index) that are known and must be kept.
    known
        Known pairs of *other* items: an array of other sources and an array of their partners, row i with row i. The
        relations of the items to them count as relations inside the sets do. From four pairs on, a similarity is
        learned from them too (by ridge regression in both directions, or by relative representations), with a weight;
        both are chosen by cross-validation on the known pairs alone, and ``result.notes`` says what was chosen.
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
        The names of the items; by default those of the given.

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
    columns
        The titles of the columns of each side, if it was a table.
    known
        The known pairs of other items, and what is learned from them; None if there are none.
    price
        The price that was suggested; None if it was given, or if there is none.
    views
        The ``bm.Views`` of each side, or None. `sides` then holds the mean relation of each side, and so it does for
        layers.

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
        source: Any = None,
        target: Any = None,
        *,
        kernels: Kernels | Sequence[Kernels] | None = None,
        weights: ArrayLike | None = None,
        crossed: Sequence[Any] | None = None,
        edge_weights: str | Sequence[str] = "none",
        distortion: str | Distortion | Sequence[str | Distortion] = "gw",
        standardize: bool = True,
        scale: str = "none",
        missing: str | None = None,
        metric: str | tuple[str, str] = "euclidean",
        neighbors: int | tuple[int, int] | None = None,
        known_pairs: Pairs = (),
        known: tuple[ArrayLike, ArrayLike] | Known | None = None,
        forbidden_pairs: Pairs | ArrayLike = (),
        similarity: ArrayLike | None = None,
        similarity_weight: float = 1.0,
        unmatched_cost: float | Literal["auto"] | None = None,
        max_unmatched: int | None = None,
        source_names: Sequence[str] | None = None,
        target_names: Sequence[str] | None = None,
    ) -> None:
        self.views = Views.of(source), Views.of(target)
        source, target = (one.columns if one else side for one, side in zip(self.views, (source, target), strict=True))
        ways = as_edge_weights(edge_weights, kernels)
        kernels, nodes = with_nodes(kernels, ways)
        given = GivenSides.read(source, target, kernels, scale, metric, missing)
        self.columns, self.table_notes = given.both("columns"), given.notes
        pairs = layer_pairs(kernels)
        count = max(1, len(pairs or ()) // len(ways))
        distortions = one_each(distortion, count) * len(ways)
        self.distortions = tuple(as_distortion(one, standardize, given.metric, neighbors) for one in distortions)
        if weights is not None and pairs is None:
            raise ValueError(
                f"weights={shown(weights)} is for layers, kernels=[(K1, G1), (K2, G2)]; there are none "
                "(those of views belong into bm.Views)"
            )
        self.weights = tuple(as_weights(weights, count, "layers").tolist() * len(ways))
        if given.incomplete:  # relations of what is not a point
            if self.views != (None, None):
                raise ValueError("metric='gower' and missing cells do not go with bm.Views; expected complete arrays")
            kernels, scale = given.relations(self.distortions[0]), "none"
            self.table_notes += given.scale_notes
            self.distortions = (replace(self.distortions[0], metric="euclidean", neighbors=None),)
        self.distortion = self.distortions[0]
        self.precomputed = kernels is not None
        self.given_layers = as_layers(pairs, self.distortions, given.both("values"))
        if pairs is None:
            one, other = (None, None) if self.precomputed and given.incomplete else given.both("values")
            self.given_sides = as_sides(one, other, kernels, self.distortion.metrics)  # type: ignore[arg-type]
        else:
            self.given_sides = self._mean_layers()
        self.scalings = _scalings(self.given_sides, scale, self.precomputed)
        self.sides = self.given_sides
        if self.scalings is not None:
            self.sides = self.scalings[0].transform(self.sides[0]), self.scalings[1].transform(self.sides[1])
        if known is not None and (self.precomputed or self.views != (None, None)):
            raise ValueError(
                "known is for two arrays of embeddings; kernels and Views have no relations to other items"
            )
        if self.views != (None, None):
            self._join_views()
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
        layers = list(zip(self.distortions, self.weights, strict=True))
        self.crossed = as_crossed(crossed, self.sizes, layers, ways)
        if crossed is not None and not (unmatched_cost is None and known is None):
            which = "known" if unmatched_cost is None else "unmatched_cost"
            raise ValueError(f"{which} does not go with crossed: expected relations alone, and all items matched")
        own = [views.names if views else names for views, names in zip(self.views, given.both("names"), strict=True)]
        own = [names if theirs is None else theirs for names, theirs in zip(own, nodes, strict=True)]
        self.source_names = _names(own[0] if source_names is None else source_names, self.sizes[0], "source_names")
        self.target_names = _names(own[1] if target_names is None else target_names, self.sizes[1], "target_names")
        widths = self.given_sides[0].shape[1], self.given_sides[1].shape[1]
        self.known = None if known is None else Known.of(known, widths)
        if self.known is not None and not isinstance(known, Known):
            if self.too_large:
                most = f"{UNEQUAL}, or {QUADRATIC} on both sides"
                raise ValueError(f"known is given for {max(self.sizes)} items; it is used for up to {most}")
            (n, m), (K, G), (X, Y) = self.sizes, self._joint, self.all_points
            self.known = self.known.learned(self.distortion, (K[n:, n:], G[m:, m:]), (X[n:], Y[m:]))

    def _mean_layers(self) -> tuple[FloatArray, FloatArray]:
        """The mean relation of each side over all layers, for what looks at one relation: starts, points, figures."""
        means = []
        for side in (0, 1):
            total = np.zeros_like(self.given_layers[0][side])
            for pair, weight, distortion in zip(self.given_layers, self.weights, self.distortions, strict=True):
                kernel = pair[side]
                sign = 1 if distortion.similarities == self.distortion.similarities else -1
                total += sign * weight / sum(self.weights) * kernel / (distortion.spread(kernel) or 1.0)
            means.append(total)
        return means[0], means[1]

    def _join_views(self) -> None:
        """One relation for all views of a side; of too many items, their columns side by side."""
        joined, large = [], max(map(len, self.sides)) > QUADRATIC
        for at, (views, side) in enumerate(zip(self.views, self.sides, strict=True)):
            if large:
                joined.append(side if views is None else views.like(side).concatenated())
            elif views is None:
                joined.append(self.distortion.kernel_of(side, at))
            else:
                name = ("source", "target")[at]
                kernel = partial(self.distortion.kernel_of, side=at)
                joined.append(views.like(side).relation(kernel, self.distortion.spread, name))
        self.sides, self.precomputed = (joined[0], joined[1]), not large

    def view_distances(self, points: FloatArray) -> FloatArray:
        """(q, n) distances of new sources to the sources: of several views, the weighted mean."""
        own = self.given_sides[0] if self.scalings is None else self.scalings[0].transform(self.given_sides[0])
        views, metric, prepared = self.views[0], self.distortion.metrics[0], self.distortion.prepared
        parts = [(points, own, 1.0)]
        if views is not None:
            parts = list(zip(views.split(points), views.split(own), views.weights.tolist(), strict=True))
        total = np.zeros((len(points), len(own)))
        for new, old, weight in parts:
            spread = self.distortion.spread(self.distortion.kernel_of(old, 0)) or 1.0
            total += weight / spread * metric.between(prepared(new), prepared(old))
        return total

    def view_agreement(self, side: int) -> FloatArray:
        """(v, v) how far the views of a side agree: the correlations of their relations."""
        views, columns = self.views[side], self.given_sides[side]
        assert views is not None
        columns = columns if self.scalings is None else self.scalings[side].transform(columns)
        return views.like(columns).agreement(partial(self.distortion.kernel_of, side=side))

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """What is compared: one relation of both sides, or several that correspond."""
        if not self.given_layers:
            return (Layer(self.distortion, *self.kernels),)
        return tuple(
            Layer(distortion, distortion.scaled(K), distortion.scaled(G), weight)
            for (K, G), distortion, weight in zip(self.given_layers, self.distortions, self.weights, strict=True)
            if weight
        )

    @property
    def least_loss(self) -> float:
        """A lower bound on the loss of each two pairs."""
        return sum(layer.weight * layer.distortion.least_loss for layer in self.layers)

    @cached_property
    def folded(self) -> Task:
        """The task with the mean relation of its layers, without relations between the sides."""
        return self.changed(given_layers=(), crossed=()) if self.given_layers or self.crossed else self

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
        further: tuple[Any, ...] = (self.distortions, self.weights) if self.given_layers else ()
        further += ("crossed",) if self.crossed else ()
        further += () if self.known is None else (self.known.weight,)
        found = hashlib.sha256(repr(plain + further).encode())
        more = [K for pair in self.given_layers for K in pair] + [M for one in self.crossed for M in one.given]
        more += [] if self.known is None else list(self.known.given)
        for array in (*self.sides, hints.forbidden, hints.reward, *more):
            if array is not None:
                found.update(repr((array.shape, array.dtype.str)).encode())
                found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    @property
    def too_large(self) -> bool:
        """Whether the assignment problem is too large to be built."""
        if self.crossed and self.sizes[0] > MOST_CROSSED:
            return True
        size = max(self.sizes) + self.hints.max_unmatched
        one_factor = self.sizes[0] == self.sizes[1] == size and not self.given_layers
        return size > (QUADRATIC if one_factor else UNEQUAL)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many sources and targets there are."""
        return self.hints.sizes

    def warn_of_units(self, stacklevel: int = 2) -> None:
        """Warn if one column of a side outweighs the others, and no scale was chosen."""
        if not self.precomputed and self.scalings is None:
            warn_of_units(zip(("source", "target"), self.sides, self.columns, strict=True), stacklevel + 1)

    @cached_property
    def relations(self) -> tuple[FloatArray, FloatArray]:
        """Both kernels as they are, each on its own scale. They are computed once."""
        if self.precomputed:
            return self.sides
        return self.distortion.kernel_of(self.sides[0], 0), self.distortion.kernel_of(self.sides[1], 1)

    @cached_property
    def kernels(self) -> tuple[FloatArray, FloatArray]:
        """Both kernels on their common scale: what is compared. They are computed once."""
        if self.known is not None:
            return self._own(self._joint)
        return self.distortion.scaled(self.relations[0]), self.distortion.scaled(self.relations[1])

    @cached_property
    def _joint(self) -> tuple[FloatArray, FloatArray]:
        """Both kernels of the items and, after them, the known items, on their common scale."""
        first, second = (self.distortion.kernel_of(side, at) for at, side in enumerate(self.all_points))
        return self.distortion.scaled(first), self.distortion.scaled(second)

    def _own(self, kernels: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Kernels without the known items."""
        (n, m), (K, G) = self.sizes, kernels
        return K[:n, :n].copy(), G[:m, :m].copy()

    @cached_property
    def all_points(self) -> tuple[FloatArray, FloatArray]:
        """The points and, after them, those of the known items: what an assessment resamples."""
        if self.known is None:
            return self.points
        both = []
        for at, (own, known) in enumerate(zip(self.points, self.known.given, strict=True)):
            scaled = known if self.scalings is None else self.scalings[at].transform(known)
            both.append(np.concatenate([own, self.distortion.prepared(scaled)]))
        return both[0], both[1]

    @property
    def euclidean(self) -> bool:
        """Whether the relations are Euclidean distances or inner products of embeddings, and nothing else is known."""
        return not self.precomputed and self.distortion.metrics == (Metric(), Metric())

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What was left out of tables or joined: views of many items, graphs of neighbours that are not connected."""
        notes = list(self.table_notes)
        notes += [] if self.known is None else [self.known.text]
        if self.views != (None, None) and not self.precomputed:
            notes.append(f"more than {QUADRATIC} items: the views are concatenated, each scaled by its spread")
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
        """The assignment problem with other points on one side or both, or with fewer dummies.

        With other points, layers are replaced by their mean.
        """
        if source is None and target is None:
            inner = self._informed_hints.problem(self.layers, dummies)
            for term in self.crossed:
                inner = term.added_to(inner)
            return inner
        if self.known is None:
            K = self.kernels[0] if source is None else self.kernel_of(source, 0)
            G = self.kernels[1] if target is None else self.kernel_of(target, 1)
            return self.hints.problem([Layer(self.distortion, K, G)], dummies)
        given = list(self.all_points)
        for at, points in enumerate((source, target)):
            if points is not None:
                whole = len(points) == len(given[at])
                given[at] = points if whole else np.concatenate([points, given[at][self.sizes[at] :]])
        first, second = (self.distortion.scaled(self.distortion.kernel(side, at)) for at, side in enumerate(given))
        hints = self._hints_from((first, second), (given[0], given[1]))
        return hints.problem([Layer(self.distortion, *self._own((first, second)))], dummies)

    def kernel_of(self, points: FloatArray, side: int) -> FloatArray:
        """The kernel of points of the source (0) or the target (1), on the scale of `kernels`."""
        # The points of a precomputed kernel were made to have these relations: their own are Euclidean.
        own = replace(self.distortion, metric="euclidean", neighbors=None) if self.precomputed else self.distortion
        kernel = self.distortion.scaled(own.kernel(self.distortion.prepared(points), side))
        n = self.sizes[side]
        return kernel if len(kernel) <= n else kernel[:n, :n].copy()

    @cached_property
    def _informed_hints(self) -> Hints:
        """The hints, with what known pairs of other items say about each pair."""
        return self.hints if self.known is None else self._hints_from(self._joint, self.all_points)

    def _hints_from(self, kernels: tuple[FloatArray, FloatArray], points: tuple[FloatArray, FloatArray]) -> Hints:
        assert self.known is not None
        n, m = self.sizes
        items, known = (points[0][:n], points[1][:m]), (points[0][n:], points[1][m:])
        reward = -self.known.cost(self.distortion, kernels, items, known)
        return replace(self.hints, reward=reward if self.hints.reward is None else reward + self.hints.reward)

    def enough_dummies(self, cost: float = 0.0, scale: float = 0.0) -> int:
        """How many dummies are enough if a match of this cost is known; `scale` is ``QAP.scale``."""
        return self._informed_hints.enough_dummies(self.least_loss, cost, scale)

    @cached_property
    def halves(self) -> Task:
        """The task without relations between the sides."""
        return self.changed(crossed=())

    @cached_property
    def bounding(self) -> QAP:
        """A problem with no cost above that of the task, for relations between too many items for products.

        Each pair has the least cost that its relations between the sides can have.
        """
        inner = self.halves.problem
        total = inner.linear
        for term in self.crossed:
            total = np.nextafter(total + term.shares(), -np.inf)
        return inner.changed(linear=total)

    def cost(self, permutation: IntArray) -> float:
        """The cost of a match of items and dummies, rounded up; also where there are too many for `problem`."""
        if not (self.crossed and self.too_large):
            return self.problem.objective(permutation)
        costs = [self.halves.problem.objective(permutation), *(term.cost(permutation) for term in self.crossed)]
        return sum_of_products([], np.array(costs))

    def of_size(self, size: int) -> tuple[QAP, float]:
        """The problem of `size` items a side, and the least cost of any match that it leaves out."""
        if self.crossed and self.too_large:
            return self.bounding, math.inf
        dummies = min(max(size - max(self.sizes), 0), self.hints.max_unmatched)
        problem = self.problem_with(dummies=dummies)
        return problem, self._informed_hints.cost_beyond(self.least_loss, dummies, problem.scale)

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
