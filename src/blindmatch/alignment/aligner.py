"""Two spaces joined without a pair: different items on each side, any numbers of them, any dimensions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from blindmatch.alignment.frame import Points, as_points, fit_frames
from blindmatch.alignment.map import SpaceMap
from blindmatch.alignment.neighbours import nearest
from blindmatch.alignment.search import Plan, Step, search
from blindmatch.solvers.base import Solver
from blindmatch.solving.run import as_solver
from blindmatch.validation import FloatArray, IntArray, at_least, positive

_COMPONENTS = 256  # of the common space, unless told otherwise
_LEAST, _POINTS = 32, 40  # but of small sets so many at least, and one for so many points
_ALIKE = 0.2  # share of equal nearest neighbours from which two maps count as the same (benchmarks/README.md)
_CLEAR = 0.1  # share of the ceiling that it must be above the floor; images 0.4, normal points without a shape 0.02


class BlindAligner(BaseEstimator):  # type: ignore[misc]
    """Map one embedding space to another without a single pair: different items on each side, in any numbers.

    Both sides are centred, turned to their principal axes and scaled to unit length. k-means gives several sets of
    centres on each side; every two are matched blind, and the cheapest matches are solved with a proof. Each gives a
    rotation (Procrustes) that is refined on mutual nearest neighbours. The rotation under which the two sets lie best
    on each other is kept.

    Parameters
    ----------
    n_components
        Dimension of the common space, at most that of the smaller space: by default one for 40 points of the smaller
        set, between 32 and 256.
    n_clusters
        Centres on each side.
    n_clusterings
        Runs of k-means on each side; each is matched with each of the other side.
    n_candidates
        How many of the cheapest matches are solved with a proof and refined.
    solver, time_limit
        As in ``bm.match``, for the match of the centres of one candidate.
    n_iterations
        Rounds of refinement, of each candidate and again of the best.
    sample_size
        Points on each side that the last rounds look at.
    random_state
        Seed. The same one gives the same map, unless the time limit cuts a match short and the clock decides.
    threads
        How many to use; all cores by default.

    Attributes
    ----------
    alignment_
        The map: frames of both sides and the rotation between them.
    result_
        The match of the centres that the map grew from, with its bound and its certificate.
    source_centres_, target_centres_
        These centres, along the leading axes of their sides.
    candidates_, best_
        What was refined, in the order of the costs of a first quick match, and the index of the one that was kept.
    support_
        How many of the other candidates led to the same map, from starts of their own: for at least a fifth of the
        unseen points (of all points, if there are fewer than 50) both have the same nearest target. Maps between sets
        without a common shape differ from start to start, so do not trust a map without support. It is no proof: in
        very few dimensions wrong maps agree too.
    score_
        How well the two sets lie on each other. 0: as after a random rotation. 1: as two halves of one set do. In few
        dimensions any two clouds can be laid on each other quite well, so compare scores of the same two sets only. nan
        where it would say nothing: of clouds without a shape two halves lie on each other hardly better than after a
        random rotation, and of fewer than 50 points none can be kept unseen.
    interrupted_
        Whether Ctrl-C cut the search short: fewer candidates, or the best of them less refined.
    agreement_, floor_, ceiling_
        What the score is made of; `ceiling_` is nan for fewer than 50 points.

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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_clusters: int = 20,
        n_clusterings: int = 8,
        n_candidates: int = 5,
        solver: str | Solver = "auto",
        time_limit: float | None = 5.0,
        n_iterations: int = 20,
        sample_size: int = 5000,
        random_state: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_clusters = n_clusters
        self.n_clusterings = n_clusterings
        self.n_candidates = n_candidates
        self.solver = solver
        self.time_limit = time_limit
        self.n_iterations = n_iterations
        self.sample_size = sample_size
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: ArrayLike, Y: ArrayLike, *, callback: Step | None = None) -> BlindAligner:
        """Align X (n, d) with Y (m, e); `callback` hears of each step: its name, how many are done, and of how many.

        Ctrl-C ends it with the best so far, once a first candidate has been refined.
        """
        source, target = as_points(X, "X"), as_points(Y, "Y")
        plan = self._plan(len(source), len(target))
        report = callback or (lambda step, done, total: None)
        with threadpool_limits(self.threads):
            few = max(_LEAST, min(len(source), len(target)) // _POINTS)
            wanted = min(_COMPONENTS, few) if self.n_components is None else self.n_components
            frames = fit_frames(source, target, wanted)
            a, b = frames[0].directions(source), frames[1].directions(target)
            found = search(a, b, plan, np.random.default_rng(self.random_state), report)
        self.alignment_ = SpaceMap(*frames, found.rotation)
        self.candidates_, self.best_, self.interrupted_ = found.candidates, found.best, found.interrupted
        chosen = found.candidates[found.best]
        self.result_ = chosen.result
        self.source_centres_, self.target_centres_ = chosen.source_centres, chosen.target_centres
        self.agreement_, self.floor_, self.ceiling_ = found.agreement, found.floor, found.ceiling
        room = found.ceiling - found.floor
        self.score_ = (found.agreement - found.floor) / room if room > _CLEAR * abs(found.ceiling) else math.nan
        alike = sum(candidate.likeness > _ALIKE for candidate in found.candidates)
        self.support_ = alike - 1  # the one that was kept is like itself
        self.target_directions_: Points | None = b
        self.n_features_in_ = source.shape[1]
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Points of X's space in Y's space."""
        check_is_fitted(self, "alignment_")
        return self.alignment_.forward(as_points(X, "X", len(self.alignment_.source.mean)))

    def inverse_transform(self, Y: ArrayLike) -> FloatArray:
        """Points of Y's space in X's space."""
        check_is_fitted(self, "alignment_")
        return self.alignment_.backward(as_points(Y, "Y", len(self.alignment_.target.mean)))

    def kneighbors(
        self, X: ArrayLike, n_neighbors: int = 10, *, candidates: ArrayLike | None = None
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
        queries = self.alignment_.directions(as_points(X, "X", len(self.alignment_.source.mean)))
        if candidates is not None:
            among = as_points(candidates, "candidates", len(self.alignment_.target.mean))
            pool = self.alignment_.target.directions(among)
        elif self.target_directions_ is None:
            raise ValueError("candidates=None: a map that was loaded knows no targets; give it some")
        else:
            pool = self.target_directions_
        if at_least(n_neighbors, 1, "n_neighbors") > len(pool):
            raise ValueError(f"n_neighbors={n_neighbors}; there are {len(pool)} candidates")
        cosines, indices = nearest(queries, pool, n_neighbors)
        return 1.0 - cosines, indices

    def save(self, path: str | Path) -> None:
        """Write the map to an ``.npz`` file, without the points it was fitted to."""
        check_is_fitted(self, "alignment_")
        self.alignment_.save(path, score=np.array(self.score_), support=np.array(self.support_))

    @classmethod
    def load(cls, path: str | Path) -> BlindAligner:
        """Read a map that `save` wrote: ready for `transform`, and for `kneighbors` among given candidates."""
        aligner = cls()
        aligner.alignment_, more = SpaceMap.load(path)
        kinds = {name: (value.shape, value.dtype.kind) for name, value in more.items()}
        if kinds != {"score": ((), "f"), "support": ((), "i")}:
            raise ValueError(f"{path}: expected the numbers score and support beside the map; found {', '.join(more)}")
        aligner.score_, aligner.support_ = float(more["score"]), int(more["support"])
        aligner.target_directions_ = None
        aligner.n_features_in_ = len(aligner.alignment_.source.mean)
        return aligner

    def _plan(self, *sizes: int) -> Plan:
        """The options, checked."""
        if self.n_components is not None:
            at_least(self.n_components, 2, "n_components")
        clusters = at_least(self.n_clusters, 3, "n_clusters")
        for name, size in zip("XY", sizes, strict=True):
            # A fifth of the points is kept unseen.
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
            None if self.threads is None else at_least(self.threads, 1, "threads"),
        )
