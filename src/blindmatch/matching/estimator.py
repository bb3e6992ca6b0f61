"""The base class of the estimators: input checks and tags for scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from blindmatch.geometry.views import Views
from blindmatch.validation import plain

_FLOATS = [np.float64, np.float32]  # float32 is kept: k-means on it takes half the time and memory


class TwoSetEstimator(BaseEstimator):
    """An estimator whose `fit` takes two sets of embeddings; the second one takes the place of labels."""

    def _fitted_set(self, X: ArrayLike | Views, *, finite: bool = True) -> NDArray[Any]:
        """Check the first set, and remember the number of features and their names."""
        return np.asarray(validate_data(self, _columns(X), dtype=_FLOATS, ensure_all_finite=finite))

    def _new_points(self, X: ArrayLike | Views) -> NDArray[Any]:
        """Check points of the first space: the same features, with the same names, as in `fit`."""
        return np.asarray(validate_data(self, _columns(X), dtype=_FLOATS, reset=False))

    def _second_set(self, Y: ArrayLike | Views | None, *, finite: bool = True) -> NDArray[Any]:
        if Y is None:
            raise ValueError("Y: expected a second set. Expected array-like (array or non-string sequence), got None")
        checked = check_array(_columns(Y), dtype=_FLOATS, ensure_all_finite=finite, input_name="Y", estimator=self)
        return np.asarray(checked)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.target_tags.two_d_labels = True
        return tags


def _columns(values: Any) -> Any:
    """What scikit-learn checks: an array, or the views of a set side by side."""
    return values.columns if isinstance(values, Views) else plain(values)
