"""The unsupervised classifier of the paper's Sec. 5.4: cluster the images, match the clusters with the class names."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted

from blindmatch.geometry.column_scaling import ColumnScaling, warn_of_units
from blindmatch.geometry.kernels import unit_rows
from blindmatch.geometry.prototypes import as_labels
from blindmatch.geometry.views import Views
from blindmatch.matching.clustering import (
    Step,
    Told,
    adopted,
    along_axes,
    clusterings,
    means_of,
    suggested_clusters,
    voted_clustering,
)
from blindmatch.matching.evaluation import cluster_assignment
from blindmatch.matching.match import SolveOptions, match_task
from blindmatch.matching.matcher import TwoSetEstimator
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.distortions import as_distortion
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Callback, Solver
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.limits import TimeLimit, as_seconds, keep_what_is_done
from blindmatch.validation import FloatArray, IntArray, as_threads, at_least, boolean

_AFTER_INTERRUPT = 1.0  # seconds for the match if Ctrl-C ended the clustering
_WIDE = 16  # columns from which embeddings are compared by their directions; tables of numbers have fewer
_MOST_VOTERS = 300  # clusters; more are matched by coordinates, once
_VOTE = 40  # iterations of the search for each cluster, in each vote


@dataclass(frozen=True)
class ClassifierScores:
    """The paper's figures of an unsupervised classifier, for images whose classes are known.

    Attributes
    ----------
    accuracy
        Share of the images that get their true class.
    matching_accuracy
        Share of the classes whose cluster is that of the best one-to-one assignment of clusters to classes (the
        assignment under which most images are right).
    ceiling
        Accuracy with that assignment instead of the match (the row "GT" of the paper). If there are as many clusters as
        classes, no match of these clusters does better.
    """

    accuracy: float
    matching_accuracy: float
    ceiling: float

    def to_dict(self) -> dict[str, float]:
        """Plain Python values, ready for JSON."""
        return asdict(self)


@dataclass(eq=False, repr=False)  # its options are the arguments
class BlindClassifier(ClassifierMixin, TwoSetEstimator):
    """Classify without labels: k-means centres, matched blindly with one embedding per class.

    Every clustering is matched, and votes on the class of each image. The last clustering starts from these classes;
    its centres and their match are the result.

    Parameters
    ----------
    n_clusters
        By default the number of classes. With more clusters, the unmatched ones join the nearest matched one; with
        fewer, some classes are never predicted. "auto": the number with the largest silhouette, at most twice the
        number of classes; it is often off by a third or more (benchmarks/README.md).
    n_init
        Number of k-means++ starts.
    vote
        Only a match without votes can be assessed: with them, the clusters are chosen by how well they match.
        False: take the most compact clustering, as the paper does with ``n_init=100``. So it is anyway if there are
        more or fewer clusters than classes.
    normalize
        True: scale each embedding to unit length first, as the paper does. By default, the mean of each side is
        subtracted before that, if both sides have at least 16 columns. False: take the numbers as they are.
    scale
        As in ``bm.match``, for the columns of the images and those of the classes; before `normalize`.
    distortion, solver, standardize, metric, n_neighbors, time_limit, n_jobs
        As in ``bm.match`` and ``BlindMatcher``. Clusters are found by Euclidean distances; the metric compares centres.
    random_state
        Seed.

    Attributes
    ----------
    classes_
        Names of the classes; by default 0, 1, 2, ...
    centres_
        Cluster centres; cluster c is assigned to class ``classes_[cluster_class_[c]]``.
    n_init_
        Number of k-means starts that were completed: fewer than `n_init` after Ctrl-C.
    scalings_
        How the columns of images and of classes were scaled.
    result_, task_
        The match between centres and classes, and what was matched, as a ``bm.Task``.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> rng = np.random.default_rng(0)
    >>> classes = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> images = np.repeat(classes, 20, axis=0) + 0.1 * rng.normal(size=(80, 2))
    >>> model = bm.BlindClassifier(random_state=0).fit(images, 3 * classes, classes=["a", "b", "c", "d"])
    >>> model.predict([[4.8, 1.1]]).tolist()
    ['c']
    """

    n_clusters: int | str | None = None
    _: KW_ONLY
    n_init: int = 60
    vote: bool = True
    normalize: bool | None = None
    scale: str = "none"
    distortion: str | Distortion = "gw"
    solver: str | Solver = "auto"
    standardize: bool = True
    metric: str | tuple[str, str] = "euclidean"
    n_neighbors: int | tuple[int, int] | None = None
    time_limit: TimeLimit = "auto"
    random_state: int | None = None
    n_jobs: int | None = None

    def fit(
        self,
        X: ArrayLike | Views,
        Y: ArrayLike | Views,
        *,
        classes: ArrayLike | None = None,
        labels: Iterable[Hashable] | None = None,
        callback: Step | None = None,
        match_callback: Callback | None = None,
    ) -> BlindClassifier:
        """Cluster the images X (images, d) and match the centres with the class embeddings Y (classes, e).

        Either may be ``bm.Views`` of several models; images are then clustered in all views together.

        `labels` has the class of each image where it is known (a value of `classes`), and -1 where it is not. A cluster
        starts from the images of each such class, and is matched with it.

        `callback` is called for each k-means start and for the match with the name of the step, the number of parts
        that are done and their total. `match_callback` is the callback of ``bm.match``. Ctrl-C keeps the best so far:
        the best match, or the best clustering, which is then matched within a second.
        """
        # Errors in these are reported before the clustering.
        threads = as_threads(self.n_jobs)
        distortion = as_distortion(self.distortion, self.standardize, self.metric, self.n_neighbors)
        images, texts = self._fitted_set(X), self._second_set(Y)
        if self.scale == "none":
            warn_of_units([("images", images, None), ("classes", texts, None)])
        self.scalings_ = ColumnScaling.pair(images, texts, self.scale)
        self._views = X if isinstance(X, Views) else None, Y if isinstance(Y, Views) else None
        self._centred = self.normalize is None and min(images.shape[1], texts.shape[1]) >= _WIDE
        scaled = [scaling.transform(side) for scaling, side in zip(self.scalings_, (images, texts), strict=True)]
        self._means = [side.mean(axis=0) if self._centred else 0.0 for side in scaled]
        images, texts = self._scaled(images, 0), self._scaled(texts, 1)
        self._factors = None if self._views[0] is None else self._views[0].like(images).scales
        images = self._placed(images)
        self.classes_ = np.arange(len(texts)) if classes is None else _names(classes, len(texts))
        points = along_axes(images) if boolean(self.vote, "vote") else images
        clusters = self._clusters(points, len(texts))
        report = callback or (lambda step, done, total: None)
        starts = at_least(self.n_init, 1, "n_init")
        told = Told.of(labels, len(images), self.classes_)
        if len(told.classes) > clusters:
            raise ValueError(f"labels has {len(told.classes)} classes; n_clusters={clusters} needs to be at least that")
        starts = 1 if len(told.classes) == clusters else starts  # all of them would be the same
        found = clusterings(points, clusters, starts, self.random_state, report, told.seeds(points))
        self.n_init_, members, known = len(found), found[0], list(enumerate(told.classes))
        limit, voted = self.time_limit, False
        if self.n_init_ < starts:  # Ctrl-C
            limit = min(_AFTER_INTERRUPT, as_seconds(limit) or math.inf)
        elif self.vote and clusters == len(texts) <= _MOST_VOTERS and starts > 1:
            votes = np.zeros((len(images), clusters))
            with keep_what_is_done() as interrupted:
                for done, one in enumerate(found):
                    report("voting", done, starts)
                    self._place(images, one, texts, distortion, known)
                    quick = SolveOptions(Tabu(iterations=_VOTE * clusters, streams=2), None, self.random_state)
                    votes[np.arange(len(images)), match_task(self.task_, quick).permutation[one]] += 1
            voted = bool(votes.any())
            if voted:
                members = voted_clustering(points, votes, told, self.random_state)
                known = [(c, c) for c in told.classes]
            if interrupted:
                limit = min(_AFTER_INTERRUPT, as_seconds(limit) or math.inf)
        report("matching", 0, 1)
        self._place(images, members, texts, distortion, known)
        options = SolveOptions(self.solver, limit, self.random_state, match_callback, threads)
        self.result_ = replace(match_task(self.task_, options), voted=voted)
        self.cluster_class_ = adopted(self.centres_, self.result_.permutation)
        return self

    def _clusters(self, points: FloatArray, classes: int) -> int:
        """How many clusters there are to be."""
        if self.n_clusters == "auto":
            return suggested_clusters(points, 2 * classes, self.random_state)
        if isinstance(self.n_clusters, str):
            raise ValueError(f"n_clusters={self.n_clusters!r}; expected an integer of at least 1, or 'auto'")
        clusters = classes if self.n_clusters is None else at_least(self.n_clusters, 1, "n_clusters")
        if len(points) < clusters:
            raise ValueError(f"X has {len(points)} rows; at least {clusters} are needed, one for each cluster")
        return clusters

    def _place(
        self,
        images: FloatArray,
        members: IntArray,
        texts: FloatArray,
        distortion: Distortion,
        known: list[tuple[int, int]],
    ) -> None:
        """Set the centres of clusters, and what is matched."""
        centres = means_of(images, members, range(int(members.max()) + 1))
        ours, theirs = self._views
        own = _unscaled(centres, self._factors)
        if self._centred:
            own = _directions(own - own.mean(axis=0), ours)
        self.centres_ = _directions(centres, None) if self.normalize and self._factors is None else centres
        if self.normalize and self._factors is None:
            own = self.centres_
        self.task_ = Task(
            own if ours is None else ours.like(own),
            texts if theirs is None else theirs.like(texts),
            distortion=distortion,
            known_pairs=known,
        )

    def predict(self, X: ArrayLike | Views) -> NDArray[Any]:
        """The class of each image: the class of its nearest centre."""
        clusters = self.clusters(X)
        return np.asarray(self.classes_[self.cluster_class_[clusters]])

    def clusters(self, X: ArrayLike | Views) -> IntArray:
        """The cluster of each image: the one with the nearest centre."""
        check_is_fitted(self)
        return np.asarray(pairwise_distances_argmin(self._placed(self._scaled(self._new_points(X), 0)), self.centres_))

    def evaluate(self, X: ArrayLike | Views, y: Iterable[Hashable]) -> ClassifierScores:
        """Compare with the true classes y of the images X (values of `classes_`)."""
        clusters = self.clusters(X)
        truth, names = as_labels(y, "y", len(clusters)), as_labels(self.classes_, "classes")
        place = {name: c for c, name in enumerate(names)}
        for label in truth:
            if label not in place:
                raise ValueError(f"y holds {label!r}, which is not among the classes of the classifier")
        labels = np.array([place[label] for label in truth])
        best = cluster_assignment(labels, clusters)
        assigned = np.full(len(self.centres_), -1, dtype=np.intp)
        assigned[list(best)] = list(best.values())
        return ClassifierScores(
            accuracy=float(np.mean(self.cluster_class_[clusters] == labels)),
            matching_accuracy=float(np.mean([self.result_.permutation[c] == label for c, label in best.items()])),
            ceiling=float(np.mean(adopted(self.centres_, assigned)[clusters] == labels)),
        )

    def _scaled(self, points: FloatArray, side: int) -> FloatArray:
        points = self.scalings_[side].transform(points) - self._means[side]
        return _directions(points, self._views[side]) if self.normalize or self._centred else points

    def _placed(self, images: FloatArray) -> FloatArray:
        """Where images are clustered: several views are put on one scale, side by side."""
        return images if self._factors is None else np.asarray(images * self._factors)


def _directions(points: FloatArray, views: Views | None) -> FloatArray:
    """Each row of each view at unit length."""
    return unit_rows(points) if views is None else np.hstack([unit_rows(view) for view in views.split(points)])


def _unscaled(centres: FloatArray, factors: FloatArray | None) -> FloatArray:
    if factors is None:
        return centres
    return np.divide(centres, factors, out=np.zeros_like(centres), where=factors > 0)  # a view may have no weight


def _names(classes: ArrayLike, count: int) -> NDArray[Any]:
    """The names of the classes: one for each class, none missing, all different."""
    names = np.asarray(classes)
    if names.shape != (count,):
        raise ValueError(f"classes has shape {names.shape}; Y has {count} rows")
    as_labels(classes, "classes")  # type: ignore[arg-type]  # checked before numpy turns a missing name into a string
    seen: dict[Any, int] = {}
    for at, name in enumerate(names.tolist()):
        if seen.setdefault(name, at) != at:
            raise ValueError(f"classes holds {name!r} at [{seen[name]}] and at [{at}]; expected different names")
    return names
