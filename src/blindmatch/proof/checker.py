"""Check a certificate in plain numpy. Uses no code of the solvers (some use this), trusts nothing that they say.

The tree of a proof is here; what the duals of one node prove is in `stage_check.py`. What float64 may get wrong, and in
what range of numbers the bounds on it hold, is in `rounding.py`.

A node stands for the permutations that use its fixed pairs. The checker keeps a lower bound on the cost of all of them,
and one on the cost of those that use a given further pair: -inf where nothing is proved, +inf where there is no such
permutation. No bound is ever NaN.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np

from blindmatch.machine import one_blas_thread, usable_cores
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import COLUMN, ROW, Certificate, Node, Pair, Stage
from blindmatch.proof.convex import convex_bound
from blindmatch.proof.duration import projection_seconds, stage_seconds_at_least
from blindmatch.proof.parallel import by_depth, map_chunks
from blindmatch.proof.rounding import EPS, LARGEST_SIZE, TINY, guarded, lowered
from blindmatch.proof.spectral import cheap_bound
from blindmatch.proof.stage_check import Effort, OutOfTimeError, stage_bounds
from blindmatch.validation import IntArray, as_executor, at_least, refuse_other


def verify(
    problem: QAP, certificate: Certificate, *, threads: int | None = None, executor: Executor | None = None
) -> float:
    """Return the lower bound that a certificate proves for a problem, rounded down safely.

    Every permutation that the problem allows costs at least this much. A certificate that was damaged, forged or made
    for another problem still proves a true bound, only a weak one; ``-inf`` if it proves nothing at all. A certificate
    whose tree does not fit the problem, or that holds numbers out of range, is refused with a ValueError. The check
    uses all cores, or `threads` of them. With an `executor` (of ``concurrent.futures``, or a Dask client), its workers
    check the nodes of a tree.

    Examples
    --------
    >>> import blindmatch as bm
    >>> problem = bm.QAP([[0, 1, 2], [1, 0, 3], [2, 3, 0]], [[0, 4, 1], [4, 0, 1], [1, 1, 0]])
    >>> result = bm.solve(problem, rng=0)
    >>> bm.verify(problem, result.certificate) == result.cost
    True
    """
    if threads is not None:
        at_least(threads, 1, "threads")
    pool = None if executor is None else as_executor(executor)
    return _verified(problem, certificate, Effort(threads=threads or usable_cores()), executor=pool)[0]


def verify_in_time(
    problem: QAP, certificate: Certificate, seconds: float, threads: int = 1, executor: Executor | None = None
) -> tuple[float, bool]:
    """Verify within `seconds` of computing time; return the bound, and True if the whole certificate was checked.

    When the time is over, or at Ctrl-C, the bound is what has been proved so far: as true, only weaker.
    """
    if seconds < math.inf:
        return _verified(problem, certificate, Effort(time.thread_time() + seconds), in_part=True)
    return _verified(problem, certificate, Effort(threads=threads), in_part=True, executor=executor)


def _verified(
    problem: QAP, certificate: Certificate, effort: Effort, in_part: bool = False, executor: Executor | None = None
) -> tuple[float, bool]:
    refuse_other(problem, QAP, "problem", "use bm.QAP(...) or a distortion's .problem(X, Y)")
    refuse_other(certificate, Certificate, "certificate", "use result.certificate or Certificate.load")
    if certificate.size != problem.n:
        raise ValueError(f"certificate is for n={certificate.size}, the problem has n={problem.n}")
    if problem.n > LARGEST_SIZE:
        raise ValueError(f"problem has n={problem.n}; rounding errors are bounded for n <= {LARGEST_SIZE} only")
    if not certificate.nodes:
        raise ValueError("certificate: it has no nodes; expected at least the root")
    _check_forced(problem, certificate.forced)
    try:
        with guarded(), _one_blas_thread(certificate.nodes):
            views, whole = _views(problem, certificate, effort, in_part, executor)
            bound = _root_bound(problem, certificate, views)
    except FloatingPointError:  # a number that `rounding.py` rules out: whatever it is, it proves nothing
        return -math.inf, True
    except KeyboardInterrupt:
        if not in_part:
            raise
        return -math.inf, False
    # Where all numbers are zero, so are all costs, and nothing was rounded.
    return 0.0 if problem.vanishes else problem.round_up(bound), whole


def _views(
    problem: QAP, certificate: Certificate, effort: Effort, in_part: bool, executor: Executor | None
) -> tuple[list[NodeView], bool]:
    """The nodes as the checker sees them, and whether every node was looked at."""
    for index, node in enumerate(certificate.nodes):
        root = index == 0
        if root != (node.parent == -1) or root != (node.pair is None) or not -1 <= node.parent < index:
            raise ValueError(
                f"certificate: node {index} has parent {node.parent}; expected the root, then earlier nodes"
            )
    views: list[NodeView] = []
    try:
        if executor is not None and len(certificate.nodes) > 1:
            return _views_on(executor, problem, certificate), True
        for node in certificate.nodes:  # parents first: what they rule out holds for their children
            parent = None if node.parent < 0 else views[node.parent]
            views.append(NodeView(problem, node, parent, certificate.forced))
            views[-1].use_proofs(node, effort)
    except (KeyboardInterrupt, OutOfTimeError):
        if not in_part:
            raise
        return views, False  # a node that nobody looked at proves nothing
    return views, True


def _views_on(executor: Executor, problem: QAP, certificate: Certificate) -> list[NodeView]:
    views: dict[int, NodeView] = {}
    look = partial(_look, problem, certificate.forced)
    for level in by_depth([node.parent for node in certificate.nodes]):
        nodes = [certificate.nodes[index] for index in level]
        found = map_chunks(executor, look, [(node, views.get(node.parent)) for node in nodes])
        views.update(zip(level, found, strict=True))
    return [views[index] for index in range(len(views))]


def _look(problem: QAP, forced: tuple[Pair, ...], items: list[tuple[Node, NodeView | None]]) -> list[NodeView]:
    """In the process of a worker: nodes with their parents."""
    views = []
    with guarded(), _one_blas_thread([node for node, _ in items]):
        for node, parent in items:
            views.append(NodeView(problem, node, parent, forced))
            views[-1].use_proofs(node, Effort())
    return views


def _one_blas_thread(nodes: Sequence[Node]) -> AbstractContextManager[object]:
    """Keep BLAS to one thread where there are factors: the checker has threads of its own."""
    factors = any(stage.factor is not None for node in nodes for stage in node.stages)
    return one_blas_thread() if factors else nullcontext()


def _root_bound(problem: QAP, certificate: Certificate, views: list[NodeView]) -> float:
    """The bound of the root, before it is rounded up to a cost."""
    if not views:
        return -math.inf
    symmetries = [
        (side, image) if is_symmetry(problem, side, image) else None for side, image in certificate.symmetries
    ]
    for view, node in zip(reversed(views), reversed(certificate.nodes[: len(views)]), strict=True):  # children first
        view.close(node, symmetries)
        if node.parent >= 0:
            views[node.parent].children[node.pair] = view.bound
    return views[0].bound


def is_symmetry(problem: QAP, side: int, image: IntArray) -> bool:
    """Whether renumbering the sources (side ROW) or the targets leaves every number of the problem as it is."""
    if side not in (ROW, COLUMN) or image.dtype.kind != "i" or not np.array_equal(np.sort(image), np.arange(problem.n)):
        return False
    rows, columns = (image, np.arange(problem.n)) if side == ROW else (np.arange(problem.n), image)
    moved = np.ix_(rows, columns)
    matrices = [factor[side] for factor in problem.factors]
    return (
        all(np.array_equal(matrix, matrix[np.ix_(image, image)]) for matrix in matrices)
        and np.array_equal(problem.linear, problem.linear[moved])
        and (problem.forbidden is None or np.array_equal(problem.forbidden, problem.forbidden[moved]))
    )


def _check_forced(problem: QAP, forced: tuple[Pair, ...]) -> None:
    """Each forced pair must be the only one left in its row or in its column."""
    free = problem.allowed
    for i, j in forced:
        if not (0 <= i < problem.n and 0 <= j < problem.n) or not free[i, j]:
            raise ValueError(f"certificate: the pair ({i}, {j}) is not allowed")
        if free[i].sum() > 1 and free[:, j].sum() > 1:
            raise ValueError(f"certificate: the pair ({i}, {j}) is not forced")
        free[i, :] = free[:, j] = False


class NodeView:
    """A node as the checker sees it: the problem that is left, and bounds that hold for all of its permutations."""

    def __init__(self, problem: QAP, node: Node, parent: NodeView | None, forced: tuple[Pair, ...]) -> None:
        before = forced if parent is None else parent.fixed
        self.fixed: tuple[Pair, ...] = before if node.pair is None else (*before, node.pair)
        self.children: dict[Pair | None, float] = {}
        self.error = fixing_error(problem, len(self.fixed))
        if len(self.fixed) >= problem.n - 1:  # one permutation is left
            permutation = _completed(self.fixed, problem.n)
            self.bound = _cost_from_below(problem, permutation) if problem.allows(permutation) else math.inf
            self.rows = self.columns = np.arange(0)
            self.pair_bounds = np.zeros((0, 0))
            return
        whole = (problem, np.arange(problem.n), np.arange(problem.n))
        self.rest, self.rows, self.columns = problem.reduced(self.fixed) if self.fixed else whole
        self.pair_bounds = np.where(self.rest.allowed, -math.inf, math.inf)
        if parent is not None and node.pair is not None:
            keep = np.ix_(parent.rows != node.pair[0], parent.columns != node.pair[1])
            self.pair_bounds = np.maximum(self.pair_bounds, parent.pair_bounds[keep])
        self.bound = -math.inf

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to choose."""
        return not len(self.rows)

    def use_proofs(self, node: Node, effort: Effort) -> None:
        """Take in what a node holds: the bounds of `spectral.py` and `convex.py`, and its duals, stage by stage."""
        if self.complete:
            return
        if node.spectral:
            effort.check(projection_seconds(self.rest.n))
            self.bound = cheap_bound(self.rest)[0] - self.error
        if node.point is not None:
            effort.check(projection_seconds(self.rest.n))
            self.bound = max(self.bound, convex_bound(self.rest, node.point) - self.error)
        for stage in node.stages:
            self._use(self.rest, stage, effort)

    def _use(self, rest: QAP, stage: Stage, effort: Effort) -> None:
        if stage.size != rest.n:
            raise ValueError(f"certificate: a stage has size {stage.size}, its node has {rest.n}")
        # Pairs that this stage leaves out count with what was proved for them before, be it nothing.
        excluded = stage.forbidden | np.isposinf(self.pair_bounds)
        effort.check(stage_seconds_at_least(int(np.count_nonzero(~excluded)), rest.n, stage.rank))
        bound, bounds = stage_bounds(rest, stage, excluded, effort)
        floor = float(self.pair_bounds[excluded].min(initial=math.inf))
        better = np.where(excluded, -math.inf, np.minimum(bounds, floor) - self.error)
        self.pair_bounds = np.maximum(self.pair_bounds, better)
        self.bound = max(self.bound, min(bound, floor) - self.error)

    def close(self, node: Node, symmetries: list[tuple[int, IntArray] | None]) -> None:
        """Take the children's bounds in: every permutation pairs the line with one of its free partners."""
        if node.line is None or self.complete:
            return
        side, index = node.line
        lines = (self.rows, self.columns)
        at = np.flatnonzero(lines[side] == index) if side in (ROW, COLUMN) else np.array([])
        if len(at) != 1:
            raise ValueError(f"certificate: a node branches on {node.line}, which is not free there")
        values = {}
        for other in range(len(self.rows)):
            a, b = (int(at[0]), other) if side == ROW else (other, int(at[0]))
            pair = (int(self.rows[a]), int(self.columns[b]))
            values[pair[1 - side]] = max(float(self.pair_bounds[a, b]), self.children.get(pair, -math.inf))
        for child, sibling, number in node.skipped:
            symmetry = symmetries[number] if 0 <= number < len(symmetries) else None
            if symmetry is None or symmetry[0] != 1 - side or child not in values or sibling not in values:
                continue
            image = symmetry[1]
            if image[sibling] != child or any(image[pair[1 - side]] != pair[1 - side] for pair in self.fixed):
                continue
            # The symmetry takes the permutations through the sibling to those through the child, at equal costs.
            values[child] = max(values[child], values[sibling])
        self.bound = max(self.bound, min(values.values()))


def fixing_error(problem: QAP, fixed: int) -> float:
    """What rounding in ``problem.reduced(pairs)`` may add to the cost of a permutation.

    With f fixed pairs, the constant is a sum of f^2 products for each factor pair and f + 1 numbers more, and an entry
    of the linear term a sum of 2f products for each factor pair and one number more. The absolute values of all terms
    of one permutation sum up to at most the problem's scale. Each product may also lose TINY.
    """
    factors, n = len(problem.factors), problem.n
    if problem.exact or not fixed:
        return 0.0
    operations = (fixed + 4) * (fixed + 4 * factors)
    return operations * EPS * problem.scale + 2 * fixed * n * factors * TINY


def _completed(fixed: tuple[Pair, ...], n: int) -> IntArray:
    """The permutation of n - 1 pairs or of all."""
    sides = [{pair[side] for pair in fixed} for side in (ROW, COLUMN)]
    left = [sorted(set(range(n)) - side) for side in sides]
    pairs = [*fixed, *zip(*left, strict=True)] if len(left[0]) == len(left[1]) else []
    if len(pairs) != n or any(not side <= set(range(n)) for side in sides):
        raise ValueError(f"certificate: the pairs {sorted(fixed)} use an item twice, or one that is not there")
    return np.array([j for _, j in sorted(pairs)], dtype=np.intp)


def _cost_from_below(problem: QAP, permutation: IntArray) -> float:
    """What a permutation costs, less the error of n^2 products and sums a factor pair, and n + 2 further sums.

    `QAP.objective` rounds up: where a product and its rounding error underflow, it is 3 TINY too high at most.
    """
    if problem.exact:
        return problem.objective(permutation)
    factors = len(problem.factors) + (0 if problem.rest is None else len(problem.rest.factors))
    operations = factors * (3 * problem.n**2 + 2) + problem.n + 8
    return lowered(problem.objective(permutation) - problem.rounding, problem.scale, operations)
