"""The unsupervised classifier of the paper's Sec. 5.4: cluster the images, match the clusters with the class names."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from blindmatch.geometry.column_scaling import ColumnScaling, warn_of_units
from blindmatch.geometry.kernels import unit_rows
from blindmatch.geometry.prototypes import as_labels
from blindmatch.geometry.views import Views
from blindmatch.matching.evaluation import cluster_assignment
from blindmatch.matching.match import SolveOptions, match_task
from blindmatch.matching.matcher import TwoSetEstimator
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.distortions import as_distortion
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Callback, Solver
from blindmatch.solving.limits import TimeLimit, as_seconds, keep_what_is_done
from blindmatch.validation import FloatArray, IntArray, at_least

Step = Callable[[str, int, int], None]
_AFTER_INTERRUPT = 1.0  # seconds for the match if Ctrl-C ended the clustering


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

    Parameters
    ----------
    n_clusters
        By default the number of classes. With more clusters, the unmatched ones join the nearest matched one; with
        fewer, some classes are never predicted.
    n_init
        Number of k-means++ starts.
    normalize
        Scale each embedding to unit length first, as the paper does.
    scale
        As in ``bm.match``, for the columns of the images and those of the classes; before `normalize`.
    distortion, solver, standardize, metric, neighbors, time_limit, threads
        As in ``bm.match``. The clusters are found by Euclidean distances; the metric compares their centres.
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

    n_clusters: int | None = None
    _: KW_ONLY
    n_init: int = 100
    normalize: bool = False
    scale: str = "none"
    distortion: str | Distortion = "gw"
    solver: str | Solver = "auto"
    standardize: bool = True
    metric: str | tuple[str, str] = "euclidean"
    neighbors: int | tuple[int, int] | None = None
    time_limit: TimeLimit = "auto"
    random_state: int | None = None
    threads: int | None = None

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
        distortion = as_distortion(self.distortion, self.standardize, self.metric, self.neighbors)
        images, texts = self._fitted_set(X), self._second_set(Y)
        if self.scale == "none":
            warn_of_units([("images", images, None), ("classes", texts, None)])
        self.scalings_ = ColumnScaling.pair(images, texts, self.scale)
        self._views = X if isinstance(X, Views) else None, Y if isinstance(Y, Views) else None
        images, texts = self._scaled(images, 0), self._scaled(texts, 1)
        self._factors = None if self._views[0] is None else self._views[0].like(images).scales
        images = self._placed(images)
        clusters = len(texts) if self.n_clusters is None else at_least(self.n_clusters, 1, "n_clusters")
        if len(images) < clusters:
            raise ValueError(f"X has {len(images)} rows; at least {clusters} are needed, one for each cluster")
        self.classes_ = np.arange(len(texts)) if classes is None else _names(classes, len(texts))
        report = callback or (lambda step, done, total: None)
        starts = at_least(self.n_init, 1, "n_init")
        told, seeds = _seeds(images, labels, self.classes_)
        if len(told) > clusters:
            raise ValueError(f"labels has {len(told)} classes; n_clusters={clusters} needs to be at least that")
        starts = 1 if len(told) == clusters else starts  # all of them would be the same
        centres, self.n_init_ = _centres(images, clusters, starts, self.random_state, report, seeds)
        self.centres_ = unit_rows(centres) if self.normalize and self._factors is None else centres
        report("matching", 0, 1)
        ours, theirs = self._views
        own = self.centres_ if ours is None else ours.like(_unscaled(self.centres_, self._factors))
        self.task_ = Task(
            own,
            texts if theirs is None else theirs.like(texts),
            distortion=distortion,
            known_pairs=list(enumerate(told)),
        )
        limit = self.time_limit
        if self.n_init_ < starts:  # Ctrl-C
            limit = min(_AFTER_INTERRUPT, as_seconds(limit) or math.inf)
        options = SolveOptions(self.solver, limit, self.random_state, match_callback, self.threads)
        self.result_ = match_task(self.task_, options)
        self.cluster_class_ = _adopt(self.centres_, self.result_.permutation)
        return self

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
            ceiling=float(np.mean(_adopt(self.centres_, assigned)[clusters] == labels)),
        )

    def _scaled(self, points: FloatArray, side: int) -> FloatArray:
        points, views = self.scalings_[side].transform(points), self._views[side]
        if not self.normalize:
            return points
        return unit_rows(points) if views is None else np.hstack([unit_rows(view) for view in views.split(points)])

    def _placed(self, images: FloatArray) -> FloatArray:
        """Where images are clustered: several views are put on one scale, side by side."""
        return images if self._factors is None else np.asarray(images * self._factors)


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


def _seeds(
    images: FloatArray, labels: Iterable[Hashable] | None, classes: NDArray[Any]
) -> tuple[list[int], FloatArray]:
    """The classes of which some images are known, and the mean of those images."""
    place: dict[Any, int] = {name: at for at, name in enumerate(classes.tolist())}
    found = [-1] * len(images)
    for at, label in enumerate([] if labels is None else as_labels(labels, "labels", len(images))):
        if label not in place and label != -1:
            raise ValueError(
                f"labels holds {label!r} at [{at}]; expected one of the classes, or -1 where it is unknown"
            )
        found[at] = place.get(label, -1)
    told = sorted(set(found) - {-1})
    members = np.array(found)
    means = [images[members == label].mean(axis=0) for label in told]
    return told, np.array(means).reshape(-1, images.shape[1])


def _spread_out(images: FloatArray, seeds: FloatArray, count: int, rng: Any) -> FloatArray:
    """`count` first centres: the seeds, and images far from them and from each other (as k-means++ draws them)."""
    centres = list(seeds)
    nearest = euclidean_distances(images, seeds, squared=True).min(axis=1)
    while len(centres) < count:
        total = nearest.sum()
        chosen = images[rng.choice(len(images), p=nearest / total if total > 0 else None)]
        centres.append(chosen)
        nearest = np.minimum(nearest, euclidean_distances(images, chosen[None], squared=True)[:, 0])
    return np.array(centres)


def _centres(
    images: FloatArray, clusters: int, starts: int, seed: int | None, report: Step, seeds: FloatArray
) -> tuple[FloatArray, int]:
    """The best centres of several k-means starts, and the number of starts: fewer after Ctrl-C.

    The first centres are those that grew from the seeds.
    """
    rng = check_random_state(seed)  # shared by all starts, as in KMeans(n_init=starts)
    best: Any = None
    made = 0
    with keep_what_is_done(lambda: made > 0):
        for start in range(starts):
            report("clustering", start, starts)
            first: Any = _spread_out(images, seeds, clusters, rng) if len(seeds) else "k-means++"
            means = KMeans(clusters, init=first, n_init=1, random_state=rng).fit(images)
            best = means if best is None or means.inertia_ < best.inertia_ else best
            made += 1
    return np.asarray(best.cluster_centers_), made


def _adopt(centres: FloatArray, permutation: IntArray) -> IntArray:
    """Give every cluster without a class the class of the nearest cluster that has one."""
    matched = np.flatnonzero(permutation >= 0)
    nearest = matched[pairwise_distances_argmin(centres, centres[matched])]
    return np.asarray(permutation[nearest])
