"""The unsupervised classifier of the paper's Sec. 5.4: cluster the images, match the clusters with the class names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted

from blindmatch.distortion import Distortion
from blindmatch.kernels import unit_rows
from blindmatch.matching import match
from blindmatch.solvers.base import Solver
from blindmatch.validation import FloatArray, IntArray, as_floats, at_least


class BlindClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify without a single label: k-means centres, matched blind with one embedding a class.

    Parameters
    ----------
    n_clusters
        By default as many as there are classes. With more, the clusters left over join the nearest matched one.
    n_init
        Starts of k-means++.
    normalize
        Scale each embedding to unit length first, as the paper does.
    distortion, solver, standardize, time_limit, threads
        As in ``bm.match``.
    random_state
        Seed.

    Attributes
    ----------
    classes_
        Names of the classes: by default 0, 1, 2...
    centres_
        Cluster centres; cluster c stands for class ``classes_[cluster_class_[c]]``.
    result_
        The match of centres with classes.
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_init: int = 100,
        normalize: bool = False,
        distortion: str | Distortion = "gw",
        solver: str | Solver = "auto",
        standardize: bool = True,
        time_limit: float | None = None,
        random_state: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.normalize = normalize
        self.distortion = distortion
        self.solver = solver
        self.standardize = standardize
        self.time_limit = time_limit
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: ArrayLike, Y: ArrayLike, *, classes: ArrayLike | None = None) -> BlindClassifier:
        """Cluster the images X (images, d) and match the centres with the class embeddings Y (classes, e)."""
        images, texts = self._points(X, "X"), self._points(Y, "Y")
        clusters = len(texts) if self.n_clusters is None else at_least(self.n_clusters, len(texts), "n_clusters")
        if len(images) < clusters:
            raise ValueError(f"X has {len(images)} rows; at least {clusters} are needed, one for each cluster")
        self.classes_ = np.arange(len(texts)) if classes is None else np.asarray(classes)
        if self.classes_.shape != (len(texts),):
            raise ValueError(f"classes has shape {self.classes_.shape}; Y has {len(texts)} rows")
        self.n_features_in_ = images.shape[1]
        means = KMeans(clusters, n_init=at_least(self.n_init, 1, "n_init"), random_state=self.random_state).fit(images)
        self.centres_ = unit_rows(means.cluster_centers_) if self.normalize else means.cluster_centers_
        self.result_ = match(
            self.centres_,
            texts,
            distortion=self.distortion,
            solver=self.solver,
            standardize=self.standardize,
            time_limit=self.time_limit,
            rng=self.random_state,
            threads=self.threads,
        )
        self.cluster_class_ = _adopt(self.centres_, self.result_.permutation)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each image: that of its nearest centre."""
        check_is_fitted(self, "cluster_class_")
        images = self._points(X, "X")
        if images.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {images.shape[1]} features; the classifier was fitted with {self.n_features_in_}")
        return np.asarray(self.classes_[self.cluster_class_[pairwise_distances_argmin(images, self.centres_)]])

    def _points(self, values: ArrayLike, name: str) -> FloatArray:
        points = as_floats(values, name)
        return unit_rows(points) if self.normalize else points


def _adopt(centres: FloatArray, permutation: IntArray) -> IntArray:
    """Give every cluster without a class the class of the nearest cluster that has one."""
    matched = np.flatnonzero(permutation >= 0)
    nearest = matched[pairwise_distances_argmin(centres, centres[matched])]
    return np.asarray(permutation[nearest])
