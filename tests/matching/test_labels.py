"""A classifier that is told the classes of some images."""

from __future__ import annotations

import numpy as np
import pytest

import blindmatch as bm

SQUARE = np.array([[0.0, 0.0], [0.0, 6.0], [6.0, 0.0], [6.0, 6.0]])  # nothing tells the corners apart
NAMES = ["a", "b", "c", "d"]


def images() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=200)
    return SQUARE[truth] + 0.3 * rng.standard_normal((200, 2)), truth


def test_a_few_labels_tell_what_relations_cannot() -> None:
    X, truth = images()
    labels: list[object] = [-1] * 200
    for c in (0, 1):
        labels[int(np.flatnonzero(truth == c)[0])] = NAMES[c]
    model = bm.BlindClassifier(n_init=3, random_state=0).fit(X, SQUARE, classes=NAMES, labels=labels)
    assert model.score(X, np.array(NAMES)[truth]) == 1.0
    assert model.task_.hints.known == ((0, 0), (1, 1))


def test_all_classes_labelled_need_one_start() -> None:
    X, truth = images()
    labels = np.where(np.arange(200) < 60, truth, -1)
    model = bm.BlindClassifier(random_state=0).fit(X, SQUARE, labels=labels)
    assert model.n_init_ == 1
    assert model.score(X, truth) == 1.0


def test_bad_labels() -> None:
    X, _ = images()
    with pytest.raises(ValueError, match=r"labels holds 7 at \[0\]; expected one of the classes, or -1"):
        bm.BlindClassifier().fit(X, SQUARE, labels=[7] * 200)
    with pytest.raises(ValueError, match="labels has 3 items; expected 200"):
        bm.BlindClassifier().fit(X, SQUARE, labels=[0, 1, 2])
    with pytest.raises(ValueError, match="labels has 4 classes; n_clusters=2"):
        bm.BlindClassifier(n_clusters=2).fit(X, SQUARE, labels=np.arange(200) % 4)
