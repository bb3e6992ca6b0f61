"""Decomposable distortions l(a, b) = f1(a) + f2(b) - h1(a) h2(b) between two kernels, and their assignment problems."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown, unknown_name
from blindmatch.geometry import kernels as kernel_functions
from blindmatch.geometry.metrics import Metric, as_metrics
from blindmatch.geometry.relations import as_relations
from blindmatch.problem.qap import QAP
from blindmatch.validation import FloatArray, as_floats, as_permutation, at_least, positive

Kernels = tuple[ArrayLike, ArrayLike]


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

    @property
    def metrics(self) -> tuple[Metric, Metric]:
        """How dissimilar two items are, in the source and in the target."""
        return as_metrics(self.metric, self.neighbors)

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

    def kernels(
        self, source: ArrayLike | None = None, target: ArrayLike | None = None, *, kernels: Kernels | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return both kernels on the common scale, from embeddings or from precomputed `kernels`."""
        K, G = as_sides(source, target, kernels, self.metrics)
        if kernels is None:
            K, G = self.kernels_of(K, G)
        return self.scaled(K), self.scaled(G)

    def kernels_of(self, source: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The kernels of two sets of embeddings, not yet on a common scale."""
        return self._kernel_of(source, 0), self._kernel_of(target, 1)

    def problem(
        self, source: ArrayLike | None = None, target: ArrayLike | None = None, *, kernels: Kernels | None = None
    ) -> QAP:
        """The quadratic assignment problem whose objective is this distortion under a pairing.

        If the sets differ in size, the smaller one is matched completely. The problem has the larger size n, and a
        partner among the dummies (indices beyond the smaller set) means "unmatched". The part of the loss that belongs
        to the larger set alone then depends on which items are matched, so the cost is a sum of two products.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.array([[0.0], [1.0], [3.0]])
        >>> problem = GromovWasserstein().problem(X, X[[2, 0, 1]])
        >>> round(problem.objective([1, 2, 0]), 12)
        0.0
        """
        return self.problem_of(*self.kernels(source, target, kernels=kernels))

    def problem_of(self, K: FloatArray, G: FloatArray, dummies: int = 0) -> QAP:
        """The problem of two kernels that are already on the common scale, of size ``max(n, m) + dummies``.

        Each side is padded with dummies, whose relations cost nothing. With `dummies` more than the larger set needs,
        that many items of the smaller set may stay unmatched, and as many more of the larger set.
        """
        n, m = len(K), len(G)
        size = max(n, m) + dummies
        with np.errstate(over="ignore"):  # QAP refuses numbers that overflow
            factors = [(-self.h1(K), self.h2(G))]
            own_source, own_target = self.f1(K), self.f2(G)
        constant = 0.0
        # The own cost of a side is a constant if all of it is matched; otherwise it is a product with ones.
        if size == m:
            constant += float(own_source.sum())
        elif own_source.any():
            factors.append((own_source, np.ones_like(G)))
        if size == n:
            constant += float(own_target.sum())
        elif own_target.any():
            factors.append((np.ones_like(K), own_target))
        return QAP.from_factors([(_padded(A, size), _padded(B, size)) for A, B in factors], constant=constant)

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

    def _kernel_of(self, points: FloatArray, side: int) -> FloatArray:
        name, metric = ("source", "target")[side], self.metrics[side].base
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                kernel = self.kernel(kernel_functions.unit_rows(points) if self.normalize else points, side)
            except (ValueError, np.linalg.LinAlgError) as error:  # mahalanobis: too few points, or flat ones
                raise ValueError(f"{name}: metric={metric!r} cannot be computed: {error}") from None
        if metric != "euclidean" and np.isnan(kernel).any():
            item = int(np.isnan(kernel).sum(axis=1).argmax())
            raise ValueError(f"{name}[{item}] has no {metric!r} to the others: is it constant, zero or negative?")
        if not np.isfinite(kernel).all():
            raise ValueError(f"{name} holds numbers so large that its kernel overflows")
        return kernel


@dataclass(frozen=True)
class GromovWasserstein(Distortion):
    """Squared difference of Euclidean distances (the paper's choice for matching)."""

    least_loss: ClassVar[float] = 0.0

    def loss(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """The loss (a - b)^2."""
        return np.asarray((a - b) ** 2)

    def f1(self, a: FloatArray) -> FloatArray:
        """The term a^2."""
        return np.asarray(a**2)

    def f2(self, b: FloatArray) -> FloatArray:
        """The term b^2."""
        return np.asarray(b**2)

    def h2(self, b: FloatArray) -> FloatArray:
        """The factor 2 b."""
        return 2.0 * b


@dataclass(frozen=True)
class Gaussian(GromovWasserstein):
    """Squared difference of saturated distances 1 - exp(-(d / w)^2), where w is `bandwidth` times the mean distance.

    Only neighbourhoods count; how far apart distant items are does not. If two models agree on neighbourhoods, such a
    match can be proved optimal even if a match by plain distances cannot. The smaller the bandwidth, the fewer
    relations count: below about 0.4, too few are left. A precomputed kernel must hold distances.
    """

    bandwidth: float = 0.6

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.isinf(positive(self.bandwidth, "bandwidth")):
            raise ValueError(f"bandwidth={self.bandwidth!r}; expected a finite number: inf would count no relation")

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """Saturate the distances, then bring them to the common scale."""
        return super().scaled(kernel_functions.saturated(kernel, self.bandwidth))


@dataclass(frozen=True)
class InnerProduct(Distortion):
    """Negative inner product of Euclidean distances (the loss in the paper's ablation)."""


@dataclass(frozen=True)
class CKA(Distortion):
    """Negative centred kernel alignment of linear kernels; `standardize` applies CKA's centring and scaling."""

    similarities: ClassVar[bool] = True

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """Centre both sides and scale to unit Frobenius norm."""
        return kernel_functions.cka_kernel(kernel) if self.standardize else kernel


@dataclass(frozen=True)
class MutualKNN(Distortion):
    """Negative share of common neighbours among the k nearest (by inner product, excluding the point itself).

    A precomputed kernel must hold similarities (larger means nearer). Neighbour lists have no scale, so `standardize`
    changes nothing.
    """

    k: int = 5

    similarities: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self.k, 1, "k")

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """Indicators of the k nearest neighbours."""
        return kernel_functions.knn_kernel(kernel, self.k)


@dataclass(frozen=True)
class KL(Distortion):
    """Generalised Kullback-Leibler divergence a log(a/b) - a + b of Euclidean distances.

    `standardize` divides each kernel by its off-diagonal mean. Relations below `floor` (the diagonal, duplicates) are
    set to `floor`, because log 0 is undefined.
    """

    floor: float = 1e-6

    least_loss: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.floor < 1:
            raise ValueError(f"floor={self.floor!r}; expected 0 < floor < 1")

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """Make the kernel positive, with off-diagonal mean 1 if standardised."""
        if kernel.min() < 0:
            raise ValueError(f"kernels holds {kernel.min()}; KL needs non-negative values")
        n = len(kernel)
        mean = kernel[~np.eye(n, dtype=bool)].mean() if n > 1 else 0.0
        scale = mean if self.standardize and mean > 0 else 1.0
        return np.maximum(kernel / scale, self.floor)

    def loss(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """The loss a log(a/b) - a + b."""
        return np.asarray(a * np.log(a / b) - a + b)

    def f1(self, a: FloatArray) -> FloatArray:
        """The term a log a - a."""
        return np.asarray(a * np.log(a) - a)

    def f2(self, b: FloatArray) -> FloatArray:
        """The term b."""
        return b

    def h2(self, b: FloatArray) -> FloatArray:
        """The factor log b."""
        return np.asarray(np.log(b))


def as_sides(
    source: ArrayLike | None,
    target: ArrayLike | None,
    kernels: Kernels | None,
    metrics: tuple[Metric, Metric] = (Metric(), Metric()),
) -> tuple[FloatArray, FloatArray]:
    """Both sets of embeddings, or both kernels, checked; of kernels, shortest paths if the metric asks for them."""
    if kernels is not None:
        if source is not None or target is not None:
            raise ValueError("kernels is given together with embeddings; pass one or the other")
        if len(kernels) != 2:
            raise ValueError(f"kernels has {len(kernels)} items; expected a pair (source, target)")
        return as_relations(kernels[0], "kernels[0]", metrics[0]), as_relations(kernels[1], "kernels[1]", metrics[1])
    if source is None or target is None:
        raise ValueError("source and target are needed: two arrays of embeddings, or kernels=(K, G)")
    return as_floats(source, "source"), as_floats(target, "target")


def _padded(matrix: FloatArray, n: int) -> FloatArray:
    """Append zero rows and columns: relations of dummies cost nothing."""
    return np.pad(matrix, (0, n - len(matrix)))


DISTORTIONS: dict[str, type[Distortion]] = {
    "gw": GromovWasserstein,
    "gaussian": Gaussian,
    "cka": CKA,
    "mutual-knn": MutualKNN,
    "kl": KL,
    "inner-product": InnerProduct,
}


def as_distortion(
    distortion: str | Distortion,
    standardize: bool = True,
    metric: str | tuple[str, str] = "euclidean",
    neighbors: int | tuple[int, int] | None = None,
) -> Distortion:
    """Return a distortion from its name or object.

    A name may have options: "gaussian:bandwidth=0.48", "mutual-knn:k=8,normalize=true". In either case
    `standardize=False` turns standardisation off, and a metric that is not the default takes the place of its own.
    """
    if isinstance(distortion, str):
        name, _, options = distortion.partition(":")
        if name not in DISTORTIONS:
            raise unknown_name("distortion", name, DISTORTIONS)
        distortion = _configured(name, options)
    if not isinstance(distortion, Distortion):
        raise ValueError(f"distortion={shown(distortion)} is neither a name nor a distortion object")
    if metric != "euclidean" or neighbors is not None:
        own = distortion.metric if metric == "euclidean" else metric
        distortion = replace(distortion, metric=own, neighbors=neighbors)
    return distortion if standardize else replace(distortion, standardize=False)


def _configured(name: str, options: str) -> Distortion:
    """A distortion with options as text: "bandwidth=0.48,normalize=true"."""
    kinds = {one.name: str(one.type) for one in fields(DISTORTIONS[name]) if one.type in _PARSERS}
    given: dict[str, Any] = {}
    for option in filter(None, options.split(",")):
        key, _, text = (part.strip() for part in option.partition("="))
        if key not in kinds:
            raise ValueError(f"distortion={f'{name}:{options}'!r}: {unknown_name('option', key, kinds)}")
        try:
            given[key] = _PARSERS[kinds[key]](text)
        except (ValueError, KeyError):
            kind = _WORDS[kinds[key]]
            raise ValueError(f"distortion={f'{name}:{options}'!r}: {key}={text!r}; expected {kind}") from None
    try:
        return DISTORTIONS[name](**given)
    except ValueError as error:
        raise ValueError(f"distortion={f'{name}:{options}'!r}: {error}") from None


_WORDS = {"bool": "true or false", "int": "an integer", "float": "a number"}
_PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "int": int,
    "float": float,
}
