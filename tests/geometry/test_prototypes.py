"""Class means and prompt means."""

import numpy as np
import pytest

from blindmatch.geometry.prototypes import class_means, prompt_means


def test_equals_the_papers_equation():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(50, 6)), rng.integers(4, size=50)
    before = X.copy()
    classes, means = class_means(X, labels)
    assert classes.tolist() == [0, 1, 2, 3]
    for c in range(4):
        rows = X[labels == c]
        mean = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).mean(axis=0)
        np.testing.assert_allclose(means[c], mean / np.linalg.norm(mean))
        raw = rows.mean(axis=0)
        np.testing.assert_allclose(class_means(X, labels, normalize=False)[1][c], raw / np.linalg.norm(raw))
    assert np.array_equal(X, before)


def test_half_is_drawn_within_each_class_by_seed():
    X = np.eye(10)  # the non-zero entries of a mean tell which rows it averages
    labels = ["b"] * 6 + ["a"] * 3 + ["c"]
    classes, means = class_means(X, labels, fraction=0.5, rng=3)
    assert classes.tolist() == ["a", "b", "c"]
    assert [(row > 0).sum() for row in means] == [1, 3, 1]
    assert means[1, 6:].max() == means[0, :6].max() == 0
    assert np.array_equal(means, class_means(X, labels, fraction=0.5, rng=3)[1])
    assert len({tuple(class_means(X, labels, fraction=0.5, rng=s)[1][1] > 0) for s in range(20)}) > 5


@pytest.mark.parametrize(
    "labels", [[2, 0, 1, 0], ["x", "é", "b", "é"], [(1, 2), (0, 1), (0, 2), (0, 1)], np.array([2.5, 0, 1, 0])]
)
def test_labels_of_any_kind(labels):
    classes, means = class_means(np.eye(4), labels)
    items = list(labels)
    assert list(classes) == sorted(set(items))
    assert classes.ndim == 1
    for name, mean in zip(classes, means, strict=True):
        assert np.array_equal(mean > 0, [item == name for item in items])


def test_classes_fix_the_order():
    classes, means = class_means(np.eye(3), ["a", "b", 1], classes=[1, "b", "a"])
    assert classes.tolist() == [1, "b", "a"]
    assert np.array_equal(means, np.eye(3)[::-1])


@pytest.mark.parametrize(
    ("embeddings", "labels", "options", "message"),
    [
        (np.eye(3), [0, 1], {}, "labels has 2 items; expected 3"),
        (np.eye(2), [0, None], {}, r"labels holds None at \[1\]; a label is missing"),
        (np.eye(2), [0.0, np.nan], {}, r"labels holds nan at \[1\]"),
        (np.eye(2), [0, []], {}, "hashable"),
        (np.eye(2), np.eye(2), {}, "labels has shape"),
        (np.eye(2), [0, "a"], {}, "cannot be sorted"),
        (np.eye(2), [0, 1], {"classes": [0, 1, 2]}, "class 2 is empty"),
        (np.eye(2), [0, 1], {"classes": [0]}, "labels holds 1"),
        (np.eye(2), [0, 1], {"classes": [0, 0, 1]}, "twice"),
        (np.eye(2), [0, 1], {"fraction": 0.0}, "fraction=0.0"),
        (np.eye(2), [0, 1], {"fraction": 1.5}, "fraction=1.5"),
        ([[1, np.nan]], [0], {}, "embeddings holds nan"),
        (np.empty((0, 3)), [], {}, "embeddings is empty"),
    ],
)
def test_bad_input(embeddings, labels, options, message):
    with pytest.raises(ValueError, match=message):
        class_means(embeddings, labels, **options)


@pytest.mark.parametrize("dtype", ["Int64", "string", "category", "object"])
def test_a_label_that_pandas_calls_missing(dtype):
    pd = pytest.importorskip("pandas")
    labels = pd.Series([1, pd.NA, 1] if dtype == "Int64" else ["a", pd.NA, "b"], dtype=dtype)
    with pytest.raises(ValueError, match=r"^labels holds .* at \[1\]; a label is missing"):
        class_means(np.eye(3), labels)


def test_prompt_means_equal_class_means():
    rng = np.random.default_rng(1)
    prompts = rng.normal(size=(5, 7, 4))
    _, expected = class_means(prompts.reshape(35, 4), np.repeat(np.arange(5), 7))
    np.testing.assert_allclose(prompt_means(prompts), expected)
    np.testing.assert_allclose(prompt_means([prompts[0], prompts[1, :3]])[0], expected[0])


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        (np.ones((2, 0, 3)), r"embeddings\[0\] is empty"),
        ([], "embeddings is empty"),
        (np.ones((2, 3)), r"embeddings\[0\] has shape"),
        ([np.ones((1, 2)), np.ones((1, 3))], "2 and of 3 dimensions"),
        ([[[1, np.inf]]], "holds inf"),
    ],
)
def test_bad_prompts(prompts, message):
    with pytest.raises(ValueError, match=message):
        prompt_means(prompts)
