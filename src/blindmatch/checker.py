"""Check a certificate in plain numpy. Shares no code with the solvers, trusts nothing that they say.

For any numbers U, V and any permutation p, the cost is, exactly,

    constant + sum_i leader[i, p_i] + sum_{i<k} R[i, p_i, k, p_k],
    leader[i, j]  = L_ij + A_ii B_jj + sum_{k != i} U[i, j, k] + sum_{l != j} V[i, j, l],
    R[i, j, k, l] = A_ik B_jl + A_ki B_lj - U[i, j, k] - V[i, j, l] - U[k, l, i] - V[k, l, j],

because each dual is added once and taken away once. A permutation through (i, j) uses exactly one pair of each other
row k, so its R there is at least the least R of that row. Half of it is charged to either end, which leaves a linear
assignment problem; its column duals give the bound. Rounding errors are bounded a priori and subtracted.
"""

from __future__ import annotations

import math
import time

import numpy as np

from blindmatch.certificate import COLUMN, ROW, Certificate, DualArray, Node, Pair, Stage
from blindmatch.problem import QAP
from blindmatch.spectral import projection_bound
from blindmatch.validation import BoolArray, FloatArray, IntArray

EPS = 2.0**-53
TINY = 2.0**-1074  # an operation whose result is below the normal range of float64 is wrong by up to this
_PROJECTION = 2e-8  # seconds that the projection bound takes at most, over n^3
_STAGE = 4e-9  # seconds that the check of a stage takes at least, over n^2 for each pair
_LARGEST = 1e300  # sums of larger numbers may overflow, and then prove nothing


def verify(problem: QAP, certificate: Certificate) -> float:
    """Return the lower bound that a certificate proves for a problem, rounded down safely.

    Every permutation that the problem allows costs at least this much. A certificate that was damaged or belongs to
    another problem still proves a true bound, only a weak one; ``-inf`` if it proves nothing at all.

    Examples
    --------
    >>> import blindmatch as bm
    >>> problem = bm.QAP([[0, 1, 2], [1, 0, 3], [2, 3, 0]], [[0, 4, 1], [4, 0, 1], [1, 1, 0]])
    >>> result = bm.solve(problem, rng=0)
    >>> bm.verify(problem, result.certificate) == result.cost
    True
    """
    return _verified(problem, certificate, math.inf)[0]


def verify_in_time(problem: QAP, certificate: Certificate, seconds: float) -> tuple[float, bool]:
    """What `verify` returns, if it takes no more than so many seconds of computing time, and True.

    When they are over, or at Ctrl-C, what has been proved so far, and False: a bound that is as true, only weaker.
    """
    return _verified(problem, certificate, time.thread_time() + seconds, partial=True)


class _OutOfTimeError(Exception):
    """The time for the check is over."""


def _verified(problem: QAP, certificate: Certificate, deadline: float, partial: bool = False) -> tuple[float, bool]:
    if certificate.size != problem.n:
        raise ValueError(f"certificate is for n={certificate.size}, the problem has n={problem.n}")
    if not certificate.nodes:
        raise ValueError("certificate: it has no nodes; expected at least the root")
    _check_forced(problem, certificate.forced)
    views: list[NodeView] = []
    whole = True
    try:
        for index, node in enumerate(certificate.nodes):  # parents first: what they rule out holds for their children
            root = index == 0
            if root != (node.parent == -1) or root != (node.pair is None) or not -1 <= node.parent < index:
                raise ValueError(
                    f"certificate: node {index} has parent {node.parent}; expected the root, then earlier nodes"
                )
            parent = None if index == 0 else views[node.parent]
            views.append(NodeView(problem, node, parent, certificate.forced))
            views[-1].use_proofs(node, deadline)
    except (KeyboardInterrupt, _OutOfTimeError):
        if not partial:
            raise
        whole = False  # a node that nobody looked at proves nothing
    if not views:
        return -math.inf, False
    symmetries = [(side, image) if _holds(problem, side, image) else None for side, image in certificate.symmetries]
    for view, node in zip(reversed(views), reversed(certificate.nodes[: len(views)]), strict=True):  # children first
        view.close(node, symmetries)
        if node.parent >= 0:
            views[node.parent].children[node.pair] = view.bound
    # Where all numbers are zero, so are all costs, and nothing was rounded.
    return 0.0 if problem.vanishes else problem.round_up(views[0].bound), whole


def _holds(problem: QAP, side: int, image: IntArray) -> bool:
    """Whether renumbering the sources (side ROW) or the targets leaves every number of the problem as it is."""
    if side not in (ROW, COLUMN) or not np.array_equal(np.sort(image), np.arange(problem.n)):
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
    free = np.ones((problem.n, problem.n), dtype=bool) if problem.forbidden is None else ~problem.forbidden
    for i, j in forced:
        if not (0 <= i < problem.n and 0 <= j < problem.n and free[i, j]):
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
        # Fixing pairs rounds the data of the problem that is left: allow for it on the scale of the whole.
        operations = (len(self.fixed) + 4) * (len(self.fixed) + 4 * len(problem.factors)) if self.fixed else 0
        self.error = 0.0 if problem.exact else operations * (EPS * problem.scale + TINY)
        if len(self.fixed) >= problem.n - 1:  # one permutation is left
            permutation = _completed(self.fixed, problem.n)
            self.bound = _cost_from_below(problem, permutation) if problem.allows(permutation) else math.inf
            self.rows = self.columns = np.arange(0)
            self.pair_bounds = np.zeros((0, 0))
            return
        whole = (problem, np.arange(problem.n), np.arange(problem.n))
        self.rest, self.rows, self.columns = problem.reduced(self.fixed) if self.fixed else whole
        rest = self.rest
        excluded = np.zeros((rest.n, rest.n), dtype=bool) if rest.forbidden is None else rest.forbidden
        self.pair_bounds = np.where(excluded, math.inf, -math.inf)
        if parent is not None and node.pair is not None:
            keep = np.ix_(parent.rows != node.pair[0], parent.columns != node.pair[1])
            self.pair_bounds = np.maximum(self.pair_bounds, parent.pair_bounds[keep])
        self.bound = -math.inf

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to choose."""
        return not len(self.rows)

    def use_proofs(self, node: Node, deadline: float) -> None:
        """Take in what a node holds: the projection bound, and its duals, one stage after the other."""
        if self.complete:
            return
        if node.spectral:
            if time.thread_time() + _PROJECTION * self.rest.n**3 > deadline:
                raise _OutOfTimeError
            self.bound = projection_bound(self.rest) - self.error
        for stage in node.stages:
            self._use(self.rest, stage, deadline)

    def _use(self, rest: QAP, stage: Stage, deadline: float) -> None:
        if stage.size != rest.n:
            raise ValueError(f"certificate: a stage has size {stage.size}, its node has {rest.n}")
        # Pairs that this stage leaves out count with what was proved for them before, be it nothing.
        excluded = stage.forbidden | np.isposinf(self.pair_bounds)
        if time.thread_time() + _STAGE * np.count_nonzero(~excluded) * rest.n**2 > deadline:
            raise _OutOfTimeError
        bound, bounds = stage_bounds(rest, stage, excluded, deadline)
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


def stage_bounds(
    problem: QAP, stage: Stage, excluded: BoolArray, deadline: float = math.inf
) -> tuple[float, FloatArray]:
    """Bound of all permutations without excluded pairs, and of those that use a given pair."""
    n = problem.n
    with np.errstate(invalid="ignore", over="ignore"):
        leader = _leaders(problem, stage) + _charges(problem, stage, excluded, deadline)
        leader[excluded] = math.inf
        beta = np.where(np.isfinite(stage.column_duals), stage.column_duals, 0.0)
        slack = leader - beta
        alpha = slack.min(axis=1)
        if np.isnan(alpha).any() or np.isneginf(alpha).any():
            return -math.inf, np.full((n, n), -math.inf)
        if np.isposinf(alpha).any():  # some source has no partner left: nothing is feasible
            return math.inf, np.full((n, n), math.inf)
        size = float(np.abs(alpha).sum() + np.abs(beta).sum() + abs(problem.constant))
        if not size < _LARGEST:
            return -math.inf, np.full((n, n), -math.inf)
        total = math.fsum([*alpha, *beta, problem.constant])
        bounds = total + (slack - alpha[:, None])
        finite = np.where(np.isfinite(slack), np.abs(slack), 0.0)
        # Infinite bounds (no permutation goes through the pair) stay so; a NaN could hide a pair that proves nothing.
        bounds -= 4 * EPS * (size + 4 * finite.max() + np.where(np.isfinite(bounds), np.abs(bounds), 0.0)) + TINY
        return _lowered(total, size, 4), np.where(np.isnan(bounds), -math.inf, bounds)


def _leaders(problem: QAP, stage: Stage) -> FloatArray:
    """Leaders of all pairs, lowered by a bound of their rounding errors."""
    n = problem.n
    U, V = _without_diagonal(stage.U, 0), _without_diagonal(stage.V, 1)
    terms = [problem.linear, U.sum(axis=2, dtype=np.float64), V.sum(axis=2, dtype=np.float64)]
    terms += [np.outer(np.diag(A), np.diag(B)) for A, B in problem.factors]
    size = np.abs(U).sum(axis=2, dtype=np.float64) + np.abs(V).sum(axis=2, dtype=np.float64)
    size += sum(np.abs(term) for term in (terms[0], *terms[3:]))
    return np.asarray(sum(terms) - (2 * n + len(terms) + 4) * (EPS * size + TINY))


def _charges(problem: QAP, stage: Stage, excluded: BoolArray, deadline: float) -> FloatArray:
    """For each pair (i, j): half of the least residuals in all other rows; +inf where a row has no partner left."""
    n = problem.n
    # Subtracting -inf makes +inf: excluded pairs, and pairs that would use a column twice, never are the least.
    U, V = _without_diagonal(stage.U, 0), _without_diagonal(stage.V, 1).astype(np.float64)
    by_row = np.ascontiguousarray(U.transpose(2, 0, 1), dtype=np.float64)  # U[k, l, i] at [i, k, l]
    by_column = np.ascontiguousarray(V.transpose(2, 0, 1))  # V[k, l, j] at [j, k, l]
    size = 2 * float(np.abs(by_row).max() + np.abs(by_column).max())
    size += sum(2 * float(np.abs(A).max() * np.abs(B).max()) for A, B in problem.factors)
    error = (2 * len(problem.factors) + 6) * (EPS * size + TINY) * n
    by_row[:, excluded] = -math.inf
    V[:, np.arange(n), np.arange(n)] = -math.inf
    charges = np.full((n, n), math.inf)
    pairs = np.argwhere(~excluded)
    for block in np.array_split(pairs, max(1, len(pairs) * n * n // 50_000)):  # blocks that stay in the cache
        if time.thread_time() > deadline:
            raise _OutOfTimeError
        i, j = block[:, 0], block[:, 1]
        residual = -by_row[i]  # [pair, k, l]
        for A, B in problem.factors:
            residual += A[i][:, :, None] * B[j][:, None, :]
            residual += A.T[i][:, :, None] * B.T[j][:, None, :]
        residual -= by_column[j]
        residual -= V[i, j][:, None, :]
        rows = residual.min(axis=2) - U[i, j]
        rows[np.arange(len(block)), i] = 0.0
        rounding = error + n * EPS * np.abs(rows).sum(axis=1, where=np.isfinite(rows))
        charges[i, j] = 0.5 * (rows.sum(axis=1) - rounding)
    return charges


def _without_diagonal(duals: DualArray, axis: int) -> DualArray:
    """A copy in which the entries with k == i (axis 0) or l == j (axis 1) are zero."""
    copy = duals.copy()
    index = np.arange(copy.shape[0])
    if axis == 0:
        copy[index, :, index] = 0
    else:
        copy[:, index, index] = 0
    return copy


def _completed(fixed: tuple[Pair, ...], n: int) -> IntArray:
    """The permutation of n - 1 pairs or of all."""
    sides = [{pair[side] for pair in fixed} for side in (ROW, COLUMN)]
    left = [sorted(set(range(n)) - side) for side in sides]
    pairs = [*fixed, *zip(*left, strict=True)] if len(left[0]) == len(left[1]) else []
    if len(pairs) != n or any(not side <= set(range(n)) for side in sides):
        raise ValueError(f"certificate: the pairs {sorted(fixed)} use an item twice, or one that is not there")
    return np.array([j for _, j in sorted(pairs)], dtype=np.intp)


def _cost_from_below(problem: QAP, permutation: IntArray) -> float:
    """What a permutation costs, less the error of n^2 products and sums a factor pair, and n + 2 further sums."""
    if problem.exact:
        return problem.objective(permutation)
    operations = len(problem.factors) * (problem.n**2 + 2) + problem.n + 4
    return _lowered(problem.objective(permutation), problem.scale, operations)


def _lowered(value: float, size: float, operations: int) -> float:
    """`value` less a bound of the rounding error of that many operations on numbers of that size."""
    return value - operations * (EPS * size + TINY) if math.isfinite(value) else value
