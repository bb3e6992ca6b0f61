"""Several models of one side: what each says about the same items, as one relation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import shown
from blindmatch.geometry.correlation import correlation
from blindmatch.io.embeddings import Embeddings, as_embeddings, has_views, load_embeddings
from blindmatch.validation import FloatArray, as_floats

Kernel = Callable[[FloatArray], FloatArray]


class Views:
    """Embeddings of the same items by several models, in place of the embeddings of one side.

    The relation between two items of the side is the weighted mean of what the views say, each brought to a common
    scale first (unless ``standardize=False``), and the match remains one assignment problem with its proof.

    Parameters
    ----------
    views
        (n, d), (n, e), ... arrays, or tables or paths as ``bm.match`` takes them: row i of each is the same item. Any
        number of views, any dimensions. The items have the names of the first view that has any.
    weights
        How much each view counts; by default all the same.
    labels
        What to call the views, in reports; by default "view 1", "view 2", ...

    Attributes
    ----------
    columns
        (n, d + e + ...) the views side by side.
    widths
        How many columns each view has.
    weights
        The weights, which sum to 1.
    names
        The names of the items, if a view has any.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> models = bm.Views(X, 3 * X[:, ::-1], weights=[2, 1])
    >>> bm.match(models, X[[3, 1, 0, 2]], rng=0).permutation.tolist()
    [2, 1, 3, 0]
    """

    def __init__(self, *views: Any, weights: ArrayLike | None = None, labels: Sequence[str] | None = None) -> None:
        if not views:
            raise ValueError("Views() holds no view; expected one array or more")
        read = [as_embeddings(view, f"views[{at}]") for at, view in enumerate(views)]
        arrays, self.names = [one.values for one in read], next((one.names for one in read if one.names), None)
        for at, array in enumerate(arrays):
            if len(array) != len(arrays[0]):
                raise ValueError(
                    f"views[{at}] has {len(array)} items and views[0] has {len(arrays[0])}; expected the same items, "
                    "in the same order"
                )
            own = read[at].names
            if own and self.names and own != self.names:
                pair = next((a, b) for a, b in zip(own, self.names, strict=True) if a != b)
                raise ValueError(f"views[{at}] has an item {pair[0]!r} where another view has {pair[1]!r}")
        if labels is not None and len(labels) != len(views):
            raise ValueError(f"labels has {len(labels)} items; expected {len(views)}, one for each view")
        self.columns = np.hstack(arrays)
        self.widths = tuple(array.shape[1] for array in arrays)
        self.weights = as_weights(weights, len(arrays), "views") / len(arrays)
        self.weights = self.weights / self.weights.sum()
        self.labels = tuple(map(str, labels)) if labels else tuple(f"view {at + 1}" for at in range(len(arrays)))

    @classmethod
    def of(cls, given: Any) -> Views | None:
        """The views of a side that has several: views, "a.npy+b.npy", or a file of views; None of other sides."""
        if isinstance(given, str | Path) and has_views(given):
            given = load_embeddings(given)
        if isinstance(given, Embeddings) and given.parts:
            views = cls(*(values for _, values in given.parts), labels=[stem for stem, _ in given.parts])
            views.names = given.names
            return views
        return given if isinstance(given, cls) else None

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"Views({len(self.widths)} views of {len(self)} items: {', '.join(map(str, self.widths))} dimensions)"

    def split(self, columns: FloatArray) -> list[FloatArray]:
        """The columns of each view."""
        return np.split(columns, np.cumsum(self.widths)[:-1], axis=1)

    def like(self, columns: FloatArray) -> Views:
        """Other items, or the same with other columns, seen by the same models."""
        return Views(*self.split(columns), weights=self.weights, labels=self.labels)

    def relation(self, kernel: Kernel, spread: Callable[[FloatArray], float], name: str) -> FloatArray:
        """The weighted mean of the kernels of all views, each divided by its spread."""
        kernels = [kernel(view) for view in self.split(self.columns)]
        if len(kernels) == 1:
            return kernels[0]
        total = np.zeros((len(self), len(self)))
        for label, each, weight in zip(self.labels, kernels, self.weights, strict=True):
            size = spread(each)
            if not weight:
                continue
            if size <= 0 and len(self) > 1:
                raise ValueError(f"{name}: all items of {label!r} are equally far apart; such a view says nothing")
            total += weight * each / (size or 1.0)
        return total

    @property
    def scales(self) -> FloatArray:
        """The factor of each column, so that the mean squared distance of each view is twice its weight."""
        spreads = [float(np.sqrt(view.var(axis=0).sum())) for view in self.split(self.columns)]
        return np.repeat([np.sqrt(w) / (s or 1.0) for s, w in zip(spreads, self.weights, strict=True)], self.widths)

    def concatenated(self) -> FloatArray:
        """The views side by side as one space, each on the same scale: for what takes only one space."""
        return np.asarray(self.columns * self.scales)

    def agreement(self, kernel: Kernel) -> FloatArray:
        """(v, v) correlations of the relations that each two views see; nan where one is constant."""
        off = ~np.eye(len(self), dtype=bool)
        relations = [kernel(view)[off] for view in self.split(self.columns)]
        found = [[correlation(a, b) if a.size else None for b in relations] for a in relations]
        return np.array(found, dtype=np.float64)


def as_weights(weights: ArrayLike | Iterable[float] | None, count: int, of: str) -> FloatArray:
    """Positive sum, none negative, one for each; by default ones."""
    if weights is None:
        return np.ones(count)
    array = as_floats(weights, "weights", ndim=1)  # type: ignore[arg-type]
    if len(array) != count:
        raise ValueError(f"weights has {len(array)} numbers; expected {count}, one for each of the {of}")
    if array.min() < 0 or not 0 < array.sum() < np.inf:
        raise ValueError(f"weights={shown(weights)}; expected numbers of at least 0, not all of them 0")
    return array
