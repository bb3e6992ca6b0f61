"""Accuracy of a match if the truth is known, and agreement of the two spaces under it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier

from blindmatch.geometry.prototypes import as_labels
from blindmatch.problem.distortions import CKA, GromovWasserstein, MutualKNN
from blindmatch.validation import FloatArray, IntArray, as_array, as_floats, as_generator, as_partners, at_least


@dataclass(frozen=True)
class AlignmentScores:
    """Three measures of agreement of two spaces under one pairing.

    Attributes
    ----------
    mutual_knn
        Mean share of common neighbours, 0 to 1: higher is better.
    cka
        Centred kernel alignment of the linear kernels, at most 1: higher is better.
    gw
        Gromov-Wasserstein distortion of the standardised distances, divided by N^2: lower is better, about 2 for a
        random pairing.
    """

    mutual_knn: float
    cka: float
    gw: float


@dataclass(frozen=True)
class Evaluation:
    """A pairing compared with the true one and random ones.

    Attributes
    ----------
    accuracy
        Share of the sources with a true partner that were matched to it; None without truth.
    precision
        Share of the matched sources whose partner is the true one, so a partner for an outlier counts as an error; None
        without truth.
    pairs
        Number of matched sources.
    found, true
        Alignment under the found and under the true pairing (None without truth).
    random, random_deviation
        Mean and standard deviation over random pairings of the matched items.
    top_k
        Share of the sources with a true partner for which it is among the `neighbors` targets nearest to where the
        source was placed; None without truth.
    foscttm
        ``foscttm`` of the placed sources, in both directions; None without truth.
    label_transfer
        Share of the placed sources whose label is that of most of the `neighbors` nearest targets; None without labels.
    """

    accuracy: float | None
    precision: float | None
    pairs: int
    found: AlignmentScores
    true: AlignmentScores | None
    random: AlignmentScores
    random_deviation: AlignmentScores
    top_k: float | None = None
    foscttm: tuple[float, float] | None = None
    label_transfer: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        return asdict(self)


def evaluate(
    source: ArrayLike,
    target: ArrayLike,
    permutation: ArrayLike,
    truth: ArrayLike | None = None,
    *,
    rng: int | np.random.Generator | None = None,
    random_pairings: int = 100,
    neighbors: int = 5,
    projected: ArrayLike | None = None,
    labels: tuple[Iterable[Hashable], Iterable[Hashable]] | None = None,
) -> Evaluation:
    """Accuracy and alignment of a pairing: source i with target permutation[i], -1 for an unmatched source.

    The alignment is computed on the paired items only. `neighbors` is the k of Mutual k-NN (smaller in small sets), of
    `top_k` and of `label_transfer`. These and `foscttm` look at where each source was placed in the target's space: at
    its partner, or at its row of `projected` (such as ``bm.project(...).points``). `labels` is what the sources and
    the targets are, for example types of cells.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> report = evaluate(X, X, [0, 1, 2, 3], truth=[0, 1, 2, 3], rng=0)
    >>> report.accuracy, report.found.gw, round(report.found.cka, 9)
    (1.0, 0.0, 1.0)
    """
    X, Y = as_floats(source, "source"), as_floats(target, "target")
    at_least(random_pairings, 1, "random_pairings")
    at_least(neighbors, 1, "neighbors")
    found = as_partners(permutation, (len(X), len(Y)), "permutation")
    true = None if truth is None else as_partners(truth, (len(X), len(Y)), "truth")
    generator = as_generator(rng)
    kept = found >= 0
    identity = np.arange(int(kept.sum()))
    orders = [identity, *(generator.permutation(len(identity)) for _ in range(random_pairings))]
    at_found, *at_random = _alignments(X[kept], Y[found[kept]], orders, neighbors, "permutation")
    at_true = None
    if true is not None:
        paired = true >= 0
        at_true = _alignments(X[paired], Y[true[paired]], [np.arange(int(paired.sum()))], neighbors, "truth")[0]
    placed = np.full((len(X), Y.shape[1]), np.nan)
    placed[kept] = Y[found[kept]]
    if projected is not None:
        placed = as_floats(projected, "projected")
        if placed.shape != (len(X), Y.shape[1]):
            raise ValueError(f"projected has shape {placed.shape}; expected {(len(X), Y.shape[1])}")
    values = np.array([[a.mutual_knn, a.cka, a.gw] for a in at_random])
    return Evaluation(
        accuracy=None if true is None else matching_accuracy(found, true),
        precision=None if true is None else float((found == true)[kept].mean()),
        pairs=len(identity),
        found=at_found,
        true=at_true,
        random=AlignmentScores(*values.mean(axis=0).tolist()),
        random_deviation=AlignmentScores(*values.std(axis=0).tolist()),
        top_k=None if true is None else top_k_of(placed, Y, true, neighbors),
        foscttm=None if true is None else foscttm(placed, Y, true),
        label_transfer=None if labels is None else _label_transfer(placed, Y, labels, neighbors),
    )


def _label_transfer(
    placed: FloatArray, Y: FloatArray, labels: tuple[Iterable[Hashable], Iterable[Hashable]], neighbors: int
) -> float:
    ours = as_labels(labels[0], "labels[0]", len(placed))
    rows = np.flatnonzero(np.isfinite(placed).all(axis=1))
    return label_transfer(placed[rows], Y, [ours[row] for row in rows], labels[1], neighbors=neighbors)


def matching_accuracy(permutation: ArrayLike, truth: ArrayLike) -> float:
    """Share of the sources with a true partner (truth >= 0) that were matched to it.

    >>> matching_accuracy([0, 2, 1, 3], truth=[0, 1, 2, 3])
    0.5
    """
    found, true = np.asarray(permutation), np.asarray(truth)
    for array, name in ((found, "permutation"), (true, "truth")):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"{name} has dtype {array.dtype} and shape {array.shape}; expected a list of integers")
    if found.shape != true.shape:
        raise ValueError(f"permutation has {len(found)} items and truth has {len(true)}; expected equal numbers")
    known = true >= 0
    if not known.any():
        raise ValueError("truth has no partner for any source: there is nothing to compare with")
    return float((found[known] == true[known]).mean())


def cluster_assignment(labels: Iterable[Hashable], clusters: Iterable[Hashable]) -> dict[Any, Any]:
    """The one-to-one assignment {cluster: class} under which most items are right.

    If there are more clusters than classes (or fewer), the unassigned ones do not appear.

    >>> cluster_assignment(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    {1: 'cat', 0: 'dog'}
    """
    table, cluster_names, class_names = _contingency(labels, clusters)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return {cluster_names[r]: class_names[c] for r, c in zip(rows, columns, strict=True)}


def clustering_accuracy(labels: Iterable[Hashable], clusters: Iterable[Hashable]) -> float:
    """Share of the items whose class is that of their cluster under the best assignment: an upper limit.

    >>> clustering_accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    """
    table, _, _ = _contingency(labels, clusters)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def _contingency(labels: Iterable[Hashable], clusters: Iterable[Hashable]) -> tuple[IntArray, list[Any], list[Any]]:
    """The number of items of each class (column) in each cluster (row); both in order of appearance."""
    classes, groups = as_labels(labels, "labels"), as_labels(clusters, "clusters")
    if not classes or len(classes) != len(groups):
        raise ValueError(
            f"labels has {len(classes)} items and clusters has {len(groups)}; expected equal numbers, not 0"
        )
    row_of = {name: r for r, name in enumerate(dict.fromkeys(groups))}
    column_of = {name: c for c, name in enumerate(dict.fromkeys(classes))}
    table = np.zeros((len(row_of), len(column_of)), dtype=np.intp)
    np.add.at(table, ([row_of[g] for g in groups], [column_of[c] for c in classes]), 1)
    return table, list(row_of), list(column_of)


def _alignments(
    X: FloatArray, Y: FloatArray, orders: list[IntArray], neighbors: int, name: str
) -> list[AlignmentScores]:
    """The measures with source i paired with target order[i], for each order."""
    n = len(X)
    if n < 2:
        raise ValueError(f"{name} pairs {n} items; relations need at least 2")
    losses: list[list[float]] = []
    for distortion in (MutualKNN(k=min(neighbors, n - 1)), CKA(), GromovWasserstein()):
        K, G = distortion.kernels(X, Y)
        losses.append([float(distortion.loss(K, G[np.ix_(order, order)]).sum()) for order in orders])
    return [AlignmentScores(-a, -b, c / n**2) for a, b, c in zip(*losses, strict=True)]


_CELLS = 2**22  # distances that are held at once


def foscttm(projected: ArrayLike, target: ArrayLike, truth: ArrayLike) -> tuple[float, float]:
    """Fraction of samples closer than the true match, in both directions; 0 is perfect, 0.5 is chance.

    Parameters
    ----------
    projected
        (n, e) the sources in the space of the targets; rows of nan for sources that are nowhere, which are left out.
    target
        (m, e) the targets.
    truth
        The true target of each source, -1 where it has none.

    Returns
    -------
    (from_source, from_target)
        The mean share of the other targets that are closer to a projected source than its true target is, and of the
        other projected sources that are closer to a target than its true source is. A tie counts half.

    Examples
    --------
    >>> foscttm([[0.0], [2.0], [9.0]], [[0.1], [9.0], [2.0]], truth=[0, 2, 1])
    (0.0, 0.0)
    """
    Y = as_floats(target, "target")
    given = as_array(projected, "projected")
    if given.dtype.kind not in "biuf":
        raise ValueError(f"projected has dtype {given.dtype}; expected real numbers")
    given = given.astype(np.float64)
    if given.ndim != 2 or given.shape[1] != Y.shape[1]:
        raise ValueError(f"projected has shape {given.shape}; expected rows of {Y.shape[1]} numbers, as target has")
    true = np.asarray(truth)
    if true.shape != (len(given),) or true.dtype.kind not in "iu" or ((true < -1) | (true >= len(Y))).any():
        raise ValueError(f"truth must hold a target below {len(Y)} or -1 for each of {len(given)} sources")
    placed = np.isfinite(given).all(axis=1)
    rows = np.flatnonzero(placed & (true >= 0))
    if not len(rows):
        raise ValueError("truth has no partner for any projected source: there is nothing to compare with")
    X = given[placed]
    own = np.cumsum(placed) - 1
    return _closer(given[rows], Y, true[rows]), _closer(Y[true[rows]], X, own[rows])


def _closer(points: FloatArray, among: FloatArray, true: IntArray) -> float:
    """Mean share of the others that are closer to a point than its true one."""
    nearer, equal = _ranks(points, among, true)
    return float((nearer + 0.5 * (equal - 1)).sum()) / (len(points) * max(1, len(among) - 1))


def top_k_of(projected: FloatArray, target: FloatArray, truth: IntArray, k: int) -> float:
    """Share of the sources with a true target for which it is among the k nearest; ties count as if broken at random.

    A row of nan is a miss.
    """
    rows = np.flatnonzero(truth >= 0)
    nearer, equal = _ranks(projected[rows], target, truth[rows])
    hits = np.where(equal > 0, np.clip((k - nearer) / np.maximum(equal, 1), 0.0, 1.0), 0.0)
    return float(hits.sum()) / max(1, len(rows))


def _ranks(points: FloatArray, among: FloatArray, true: IntArray) -> tuple[IntArray, IntArray]:
    """For each point, how many are nearer than its true one, and how many equally near: none for rows of nan."""
    nearer, equal = np.empty((2, len(points)), dtype=np.intp)
    tall = max(1, _CELLS // len(among))
    for start in range(0, len(points), tall):
        part = slice(start, start + tall)
        apart = cdist(points[part], among)
        own = np.take_along_axis(apart, true[part, None], axis=1)
        nearer[part], equal[part] = (apart < own).sum(axis=1), (apart == own).sum(axis=1)
    return nearer, equal


def label_transfer(
    projected: ArrayLike,
    target: ArrayLike,
    source_labels: Iterable[Hashable],
    target_labels: Iterable[Hashable],
    *,
    neighbors: int = 5,
) -> float:
    """Share of the sources whose label is that of most of the nearest targets in the space of the targets.

    >>> label_transfer([[0.0], [9.0]], [[0.1], [8.0]], ["a", "b"], ["a", "b"], neighbors=1)
    1.0
    """
    X, Y = as_floats(projected, "projected"), as_floats(target, "target")
    ours, theirs = as_labels(source_labels, "source_labels", len(X)), as_labels(target_labels, "target_labels", len(Y))
    number = {label: at for at, label in enumerate(dict.fromkeys(theirs))}
    judge = KNeighborsClassifier(min(at_least(neighbors, 1, "neighbors"), len(Y))).fit(Y, [number[t] for t in theirs])
    return float(np.mean(judge.predict(X) == np.array([number.get(label, -1) for label in ours])))
