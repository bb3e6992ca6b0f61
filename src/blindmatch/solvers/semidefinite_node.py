"""One node of the semidefinite tree: what it inherits from its parent, what it proves, and how it branches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from blindmatch.machine import one_blas_thread
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import COLUMN, ROW, Node, Pair, Stage
from blindmatch.proof.checker import NodeView
from blindmatch.proof.stage_check import Effort
from blindmatch.solvers.base import Budget
from blindmatch.solvers.semidefinite_stage import PairCosts, StageMaker
from blindmatch.solvers.splitting import Splitting, SplittingState
from blindmatch.validation import BoolArray, FloatArray, IntArray

_WEIGHT = 3.0  # a child with the whole gap left counts e^3 times as much as one that is nearly closed
_TIE = 1e-3  # relative difference of the work of two lines that means nothing

Symmetry = tuple[int, IntArray]  # (ROW or COLUMN, image)
Skipped = tuple[int, int, int]  # child, sibling, number of the symmetry


@dataclass(frozen=True)
class BranchingLine:
    """A row or a column to branch on."""

    line: Pair  # (ROW or COLUMN, its index in the problem)
    skipped: tuple[Skipped, ...]
    children: list[Pair]  # their pairs, as indices into the rows and columns that the node leaves


def line_penalties(problem: QAP) -> tuple[FloatArray, FloatArray]:
    """By what the work of each row and each column is multiplied: lines of the more uneven side raise the bounds most.

    The tree of level 1 has this rule to the fourth power (`src/core/tree/branching.cpp`). Here it saves half of the
    nodes of nug16a and tai20b and a quarter of those of nug17; others change little, whatever the power. Of equally
    good lines, one that has no relation to any other comes last: fixing it would show nothing.
    """
    factors = problem.normal_form.factors
    rows = columns = 1.0
    if len(factors) == 1 and problem.n >= 2:
        spreads = []
        for matrix in factors[0]:
            values = matrix[~np.eye(problem.n, dtype=bool)]
            mean = float(values.mean() - values.min())
            spreads.append(float(values.std()) / mean if mean > 0 else 0.0)
        if all(spreads):
            rows, columns = max(1.0, spreads[1] / spreads[0]), max(1.0, spreads[0] / spreads[1])
    idle = [~np.any([pair[side].any(axis=1) for pair in factors], axis=0) for side in (0, 1)]
    return rows * (1 + _TIE * idle[0]), columns * (1 + _TIE * idle[1])


def choose_line(
    view: NodeView,
    bounds: FloatArray,
    target: float,
    symmetries: tuple[Symmetry, ...],
    penalties: tuple[FloatArray, FloatArray],
    chosen: Pair | None = None,
) -> BranchingLine:
    """The line whose children should take the least work, or the one that an earlier run chose.

    Pairs whose bounds reach the target need no child.
    """
    gap = target - float(bounds.min())
    share = np.clip((target - bounds) / gap, 0, 1) if gap < np.inf else np.ones_like(bounds)
    weights = np.where(bounds < target, np.exp(_WEIGHT * share), 0.0)
    skipped = [_skipped(view, side, symmetries) for side in (ROW, COLUMN)]
    if chosen is None:
        lines = []
        for side in (ROW, COLUMN):
            work = (weights if side == ROW else weights.T) @ _needed(view, side, skipped[side])
            work = work * penalties[side][(view.rows, view.columns)[side]]
            at = int(np.argmin(work))
            lines.append((float(work[at]), side, at))
        _, side, at = min(lines)
    else:
        side, at = chosen[0], int(np.flatnonzero((view.rows, view.columns)[chosen[0]] == chosen[1])[0])
    open_ = (bounds[at] if side == ROW else bounds[:, at]) < target
    partners = np.flatnonzero(_needed(view, side, skipped[side]) & open_)
    children = [(at, int(other)) if side == ROW else (int(other), at) for other in partners]
    return BranchingLine((side, int((view.rows, view.columns)[side][at])), skipped[side], children)


def _needed(view: NodeView, side: int, skipped: tuple[Skipped, ...]) -> BoolArray:
    """The partners of a line that must become children: those that no symmetry maps to a sibling."""
    return ~np.isin((view.columns, view.rows)[side], [child for child, _, _ in skipped])


def _skipped(view: NodeView, side: int, symmetries: tuple[Symmetry, ...]) -> tuple[Skipped, ...]:
    """Children to skip: a symmetry that keeps all fixed pairs maps a sibling to them. The first of each orbit stays."""
    usable = [
        (number, image)
        for number, (of, image) in enumerate(symmetries)
        if of == 1 - side and all(image[pair[of]] == pair[of] for pair in view.fixed)
    ]
    gone: dict[int, Skipped] = {}
    for sibling in (view.columns, view.rows)[side].tolist():
        if sibling in gone:
            continue
        for number, image in usable:
            child = int(image[sibling])
            if child > sibling and child not in gone:
                gone[child] = (child, sibling, number)
    return tuple(gone.values())


_ROUND = 6  # steps between two proofs
_ROUNDS = 6  # largest number of rounds
_HOPE = 0.7  # a node continues if its remaining rounds, at the last pace, may close this share of the gap
_FIX_SHARE = 0.1  # least share of the allowed pairs that must be ruled out to start a new stage
_ROUNDING = 0.02  # share of the gap that may be lost by rounding the factor of a stage


@dataclass(eq=False)
class Bounded:
    """A bounded node."""

    pair: Pair | None
    view: NodeView
    stages: tuple[Stage, ...]
    relaxation: SplittingState | None = None  # where its children start; None if there is nothing to relax
    index: int = 0  # in the certificate
    match: IntArray | None = None  # a permutation of the whole problem that the relaxation points to
    check_seconds: float = 0.0
    waiting: int = 0  # children that have not been bounded yet


class NodeBounder:
    """Bounds the nodes of one problem. The result depends only on the arguments."""

    def __init__(self, problem: QAP, costs: PairCosts, budget: Budget, over: Callable[[], bool]) -> None:
        self.problem, self.costs, self.budget, self.over = problem, costs, budget, over

    def child(self, parent: Bounded, i: int, j: int, target: float) -> Bounded | None:
        """Fix the pair (i, j) of what the parent leaves, and bound the rest; None if time runs out."""
        pair = (int(parent.view.rows[i]), int(parent.view.columns[j]))
        view = NodeView(self.problem, Node(pair=pair), parent.view, ())
        if view.complete:
            return Bounded(pair, view, (), match=self._completed(view.fixed))
        allowed = np.asarray(view.pair_bounds < target)
        start = None if parent.relaxation is None else parent.relaxation.fixed(i, j).kept(allowed)
        run = _NodeRun(self, view, target)
        if start is None or not has_choice(allowed):
            run.prove_plainly(allowed)
        elif not run.relax(start):
            return None
        return run.result(pair)

    def _completed(self, fixed: tuple[Pair, ...]) -> IntArray:
        """The permutation with these pairs, of which at most one is missing."""
        match = np.full(self.problem.n, -1, dtype=np.intp)
        for i, j in fixed:
            match[i] = j
        match[match < 0] = np.setdiff1d(np.arange(self.problem.n), match)
        return match


def children_elsewhere(
    problem: QAP, children: list[tuple[Bounded, int, int]], target: float, seconds: float
) -> list[Bounded | None]:
    """Call `NodeBounder.child` for each child, in the process of a worker."""
    budget = Budget(seconds, threads=1)
    bounder = NodeBounder(problem, PairCosts(problem), budget, lambda: budget.stopped)
    with one_blas_thread():
        return [bounder.child(parent, i, j, target) for parent, i, j in children]


class _NodeRun:
    """The work on one node: continue the parent's splitting, with a proof after each round of steps."""

    def __init__(self, bounder: NodeBounder, view: NodeView, target: float) -> None:
        self.bounder, self.target = bounder, target
        self.kept: list[Stage] = []  # the stages on which later ones build
        self.base = view  # what the kept stages prove
        self.best = view  # with one more stage,
        self.last: Stage | None = None  # which is this one
        self.costs = bounder.costs.reduced(view.fixed, view.rows, view.columns)
        self.splitting: Splitting | None = None
        self.seconds = 0.0  # CPU time of the checks

    def prove_plainly(self, allowed: BoolArray) -> None:
        """Use a stage of level 1 alone."""
        self._use(StageMaker(self.costs, allowed).plain_stage(self.bounder.budget))

    def relax(self, start: SplittingState) -> bool:
        """Run rounds of steps as long as they may close the node; False if time runs out."""
        self.splitting = Splitting.resumed(self.costs.centred_matrix(start.allowed), start)
        before = -math.inf
        for left in reversed(range(_ROUNDS)):
            if not self._steps():
                return False
            self._prove()
            bound = self.best.bound
            if bound >= self.target or not left or (bound - before) * left < _HOPE * (self.target - bound):
                return True
            before = bound
            self.splitting.advance()
            self.splitting.balance()
            if not self._shrink():
                return True
        return True

    def _steps(self) -> bool:
        assert self.splitting is not None
        for step in range(_ROUND):
            if self.bounder.over():
                return False
            self.splitting.project()
            if step < _ROUND - 1:
                self.splitting.advance()
        return True

    def _prove(self) -> None:
        assert self.splitting is not None
        # A new node has no bound yet, but its pairs have those that it inherited.
        gap = self.target - max(self.best.bound, float(self.base.pair_bounds.min()))
        loss = _ROUNDING * gap if 0 < gap < math.inf else 0.0
        maker = StageMaker(self.costs, self.splitting.allowed)
        self._use(maker.stage(self.splitting.dual(), self.bounder.budget, loss))

    def _use(self, stage: Stage) -> None:
        view = copy(self.base)
        start = time.thread_time()
        view.use_proofs(Node(stages=(stage,)), Effort())
        self.seconds += time.thread_time() - start
        if view.bound >= self.best.bound:
            self.best, self.last = view, stage

    def _shrink(self) -> bool:
        """Drop the pairs that are ruled out; False if at most one permutation remains."""
        assert self.splitting is not None
        allowed = self.splitting.allowed & (self.best.pair_bounds < self.target)
        if allowed.sum() > (1 - _FIX_SHARE) * self.splitting.allowed.sum():
            return True
        self._keep()
        if not has_choice(allowed):
            self.splitting = None
            self.prove_plainly(allowed)
            return False
        self.splitting.shrink(allowed)
        return True

    def _keep(self) -> None:
        if self.last is not None:
            self.kept.append(self.last)
        self.base, self.last = self.best, None

    def result(self, pair: Pair) -> Bounded:
        self._keep()
        node = Bounded(pair, self.base, tuple(self.kept), check_seconds=self.seconds)
        if self.base.bound >= self.target or self.splitting is None:
            return node
        node.relaxation = self.splitting.state.kept(self.base.pair_bounds < self.target)
        node.match = np.empty(self.bounder.problem.n, dtype=np.intp)
        for i, j in self.base.fixed:
            node.match[i] = j
        node.match[self.base.rows] = self.base.columns[self.splitting.rounded(self.splitting.allowed)]
        return node


def has_choice(allowed: BoolArray) -> bool:
    """Whether the allowed pairs may leave more than one permutation (a quick test, not an exact one)."""
    rows, columns = linear_sum_assignment(~allowed)
    return bool(allowed.sum() > len(allowed) and allowed[rows, columns].all())
