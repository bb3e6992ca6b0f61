"""The match as a scikit-learn estimator, and the base class of the estimators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from blindmatch.geometry.feature_names import NamedOutput, titles_of
from blindmatch.geometry.views import Views
from blindmatch.io.embeddings import Embeddings
from blindmatch.matching.match import SolveOptions, match_task
from blindmatch.matching.projection import (
    Partners,
    chosen_count,
    distances_to_sources,
    mean_of_nearest,
    mean_partners,
    similar_matches,
)
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Solver
from blindmatch.solving.limits import TimeLimit
from blindmatch.validation import FloatArray, IntArray, as_array, as_threads, at_least, plain

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


def _titled(points: NDArray[Any], given: Any) -> Embeddings:
    """Points with the titles of their columns, for warnings."""
    return Embeddings(points.astype(np.float64), columns=titles_of(given, points.shape[1]))


@dataclass(eq=False, repr=False)  # its options are the arguments
class BlindMatcher(NamedOutput, TwoSetEstimator):
    """``bm.match`` as a scikit-learn estimator.

    Parameters
    ----------
    distortion, solver, standardize, scale, metric, similarity_weight, unmatched_cost, max_unmatched, time_limit
        As in ``bm.match``.
    n_neighbors, n_jobs
        `neighbors` and `threads` of ``bm.match``. None and -1: all processors; -2: all but one.
    kernel
        "embeddings": X and Y hold one point per row, and the distortion computes its kernel. "precomputed": they are
        the square kernels themselves, and the X of `predict` and `transform` holds the relations of new points (rows)
        to the sources of `fit` (columns).
    partners
        How many partners `transform` averages: those of the matched sources that are nearest to a point. With 1, the
        default, it gives the embedding of the target that `predict` gives; "auto" chooses as ``bm.project`` does.
    alternatives
        Further matches to make for `transform`: a partner is then the mean over those that cost about as much as the
        cheapest, as in ``bm.project``. `time_limit` does not cover them.
    random_state
        Seed.

    Attributes
    ----------
    permutation_, cost_, lower_bound_
        The match: source i belongs to target ``permutation_[i]``, or is unmatched if that is -1.
    result_
        The full ``bm.Result``.
    task_
        What was matched, as a ``bm.Task``: ``result_.task``.
    source_, target_
        The embeddings (or kernels) that were matched.
    partners_
        How many partners `transform` averages.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> matcher = bm.BlindMatcher(random_state=0).fit(X, X[[3, 1, 0, 2]])
    >>> matcher.predict([[4.9, 1.2]]).tolist()
    [3]
    """

    distortion: str | Distortion = "gw"
    solver: str | Solver = "auto"
    _: KW_ONLY
    kernel: Literal["embeddings", "precomputed"] = "embeddings"
    standardize: bool = True
    scale: str = "none"
    metric: str | tuple[str, str] = "euclidean"
    n_neighbors: int | tuple[int, int] | None = None
    similarity_weight: float = 1.0
    unmatched_cost: float | Literal["auto"] | None = None
    max_unmatched: int | None = None
    partners: Partners = 1
    alternatives: int = 0
    time_limit: TimeLimit = "auto"
    random_state: int | None = None
    n_jobs: int | None = None

    def fit(
        self,
        X: ArrayLike | Views,
        Y: ArrayLike | Views,
        *,
        known_pairs: Iterable[tuple[int, int]] = (),
        known: tuple[ArrayLike, ArrayLike] | None = None,
        forbidden_pairs: Iterable[tuple[int, int]] | ArrayLike = (),
        similarity: ArrayLike | None = None,
    ) -> BlindMatcher:
        """Match the rows of X with the rows of Y; the other arguments are those of ``bm.match``."""
        if self.kernel not in ("embeddings", "precomputed"):
            raise ValueError(f"kernel={self.kernel!r}; expected 'embeddings' or 'precomputed'")
        descents = at_least(self.alternatives, 0, "alternatives")
        precomputed = self.kernel == "precomputed"  # missing relations are counted below
        self.source_ = self._fitted_set(X, finite=not precomputed)
        self.target_ = self._second_set(Y, finite=not precomputed)
        self._name_output(Y, self.target_.shape[1])
        if precomputed and (isinstance(X, Views) or isinstance(Y, Views)):
            raise ValueError("kernel='precomputed' is given with Views, which are of embeddings")
        task = Task(
            None if precomputed else X if isinstance(X, Views) else _titled(self.source_, X),
            None if precomputed else Y if isinstance(Y, Views) else _titled(self.target_, Y),
            kernels=(self.source_, self.target_) if precomputed else None,
            distortion=self.distortion,
            standardize=self.standardize,
            scale=self.scale,
            metric=self.metric,
            neighbors=self.n_neighbors,
            known_pairs=known_pairs,
            known=known,
            forbidden_pairs=forbidden_pairs,
            similarity=similarity,
            similarity_weight=self.similarity_weight,
            unmatched_cost=self.unmatched_cost,
            max_unmatched=self.max_unmatched,
        )
        task.warn_of_units()
        threads = as_threads(self.n_jobs)
        options = SolveOptions(self.solver, self.time_limit, self.random_state, threads=threads)
        self.result_ = match_task(task, options)
        assert isinstance(self.result_.task, Task)
        self.task_ = self.result_.task
        self.permutation_ = self.result_.permutation
        self.cost_ = self.result_.cost
        self.lower_bound_ = self.result_.lower_bound
        matches = similar_matches(self.result_, self.task_, descents, rng=self.random_state, threads=threads)
        self._matched, self._ends = mean_partners(matches, self.target_)
        self.partners_ = 1
        if self.partners != 1 and len(self._matched):
            apart = distances_to_sources(self.task_)[np.ix_(self._matched, self._matched)]
            self.partners_, _ = chosen_count(apart, self._ends, self.partners)
        return self

    def predict(self, X: ArrayLike | Views) -> IntArray:
        """The target row for each new source point: the partner of the nearest matched source."""
        apart = self._apart(X)
        matched = np.flatnonzero(self.permutation_ >= 0)
        return np.asarray(self.permutation_[matched[apart[:, matched].argmin(axis=1)]])

    def transform(self, X: ArrayLike | Views) -> FloatArray:
        """The place of each new source point among the targets: the mean embedding of the partners of its neighbours.

        If the kernels are precomputed: the mean of their rows of relations to all targets.
        """
        return mean_of_nearest(self._apart(X)[:, self._matched], self._ends, self.partners_)

    def _apart(self, X: ArrayLike | Views) -> FloatArray:
        """Distances of new points to the sources."""
        check_is_fitted(self)
        points = self._new_points(X)
        if not (self.permutation_ >= 0).any():
            raise ValueError("the match left every item unmatched: nothing can be predicted")
        if self.kernel != "precomputed":
            scalings, views = self.task_.scalings, self.task_.views
            points = points if scalings is None else scalings[0].transform(points)
            if views[0] is not None and not self.task_.precomputed:  # too many items: the views are concatenated
                points = points * views[0].scales
            if views == (None, None) or not self.task_.precomputed:
                points = self.task_.distortion.prepared(points)
        return distances_to_sources(self.task_, points)

    def score(self, X: ArrayLike | Views, y: ArrayLike) -> float:
        """Share of source points whose predicted target is the true one, y."""
        predicted, truth = self.predict(X), as_array(y, "y")
        if truth.shape == (len(predicted), 1):
            truth = truth[:, 0]
        if truth.shape != predicted.shape:
            raise ValueError(f"y has shape {truth.shape}; expected {predicted.shape}, the true target of each row of X")
        return float(np.mean(predicted == truth))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
