"""The doubly nonnegative bound with a proof, and the match that its relaxation suggests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from blindmatch.machine import one_blas_thread
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate, Node, Stage
from blindmatch.proof.checker import NodeView
from blindmatch.proof.stage_check import Effort
from blindmatch.solvers.base import Budget, Capabilities, Outcome, Proof, Solver
from blindmatch.solvers.dual_ascent import DualAscent
from blindmatch.solvers.eigen import NUMPY, Arrays, TorchArrays
from blindmatch.solvers.lowrank import LowRankSplitting
from blindmatch.solvers.progress import Status
from blindmatch.solvers.semidefinite_node import Bounded, has_choice
from blindmatch.solvers.semidefinite_stage import PairCosts, StageMaker
from blindmatch.solvers.splitting import Splitting, SplittingState
from blindmatch.solvers.two_opt import improve
from blindmatch.validation import BoolArray, at_least

_ROUND = 20  # steps between two proofs
_BETA = 1.5  # the first penalty, over n
_FIX_SHARE = 0.03  # least share of the allowed pairs that a stage must rule out to be worth its check
_LOW_RANK_FIX_SHARE = 0.12  # the same for large factors, of which a file should have few
_LOW_RANK_ABOVE = 400  # pairs; for fewer, all eigenvalues are computed in each step
ALL_DIRECTIONS_UP_TO = 1900  # pairs; for more, computing all eigenvalues would take too long
_BYTES, _LOW_RANK_BYTES = 70, 36  # of memory for fewer and for more pairs, over n^4
_LOW_RANK_LOSS = 0.005  # share of the gap that may be lost by rounding a large factor, which makes files smaller
_SLOW = 0.3  # a round that closes less than this share of the gap is slow: then more directions are used
_HELP, _SLOWER = 1.05, 0.6  # factors of that share: unless it rose or fell by them, more directions did not help
_EARLY_SLOW = 0.4  # the same of the second round; then the slack of a small problem is taken to have no low rank
_STALL = 0.002  # a round that closes less than this share of the gap counts as lost
_PATIENCE = 4  # lost rounds in a row that end the run
_MOST_WORK = 1.4e14  # operations of all steps: about half an hour
_PHASE = "semidefinite bound"
_STEP_SECONDS = 1e-10  # of a step, over the third power of the dimension
_FINE, _FINE_UP_TO = 1e-3, 1000  # steps in float64: for gaps below this share of the cost, up to this many pairs


@dataclass(frozen=True)
class Semidefinite(Solver):
    """The doubly nonnegative relaxation (positive semidefinite and nonnegative) by operator splitting.

    On real data it is far tighter than level 1, the bound of `dual-ascent`. A step takes three products of matrices if
    the slack of the dual has a low rank (`lowrank.py`), and else an eigenvalue problem of size (n - 1)^2 + 1.

    Parameters
    ----------
    rounds
        Maximum number of rounds, of 20 steps each; None continues until the bound closes or stalls. Without a time
        limit, a run also ends after a fixed amount of work, about half an hour; only problems of more than 50 items
        take that long.
    device
        Where the steps run: None for numpy, or a device of torch such as "cuda" (``pip install 'blindmatch[gpu]'``).
        Proofs are always made and checked on the CPU. Bounds of different devices differ in the last digits.
    """

    rounds: int | None = None
    device: str | None = None

    name: ClassVar[str] = "semidefinite"
    capabilities: ClassVar[Capabilities] = Capabilities(
        bound=True,
        forbidden=True,
        max_size=120,
        cubic_memory=85,
        note="ours; the tightest bound, for n up to about 100",
    )

    def __post_init__(self) -> None:
        if self.rounds is not None:
            at_least(self.rounds, 1, "rounds")
        if self.device is not None and not isinstance(self.device, str):
            raise ValueError(f"device={self.device!r}; expected None or the name of a device of torch, such as 'cuda'")

    def memory(self, problem: QAP) -> int:
        """Bytes that a run takes at its peak: with a slack of low rank, half."""
        return super().memory(problem) + semidefinite_bytes(problem, low_rank=self.device is None)

    def __call__(self, problem: QAP, *, budget: Budget, rng: np.random.Generator) -> Outcome:
        """Run level 1 without its linear program, then the splitting on the pairs that it does not rule out."""
        # First, so that an unusable device is reported at once.
        arrays = NUMPY if self.device is None else TorchArrays(self.device)
        first = DualAscent(relaxation=False)(problem, budget=budget, rng=rng)
        if budget.stopped or first.status == "optimal" or problem.n < 2:
            return first
        budget.offer(first.permutation, problem.objective(first.permutation))
        return SemidefiniteRun(problem, budget, root_stages(first), arrays).run(self.rounds)


def semidefinite_bytes(problem: QAP, low_rank: bool = True) -> int:
    """What the matrices of the splitting take."""
    few = problem.n**2 <= ALL_DIRECTIONS_UP_TO or not low_rank
    return (_BYTES if few else _LOW_RANK_BYTES) * problem.n**4


def root_stages(outcome: Outcome) -> tuple[Stage, ...]:
    """The stages at the root of an outcome's proof."""
    proof = Proof.of(outcome.certificate)
    return () if proof is None else proof.make(1).nodes[0].stages


class SemidefiniteRun:
    """One run: the splitting, the stages that it leaves, and the pairs that they rule out.

    The checker decides what a stage proves; `view` is its result for the stages that are kept. LAPACK runs on one
    thread. Then the bound does not depend on the number of threads. Besides, two threads save only a third of the time
    on an idle machine, and take 20 times as long where other programs use the cores.
    """

    def __init__(
        self,
        problem: QAP,
        budget: Budget,
        stages: tuple[Stage, ...],
        arrays: Arrays = NUMPY,
        start: SplittingState | None = None,
    ) -> None:
        self.problem, self.budget = problem, budget
        self.effort = Effort(threads=budget.threads)
        self.view = NodeView(problem, Node(), None, ())
        self.stages = list(stages)
        self.view.use_proofs(Node(stages=stages), self.effort)
        self.last: tuple[float, Stage] | None = None  # bound and stage: better, but rules out no pair
        self.costs = PairCosts(problem)
        self.allowed = self._allowed(self.view)
        if start is not None:  # from a checkpoint
            kept = start.kept(self.allowed)
            start = kept if has_choice(kept.allowed) else start
            self.allowed = start.allowed
        self.splitting = self._start(arrays) if start is None else self._resume(start)
        self.slowest = 0.0  # seconds of the slowest of the latest steps
        self.proof_seconds = 0.0  # seconds that the last proof took
        self.check_seconds = 0.0  # seconds that the checker took for the stages that are kept
        self.note = ""

    def _start(self, arrays: Arrays) -> Splitting:
        if arrays is NUMPY and self.allowed.sum() > _LOW_RANK_ABOVE:
            return LowRankSplitting(self.costs, self.allowed, self.budget.threads)
        cost = self.costs.centred_matrix(self.allowed)
        return Splitting(cost, self.allowed, _BETA * self.problem.n, arrays=arrays)

    def _with_all_directions(self, start: SplittingState) -> Splitting:
        return Splitting.resumed(self.costs.centred_matrix(start.allowed), start)

    def _resume(self, start: SplittingState) -> Splitting:
        if start.allowed.sum() <= ALL_DIRECTIONS_UP_TO:
            return self._with_all_directions(start)
        splitting = LowRankSplitting(self.costs, start.allowed, self.budget.threads)
        splitting.beta, splitting.Y = start.beta, start.Y
        splitting.s = start.Y + start.Z / np.float32(start.beta)
        return splitting

    @property
    def bound(self) -> float:
        """The best bound so far."""
        return max(self.view.bound, self.last[0] if self.last is not None else -math.inf)

    @property
    def target(self) -> float:
        """The bound that proves the incumbent optimal."""
        return self.budget.target(self.problem)

    def run(
        self,
        rounds: int | None,
        branching: float = math.inf,
        on_round: Callable[[SemidefiniteRun], None] | None = None,
    ) -> Outcome:
        """Run rounds of steps, each with a proof, until the bound closes, stalls or the budget ends.

        With a time limit, it continues after a stall if there are too many pairs for branching (more than `branching`).
        """
        with self.budget.interruptible():
            if not has_choice(self.allowed):  # level 1 rules out so much, but has too few digits to close the gap
                self._prove_plainly()
            self._rounds(math.inf if rounds is None else rounds, branching, on_round)
        return self._outcome()

    def _rounds(self, most: float, branching: float, on_round: Callable[[SemidefiniteRun], None] | None) -> None:
        lost, count, work, grown = 0, 0, 0.0, 0.0
        endless = self.budget.time_limit == math.inf
        while count < most and has_choice(self.allowed):
            if endless and work > _MOST_WORK:
                self.note = f"the semidefinite bound ended after {count * _ROUND} steps; a time_limit allows more"
                return
            count += 1
            work += _ROUND * self.splitting.work
            before = self.bound
            with one_blas_thread():
                if self._out_of_time:
                    return
                self._steps()
                self._prove()
            if on_round is not None:
                on_round(self)
            self.budget.spend(_STEP_SECONDS * _ROUND * self.splitting.work / 10)
            if self.bound >= self.target or not self.budget.report(
                self.bound, None, count * _ROUND, "semidefinite", _PHASE
            ):
                return
            gap = self.target - before
            lost = lost + 1 if self.bound - before < _STALL * gap else 0
            if lost >= _PATIENCE and (endless or self.allowed.sum() <= branching):
                return
            fine = self.splitting.dtype == np.float32 and gap < _FINE * abs(self.target)
            if lost >= _PATIENCE // 2 and fine and len(self.splitting.s) <= _FINE_UP_TO:  # float32 is in the way
                self.splitting.refine(self.costs.centred_matrix(self.allowed))
                lost = 0
            if isinstance(self.splitting, LowRankSplitting):
                share = (self.bound - before) / gap
                slow = 0 < share < (_EARLY_SLOW if count == 2 else _SLOW) and not _SLOWER * grown < share < grown
                if count == 1:  # it only catches up with level 1, for which few directions are enough
                    self.splitting.grow()
                elif slow or lost > 1:
                    lost = 0 if self._use_more_directions(self.splitting, count == 2) else lost
                    grown = _HELP * share
                    continue
            self.splitting.advance()
            self.splitting.balance()

    def _use_more_directions(self, splitting: LowRankSplitting, early: bool) -> bool:
        """All of them in the end, if that is not too slow; from the start if few do not even begin well.

        Returns whether there were more to use.
        """
        few = self.allowed.sum() <= ALL_DIRECTIONS_UP_TO
        if few and early:
            self.splitting = Splitting(self.costs.centred_matrix(self.allowed), self.allowed, _BETA * self.problem.n)
            return True
        grown = splitting.grow()
        if few and not grown:
            self.splitting = self._with_all_directions(splitting.state)
            return True
        splitting.advance()
        splitting.balance()
        return grown

    def _steps(self) -> None:
        """Run a round of steps, or fewer if time runs out. The last one ends after `project`: `dual` needs that."""
        for step in range(_ROUND):
            start = time.perf_counter()
            self.splitting.project()
            if step == _ROUND - 1 or self._out_of_time:
                return
            self.splitting.advance()
            self.slowest = max(0.7 * self.slowest, time.perf_counter() - start)

    @property
    def _out_of_time(self) -> bool:
        """Whether another step would leave too little time for a proof, and for `solve` to check all proofs."""
        return (
            self.budget.stopped or self.budget.remaining < 1.5 * self.slowest + self.proof_seconds + self.check_seconds
        )

    def _prove(self) -> None:
        """Make a stage of the current dual, use what it proves, and drop the pairs that it rules out."""
        start = time.perf_counter()
        self._round_match()
        large, gap = isinstance(self.splitting, LowRankSplitting), self.target - self.bound
        loss = _LOW_RANK_LOSS * gap if large and 0 < gap < math.inf else 0.0
        stage = StageMaker(self.costs, self.allowed).stage(self.splitting.dual(), self.budget, loss)
        view = copy(self.view)
        check = time.perf_counter()
        view.use_proofs(Node(stages=(stage,)), self.effort)
        check = time.perf_counter() - check
        self.proof_seconds = time.perf_counter() - start + check  # twice, because `solve` checks the last stage again
        left = self._allowed(view)
        closed = view.bound >= self.target
        share = _LOW_RANK_FIX_SHARE if large else _FIX_SHARE
        if closed or left.sum() <= (1 - share) * self.allowed.sum():
            self.stages.append(stage)
            self.view = view
            self.check_seconds += check
            if not closed:
                self._shrink(left)
        elif view.bound > self.bound:
            self.last = (view.bound, stage)

    def _shrink(self, left: BoolArray) -> None:
        self.allowed = left
        if not has_choice(left):
            self._prove_plainly()
            return
        if isinstance(self.splitting, LowRankSplitting) and left.sum() <= _LOW_RANK_ABOVE:
            self.splitting = self._with_all_directions(self.splitting.state.kept(left))
        else:
            self.splitting.advance()
            self.splitting.shrink(left)
        self.splitting.project()

    def _prove_plainly(self) -> None:
        """Bound what is left, at most one permutation, by a stage of level 1 alone."""
        stage = StageMaker(self.costs, self.allowed).plain_stage(self.budget)
        self.view.use_proofs(Node(stages=(stage,)), self.effort)
        self.stages.append(stage)

    def _allowed(self, view: NodeView) -> BoolArray:
        return np.asarray(view.pair_bounds < self.target)

    def _round_match(self) -> None:
        """Offer the permutation nearest to the weights of the relaxation, improved by 2-opt."""
        match = self.splitting.rounded(self.allowed)
        if self.problem.allows(match):
            match = improve(self.problem, match)
            self.budget.offer(match, self.problem.objective(match))

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """The stages that prove the best bound so far."""
        last = (self.last[1],) if self.last is not None and self.last[0] > self.view.bound else ()
        return (*self.stages, *last)

    def as_root(self) -> Bounded:
        """The root of a tree: what the run has proved, and the relaxation from which its children start."""
        view = NodeView(self.problem, Node(), None, ())
        start = time.thread_time()
        view.use_proofs(Node(stages=self.all_stages), self.effort)
        root = Bounded(None, view, self.all_stages, check_seconds=time.thread_time() - start)
        if view.bound < self.target:
            root.relaxation = self.splitting.state.kept(self._allowed(view))
        return root

    def _outcome(self) -> Outcome:
        assert self.budget.best is not None
        node = Node(stages=self.all_stages, spectral=True)
        closed = self.bound >= self.target
        status: Status = "optimal" if closed else self.budget.stop_status if self._out_of_time else "stalled"
        return Outcome(self.budget.best[1], status, Certificate(self.problem.n, (node,)), notes=(self.note,))
