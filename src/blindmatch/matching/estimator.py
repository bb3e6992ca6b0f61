"""What the estimators share: how scikit-learn wants inputs checked, and tags that say what `fit` takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from blindmatch.validation import plain

_FLOATS = [np.float64, np.float32]  # float32 stays as it is: k-means on it takes half the time and memory


class TwoSetEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose `fit` takes two sets of embeddings; the second one stands where others take labels."""

    def _fitted_set(self, X: ArrayLike) -> NDArray[Any]:
        """The first set: remembers how many features it has, and their names."""
        return np.asarray(validate_data(self, plain(X), dtype=_FLOATS))

    def _new_points(self, X: ArrayLike) -> NDArray[Any]:
        """Points of the first space: as many features as in `fit`, and the same names."""
        return np.asarray(validate_data(self, plain(X), dtype=_FLOATS, reset=False))

    def _second_set(self, Y: ArrayLike | None) -> NDArray[Any]:
        if Y is None:
            raise ValueError("Y: expected a second set. Expected array-like (array or non-string sequence), got None")
        return np.asarray(check_array(plain(Y), dtype=_FLOATS, input_name="Y", estimator=self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.target_tags.two_d_labels = True
        return tags
