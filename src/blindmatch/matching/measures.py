"""How far from the truth projected items are: measures that allow for more than one good partner."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier

from blindmatch.geometry.prototypes import as_labels
from blindmatch.validation import FloatArray, IntArray, as_array, as_floats, at_least

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
