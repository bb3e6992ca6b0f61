"""The doubly nonnegative bound with a proof, and the match that its relaxation points to."""

from __future__ import annotations

import math
import time
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment
from threadpoolctl import ThreadpoolController

from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate, Node, Stage
from blindmatch.proof.checker import NodeView
from blindmatch.proof.stage_check import Effort
from blindmatch.solvers.base import Budget, Capabilities, Outcome, Proof, Solver
from blindmatch.solvers.dual_ascent import DualAscent
from blindmatch.solvers.progress import Status
from blindmatch.solvers.semidefinite_stage import PairCosts, StageMaker
from blindmatch.solvers.splitting import Splitting
from blindmatch.solvers.two_opt import improve
from blindmatch.validation import BoolArray, IntArray, at_least

_ROUND = 20  # steps between two proofs
_BETA = 1.5  # the first penalty, over n
_CHANGE = 1.4  # what it is divided or multiplied by after a round
_SOFTEN, _HARDEN = 0.15, 0.08  # where the balance is above or below
_SOFTEST = 0.1  # the last penalty
_FIX_SHARE = 0.03  # of the allowed pairs: fewer are not worth a stage that has to be checked
_STALL = 0.002  # of the gap: a round that gains less counts as lost
_PATIENCE = 4  # rounds
_FINE, _FINE_UP_TO = 1e-3, 1000  # float64 steps: if the gap is below this share of the cost, up to this number of pairs
_TOLERANCE, _NOISE = 1e-6, 1e-12  # of the cost, and of the size of the numbers: as `solve` has them


@dataclass(frozen=True)
class Semidefinite(Solver):
    """The doubly nonnegative relaxation (positive semidefinite and nonnegative) by operator splitting.

    On real data it is far tighter than level 1, the bound of `dual-ascent`. A step takes an eigenvalue problem of size
    (n - 1)^2 + 1.

    Parameters
    ----------
    rounds
        Of 25 steps each at most; None goes on until the bound closes or stalls.
    """

    rounds: int | None = None

    name: ClassVar[str] = "semidefinite"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True,
        forbidden=True,
        max_size=120,
        cubic_memory=85,
        quartic_memory=120,
        note="ours; the tightest bound, for n up to about 60",
    )

    def __post_init__(self) -> None:
        if self.rounds is not None:
            at_least(self.rounds, 1, "rounds")

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Level 1 without its linear program, then the splitting on the pairs that it leaves."""
        first = DualAscent(relaxation=False)(problem, budget=budget, rng=rng)
        if budget.stopped or first.status == "optimal" or problem.n < 2:
            return first
        budget.offer(first.permutation, problem.objective(first.permutation))
        return SemidefiniteRun(problem, budget, root_stages(first)).run(self.rounds)


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

    def __init__(self, problem: QAP, budget: Budget, stages: tuple[Stage, ...]) -> None:
        self.problem, self.budget = problem, budget
        self.effort = Effort(threads=budget.threads)
        self.view = NodeView(problem, Node(), None, ())
        self.stages = list(stages)
        self.view.use_proofs(Node(stages=stages), self.effort)
        self.last: tuple[float, Stage] | None = None  # a better one that rules out nothing
        self.costs = PairCosts(problem)
        self.allowed = self._allowed(self.view)
        self.splitting = Splitting(self.costs.matrix(self.allowed), self.allowed, _BETA * problem.n)
        self.maker = StageMaker(self.costs, self.allowed)
        self.slowest = 0.0  # seconds of a step
        self.proof_seconds = 0.0  # of the last proof
        self.check_seconds = 0.0  # that the checker took for the stages that are kept
        self.blas = ThreadpoolController()

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
        cost, step = self.budget.best[0], self.problem.granularity
        if step > 0:
            return cost - (1 - 1e-6) * step
        return cost - 0.9 * max(_TOLERANCE * abs(cost), _NOISE * self.problem.scale)

    def run(self, rounds: int | None) -> Outcome:
        """Rounds of steps, each with a proof, until the bound closes, stalls or the budget ends."""
        try:
            self._rounds(math.inf if rounds is None else rounds)
        except KeyboardInterrupt as error:
            self.budget.fail(error)
        return self._outcome()

    def _rounds(self, most: float) -> None:
        lost, count = 0, 0
        while count < most:
            count += 1
            before = self.bound
            with self.blas.limit(limits=1, user_api="blas"):
                if self._out_of_time:
                    return
                self._steps()
                self._prove()
            if self.bound >= self.target or not self.budget.report(self.bound, None, count * _ROUND):
                return
            gap = self.target - before
            lost = lost + 1 if self.bound - before < _STALL * gap else 0
            if lost >= _PATIENCE:
                return
            if lost >= _PATIENCE // 2 and self._float32_is_in_the_way(gap):
                self.splitting.refine(self.costs.matrix(self.allowed))
                lost = 0
            self.splitting.advance()
            self._balance()

    def _balance(self) -> None:
        """Keep the two residuals of the splitting of a size: a large penalty makes one fall, a small one the other."""
        balance = self.splitting.movement / max(self.splitting.residual * self.problem.n, 1e-30)
        if balance > _SOFTEN and self.splitting.beta > _SOFTEST:
            self.splitting.soften(_CHANGE)
        elif balance < _HARDEN:
            self.splitting.soften(1 / _CHANGE)

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
        rows, columns = linear_sum_assignment(~left)
        if left.sum() == self.problem.n or not left[rows, columns].all():  # at most one permutation is left
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

    def _outcome(self) -> Outcome:
        assert self.budget.best is not None
        last = [self.last[1]] if self.last is not None and self.last[0] > self.view.bound else []
        node = Node(stages=(*self.stages, *last), spectral=True)
        closed = self.bound >= self.target
        status: Status = "optimal" if closed else self.budget.stop_status if self._out_of_time else "stalled"
        return Outcome(self.budget.best[1], status, Certificate(self.problem.n, (node,)))
