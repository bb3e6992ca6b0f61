"""Decomposable distortions l(a, b) = f1(a) + f2(b) - h1(a) h2(b) between two kernels, and their assignment problems."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown, unknown_name
from blindmatch.geometry import kernels as kernel_functions
from blindmatch.problem.qap import QAP
from blindmatch.validation import FloatArray, as_floats, as_permutation, as_square, at_least, positive

Kernels = tuple[ArrayLike, ArrayLike]


@dataclass(frozen=True)
class Distortion:
    """A loss between relations of one set and relations of the other, summed over all ordered pairs.

    Parameters
    ----------
    standardize
        Bring both kernels to a common scale first. What that means is up to the distortion.
    normalize
        Scale each embedding to unit length before its kernel is taken (the paper does so with model outputs).
    """

    standardize: bool = True
    normalize: bool = False

    # No loss is below this; -inf where that depends on the data.
    least_loss: ClassVar[float] = -math.inf
    # Whether a kernel holds similarities (larger means nearer) rather than distances.
    similarities: ClassVar[bool] = False

    def kernel(self, embeddings: FloatArray) -> FloatArray:
        """Relations inside one set of embeddings."""
        raise NotImplementedError

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """A kernel on the scale at which the two sides are compared."""
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
        """Both kernel matrices on the common scale, from embeddings or from precomputed `kernels`."""
        if kernels is not None:
            if source is not None or target is not None:
                raise ValueError("kernels is given together with embeddings; pass one or the other")
            if len(kernels) != 2:
                raise ValueError(f"kernels has {len(kernels)} items; expected a pair (source, target)")
            K, G = as_square(kernels[0], "kernels[0]"), as_square(kernels[1], "kernels[1]")
        else:
            if source is None or target is None:
                raise ValueError("source and target are needed: two arrays of embeddings, or kernels=(K, G)")
            K, G = (self._kernel_of(side, name) for side, name in ((source, "source"), (target, "target")))
        return self.scaled(K), self.scaled(G)

    def problem(
        self, source: ArrayLike | None = None, target: ArrayLike | None = None, *, kernels: Kernels | None = None
    ) -> QAP:
        """The quadratic assignment problem whose objective is this distortion under a pairing.

        Of unequal sets, the smaller one is matched completely: the problem has the larger size n, and partners from
        the dummies (indices beyond the smaller set) mean "left over". Then the part of the loss that belongs to the
        larger set alone depends on the choice, so the cost is a sum of two products.

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
        """The problem of two kernels that are on their common scale already, of size ``max(n, m) + dummies``.

        Each side is filled up with dummies, whose relations cost nothing: so many of the smaller set may stay without
        a partner, and as many more of the larger one.
        """
        n, m = len(K), len(G)
        size = max(n, m) + dummies
        with np.errstate(over="ignore"):  # QAP refuses numbers that overflow
            factors = [(-self.h1(K), self.h2(G))]
            own_source, own_target = self.f1(K), self.f2(G)
        constant = 0.0
        # What a side costs by itself is a constant where all of it is matched, or else a product with ones.
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
        """The distortion of a given pairing (by default: row i with row i), by the direct double sum."""
        K, G = self.kernels(source, target, kernels=kernels)
        if len(K) != len(G):
            raise ValueError(f"source has {len(K)} items and target has {len(G)}; expected equal numbers")
        p = np.arange(len(K)) if permutation is None else as_permutation(permutation, len(K))
        return float(self.loss(K, G[np.ix_(p, p)]).sum())

    def _kernel_of(self, values: ArrayLike, name: str) -> FloatArray:
        points = as_floats(values, name)
        with np.errstate(over="ignore", invalid="ignore"):
            kernel = self.kernel(kernel_functions.unit_rows(points) if self.normalize else points)
        if not np.isfinite(kernel).all():
            raise ValueError(f"{name} holds numbers so large that its kernel overflows")
        return kernel


@dataclass(frozen=True)
class GromovWasserstein(Distortion):
    """Squared difference of Euclidean distances (the paper's choice for matching)."""

    least_loss: ClassVar[float] = 0.0

    def kernel(self, embeddings: FloatArray) -> FloatArray:
        """Euclidean distances."""
        return kernel_functions.distances(embeddings)

    def loss(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """(a - b)^2."""
        return np.asarray((a - b) ** 2)

    def f1(self, a: FloatArray) -> FloatArray:
        """a^2."""
        return np.asarray(a**2)

    def f2(self, b: FloatArray) -> FloatArray:
        """b^2."""
        return np.asarray(b**2)

    def h2(self, b: FloatArray) -> FloatArray:
        """2 b."""
        return 2.0 * b


@dataclass(frozen=True)
class Gaussian(GromovWasserstein):
    """Squared difference of distances that saturate: 1 - exp(-(d / w)^2), w being `bandwidth` times the mean distance.

    Who is near whom counts, and how far the far ones are does not. Where two models agree on neighbourhoods, such a
    match can be proved where one by plain distances cannot. The smaller the bandwidth, the fewer relations count: below
    0.4 or so, too few are left. A precomputed kernel holds distances.
    """

    bandwidth: float = 0.6

    def __post_init__(self) -> None:
        if math.isinf(positive(self.bandwidth, "bandwidth")):
            raise ValueError(f"bandwidth={self.bandwidth!r}; expected a finite number: no relation would count")

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """Saturated, then on the common scale."""
        return super().scaled(kernel_functions.saturated(kernel, self.bandwidth))


@dataclass(frozen=True)
class InnerProduct(Distortion):
    """Negative inner product of Euclidean distances (the loss of the paper's ablation)."""

    def kernel(self, embeddings: FloatArray) -> FloatArray:
        """Euclidean distances."""
        return kernel_functions.distances(embeddings)


@dataclass(frozen=True)
class CKA(Distortion):
    """Negative centred kernel alignment of linear kernels; `standardize` is the CKA's own centring and scaling."""

    similarities: ClassVar[bool] = True

    def kernel(self, embeddings: FloatArray) -> FloatArray:
        """Inner products."""
        return kernel_functions.inner_products(embeddings)

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """Centre both sides, unit Frobenius norm."""
        return kernel_functions.cka_kernel(kernel) if self.standardize else kernel


@dataclass(frozen=True)
class MutualKNN(Distortion):
    """Negative share of common neighbours among the k nearest (by inner product, without the point itself).

    A precomputed kernel holds similarities: larger means nearer. Neighbour lists have no scale, so `standardize`
    changes nothing.
    """

    k: int = 5

    similarities: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(self.k, 1, "k")

    def kernel(self, embeddings: FloatArray) -> FloatArray:
        """Inner products."""
        return kernel_functions.inner_products(embeddings)

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """Indicators of the k nearest."""
        return kernel_functions.knn_kernel(kernel, self.k)


@dataclass(frozen=True)
class KL(Distortion):
    """Generalised Kullback-Leibler divergence a log(a/b) - a + b of Euclidean distances.

    `standardize` divides each kernel by its off-diagonal mean. Relations below `floor` (the diagonal, duplicates) count
    as `floor`: log 0 has no value.
    """

    floor: float = 1e-6

    least_loss: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.floor < 1:
            raise ValueError(f"floor={self.floor!r}; expected 0 < floor < 1")

    def kernel(self, embeddings: FloatArray) -> FloatArray:
        """Euclidean distances."""
        return kernel_functions.distances(embeddings)

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """Positive, with off-diagonal mean one."""
        if kernel.min() < 0:
            raise ValueError(f"kernels holds {kernel.min()}; KL needs values that are not negative")
        n = len(kernel)
        mean = kernel[~np.eye(n, dtype=bool)].mean() if n > 1 else 0.0
        scale = mean if self.standardize and mean > 0 else 1.0
        return np.maximum(kernel / scale, self.floor)

    def loss(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """A log(a/b) - a + b."""
        return np.asarray(a * np.log(a / b) - a + b)

    def f1(self, a: FloatArray) -> FloatArray:
        """A log a - a."""
        return np.asarray(a * np.log(a) - a)

    def f2(self, b: FloatArray) -> FloatArray:
        """B itself."""
        return b

    def h2(self, b: FloatArray) -> FloatArray:
        """Log b."""
        return np.asarray(np.log(b))


def _padded(matrix: FloatArray, n: int) -> FloatArray:
    """The matrix with zero rows and columns appended: relations of dummies cost nothing."""
    return np.pad(matrix, (0, n - len(matrix)))


DISTORTIONS: dict[str, type[Distortion]] = {
    "gw": GromovWasserstein,
    "gaussian": Gaussian,
    "cka": CKA,
    "mutual-knn": MutualKNN,
    "kl": KL,
    "inner-product": InnerProduct,
}


def as_distortion(distortion: str | Distortion, standardize: bool = True) -> Distortion:
    """Look a distortion up by its name, or take an object; `standardize=False` turns that off in either."""
    if isinstance(distortion, str):
        if distortion not in DISTORTIONS:
            raise unknown_name("distortion", distortion, DISTORTIONS)
        distortion = DISTORTIONS[distortion]()
    if not isinstance(distortion, Distortion):
        raise ValueError(f"distortion={shown(distortion)} is neither a name nor a distortion object")
    return distortion if standardize else replace(distortion, standardize=False)
