"""Clusterings of images: how many clusters, several starts of k-means, and the vote of all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin, silhouette_score
from sklearn.utils import check_random_state

from blindmatch.geometry.prototypes import as_labels
from blindmatch.solving.limits import keep_what_is_done
from blindmatch.validation import FloatArray, IntArray

Step = Callable[[str, int, int], None]
_AXES = 64  # leading axes of the images in which k-means works: 32 to all of them gave the same accuracy
_FEW_AXES, _SAMPLE, _TRIES = 8, 2000, 2  # for the number of clusters: silhouettes need few axes and few images


@dataclass(frozen=True, eq=False)
class Told:
    """Images whose classes are known.

    Attributes
    ----------
    members
        The class of each image; -1 where it is unknown.
    classes
        The classes of which images are known.
    """

    members: IntArray
    classes: list[int]

    @classmethod
    def of(cls, labels: Iterable[Hashable] | None, images: int, classes: NDArray[Any]) -> Told:
        """Check labels: a class for each image, or -1."""
        place: dict[Any, int] = {name: at for at, name in enumerate(classes.tolist())}
        found = [-1] * images
        for at, label in enumerate([] if labels is None else as_labels(labels, "labels", images)):
            if label not in place and label != -1:
                raise ValueError(
                    f"labels holds {label!r} at [{at}]; expected one of the classes, or -1 where it is unknown"
                )
            found[at] = place.get(label, -1)
        return cls(np.array(found), sorted(set(found) - {-1}))

    def seeds(self, points: FloatArray) -> FloatArray:
        """The mean of the known images of each class."""
        return means_of(points, self.members, self.classes)


def means_of(points: FloatArray, members: IntArray, groups: Iterable[int]) -> FloatArray:
    """The mean of the members of each group."""
    means = [points[members == group].mean(axis=0) for group in groups]
    return np.array(means).reshape(-1, points.shape[1])


def along_axes(points: FloatArray, axes: int = _AXES) -> FloatArray:
    """Points along their leading principal axes, where k-means takes a tenth of the time."""
    if min(points.shape) <= axes:
        return points
    return np.asarray(PCA(axes, svd_solver="randomized", random_state=0).fit_transform(points))


def suggested_clusters(points: FloatArray, most: int, seed: int | None) -> int:
    """The number of clusters, from 2 to `most`, of the largest mean silhouette."""
    rng = check_random_state(seed)
    few = along_axes(points, _FEW_AXES)
    few = few[rng.permutation(len(few))[:_SAMPLE]]
    counts = range(2, min(most, len(np.unique(few, axis=0)) - 1) + 1)
    found = [KMeans(count, n_init=_TRIES, random_state=rng).fit(few).labels_ for count in counts]
    return counts[int(np.argmax([silhouette_score(few, labels) for labels in found]))] if found else 1


def clusterings(
    points: FloatArray, clusters: int, starts: int, seed: int | None, report: Step, seeds: FloatArray
) -> list[IntArray]:
    """The cluster of each point, from several starts of k-means, the most compact one first; fewer after Ctrl-C.

    The first clusters are those that grew from the seeds.
    """
    rng = check_random_state(seed)  # shared by all starts, as in KMeans(n_init=starts)
    found: list[Any] = []
    with keep_what_is_done(lambda: bool(found)):
        for start in range(starts):
            report("clustering", start, starts)
            first: Any = spread_out(points, seeds, clusters, rng) if len(seeds) else "k-means++"
            found.append(KMeans(clusters, init=first, n_init=1, random_state=rng).fit(points))
    return [means.labels_.astype(np.intp) for means in sorted(found, key=lambda means: float(means.inertia_))]


def voted_clustering(points: FloatArray, votes: FloatArray, told: Told, seed: int | None) -> IntArray:
    """The cluster of each point after k-means from the classes that got the most votes; cluster c is for class c."""
    classes = np.where(told.members >= 0, told.members, votes.argmax(axis=1))
    named = np.unique(classes)
    rng = check_random_state(seed)
    first = spread_out(points, means_of(points, classes, named), votes.shape[1], rng)
    order = np.concatenate([named, np.setdiff1d(np.arange(votes.shape[1]), named)])
    return np.asarray(order[KMeans(len(first), init=first, n_init=1, random_state=rng).fit(points).labels_])


def spread_out(points: FloatArray, seeds: FloatArray, count: int, rng: Any) -> FloatArray:
    """`count` first centres: the seeds, and points far from them and from each other (as k-means++ draws them)."""
    centres = list(seeds)
    nearest = euclidean_distances(points, seeds, squared=True).min(axis=1)
    while len(centres) < count:
        total = nearest.sum()
        chosen = points[rng.choice(len(points), p=nearest / total if total > 0 else None)]
        centres.append(chosen)
        nearest = np.minimum(nearest, euclidean_distances(points, chosen[None], squared=True)[:, 0])
    return np.array(centres)


def adopted(centres: FloatArray, permutation: IntArray) -> IntArray:
    """Give every cluster without a class the class of the nearest cluster that has one."""
    matched = np.flatnonzero(permutation >= 0)
    nearest = matched[pairwise_distances_argmin(centres, centres[matched])]
    return np.asarray(permutation[nearest])
