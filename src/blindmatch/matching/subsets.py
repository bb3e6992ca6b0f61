"""The best matchable subsets of paired items (the paper's Sec. 4.2, "Finding optimal matching problems")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import unknown_name
from blindmatch.geometry.views import Views
from blindmatch.matching.subset_engines import ENGINES, SubsetTask
from blindmatch.notebook import html_table
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Budget
from blindmatch.validation import FloatArray, IntArray, as_generator, as_square, at_least, positive

SubsetStatus = Literal["optimal", "heuristic", "time_limit", "interrupted"]


@dataclass(frozen=True, eq=False)
class Subsets:
    """The cheapest subsets of one size.

    Attributes
    ----------
    subsets
        Arrays of sorted indices, cheapest first, all different.
    costs
        ``cost[np.ix_(s, s)].sum()`` of each: all ordered pairs, including the diagonal.
    lower_bound
        No subset costs less. None if the engine proves nothing.
    status
        "optimal": proved that no subset outside the list is cheaper than its last one (by more than the rounding of the
        sums; "gurobi" and "scip" add their own tolerance). "heuristic": no claim. "time_limit" and "interrupted": the
        run was stopped early, and the list may be shorter than requested.
    engine
        The engine that found them.
    """

    subsets: tuple[IntArray, ...]
    costs: FloatArray
    lower_bound: float | None
    status: SubsetStatus
    engine: str

    @property
    def _verdict(self) -> str:
        bound = "" if self.lower_bound is None else f" No subset costs less than {self.lower_bound:.7g}."
        proof = {"optimal": "proved to be the cheapest", "heuristic": "found by search, without a proof"}
        ended = proof.get(self.status, f"the best so far ({self.status})")
        return f"{len(self.subsets)} subsets, {ended}.{bound}"

    def __repr__(self) -> str:
        best = f" costs={[float(f'{cost:.4g}') for cost in self.costs[:3]]}" if self.subsets else ""
        return f"Subsets({self._verdict}{best}, engine={self.engine!r})"

    def _repr_html_(self) -> str:
        """Show the verdict, then the first subsets, in a notebook."""
        items = [", ".join(map(str, subset)) for subset in self.subsets]
        return f"<p><b>{escape(self._verdict)}</b></p>{html_table({'cost': self.costs.tolist(), 'items': items})}"

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        lists = {"subsets": [subset.tolist() for subset in self.subsets], "costs": self.costs.tolist()}
        return {**lists, "lower_bound": self.lower_bound, "status": self.status, "engine": self.engine}


def best_subsets(
    source: ArrayLike | Views | None = None,
    target: ArrayLike | Views | None = None,
    *,
    size: int,
    k: int = 10,
    cost: ArrayLike | None = None,
    distortion: str | Distortion = "gw",
    scale: str = "none",
    metric: str | tuple[str, str] = "euclidean",
    neighbors: int | tuple[int, int] | None = None,
    engine: str = "search",
    time_limit: float | None = None,
    rng: int | np.random.Generator | None = None,
    threads: int | None = None,
) -> Subsets:
    """Find the k subsets of `size` paired items whose relations in the two spaces agree best.

    Parameters
    ----------
    source, target
        (n, d) and (n, e) embeddings of the same n items, or ``bm.Views``: row i belongs to row i. The cost of a pair of
        items is the distortion's loss between its relation in the source and in the target.
    size, k
        Items in each subset (1 to n), and the number of subsets. If fewer than k exist, all of them are returned.
    cost
        Instead of embeddings: an (n, n) matrix that is summed over each subset. It may be asymmetric or negative.
    distortion
        "gw", "gaussian", "cka", "mutual-knn", "kl", "inner-product", or a configured object. Its kernels are computed
        (and standardised) over all n items.
    scale, metric, neighbors
        As in ``bm.match``.
    engine
        "search": tabu search from many starts, no proof. "exact": branch and bound, proves the whole list; suitable for
        some tens of items, or small subsets of about a hundred. "gurobi", "scip": third-party solvers.
    time_limit
        Seconds. When they run out, the best result so far is returned. The costs of all pairs of items are computed in
        any case; this takes 2 to 3 s for 5,000 items.
    rng
        A seed or a generator, for "search" and for the start of "exact".
    threads
        Maximum number of threads; all cores by default. It does not change the result. ("exact" and "scip" use one.)

    Examples
    --------
    >>> import numpy as np
    >>> cost = np.array([[0, 1, 5, 2], [1, 0, 4, 3], [5, 4, 0, 6], [2, 3, 6, 0]])
    >>> found = best_subsets(cost=cost, size=2, k=3, engine="exact", rng=0)
    >>> [subset.tolist() for subset in found.subsets], found.costs.tolist(), found.status
    ([[0, 1], [0, 3], [1, 3]], [2.0, 4.0, 6.0], 'optimal')
    """
    if threads is not None:
        at_least(threads, 1, "threads")
    budget = Budget(
        None if time_limit is None else positive(time_limit, "time_limit"), threads
    )  # building the costs counts
    how = {"distortion": distortion, "scale": scale, "metric": metric, "neighbors": neighbors}
    matrix = _pair_costs(source, target, cost, how)
    n = len(matrix)
    at_least(size, 1, "size")
    if size > n:
        raise ValueError(f"size={size}; expected at most {n}, the number of items")
    at_least(k, 1, "k")
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    task = SubsetTask(matrix, int(size), min(int(k), math.comb(n, int(size))), as_generator(rng), budget)
    rows, bound, completed = ENGINES[engine](task)
    if budget.error is not None:
        raise budget.error
    return _score(task, rows, bound, completed, engine)


def _pair_costs(
    source: ArrayLike | Views | None,
    target: ArrayLike | Views | None,
    cost: ArrayLike | None,
    how: dict[str, Any],
) -> FloatArray:
    if cost is not None:
        if source is not None or target is not None:
            raise ValueError("cost is given together with embeddings; pass one or the other")
        matrix = as_square(cost, "cost")
    else:
        task = Task(source, target, **how)
        task.warn_of_units(stacklevel=3)
        K, G = task.kernels
        if len(K) != len(G):
            raise ValueError(
                f"source has {len(K)} items, and the other side has {len(G)}; expected row i to belong to row i"
            )
        matrix = task.distortion.loss(K, G)
    largest = float(np.abs(matrix).max())
    if not largest * len(matrix) ** 2 < 1e300:
        raise ValueError(f"cost holds {largest:g}; sums of such values overflow float64")
    return matrix


def _score(task: SubsetTask, rows: ArrayLike, bound: float | None, completed: bool, engine: str) -> Subsets:
    """Score the subsets on the caller's own matrix and sort them; the engine's costs are not trusted."""
    subsets = [np.sort(row) for row in np.asarray(rows, dtype=np.intp).reshape(-1, task.size)]
    scored = sorted((float(task.cost[np.ix_(s, s)].sum()), s.tolist()) for s in subsets)
    costs = np.array([value for value, _ in scored])
    if bound is not None:
        bound = min(bound, float(costs[0])) if len(costs) else bound
    status: SubsetStatus = "heuristic" if bound is None else "optimal"
    if not completed:
        status = "interrupted" if task.budget.interrupted else "time_limit"
    return Subsets(tuple(np.array(s, dtype=np.intp) for _, s in scored), costs, bound, status, engine)
