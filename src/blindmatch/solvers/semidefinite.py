"""The doubly nonnegative bound with a proof, and the match that its relaxation points to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from blindmatch.machine import one_blas_thread
from blindmatch.problem.optimality import closing_bound
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate, Node, Stage
from blindmatch.proof.checker import NodeView
from blindmatch.proof.stage_check import Effort
from blindmatch.solvers.arrays import NUMPY, Arrays, arrays_on
from blindmatch.solvers.base import Budget, Capabilities, Outcome, Proof, Solver
from blindmatch.solvers.dual_ascent import DualAscent
from blindmatch.solvers.pair_costs import PairCosts
from blindmatch.solvers.progress import Status
from blindmatch.solvers.semidefinite_node import Bounded, Relaxation, has_choice
from blindmatch.solvers.semidefinite_stage import StageMaker
from blindmatch.solvers.splitting import Splitting
from blindmatch.solvers.two_opt import improve
from blindmatch.validation import BoolArray, IntArray, at_least

_ROUND = 20  # steps between two proofs
_BETA = 1.5  # the first penalty, over n
_FIX_SHARE = 0.03  # of the allowed pairs: fewer are not worth a stage that has to be checked
_STALL = 0.002  # of the gap: a round that gains less counts as lost
_PATIENCE = 4  # rounds
_MOST_WORK = 1.4e13  # steps times the third power of the dimension: about half an hour
_PHASE = "semidefinite bound"
_FINE, _FINE_UP_TO = 1e-3, 1000  # float64 steps: if the gap is below this share of the cost, up to this number of pairs


@dataclass(frozen=True)
class Semidefinite(Solver):
    """The doubly nonnegative relaxation (positive semidefinite and nonnegative) by operator splitting.

    On real data it is far tighter than level 1, the bound of `dual-ascent`. A step takes an eigenvalue problem of size
    (n - 1)^2 + 1.

    Parameters
    ----------
    rounds
        Of 20 steps each at most; None goes on until the bound closes or stalls. Without a time limit, a run also ends
        after a fixed amount of work, about half an hour; only problems of more than 50 items come to that.
    device
        Where the steps run: None for numpy, else a device of torch such as "cuda" (``pip install 'blindmatch[gpu]'``).
        Proofs are made and checked on the processor. Bounds differ in the last digits.
    """

    rounds: int | None = None
    device: str | None = None

    name: ClassVar[str] = "semidefinite"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True,
        forbidden=True,
        max_size=120,
        cubic_memory=110,
        quartic_memory=120,
        note="ours; the tightest bound, for n up to about 60",
    )

    def __post_init__(self) -> None:
        if self.rounds is not None:
            at_least(self.rounds, 1, "rounds")
        if self.device is not None and not isinstance(self.device, str):
            raise ValueError(f"device={self.device!r}; expected None or the name of a device of torch, such as 'cuda'")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Level 1 without its linear program, then the splitting on the pairs that it leaves."""
        arrays = arrays_on(self.device)  # before the work: an error does not wait for it
        first = DualAscent(relaxation=False)(problem, budget=budget, rng=rng)
        if budget.stopped or first.status == "optimal" or problem.n < 2:
            return first
        budget.offer(first.permutation, problem.objective(first.permutation))
        return SemidefiniteRun(problem, budget, root_stages(first), arrays).run(self.rounds)


def root_stages(outcome: Outcome) -> tuple[Stage, ...]:
    """The stages at the root of an outcome's proof."""
    proof = Proof.of(outcome.certificate)
    return () if proof is None else proof.make(1).nodes[0].stages


class SemidefiniteRun:
    """One run: the splitting, the stages that it leaves, and the pairs that they rule out.

    The checker itself says what a stage proves: `view` is what it makes of the stages that are kept. LAPACK runs on one
    thread: the bound does not depend on the number of threads then, and two threads of it take 20 times as long where
    other programs use the cores, for a gain of a third where they do not.
    """

    def __init__(
        self,
        problem: QAP,
        budget: Budget,
        stages: tuple[Stage, ...],
        arrays: Arrays = NUMPY,
        start: Relaxation | None = None,
    ) -> None:
        self.problem, self.budget = problem, budget
        self.effort = Effort(threads=budget.threads)
        self.view = NodeView(problem, Node(), None, ())
        self.stages = list(stages)
        self.view.use_proofs(Node(stages=stages), self.effort)
        self.last: tuple[float, Stage] | None = None  # a better one that rules out nothing
        self.costs = PairCosts(problem)
        self.allowed = self._allowed(self.view)
        if start is not None:  # of an earlier run
            kept = start.kept(self.allowed)
            start = kept if has_choice(kept.allowed) else start
            self.allowed = start.allowed
        cost = self.costs.centred_matrix(self.allowed)
        if start is None:
            self.splitting = Splitting(cost, self.allowed, _BETA * problem.n, arrays=arrays)
        else:
            self.splitting = Splitting.resumed(cost, self.allowed, start.beta, start.Y, start.Z)
        self.maker = StageMaker(self.costs, self.allowed)
        self.slowest = 0.0  # seconds of a step
        self.proof_seconds = 0.0  # of the last proof
        self.check_seconds = 0.0  # that the checker took for the stages that are kept
        self.message = ""

    @property
    def bound(self) -> float:
        """The best bound so far."""
        return max(self.view.bound, self.last[0] if self.last is not None else -math.inf)

    @property
    def floor(self) -> float:
        """What permutations that use a pair which has been ruled out cost at least."""
        return float(self.view.pair_bounds[~self.allowed].min(initial=math.inf))

    @property
    def target(self) -> float:
        """The bound that proves the incumbent optimal."""
        assert self.budget.best is not None
        return closing_bound(self.problem, self.budget.best[0])

    def run(
        self,
        rounds: int | None,
        branching: float = math.inf,
        on_round: Callable[[SemidefiniteRun], None] | None = None,
    ) -> Outcome:
        """Rounds of steps, each with a proof, until the bound closes, stalls or the budget ends.

        With a time limit it goes on at a stall while there are more pairs than `branching`.
        """
        with self.budget.interruptible():
            self._rounds(math.inf if rounds is None else rounds, branching, on_round)
        return self._outcome()

    def _rounds(self, most: float, branching: float, on_round: Callable[[SemidefiniteRun], None] | None) -> None:
        lost, count, work = 0, 0, 0.0
        endless = self.budget.time_limit == math.inf
        while count < most:
            if endless and work > _MOST_WORK:
                self.message = f"the semidefinite bound ended after {count * _ROUND} steps; a time_limit allows more"
                return
            count += 1
            work += _ROUND * float(self.splitting.face.dimension) ** 3
            before = self.bound
            with one_blas_thread():
                if self._out_of_time:
                    return
                self._steps()
                self._prove()
            if on_round is not None:
                on_round(self)
            if self.bound >= self.target or not self.budget.report(
                self.bound, None, count * _ROUND, "semidefinite", _PHASE
            ):
                return
            gap = self.target - before
            lost = lost + 1 if self.bound - before < _STALL * gap else 0
            if lost >= _PATIENCE and (endless or self.allowed.sum() <= branching):
                return
            if lost >= _PATIENCE // 2 and self._float32_is_in_the_way(gap):
                self.splitting.refine(self.costs.centred_matrix(self.allowed))
                lost = 0
            self.splitting.advance()
            self.splitting.balance()

    def _float32_is_in_the_way(self, gap: float) -> bool:
        cost = abs(self.target)
        return self.splitting.dtype == np.float32 and gap < _FINE * cost and len(self.splitting.s) <= _FINE_UP_TO

    def _steps(self) -> None:
        """A round of steps, fewer if the time runs out; the last one is not completed, so that its dual can be used."""
        for step in range(_ROUND):
            start = time.perf_counter()
            self.splitting.project()
            if step == _ROUND - 1 or self._out_of_time:
                return
            self.splitting.advance()
            self.slowest = max(0.7 * self.slowest, time.perf_counter() - start)

    @property
    def _out_of_time(self) -> bool:
        """Whether a further step would leave too little time for a proof, and for `solve` to check all of them."""
        return (
            self.budget.stopped or self.budget.remaining < 1.5 * self.slowest + self.proof_seconds + self.check_seconds
        )

    def _prove(self) -> None:
        """Make a stage of the current dual, take what it proves, and forget the pairs that it rules out."""
        start = time.perf_counter()
        self._round_match()
        Z, level = self.splitting.dual()
        stage = self.maker.stage(Z, level, self.budget)
        view = copy(self.view)
        check = time.perf_counter()
        view.use_proofs(Node(stages=(stage,)), self.effort)
        check = time.perf_counter() - check
        self.proof_seconds = time.perf_counter() - start + check  # the last stage is checked once more as well
        left = self._allowed(view)
        closed = view.bound >= self.target
        if closed or left.sum() <= (1 - _FIX_SHARE) * self.allowed.sum():
            self.stages.append(stage)
            self.view = view
            self.check_seconds += check
            if not closed:
                self._shrink(left)
        elif view.bound > self.bound:
            self.last = (view.bound, stage)

    def _shrink(self, left: BoolArray) -> None:
        self.allowed = left
        self.maker = StageMaker(self.costs, left)
        if not has_choice(left):
            stage = self.maker.plain_stage(self.budget)
            self.view.use_proofs(Node(stages=(stage,)), self.effort)
            self.stages.append(stage)
            return
        self.splitting.advance()
        self.splitting.shrink(left)
        self.splitting.project()

    def _allowed(self, view: NodeView) -> BoolArray:
        return np.asarray(view.pair_bounds < self.target)

    def _round_match(self) -> None:
        """The permutation next to the relaxation's weights, improved by exchanges."""
        weights = np.where(self.allowed, self.splitting.marginals(), -1e3)
        match: IntArray = linear_sum_assignment(weights, maximize=True)[1]
        if self.problem.allows(match):
            match = improve(self.problem, match)
            self.budget.offer(match, self.problem.objective(match))

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """What the run has proved so far."""
        last = (self.last[1],) if self.last is not None and self.last[0] > self.view.bound else ()
        return (*self.stages, *last)

    def as_root(self) -> Bounded:
        """What the run has proved, and where the children of a tree start."""
        view = NodeView(self.problem, Node(), None, ())
        start = time.thread_time()
        view.use_proofs(Node(stages=self.all_stages), self.effort)
        root = Bounded(None, view, self.all_stages, check_seconds=time.thread_time() - start)
        if view.bound < self.target:
            root.relaxation = self.relaxation.kept(self._allowed(view))
        return root

    @property
    def relaxation(self) -> Relaxation:
        """Where the splitting is, after a projection."""
        splitting = self.splitting
        Z = splitting.dual()[0].astype(np.float32)
        return Relaxation(splitting.allowed, splitting.point(), Z, splitting.beta)

    def _outcome(self) -> Outcome:
        assert self.budget.best is not None
        node = Node(stages=self.all_stages, spectral=True)
        closed = self.bound >= self.target
        status: Status = "optimal" if closed else self.budget.stop_status if self._out_of_time else "stalled"
        return Outcome(self.budget.best[1], status, Certificate(self.problem.n, (node,)), message=self.message)
