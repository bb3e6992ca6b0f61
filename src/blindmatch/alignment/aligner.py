"""Align two spaces without known pairs: different items on each side, in any numbers and dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from blindmatch.alignment.frame import Frame, Points, as_points, axes_above_noise, fit_frames
from blindmatch.alignment.map import Metrics, Scalings, SpaceMap, as_coordinates, embedded
from blindmatch.alignment.neighbours import nearest
from blindmatch.alignment.rotation import Anchors
from blindmatch.alignment.search import Plan, Step, search
from blindmatch.geometry.column_scaling import ColumnScaling, warn_of_units
from blindmatch.geometry.feature_names import NamedOutput
from blindmatch.geometry.views import Views
from blindmatch.problem.known import FEWEST, Known
from blindmatch.solvers.base import Solver
from blindmatch.solving.run import as_solver
from blindmatch.validation import FloatArray, IntArray, as_generator, as_threads, at_least, positive

_COMPONENTS = 256  # default dimension of the common space
_LEAST, _POINTS = 32, 40  # small sets get one dimension per _POINTS points, and at least _LEAST
_ENOUGH = 10_000  # rows that show whether one column outweighs the others
_CLEAR = 0.1  # least (ceiling - floor) / ceiling for a score; images have 0.4, shapeless normal points 0.02


@dataclass(eq=False, repr=False)  # its options are the arguments
class BlindAligner(NamedOutput, BaseEstimator):
    """Map one embedding space to another without known pairs; the sides need not share items or have the same size.

    Both sides are centred, rotated to their principal axes and scaled to unit length. k-means gives several sets of
    centres on each side. Every two sets are matched blindly, and the cheapest matches are solved with a proof. Each
    match gives a rotation (Procrustes) that is refined on mutual nearest neighbours. The rotation under which the two
    sets overlap best is kept.

    Parameters
    ----------
    n_components
        Dimension of the common space, at most that of the smaller space. By default one per 40 points of the smaller
        set; with four known pairs or more, the number of axes above the noise on either side (Gavish and Donoho
        2014). Both are kept between 32 and 256.
    n_clusters
        Centres on each side.
    n_clusterings
        Number of k-means runs on each side; each run is matched with each run of the other side.
    n_candidates
        Number of the cheapest matches that are solved with a proof and refined.
    scale
        As in ``bm.match``, with the same warning: how the columns of tables with units are scaled first. Points are
        mapped to the units of the other side.
    metric
        How dissimilar two points of one set are, or a pair where the sides differ: "euclidean", "cosine" (rows are
        scaled to unit length) or "correlation" (after their mean is subtracted). Points are then mapped to such rows
        of the other side, so compare directions. Other metrics have no coordinates to rotate: use ``bm.match`` and
        ``bm.project``.
    solver
        As in ``bm.match``, for matching the centres of each candidate, in up to 5 s.
    time_limit
        Seconds for the whole fit. What does not fit in is left out: clusterings, candidates, rounds of refinement, and
        `chance_`. The principal axes, one candidate and the overlaps are always computed. None: no limit.
    n_iterations
        Rounds of refinement of each candidate, and again of the best one.
    sample_size
        Points on each side that the last rounds use.
    random_state
        Seed. The same seed gives the same map, unless the time limit stops a match early.
    n_jobs
        Number of threads. None and -1: all processors; -2: all but one.

    Attributes
    ----------
    alignment_
        The map: frames of both sides and the rotation between them.
    result_
        The match of the centres from which the map was refined, with its bound and its certificate.
    source_centres_, target_centres_
        These centres, in coordinates along the leading axes of their side.
    candidates_, best_
        The refined candidates, ordered by the cost of a first quick match, and the index of the one under which unseen
        points overlap best. It is refined further, except with four known pairs or more: the map then starts from all
        matches of centres together.
    support_
        Number of the other candidates that led to the same map from different starts: for at least a fifth of the
        unseen points (of all points, if there are fewer than 50) both maps have the same nearest target. Maps between
        sets without a common shape differ from start to start, so do not trust a map with support 0. Support is not a
        proof: in very few dimensions wrong maps agree too. The `known` pairs are shared out among the candidates, so
        that these do not agree because of them.
    score_
        How well the two sets overlap. 0: like after a random rotation. 1: like two halves of one set. In few dimensions
        any two clouds can be made to overlap quite well, so only compare scores of the same two sets. With four known
        pairs or more all points are used for the map, so the score is that of the best candidate. nan if the score
        would mean nothing: two halves of a shapeless cloud overlap hardly better than after a random rotation, and
        fewer than 50 points leave none to keep unseen.
    chance_
        The score that an unrelated cloud reaches: one with the target's spread along each axis and no shape, refined in
        the same way. nan if the search was cut short.
    interrupted_, limited_
        Whether Ctrl-C, or the time limit, cut the search short: fewer candidates, or a best one that is less refined.
    overlap_, floor_, ceiling_
        The parts of the score; `ceiling_` is nan for fewer than 50 points.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> rng = np.random.default_rng(0)
    >>> kinds = rng.normal(size=(60, 5)) * [3, 2, 2, 1, 1]
    >>> draw = lambda n: kinds[rng.integers(60, size=n)] + 0.1 * rng.normal(size=(n, 5))
    >>> turn = np.linalg.qr(rng.normal(size=(9, 5)))[0].T
    >>> aligner = bm.BlindAligner(n_clusters=8, n_clusterings=4, n_candidates=2, random_state=0)
    >>> aligner = aligner.fit(draw(800), draw(700) @ turn)
    >>> new = draw(3)
    >>> bool(np.abs(aligner.transform(new) - new @ turn).max() < 0.5)
    True
    """

    n_components: int | None = None
    _: KW_ONLY
    n_clusters: int = 20
    n_clusterings: int = 8
    n_candidates: int = 5
    scale: str = "none"
    metric: str | tuple[str, str] = "euclidean"
    solver: str | Solver = "auto"
    time_limit: float | None = None
    n_iterations: int = 20
    sample_size: int = 5000
    random_state: int | None = None
    n_jobs: int | None = None

    def fit(
        self,
        X: ArrayLike | Views,
        Y: ArrayLike | Views,
        *,
        known: tuple[ArrayLike | Views, ArrayLike | Views] | None = None,
        callback: Step | None = None,
    ) -> BlindAligner:
        """Align X (n, d) with Y (m, e); `callback` gets the name of each step, the parts that are done and their total.

        Either may be ``bm.Views`` of several models: the map then leads from or to their columns, side by side, and
        new points are given as views or as such columns.

        `known` is a pair of arrays: points of X's space, in X or not, and their partners in Y's space. They count in
        the matches of centres, and in every round of the refinement. From four pairs on, the last rounds pair all
        points one to one instead of mutual neighbours.

        After a first candidate has been refined, Ctrl-C ends the fit with the best map so far.
        """
        source, target = as_points(X, "X"), as_points(Y, "Y")
        given = None if known is None else Known.of(known, (source.shape[1], target.shape[1])).given
        plan, metrics = self._plan((len(source), len(target)), callback), as_coordinates(self.metric)
        scalings = None
        if self.scale == "none":
            parts: list[tuple[str, FloatArray, None]] = []
            for name, side, points in (("X", X, source), ("Y", Y, target)):
                some = np.asarray(points[:: math.ceil(len(points) / _ENOUGH)], dtype=np.float64)
                parts += [(name, part, None) for part in (side.split(some) if isinstance(side, Views) else [some])]
            warn_of_units(parts)
        if self.scale != "none" or isinstance(X, Views) or isinstance(Y, Views):
            raw = source.astype(np.float64), target.astype(np.float64)
            first, second = ColumnScaling.pair(*raw, self.scale)
            scalings = _for_views(first, X, raw[0], "X"), _for_views(second, Y, raw[1], "Y")
            source, target = scalings[0].transform(raw[0]), scalings[1].transform(raw[1])
        source, target = embedded(source, metrics[0], "X"), embedded(target, metrics[1], "Y")
        with threadpool_limits(plan.threads):
            if given is not None and len(given[0]) >= FEWEST:
                axes = max(axes_above_noise(side) for side in (source, target))
            else:
                axes = min(len(source), len(target)) // _POINTS
            wanted = self.n_components or min(_COMPONENTS, max(_LEAST, axes))
            frames = fit_frames(source, target, wanted, plan.report)
            a, b = frames[0].directions(source), frames[1].directions(target)
            pairs = None if given is None else _anchors(given, frames, scalings, metrics)
            found = search(a, b, plan, pairs)
        self.alignment_ = SpaceMap(*frames, found.rotation, scalings, metrics)
        self.candidates_, self.best_, self.interrupted_ = found.candidates, found.best, found.interrupted
        self.limited_ = found.limited
        chosen = found.candidates[found.best]
        self.result_ = chosen.result
        self.source_centres_, self.target_centres_ = chosen.source_centres, chosen.target_centres
        self.overlap_, self.floor_, self.ceiling_ = found.overlap, found.floor, found.ceiling
        room = found.ceiling - found.floor
        clear = room > _CLEAR * abs(found.ceiling)
        self.score_ = (found.overlap - found.floor) / room if clear else math.nan
        self.chance_ = (found.chance - found.floor) / room if clear else math.nan
        self.support_ = found.support
        self.target_directions_: Points | None = b
        self.n_features_in_ = source.shape[1]
        self._widths = tuple(side.widths if isinstance(side, Views) else None for side in (X, Y))
        self._name_output(Y, target.shape[1])
        return self

    def transform(self, X: ArrayLike | Views) -> FloatArray:
        """Map points of X's space to Y's space."""
        check_is_fitted(self, "alignment_")
        return self.alignment_.forward(self._points(X, "X", 0))

    def inverse_transform(self, Y: ArrayLike | Views) -> FloatArray:
        """Map points of Y's space to X's space."""
        check_is_fitted(self, "alignment_")
        return self.alignment_.backward(self._points(Y, "Y", 1))

    def kneighbors(
        self, X: ArrayLike | Views, n_neighbors: int = 10, *, candidates: ArrayLike | Views | None = None
    ) -> tuple[FloatArray, IntArray]:
        """The nearest targets of each point of X's space, nearest first.

        Parameters
        ----------
        candidates
            Points of Y's space to choose from: by default the Y of ``fit``.

        Returns
        -------
        Cosine distances in the common space, and row numbers of the candidates: both (n, n_neighbors).
        """
        check_is_fitted(self, "alignment_")
        queries = self.alignment_.directions(self._points(X, "X", 0))
        pool = self.target_directions_ if candidates is None else self._targets(candidates, "candidates")
        if pool is None:
            raise ValueError("candidates=None: a loaded map has no targets; pass candidates")
        if at_least(n_neighbors, 1, "n_neighbors") > len(pool):
            raise ValueError(f"n_neighbors={n_neighbors}; there are {len(pool)} candidates")
        cosines, indices = nearest(queries, pool, n_neighbors)
        return 1.0 - cosines, indices

    def similarity(self, X: ArrayLike | Views, Y: ArrayLike | Views) -> FloatArray:
        """(n, m) cosines between points of X's space and of Y's space, in the common space."""
        check_is_fitted(self, "alignment_")
        ours = self.alignment_.directions(self._points(X, "X", 0))
        return np.asarray(ours @ self._targets(Y, "Y").T, dtype=np.float64)

    def score(self, X: ArrayLike | Views, Y: ArrayLike | Views, ks: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
        """How well the map finds the partners of new points: row i of X belongs to row i of Y.

        Returns
        -------
        "foscttm", the fraction of samples closer than the true match, averaged over both directions (0 is perfect, 0.5
        is chance), and "top1", "top5", ...: the share of sources whose partner is among so many most similar targets.
        """
        cosines = self.similarity(X, Y)
        n, m = cosines.shape
        if n != m or n < 2:
            raise ValueError(f"X has {n} rows and Y has {m}; expected as many, at least 2: row i belongs to row i")
        own = np.diag(cosines)
        better = (cosines > own[:, None]) + 0.5 * ((cosines == own[:, None]) & ~np.eye(n, dtype=bool))
        worse = (cosines > own[None]) + 0.5 * ((cosines == own[None]) & ~np.eye(n, dtype=bool))
        found = {"foscttm": float(better.sum() + worse.sum()) / (2 * n * (n - 1))}
        ranks = better.sum(axis=1)
        return found | {f"top{at_least(k, 1, 'ks')}": float((ranks < k).mean()) for k in ks}

    def save(self, path: str | Path) -> None:
        """Write the map to an ``.npz`` file, without the points that it was fitted to."""
        check_is_fitted(self, "alignment_")
        self.alignment_.save(path, score=np.array(self.score_), support=np.array(self.support_))

    @classmethod
    def load(cls, path: str | Path) -> BlindAligner:
        """Read a map that `save` wrote, for `transform` and for `kneighbors` among given candidates."""
        found, more = SpaceMap.load(path)
        aligner = cls(scale="none" if found.scalings is None else found.scalings[0].scale, metric=found.metrics)
        aligner.alignment_ = found
        kinds = {name: (value.shape, value.dtype.kind) for name, value in more.items()}
        if kinds != {"score": ((), "f"), "support": ((), "i")}:
            raise ValueError(f"{path}: expected the numbers score and support with the map; found {', '.join(more)}")
        aligner.score_, aligner.support_ = float(more["score"]), int(more["support"])
        aligner.target_directions_, aligner._widths = None, (None, None)
        aligner.n_features_in_ = len(found.source.mean)
        aligner._name_output(None, len(found.target.mean))
        return aligner

    def _points(self, values: ArrayLike | Views, name: str, side: int) -> Points:
        """Points of the source (0) or the target (1), checked."""
        frame, widths = (self.alignment_.source, self.alignment_.target)[side], self._widths[side]
        if isinstance(values, Views) and widths is not None and values.widths != widths:
            raise ValueError(f"{name} has views of {values.widths} columns; the aligner was fitted with {widths}")
        return as_points(values, name, len(frame.mean))

    def _targets(self, values: ArrayLike | Views, name: str) -> Points:
        """Directions of points of Y's space."""
        points = self.alignment_.prepared(self._points(values, name, 1), 1, name)
        return self.alignment_.target.directions(points)

    def _plan(self, sizes: tuple[int, int], callback: Step | None) -> Plan:
        """Check the options."""
        if self.n_components is not None:
            at_least(self.n_components, 2, "n_components")
        clusters = at_least(self.n_clusters, 3, "n_clusters")
        for name, size in zip("XY", sizes, strict=True):
            # A fifth of the points is held out.
            if size < 2 * clusters:
                raise ValueError(f"{name} has {size} rows; n_clusters={clusters} needs at least {2 * clusters}")
        return Plan(
            clusters,
            at_least(self.n_clusterings, 1, "n_clusterings"),
            at_least(self.n_candidates, 1, "n_candidates"),
            as_solver(self.solver),
            None if self.time_limit is None else positive(self.time_limit, "time_limit"),
            at_least(self.n_iterations, 1, "n_iterations"),
            at_least(self.sample_size, 10, "sample_size"),
            as_threads(self.n_jobs),
            as_generator(self.random_state),
            callback or (lambda step, done, total: None),
        )


def _for_views(scaling: ColumnScaling, given: ArrayLike | Views, columns: FloatArray, name: str) -> ColumnScaling:
    """The scaling of a side that also brings several views to one scale, by their weights."""
    if not isinstance(given, Views):
        return scaling
    if not given.weights.all():
        raise ValueError(f"{name} has a view of weight 0, into which no point can be mapped; leave it out")
    return replace(scaling, spread=scaling.spread / given.like(scaling.transform(columns)).scales)


def _anchors(
    known: tuple[FloatArray, FloatArray], frames: tuple[Frame, Frame], scalings: Scalings | None, metrics: Metrics
) -> Anchors:
    """Known pairs as directions in the frames of both sides."""
    scaled = known if scalings is None else tuple(s.transform(side) for s, side in zip(scalings, known, strict=True))
    rows = (
        embedded(side, metric, f"known[{at}]") for at, (side, metric) in enumerate(zip(scaled, metrics, strict=True))
    )
    first, second = (frame.directions(side) for frame, side in zip(frames, rows, strict=True))
    return first, second
