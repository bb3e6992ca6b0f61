"""What all distortions share: l(a, b) = f1(a) + f2(b) - h1(a) h2(b) between two kernels, as an assignment problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.geometry import kernels as kernel_functions
from blindmatch.geometry.metrics import Metric, as_metrics
from blindmatch.geometry.relations import as_relations
from blindmatch.problem.exact_sums import split_products, split_sum
from blindmatch.problem.qap import LARGEST_COST, QAP, FactorPair, cost_scale, rest_of
from blindmatch.validation import FloatArray, as_floats, as_permutation, boolean

Kernels = tuple[ArrayLike, ArrayLike]
Own = tuple[FloatArray, FloatArray]  # costs that one side has by itself: rounded down, and at least what that lacks


@dataclass(frozen=True)
class Distortion:
    """A loss between the kernel of one set and the kernel of the other, summed over all ordered pairs of items.

    Parameters
    ----------
    standardize
        Bring both kernels to a common scale first. Each distortion defines how.
    normalize
        Scale each embedding to unit length before computing the kernel (the paper does this with model outputs).
    metric, neighbors
        As in ``bm.match``: how dissimilar two embeddings of one set are. Distortions of similarities (``CKA``,
        ``MutualKNN``) use inner products if the metric is "euclidean", and -d^2 / 2 of any other dissimilarity d.
    """

    standardize: bool = True
    normalize: bool = False
    metric: str | tuple[str, str] = field(default="euclidean", kw_only=True)
    neighbors: int | tuple[int, int] | None = field(default=None, kw_only=True)

    # A lower bound on every loss; -inf if there is none that is independent of the data.
    least_loss: ClassVar[float] = -math.inf
    # Whether a kernel holds similarities (larger means nearer) rather than distances.
    similarities: ClassVar[bool] = False

    def __post_init__(self) -> None:
        as_metrics(self.metric, self.neighbors)
        boolean(self.standardize, "standardize")
        boolean(self.normalize, "normalize")

    @property
    def metrics(self) -> tuple[Metric, Metric]:
        """How dissimilar two items are, in the source and in the target."""
        return as_metrics(self.metric, self.neighbors)

    def prepared(self, embeddings: FloatArray) -> FloatArray:
        """The embeddings whose kernel is computed: of unit length, if `normalize` says so."""
        return kernel_functions.unit_rows(embeddings) if self.normalize else embeddings

    def kernel(self, embeddings: FloatArray, side: int = 0) -> FloatArray:
        """The kernel of one set of embeddings, the source (0) or the target (1): dissimilarities, or similarities."""
        metric = self.metrics[side]
        if self.similarities and metric == Metric():
            return kernel_functions.inner_products(embeddings)
        found = metric.of_points(embeddings)
        return -0.5 * found**2 if self.similarities else found

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """The kernel on the common scale on which the two sides are compared."""
        return kernel_functions.standardized(kernel) if self.standardize else kernel

    def spread(self, kernel: FloatArray) -> float:
        """What `scaled` divides a kernel by: several kernels can be averaged after that. 0 for a constant kernel."""
        if not self.standardize:
            return 1.0
        off = kernel[~np.eye(len(kernel), dtype=bool)]
        return float(off.std()) if kernel_functions.standardized(kernel).any() else 0.0

    def loss(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """The distortion l(a, b), elementwise: by default the negative inner product."""
        return -a * b

    def f1(self, a: FloatArray) -> FloatArray:
        """The part of the loss that depends on the source alone."""
        return np.zeros_like(a)

    def f2(self, b: FloatArray) -> FloatArray:
        """The part of the loss that depends on the target alone."""
        return np.zeros_like(b)

    def h1(self, a: FloatArray) -> FloatArray:
        """The source's factor of the product."""
        return a

    def h2(self, b: FloatArray) -> FloatArray:
        """The target's factor of the product."""
        return b

    def terms(self, K: FloatArray, G: FloatArray) -> tuple[FactorPair, Own, Own]:
        """The parts of the loss between two kernels: the product, what the source costs, and what the target costs.

        They hold for the numbers of the kernels, whatever is rounded here: a product of the factors and both own costs,
        rounded down, are never above the loss, and with what the own costs lack they are never below it. Here only
        the four functions are computed, without an allowance: a distortion that rounds in them defines its own terms.
        """
        source, target = self.f1(K), self.f2(G)
        return (-self.h1(K), self.h2(G)), (source, np.zeros_like(K)), (target, np.zeros_like(G))

    def kernels(
        self, source: ArrayLike | None = None, target: ArrayLike | None = None, *, kernels: Kernels | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return both kernels on the common scale, from embeddings or from precomputed `kernels`."""
        K, G = as_sides(source, target, kernels, self.metrics)
        if kernels is None:
            K, G = self.kernel_of(K, 0), self.kernel_of(G, 1)
        return self.scaled(K), self.scaled(G)

    def problem(
        self, source: ArrayLike | None = None, target: ArrayLike | None = None, *, kernels: Kernels | None = None
    ) -> QAP:
        """The quadratic assignment problem whose objective is this distortion under a pairing.

        If the sets differ in size, the smaller one is matched completely. The problem has the larger size n, and a
        partner among the dummies (indices beyond the smaller set) means "unmatched". The part of the loss that belongs
        to the larger set alone then depends on which items are matched, so the cost is a sum of two products.

        Examples
        --------
        >>> import numpy as np, blindmatch as bm
        >>> X = np.array([[0.0], [1.0], [3.0]])
        >>> problem = bm.GromovWasserstein().problem(X, X[[2, 0, 1]])
        >>> abs(problem.objective([1, 2, 0])) < 1e-12
        True
        """
        return self.problem_of(*self.kernels(source, target, kernels=kernels))

    def problem_of(self, K: FloatArray, G: FloatArray, dummies: int = 0) -> QAP:
        """The problem of two kernels that are already on the common scale, of size ``max(n, m) + dummies``.

        Each side is padded with dummies, whose relations cost nothing. With `dummies` more than the larger set needs,
        that many items of the smaller set may stay unmatched, and as many more of the larger set.
        """
        return layered_problem([Layer(self, K, G)], dummies)

    def evaluate(
        self,
        source: ArrayLike | None = None,
        target: ArrayLike | None = None,
        permutation: ArrayLike | None = None,
        *,
        kernels: Kernels | None = None,
    ) -> float:
        """The distortion of a given pairing (by default row i with row i), computed as the direct double sum."""
        K, G = self.kernels(source, target, kernels=kernels)
        if len(K) != len(G):
            raise ValueError(f"source has {len(K)} items and target has {len(G)}; expected equal numbers")
        p = np.arange(len(K)) if permutation is None else as_permutation(permutation, len(K))
        return float(self.loss(K, G[np.ix_(p, p)]).sum())

    def kernel_of(self, points: FloatArray, side: int) -> FloatArray:
        """The kernel of a set of embeddings, not yet on a common scale, or an error that says what is wrong with it."""
        name, metric = ("source", "target")[side], self.metrics[side].base
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                kernel = self.kernel(self.prepared(points), side)
            except (ValueError, np.linalg.LinAlgError) as error:  # mahalanobis: too few points, or flat ones
                raise ValueError(f"{name}: metric={metric!r} cannot be computed: {error}") from None
        if metric != "euclidean" and np.isnan(kernel).any():
            item = int(np.isnan(kernel).sum(axis=1).argmax())
            raise ValueError(f"{name}[{item}] has no {metric!r} to the others: is it constant, zero or negative?")
        if not np.isfinite(kernel).all():
            raise ValueError(f"{name} holds numbers so large that its kernel overflows")
        return kernel


@dataclass(frozen=True, eq=False)
class Layer:
    """One relation of both sides, on the common scale of the two, how it is compared, and how much it counts."""

    distortion: Distortion
    K: FloatArray
    G: FloatArray
    weight: float = 1.0

    def terms(self) -> tuple[FactorPair, Own, Own]:
        """The weighted parts of the loss, as ``Distortion.terms`` has them."""
        product, source, target = self.distortion.terms(self.K, self.G)
        if self.weight == 1.0:
            return product, source, target
        weight = np.array(self.weight)
        factor, lost = split_products(weight, product[0])
        # What rounding of the factor changes, either way, is taken from what the source costs.
        slack = np.nextafter(lost * np.abs(product[1]).max(), math.inf) if lost.any() else lost
        return (factor, product[1]), weighted(weight, source, slack), weighted(weight, target)


def weighted(weight: FloatArray, own: Own, slack: FloatArray | None = None) -> Own:
    """Own costs times a weight, rounded down, less `slack`; and at least what they lack then."""
    low, lost = split_products(weight, own[0])
    lacking, more = split_products(weight, own[1])
    if slack is not None and slack.any():
        low, before = np.nextafter(low - slack, -math.inf), low
        lost = np.nextafter(lost + slack + np.nextafter(before - low, math.inf), math.inf)
    parts = lost.any() or more.any()
    return low, np.nextafter(lacking + more + lost, math.inf) if parts else lacking


def layered_problem(layers: Sequence[Layer], dummies: int = 0) -> QAP:
    """The problem of the sum of the losses of several layers; ``Distortion.problem_of`` describes the dummies."""
    n, m = len(layers[0].K), len(layers[0].G)
    size = max(n, m) + dummies
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is refused
        terms = [layer.terms() for layer in layers]
        # The own cost of a side is a constant if all of it is matched; otherwise it is a product with ones.
        source, target = (_added([term[side] for term in terms]) for side in (1, 2))
        parts: list[list[FactorPair]] = [[product for product, _, _ in terms], []]  # rounded down, and what that lacks
        for factors, own, other in zip(parts, source, target, strict=True):
            factors += [(own, np.ones((m, m)))] if size != m and own.any() else []
            factors += [(np.ones((n, n)), other)] if size != n and other.any() else []
        total = cost_scale(parts[0], np.abs(source[0]), float(np.abs(target[0]).sum()))
        if not total <= LARGEST_COST:
            kernels = [(layer.K, layer.G) for layer in layers]
            largest = [max(float(np.abs(part).max()) for part in side) for side in zip(*kernels, strict=True)]
            raise ValueError(
                f"source and target have relations up to {largest[0]:.3g} and {largest[1]:.3g}, whose costs sum up "
                f"to {total:.3g}; expected up to {LARGEST_COST:g}"
            )
        fixed = [own for own, whole in ((source, size == m), (target, size == n)) if whole]
        constant, lost = split_sum(*(np.array([own[part] for own in fixed]) for part in (0, 1)))
    padded, lacking = ([(_padded(A, size), _padded(B, size)) for A, B in factors] for factors in parts)
    problem = QAP.from_factors(padded, constant=constant)
    return problem.changed(rest=rest_of(size, lacking, constant=lost))


def _added(owns: Sequence[Own]) -> Own:
    """The sum of own costs, rounded down, and at least what it lacks."""
    low, lacking = owns[0]
    for more, rest in owns[1:]:
        total = low + more
        apart = total - low
        error = (low - (total - apart)) + (more - apart)  # exact (Knuth's two-sum)
        low = np.where(error < 0, np.nextafter(total, -math.inf), total)
        lost = np.where(error != 0, np.nextafter(total - low + error, math.inf), 0.0)
        lacking = np.nextafter(lacking + rest + lost, math.inf) if (lost + rest).any() else lacking
    return low, lacking


def as_sides(
    source: ArrayLike | None,
    target: ArrayLike | None,
    kernels: Kernels | None,
    metrics: tuple[Metric, Metric] = (Metric(), Metric()),
    name: str = "kernels",
) -> tuple[FloatArray, FloatArray]:
    """Both sets of embeddings, or both kernels, checked; of kernels, shortest paths if the metric asks for them."""
    if kernels is not None:
        if source is not None or target is not None:
            raise ValueError("kernels is given together with embeddings; pass one or the other")
        if len(kernels) != 2:
            raise ValueError(f"{name} has {len(kernels)} items; expected a pair (source, target)")
        return as_relations(kernels[0], f"{name}[0]", metrics[0]), as_relations(kernels[1], f"{name}[1]", metrics[1])
    if source is None or target is None:
        raise ValueError("source and target are needed: two arrays of embeddings, or kernels=(K, G)")
    return as_floats(source, "source"), as_floats(target, "target")


def _padded(matrix: FloatArray, n: int) -> FloatArray:
    """Append zero rows and columns: relations of dummies cost nothing."""
    return np.pad(matrix, (0, n - len(matrix)))
