"""Names of the columns that an estimator makes, for scikit-learn's `set_output`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from blindmatch.geometry.views import Views


def titles_of(values: Any, width: int) -> tuple[str, ...] | None:
    """The titles of the columns of a data frame, if all are text."""
    titles = () if isinstance(values, Views) else tuple(getattr(values, "columns", ()))
    return titles if len(titles) == width and all(isinstance(title, str) for title in titles) else None


class NamedOutput(TransformerMixin):
    """A transformer to the space of a second set, whose columns it names."""

    def _name_output(self, Y: Any, width: int) -> None:
        """Keep the titles of Y; without titles that are text, they are the name of the class and a number."""
        titles = titles_of(Y, width) or [f"{type(self).__name__.lower()}{at}" for at in range(width)]
        self._titles = np.array(titles, dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The titles of the columns that `transform` makes: those of Y; `input_features` is ignored."""
        check_is_fitted(self)
        return self._titles
