"""One embedding for each class: the average over its images or its prompts (the paper's Eq. 1)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindmatch.geometry.kernels import unit_rows
from blindmatch.validation import FloatArray, as_floats, as_generator


def class_means(
    embeddings: ArrayLike,
    labels: Iterable[Hashable],
    *,
    classes: Sequence[Hashable] | None = None,
    fraction: float | None = None,
    rng: int | np.random.Generator | None = None,
    normalize: bool = True,
) -> tuple[NDArray[Any], FloatArray]:
    """The mean embedding of each class, scaled to unit length (a mean of zero stays zero).

    Parameters
    ----------
    embeddings, labels
        (n, d) outputs of a model, and the class of each: integers, strings or any hashable, sortable values.
    classes
        The classes in the order of the means; by default all classes that occur, sorted.
    fraction
        Average only this share of each class (rounded down, at least one item), drawn with `rng`. The paper's seeds
        each use a random half: ``fraction=0.5, rng=seed``.
    normalize
        Scale each embedding to unit length before averaging. If False, average them unchanged.

    Returns
    -------
    (classes, means)
        The c classes, and their means as a (c, d) array.

    Examples
    --------
    >>> classes, means = class_means([[2, 0], [0, 3], [0, 1]], ["dog", "cat", "cat"])
    >>> classes.tolist(), means.tolist()
    (['cat', 'dog'], [[0.0, 1.0], [1.0, 0.0]])
    """
    points = as_floats(embeddings, "embeddings")
    if fraction is not None and not 0 < fraction <= 1:
        raise ValueError(f"fraction={fraction!r}; expected 0 < fraction <= 1")
    members: dict[Any, list[int]] = {}
    for row, label in enumerate(as_labels(labels, "labels", len(points))):
        members.setdefault(label, []).append(row)
    try:
        names = sorted(members) if classes is None else as_labels(classes, "classes")
    except TypeError as error:
        raise ValueError(f"labels cannot be sorted ({error}); pass their order as classes=") from None
    _check_classes(names, members)
    generator = as_generator(rng)
    if normalize:
        points = unit_rows(points)
    means = np.empty((len(names), points.shape[1]))
    for c, name in enumerate(names):
        rows = np.array(members[name])
        if fraction is not None:
            count = max(1, math.floor(fraction * len(rows) + 1e-9))
            rows = np.sort(generator.choice(rows, count, replace=False))
        means[c] = points[rows].mean(axis=0)
    return _as_array(names), unit_rows(means)


def prompt_means(embeddings: ArrayLike | Sequence[ArrayLike], *, normalize: bool = True) -> FloatArray:
    """The mean over the prompts of each class: (classes, prompts, d), or a list of (prompts, d), to (classes, d).

    >>> prompt_means([[[2, 0], [1, 0]], [[0, 1], [0, 5]]]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    groups = [as_floats(group, f"embeddings[{c}]") for c, group in enumerate(embeddings)]  # type: ignore[arg-type]
    if not groups:
        raise ValueError("embeddings is empty; expected (classes, prompts, d)")
    widths = sorted({group.shape[1] for group in groups})
    if len(widths) > 1:
        raise ValueError(f"embeddings has classes of {widths[0]} and of {widths[-1]} dimensions; expected the same")
    return unit_rows(np.array([(unit_rows(group) if normalize else group).mean(axis=0) for group in groups]))


def as_labels(labels: Iterable[Hashable], name: str, length: int | None = None) -> list[Any]:
    """Return plain Python labels: hashable, none missing, and `length` of them if it is given."""
    items = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if not isinstance(items, list) or (isinstance(labels, np.ndarray) and labels.ndim != 1):
        raise ValueError(f"{name} has shape {getattr(labels, 'shape', ())}; expected one axis")
    if length is not None and len(items) != length:
        raise ValueError(f"{name} has {len(items)} items; expected {length}, one for each embedding")
    for position, item in enumerate(items):
        if not isinstance(item, Hashable):
            raise ValueError(f"{name} holds {item!r} at [{position}]; expected something hashable")
        if _is_missing(item):
            raise ValueError(f"{name} holds {item!r} at [{position}]; a label is missing")
    return items


def _is_missing(item: Any) -> bool:
    """Return True for None, nan, NaT or pandas' NA (which raises when compared with itself)."""
    try:
        return item is None or bool(item != item)
    except (TypeError, ValueError):
        return True


def _check_classes(names: list[Any], members: dict[Any, list[int]]) -> None:
    if len(set(names)) != len(names):
        raise ValueError("classes holds a class twice")
    for name in names:
        if name not in members:
            raise ValueError(f"class {name!r} is empty: no label has this value")
    for label in members:
        if label not in set(names):
            raise ValueError(f"labels holds {label!r}, which is not among classes")


def _as_array(names: list[Any]) -> NDArray[Any]:
    kinds = {type(name) for name in names}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(names)
    array = np.empty(len(names), dtype=object)  # or tuples become a second axis, and numbers become strings
    array[:] = names
    return array
