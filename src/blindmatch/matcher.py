"""The match as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted

from blindmatch.distortion import Distortion
from blindmatch.matching import match
from blindmatch.solvers.base import Solver
from blindmatch.validation import FloatArray, IntArray, as_floats


class BlindMatcher(BaseEstimator):  # type: ignore[misc]
    """``bm.match`` as a scikit-learn estimator.

    Parameters
    ----------
    distortion, solver, standardize, time_limit, threads
        As in ``bm.match``.
    random_state
        Seed.

    Attributes
    ----------
    permutation_, cost_, lower_bound_
        The match: source i belongs to target ``permutation_[i]``.
    result_
        All of the ``bm.Result``.
    source_, target_
        The embeddings that were matched.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> matcher = bm.BlindMatcher(random_state=0).fit(X, X[[3, 1, 0, 2]])
    >>> matcher.predict([[4.9, 1.2]]).tolist()
    [3]
    """

    def __init__(
        self,
        distortion: str | Distortion = "gw",
        solver: str | Solver = "auto",
        *,
        standardize: bool = True,
        time_limit: float | None = None,
        random_state: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.distortion = distortion
        self.solver = solver
        self.standardize = standardize
        self.time_limit = time_limit
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: ArrayLike, Y: ArrayLike, *, known_pairs: Iterable[tuple[int, int]] = ()) -> BlindMatcher:
        """Match the rows of X with the rows of Y."""
        self.source_, self.target_ = as_floats(X, "X"), as_floats(Y, "Y")
        self.n_features_in_ = self.source_.shape[1]
        self.result_ = match(
            self.source_,
            self.target_,
            distortion=self.distortion,
            solver=self.solver,
            standardize=self.standardize,
            known_pairs=known_pairs,
            time_limit=self.time_limit,
            rng=self.random_state,
            threads=self.threads,
        )
        self.permutation_ = self.result_.permutation
        self.cost_ = self.result_.cost
        self.lower_bound_ = self.result_.lower_bound
        return self

    def predict(self, X: ArrayLike) -> IntArray:
        """The target row for each new source point: that of the nearest matched source."""
        check_is_fitted(self, "permutation_")
        points = as_floats(X, "X")
        if points.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {points.shape[1]} features; the matcher was fitted with {self.n_features_in_}")
        matched = np.flatnonzero(self.permutation_ >= 0)
        nearest = pairwise_distances_argmin(points, self.source_[matched])
        return np.asarray(self.permutation_[matched[nearest]])

    def transform(self, X: ArrayLike) -> FloatArray:
        """The target embedding for each new source point."""
        return np.asarray(self.target_[self.predict(X)])

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Share of source points whose predicted target is the true one, y."""
        return float(np.mean(self.predict(X) == np.asarray(y)))
