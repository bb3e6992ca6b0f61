"""Our dual ascent: the level-1 RLT bound by Hahn-Grant sweeps, fixing and a first-order method; no branching."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from blindmatch import _core
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate, Node
from blindmatch.proof.duration import projection_seconds
from blindmatch.proof.spectral import cheap_bound
from blindmatch.solvers.base import MOST_BYTES, Budget, Capabilities, Outcome, Solver
from blindmatch.solvers.core_problem import RescaledProblem, root_proof
from blindmatch.solvers.progress import Status
from blindmatch.solvers.tabu import Tabu
from blindmatch.validation import IntArray, at_least, boolean

SWAPS = 200  # swaps of the first search, per item
_AT_ONCE = 100  # items up to which a first proof takes next to no time; at 600 items, preparing the duals takes 6 s


@dataclass(frozen=True)
class DualAscent(Solver):
    """Tight lower bound without branching, and the best match found by tabu search and by the ascent itself.

    Parameters
    ----------
    relaxation
        After the sweeps stall, solve their linear program with a first-order method.
    memory_limit
        Bytes that this method may use (about 4 n^4); if it needs more, only the sweeps run.
    start
        The certificate of an earlier run on this problem or a similar one: the ascent starts from its duals.
    """

    relaxation: bool = True
    memory_limit: int = 4 << 30
    start: Certificate | None = None

    name: ClassVar[str] = "dual-ascent"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True, forbidden=True, max_size=600, cubic_memory=85, note="ours; the tightest bound without branching"
    )

    def __post_init__(self) -> None:
        boolean(self.relaxation, "relaxation")
        at_least(self.memory_limit, 0, "memory_limit", MOST_BYTES)
        if self.start is not None and not isinstance(self.start, Certificate):
            raise ValueError(f"start={self.start!r}; expected a Certificate, for example result.certificate")

    def memory(self, problem: QAP) -> int:
        """Bytes that a run takes at its peak, with the first-order method."""
        return super().memory(problem) + relaxation_bytes(problem, self.memory_limit if self.relaxation else 0)

    def permuted(self, rows: IntArray, columns: IntArray) -> DualAscent:
        """The solver for ``problem.permuted(rows, columns)``: its start is renumbered like the problem."""
        if self.start is None:
            return self
        root = self.start.nodes[0]
        if any(stage.size != len(rows) for stage in root.stages):
            sizes = sorted({stage.size for stage in root.stages})
            raise ValueError(f"start holds duals of size {sizes}; the problem has {len(rows)} free items")
        stages = tuple(stage.permuted(rows, columns) for stage in root.stages)
        return replace(self, start=Certificate(len(rows), (Node(stages=stages),)))

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Search, then ascend."""
        start = first_match(problem, budget, rng)
        if no_time_for_duals(problem, budget):
            return without_duals(problem, start, budget)
        scaled = RescaledProblem.of(problem, budget.limits)
        options = _core.DualAscentOptions(
            target=scaled.target,
            memory_limit=self.memory_limit,
            seed=int(rng.integers(2**63)),
            threads=budget.threads,
            relaxation=self.relaxation,
        )
        found = _core.dual_ascent(scaled.core, options, start, self._first_duals(scaled), scaled.budget(budget))
        proof = root_proof(problem.n, scaled.exponent, found.stages)
        return Outcome(found.permutation.astype(np.intp), final_status(found.status, budget), proof)

    def _first_duals(self, scaled: RescaledProblem) -> _core.Stage | None:
        """The duals of `start`; each pair takes them from the last stage that still allowed it."""
        stages = self.start.nodes[0].stages if self.start is not None else ()
        if not stages:
            return None
        U, V = (np.array(array, dtype=np.float64) for array in (stages[0].U, stages[0].V))
        for stage in stages[1:]:
            U[~stage.forbidden], V[~stage.forbidden] = stage.U[~stage.forbidden], stage.V[~stage.forbidden]
        return _core.Stage.from_certificate(scaled.duals(U), scaled.duals(V))


def relaxation_bytes(problem: QAP, memory_limit: int) -> int:
    """What the first-order method takes, 8 bytes for two pairs that go together; 0 if that is over its limit."""
    partners = problem.allowed.sum(axis=1)
    size = 4 * int(partners.sum() ** 2 - (partners**2).sum())
    return size if size <= memory_limit else 0


def no_time_for_duals(problem: QAP, budget: Budget) -> bool:
    """Whether to end the run before the ascent. Small problems continue at the time limit: a first proof is quick."""
    return budget.interrupted or budget.reached is not None or (budget.stopped and problem.n > _AT_ONCE)


def without_duals(problem: QAP, start: np.ndarray[Any, np.dtype[np.int32]], budget: Budget) -> Outcome:
    """The outcome of a run that ends before the ascent: the match, and the bound that needs no duals."""
    certificate = Certificate(problem.n, (Node(spectral=True),))
    return Outcome(start.astype(np.intp), budget.stop_status, certificate)


def final_status(status: _core.BoundStatus, budget: Budget) -> Status:
    """The status of the run; the core only knows that it had to stop, the budget knows why."""
    ended: dict[_core.BoundStatus, Status] = {
        _core.BoundStatus.optimal: "optimal",
        _core.BoundStatus.stalled: "stalled",
    }
    return budget.reached or ended.get(status, budget.stop_status)


def first_match(
    problem: QAP, budget: Budget, rng: np.random.Generator, swaps: int = SWAPS
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """A good starting match: a short tabu search with a fixed number of steps, so that the seed determines it.

    If the caller gave starts and one of them leads to a better match, that one. The projection bound is reported first:
    it is cheap and part of every proof, and level 1 may take long to get beyond it.
    """
    budget.phase = "search"
    if projection_seconds(problem.n) < 0.1 * budget.remaining:
        bound, name = cheap_bound(problem)
        budget.report(problem.round_up(bound), None, bound=name)
    found = Tabu(iterations=swaps * max(problem.n, 10), streams=2)(problem, budget=budget, rng=rng).permutation
    if budget.best is not None and budget.best[0] < problem.objective(found):
        found = budget.best[1]
    return found.astype(np.int32)
