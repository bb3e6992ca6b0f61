"""The distortions, by name and by class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from blindmatch.errors import shown, unknown_name
from blindmatch.geometry import kernels as kernel_functions
from blindmatch.problem.distortion import Distortion, Own
from blindmatch.problem.exact_sums import LOG_ERROR, divergence, log_ratio, split_products
from blindmatch.problem.qap import FactorPair
from blindmatch.validation import FloatArray, at_least, boolean, positive


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

    def terms(self, K: FloatArray, G: FloatArray) -> tuple[FactorPair, Own, Own]:
        """Those of differences: what all relations have in common is subtracted before anything is squared."""
        source, target = kernel_functions.common_numbers(K, G, kernel_functions.offset_of)
        a, b = K - source, G - target
        return (-a, 2.0 * b), split_products(a, a), split_products(b, b)


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
        if str(self.bandwidth) == "auto":
            raise ValueError("bandwidth='auto'; expected a number above 0: bm.choose_relation compares some of them")
        if math.isinf(positive(self.bandwidth, "bandwidth")):
            raise ValueError(f"bandwidth={self.bandwidth!r}; expected a finite number: inf would count no relation")

    def scaled(self, kernel: FloatArray) -> FloatArray:
        """Saturate the distances, then bring them to the common scale."""
        near = kernel_functions.saturated(kernel, self.bandwidth, relative=self.standardize)
        # Equal distances differ by rounding errors, which must not count as differences.
        differ = not self.standardize or kernel_functions.standardized(kernel).any()
        return super().scaled(near) if differ else np.zeros_like(near)


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

    def spread(self, kernel: FloatArray) -> float:
        """The norm of the centred kernel."""
        return kernel_functions.centred_norm(kernel) if self.standardize else 1.0


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

    def spread(self, kernel: FloatArray) -> float:
        """The norm of the centred kernel: the neighbours in several kernels are those in their mean."""
        return kernel_functions.centred_norm(kernel)


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
        return np.maximum(kernel / (self.spread(kernel) or 1.0), self.floor)

    def spread(self, kernel: FloatArray) -> float:
        """The mean relation."""
        n = len(kernel)
        if not self.standardize:
            return 1.0
        return float(kernel[~np.eye(n, dtype=bool)].mean()) if n > 1 else 0.0

    def loss(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """The loss a log(a/b) - a + b."""
        return divergence(a, b)[0]

    def f1(self, a: FloatArray) -> FloatArray:
        """The term a log a - a."""
        return np.asarray(a * np.log(a) - a)

    def f2(self, b: FloatArray) -> FloatArray:
        """The term b."""
        return b

    def h2(self, b: FloatArray) -> FloatArray:
        """The factor log b."""
        return np.asarray(np.log(b))

    def terms(self, K: FloatArray, G: FloatArray) -> tuple[FactorPair, Own, Own]:
        """Those around a number c: l(a, b) = l(a, c) + l(c, b) - (a - c) log(b/c), which all vanish near it."""
        source, target = kernel_functions.common_numbers(K, G, kernel_functions.middle_of)
        factors = source - K, log_ratio(G, target)
        first, error = divergence(K, source)
        error = error + 2 * LOG_ERROR * np.abs(factors[0]) * np.abs(factors[1]).max()  # that of the product
        second, other = divergence(target, G)
        return factors, (first - error, 2 * error), (second - other, 2 * other)


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
    return distortion if boolean(standardize, "standardize") else replace(distortion, standardize=False)


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
