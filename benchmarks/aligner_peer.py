"""The peer of `benchmarks/aligner.py beside`: unpaired-rosetta (arXiv 2610.09411), written anew from its description.

k-means gives S sets of C centres on each side, on at most 10,000 rows. The i-th sets of both sides are matched by
centred linear CKA. The mean of their cross-covariances, M, gives the first assignment of the rows, on X M Y'; then
rounds of Procrustes and assignment follow, here until the assignment stays the same. Known pairs are a linear term of
the match of centres, and count in each cross-covariance with a weight.

What the description leaves open: the centres are matched by our tabu search (30 items) and rows by scipy, and all known
pairs together weigh a tenth of the pairs that are found.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import blindmatch as bm
from blindmatch.geometry.kernels import unit_rows
from blindmatch.solvers.tabu import Tabu

Sides = tuple[np.ndarray, np.ndarray]


class Peer:
    """`fit` and `similarity`, as of ``bm.BlindAligner``."""

    def __init__(self, seed, threads=None, centres=30, clusterings=30, rounds=100, most=10_000, weight=0.1):
        self.rng, self.threads, self.weight = np.random.default_rng(seed), threads, weight
        self.centres, self.clusterings, self.rounds, self.most = centres, clusterings, rounds, most

    def fit(self, X, Y, known=None):
        self.means = [np.mean(side, axis=0, dtype=float) for side in (X, Y)]
        with threadpool_limits(self.threads):
            x, y = (self._sample(self._prepared(side, at)) for at, side in enumerate((X, Y)))
            pairs = known and tuple(self._prepared(side, at) for at, side in enumerate(known))
            products = [self._covariance(self._matched_centres(x, y, pairs), pairs) for _ in range(self.clusterings)]
            M, before = np.mean(products, axis=0), None
            for _ in range(self.rounds + 1):
                rows, columns = linear_sum_assignment(x @ M @ y.T, maximize=True)
                u, _, vt = np.linalg.svd(self._covariance((x[rows], y[columns]), pairs), full_matrices=False)
                M = self.map = u @ vt
                if before is not None and np.array_equal(columns, before):
                    break
                before = columns
        return self

    def similarity(self, X, Y):
        return unit_rows(self._prepared(X, 0) @ self.map) @ unit_rows(self._prepared(Y, 1)).T

    def _prepared(self, rows, at):
        return np.asarray(rows, dtype=float) - self.means[at]

    def _sample(self, rows):
        return rows[self.rng.choice(len(rows), min(len(rows), self.most), replace=False)]  # in random order

    def _matched_centres(self, x: np.ndarray, y: np.ndarray, pairs: Sides | None) -> Sides:
        seeds = self.rng.integers(2**31, size=3).tolist()
        a, b = (
            KMeans(self.centres, n_init=1, random_state=seed).fit(side).cluster_centers_
            for side, seed in zip((x, y), seeds, strict=False)
        )
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        linear = np.zeros((len(a), len(b)))
        if pairs is not None:
            linear = self.weight * len(a) / len(pairs[0]) * (a @ pairs[0].T) @ (b @ pairs[1].T).T
        scale = len(a) / np.linalg.norm(a @ a.T), len(b) / np.linalg.norm(b @ b.T)  # the denominator of CKA
        problem = bm.QAP(-scale[0] * a @ a.T, scale[1] * b @ b.T, -scale[0] * scale[1] * linear)
        return a, b[bm.solve(problem, Tabu(iterations=100_000, streams=1), rng=seeds[2], threads=1).permutation]

    def _covariance(self, matched: Sides, pairs: Sides | None) -> np.ndarray:
        found = matched[0].T @ matched[1] / len(matched[0])
        return found if pairs is None else found + self.weight * pairs[0].T @ pairs[1] / len(pairs[0])
