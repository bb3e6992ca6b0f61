"""Convert a problem for the C++ core, and the core's proof to a certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blindmatch import _core
from blindmatch.problem.optimality import RELATIVE_TOLERANCE, ROUNDING_TOLERANCE
from blindmatch.problem.qap import QAP, NormalForm, cost_scale
from blindmatch.proof.certificate import Certificate, Node, Stage
from blindmatch.proof.duration import check_seconds, stage_work
from blindmatch.solvers.base import Budget, Proof
from blindmatch.solvers.progress import NO_LIMITS, Limits
from blindmatch.validation import FloatArray


def core_problem(problem: QAP) -> _core.Problem:
    """Pass the normal form to the core."""
    form = problem.normal_form
    return _core.Problem(_contiguous(form.factors), np.ascontiguousarray(form.linear), form.constant, problem.forbidden)


Duals = NDArray[np.float32]
_PROOF_SECONDS = 2e-7  # of what comes before a report of the root, over n^4
_COMMON = 100  # the exponent of what may be added to all scaled costs


@dataclass(frozen=True)
class RescaledProblem:
    """The problem times a power of two that makes its costs about one, as float32 duals need.

    Scaling by powers of two is exact, so a proof for the scaled problem is a proof for the problem.
    """

    core: _core.Problem
    target: _core.Target
    exponent: int
    size: int

    @classmethod
    def of(cls, problem: QAP, limits: Limits = NO_LIMITS) -> RescaledProblem:
        """Scale so that the largest cost of a pair, or the spread of the linear term, is about one.

        What all permutations pay counts less: it may become as large as 2^100.
        """
        form = problem.normal_form
        sizes = [(float(np.abs(A).max()), float(np.abs(B).max())) for A, B in form.factors]
        common = max(abs(form.constant), float(np.abs(form.linear).max()))
        size = max(sum(2 * a * b for a, b in sizes), float(np.ptp(form.linear)), math.ldexp(common, -_COMMON))
        exponent = -math.frexp(size)[1] if size > 1e-290 else -_exponent(form, common)
        factors = []
        for (A, B), (a, _) in zip(form.factors, sizes, strict=True):
            part = -math.frexp(a)[1] if a > 0 else 0
            factors.append((np.ldexp(A, part), np.ldexp(B, exponent - part)))
        linear, constant = np.ldexp(form.linear, exponent), math.ldexp(form.constant, exponent)
        target = _core.Target(
            tolerance=RELATIVE_TOLERANCE,
            granularity=math.ldexp(problem.granularity, exponent),
            noise=ROUNDING_TOLERANCE * cost_scale(factors, linear, constant),
            gap=limits.gap,
            enough=_scaled(limits.bound_for(problem.scale), exponent),
        )
        core = _core.Problem(_contiguous(tuple(factors)), linear, constant, problem.forbidden)
        return cls(core, target, exponent, problem.n)

    def budget(
        self,
        budget: Budget,
        root_lasts: Callable[[float], bool] | None = None,
        keep_state: Callable[[memoryview], float] | None = None,
    ) -> RescaledBudget:
        """A budget for the core that converts costs to the problem's own scale."""
        n = self.size
        check = check_seconds(stage_work(n**2, n), n, threads=1)
        return RescaledBudget(budget, self.exponent, n, check, root_lasts, keep_state)

    def cost_limit(self, limits: Limits) -> float:
        """The caller's cost limit on the core's scale."""
        return -math.inf if limits.cost_limit is None else _scaled(limits.cost_limit, self.exponent)

    def cost(self, cost: float) -> float:
        """Convert a cost or bound of the scaled problem to the problem's own scale."""
        return math.ldexp(cost, -self.exponent)

    def duals(self, duals: FloatArray) -> Duals:
        """Duals of the problem on the core's scale; values beyond its range become zero."""
        scaled = np.ldexp(duals, self.exponent)
        return np.ascontiguousarray(np.where(np.abs(scaled) < 1e4, scaled, 0.0), dtype=np.float32)


@dataclass(frozen=True)
class RescaledBudget:
    """The part of a budget that the bounds of the core use, with costs scaled back.

    `check_seconds` is the CPU time to check one node of a proof, or one stage of the root. The run ends early enough to
    check all of them; on an idle machine, the time limit already leaves room for one. `root_lasts` gets the gap of each
    report of the root, and says whether to continue. `keep_state` writes the checkpoint of a tree.
    """

    inner: Budget
    exponent: int
    size: int
    check_seconds: float
    root_lasts: Callable[[float], bool] | None = None
    keep_state: Callable[[memoryview], float] | None = None

    @property
    def remaining(self) -> float:
        """Seconds left for the core, which asks once, at the start: one sweep of a large problem may take long."""
        return self.inner.remaining - self._check(1.0)

    @property
    def interrupted(self) -> bool:
        """Whether to stop before the start."""
        return self.inner.interrupted

    @property
    def orphaned(self) -> bool:
        """Whether the main thread has ended; the core asks every 50 ms."""
        return self.inner.orphaned

    def _check(self, proof_size: float) -> float:
        """Seconds to reserve for the check; at most half of the limit, so that a large resumed tree makes progress."""
        seconds = (max(1.0, proof_size) * self.inner.slowness - 1) * self.check_seconds
        return min(seconds, self.inner.time_limit / 2)

    def report(
        self,
        lower_bound: float,
        cost: float,
        iteration: int,
        proof_size: float = 0.0,
        nodes: int = 0,
        open_nodes: int = 0,
    ) -> bool:
        """Forward progress; False stops the run. A proof of size 1 has one stage for all pairs."""
        bound, cost = math.ldexp(lower_bound, -self.exponent), math.ldexp(cost, -self.exponent)
        if not nodes:  # these reports follow from the seed, so they can count work
            self.inner.spend(_PROOF_SECONDS * self.size**4)
        name, phase = (None, "tree") if nodes else ("level-1 RLT", "root")
        go_on = self.inner.report(bound, cost, iteration, name, phase, nodes, open_nodes)
        if not nodes and self.root_lasts is not None:
            go_on = self.root_lasts(cost - bound) and go_on
        return go_on and self.inner.remaining > self._check(proof_size)

    def fail(self, error: BaseException) -> None:
        """Forward an exception of a signal handler or of a report; the run stops."""
        self.inner.fail(error)


def _scaled(limit: float, exponent: int) -> float:
    """A limit times a power of two; infinite if it overflows."""
    try:
        return math.ldexp(limit, exponent)
    except OverflowError:
        return math.copysign(math.inf, limit)


def _exponent(form: NormalForm, common: float) -> int:
    """The exponent of the largest pair cost or linear cost, even if products of the numbers underflow to zero."""
    sizes = [[float(np.abs(matrix).max()) for matrix in pair] for pair in form.factors]
    exponents = [1 + sum(math.frexp(size)[1] for size in pair) for pair in sizes if all(pair)]
    exponents += [math.frexp(spread)[1] for spread in [float(np.ptp(form.linear))] if spread > 0]
    exponents += [math.frexp(common)[1] - _COMMON] if common > 0 else []
    return max(exponents, default=0)


def _contiguous(factors: tuple[tuple[FloatArray, FloatArray], ...]) -> list[tuple[FloatArray, FloatArray]]:
    return [(np.ascontiguousarray(A), np.ascontiguousarray(B)) for A, B in factors]


CoreStage = _core.Stage | _core.HahnGrantStage  # of the fast sweeps, or of the paper's


def tree_proof(size: int, exponent: int, tree: _core.TreeResult) -> Proof:
    """The proof of the tree that the core left for the problem times 2^exponent."""
    nodes = tree.proof
    symmetries = tuple((0 if s.of_rows else 1, s.image.astype(np.intp)) for s in tree.symmetries)

    def make(count: int | None) -> Certificate:
        made = tuple(_node(node, exponent) for node in nodes[:count])
        return Certificate(size, made, symmetries=symmetries)

    return _proof(make, [stage for node in nodes for stage in node.stages])


def root_proof(size: int, exponent: int, stages: Sequence[CoreStage]) -> Proof:
    """The proof of stages for the whole problem, without branching."""

    def make(count: int | None) -> Certificate:
        root = Node(stages=tuple(stage_of(stage, -exponent) for stage in stages), spectral=True)
        return Certificate(size, (root,))

    return _proof(make, stages)


def stage_of(stage: CoreStage, exponent: int = 0) -> Stage:
    """The stage in the certificate's order, times a power of two."""
    # float32 keeps its digits only in the middle of its range.
    dtype = stage.u.dtype if abs(exponent) <= 40 else np.dtype(np.float64)
    U, V = (np.ldexp(duals.transpose(1, 2, 0), exponent, dtype=dtype) for duals in (stage.u, stage.v))
    # The core's dual of a column without partners may be infinite; any finite number is valid.
    finite = np.where(np.isfinite(stage.column_duals), stage.column_duals, 0.0)
    return Stage(U, V, np.ldexp(finite, exponent), stage.forbidden.astype(bool))


def _node(node: _core.ProofNode, exponent: int) -> Node:
    stages = tuple(stage_of(stage, -exponent) for stage in node.stages)
    skipped = tuple((child.skipped, child.sibling, child.symmetry) for child in node.skipped)
    parent = -1 if node.parent is None else node.parent
    return Node(parent, node.pair, stages, node.line, node.parent is None, skipped)


def _proof(make: Callable[[int | None], Certificate], stages: Sequence[CoreStage]) -> Proof:
    masks = [stage.forbidden for stage in stages]
    work = sum(stage_work(int(np.count_nonzero(mask == 0)), len(mask)) for mask in masks)
    return Proof(make, work, sum(stage.u.nbytes + stage.v.nbytes for stage in stages))
