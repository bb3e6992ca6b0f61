"""The two spaces of a match: their points, their kernels, and the problem that they make with the hints."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.geometry.kernels import unit_rows
from blindmatch.geometry.scaling import classical_scaling
from blindmatch.problem.distortion import Distortion, Kernels
from blindmatch.problem.hints import Hints
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Solver
from blindmatch.solvers.tabu import Tabu
from blindmatch.solving.run import solve
from blindmatch.validation import FloatArray, IntArray, as_floats, as_square

EFFORT = 60  # swaps of a quick search, times the size: enough for the optimum of nearly all problems of 15 items


@dataclass(frozen=True, eq=False)
class Spaces:
    """Source and target as points whose kernels are compared, and what is known about the pairs."""

    distortion: Distortion
    source: FloatArray
    target: FloatArray
    kernels: tuple[FloatArray, FloatArray]  # on their common scale
    hints: Hints

    @classmethod
    def of(
        cls,
        distortion: Distortion,
        source: ArrayLike | None,
        target: ArrayLike | None,
        kernels: Kernels | None,
        hints: Hints | None = None,
    ) -> Spaces:
        """From embeddings, or from kernels, whose points are found by scaling (classical, Torgerson 1952)."""
        K, G = distortion.kernels(source, target, kernels=kernels)
        if kernels is None:
            points = as_floats(source, "source"), as_floats(target, "target")  # type: ignore[arg-type]
            points = tuple(unit_rows(side) for side in points) if distortion.normalize else points  # type: ignore[assignment]
        else:
            points = tuple(  # type: ignore[assignment]
                points_of(as_square(side, f"kernels[{at}]"), distortion.similarities) for at, side in enumerate(kernels)
            )
        return cls(distortion, *points, (K, G), hints or Hints.of((len(K), len(G))))

    @property
    def problem(self) -> QAP:
        """The problem of the kernels as they are."""
        return self.hints.problem(self.distortion, *self.kernels)

    def kernel(self, points: FloatArray) -> FloatArray:
        """The kernel of other points, on the common scale."""
        given = unit_rows(points) if self.distortion.normalize else points
        return self.distortion.scaled(self.distortion.kernel(given))

    def problem_with(self, source: FloatArray | None = None, target: FloatArray | None = None) -> QAP:
        """The problem with other points on one side or both."""
        K = self.kernels[0] if source is None else self.kernel(source)
        G = self.kernels[1] if target is None else self.kernel(target)
        return self.hints.problem(self.distortion, K, G)

    def completed(self, permutation: IntArray, size: int) -> IntArray:
        """A match of the items that there are as a permutation of all `size` items, dummies included."""
        n, m = self.hints.sizes
        full = np.full(size, -1, dtype=np.intp)
        full[:n] = permutation
        free = np.setdiff1d(np.arange(size), permutation)  # ascending: real targets first, which sources must not take
        alone = np.flatnonzero(full[:n] < 0)
        dummies = free[free >= m]
        if len(alone) > len(dummies):
            raise ValueError(
                f"result leaves {len(alone)} sources unmatched; with these arguments at most {len(dummies)} can be"
            )
        full[alone] = dummies[: len(alone)]
        full[n:] = np.setdiff1d(free, full[:n])
        return full


def search(
    problem: QAP, rng: np.random.Generator, *, threads: int = 1, deadline: float = math.inf
) -> tuple[IntArray, float] | None:
    """A good match, quickly: the same effort for all problems of a size, so that their costs can be compared.

    None if the deadline cuts it short: with less effort the cost would be higher.
    """
    return run_until(deadline, problem, Tabu(iterations=EFFORT * max(problem.n, 10), streams=1), rng, threads)


def run_until(
    deadline: float, problem: QAP, solver: Solver, rng: np.random.Generator, threads: int
) -> tuple[IntArray, float] | None:
    """What the solver finds; None if the deadline (of ``time.perf_counter``) cuts it short."""
    left = deadline - time.perf_counter()
    if left <= 0:
        return None
    found = solve(problem, solver, time_limit=None if math.isinf(left) else left, rng=rng, threads=threads)
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return None if found.status == "time_limit" else (found.permutation, found.cost)


def points_of(kernel: FloatArray, similarities: bool) -> FloatArray:
    """Points whose inner products (or distances) are this kernel; what no points can have is left out.

    >>> points = points_of(np.array([[0.0, 3.0], [3.0, 0.0]]), similarities=False)
    >>> round(float(np.linalg.norm(points[0] - points[1])), 9)
    3.0
    """
    return classical_scaling(kernel, similarities)[0]
