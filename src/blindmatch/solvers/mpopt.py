"""MPOpt: fusion moves and dual block-coordinate ascent (Hutschenreiter et al. 2021), through libmpopt's module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from blindmatch.problem.graph_matching import GraphMatching, graph_matching
from blindmatch.problem.qap import QAP
from blindmatch.solvers.base import Budget, Capabilities, Dependency, Outcome, Solver
from blindmatch.solvers.relaxation import feasible_permutation
from blindmatch.validation import IntArray, at_least

_MPOPT = Dependency(
    "mpopt",
    "build libmpopt (it is not on PyPI): git clone https://github.com/vislearn/libmpopt, then "
    "meson setup build && ninja -C build install",
)
_MARGIN = 1e-9  # times the model's scale: messages accumulate rounding errors


@dataclass(frozen=True)
class MPOpt(Solver):
    """The graph-matching solver that the paper compares with.

    The model has n^4 / 2 edges, each a Python object: n = 40 takes about a gigabyte. ``problem.save("p.dd")``
    writes the same model for libmpopt's command line.

    Parameters
    ----------
    batches, batch_size
        Number of batches and iterations per batch; the time is checked after each batch.
    greedy_generations
        Number of greedy solutions that each batch makes and fuses.
    """

    batches: int = 100
    batch_size: int = 10
    greedy_generations: int = 10

    name: ClassVar[str] = "mpopt"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True,
        certificate=False,
        forbidden=True,
        max_size=60,
        requires=_MPOPT,
        ignores=("work_limit",),
        note="local with a weak bound; n^4 / 2 edges",
    )

    def __post_init__(self) -> None:
        at_least(self.batches, 1, "batches")
        at_least(self.batch_size, 1, "batch_size")
        at_least(self.greedy_generations, 1, "greedy_generations")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Run batch by batch."""
        _MPOPT.load(self.name)
        qap = Dependency("mpopt.qap", _MPOPT.install).load(self.name)
        best = feasible_permutation(problem)
        best_cost, bound = problem.objective(best), -np.inf
        model = graph_matching(problem)
        decomposition = qap.ModelDecomposition(_as_mpopt(qap, model), with_uniqueness=True)
        solver = qap.construct_solver(decomposition)
        solver.set_random_seed(int(rng.integers(1, 2**31)))
        margin = _MARGIN * (problem.scale + abs(model.offset))
        for batch in range(self.batches):
            solver.run(self.batch_size, 1, self.greedy_generations)
            bound = max(bound, solver.lower_bound() + model.offset - margin)
            permutation = _permutation(qap.extract_primals(decomposition, solver).labeling, problem)
            if permutation is not None:
                cost = problem.objective(permutation)
                budget.offer(permutation, cost)
                if cost < best_cost:
                    best, best_cost = permutation, cost
            if not budget.report(bound, best_cost, batch + 1):
                return Outcome(best, budget.stop_status, lower_bound=bound)
        return Outcome(best, "stalled", lower_bound=bound)


def _as_mpopt(qap: Any, model: GraphMatching) -> Any:
    """The model as libmpopt's own object."""
    copy = qap.Model(model.left, model.right, len(model.assignments), len(model.edges))
    for index, ((left, right), cost) in enumerate(zip(model.assignments.tolist(), model.costs.tolist(), strict=True)):
        copy.add_assignment(index, left, right, cost)
    for (first, second), cost in zip(model.edges.tolist(), model.edge_costs.tolist(), strict=True):
        copy.add_edge(first, second, cost)
    return copy


def _permutation(labels: list[int | None], problem: QAP) -> IntArray | None:
    """A labelling as a permutation; None if an item is unmatched."""
    if sorted(label for label in labels if label is not None) != list(range(problem.n)):
        return None
    permutation = np.array(labels, dtype=np.intp)
    return permutation if problem.allows(permutation) else None
