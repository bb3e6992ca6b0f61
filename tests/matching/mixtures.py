"""Large sets with a hidden match, and their relations."""

import numpy as np

import blindmatch as bm
from blindmatch.alignment.crew import Crew
from blindmatch.matching.large_costs import PointSide, Relations
from blindmatch.validation import FloatArray, IntArray


def mixture(n: int, noise: float, seed: int = 0) -> tuple[FloatArray, FloatArray, IntArray]:
    """A mixture in 20 dimensions, its turned copy in 30 with noise, and the hidden match."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20)) * np.geomspace(2, 0.3, 20) + 2 * rng.normal(size=(12, 20))[rng.integers(12, size=n)]
    Y = X @ np.linalg.qr(rng.normal(size=(30, 20)))[0].T
    Y += noise * Y.std() * rng.normal(size=Y.shape)
    order = rng.permutation(n)
    return X, Y[order], np.argsort(order)


def relations(X: FloatArray, Y: FloatArray, **options: object) -> Relations:
    sides = PointSide(X), PointSide(Y)
    return Relations(bm.GromovWasserstein(), *sides, crew=Crew(), rng=np.random.default_rng(0), **options)
