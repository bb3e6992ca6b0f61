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

import numpy as np

from blindmatch.certificate import ROW, Certificate, DualArray, Node, Pair, Stage
from blindmatch.problem import QAP
from blindmatch.spectral import projection_bound
from blindmatch.validation import BoolArray, FloatArray, IntArray

EPS = 2.0**-53


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
    if certificate.size != problem.n:
        raise ValueError(f"certificate is for n={certificate.size}, the problem has n={problem.n}")
    _check_forced(problem, certificate.forced)
    children: list[list[int]] = [[] for _ in certificate.nodes]
    for index, node in enumerate(certificate.nodes):
        if index == 0 and (node.parent != -1 or node.pair is not None):
            raise ValueError("certificate: node 0 must be the root")
        if index > 0:
            if not 0 <= node.parent < index or node.pair is None:
                raise ValueError(f"certificate: node {index} has parent {node.parent}; expected an earlier node")
            children[node.parent].append(index)
    bounds = np.full(len(certificate.nodes), -math.inf)
    fixed: list[tuple[Pair, ...]] = []
    for node in certificate.nodes:
        before = fixed[node.parent] if node.parent >= 0 else certificate.forced
        fixed.append(before if node.pair is None else (*before, node.pair))
    for index in reversed(range(len(certificate.nodes))):
        found = {certificate.nodes[child].pair: float(bounds[child]) for child in children[index]}
        bounds[index] = _node_bound(problem, certificate.nodes[index], fixed[index], found)
    return problem.round_up(float(bounds[0]))


def _check_forced(problem: QAP, forced: tuple[Pair, ...]) -> None:
    """Each forced pair must be the only one left in its row or in its column."""
    free = np.ones((problem.n, problem.n), dtype=bool) if problem.forbidden is None else ~problem.forbidden
    for i, j in forced:
        if not (0 <= i < problem.n and 0 <= j < problem.n and free[i, j]):
            raise ValueError(f"certificate: the pair ({i}, {j}) is not allowed")
        if free[i].sum() > 1 and free[:, j].sum() > 1:
            raise ValueError(f"certificate: the pair ({i}, {j}) is not forced")
        free[i, :] = free[:, j] = False


def _node_bound(problem: QAP, node: Node, fixed: tuple[Pair, ...], children: dict[Pair | None, float]) -> float:
    """Bound of all permutations that use the fixed pairs."""
    if len(fixed) == problem.n:
        permutation = np.array([j for _, j in sorted(fixed)])
        return _lowered(problem.objective(permutation), problem.scale, problem.n)
    if fixed:
        rest, rows, columns = problem.reduced(fixed)
    else:
        rest, rows, columns = problem, np.arange(problem.n), np.arange(problem.n)
    ruled_out = np.zeros((rest.n, rest.n), dtype=bool) if rest.forbidden is None else rest.forbidden.copy()
    pair_bounds = np.where(ruled_out, math.inf, -math.inf)
    best = projection_bound(rest) if node.spectral else -math.inf
    for stage in node.stages:
        if stage.size != rest.n:
            raise ValueError(f"certificate: a stage has size {stage.size}, its node has {rest.n}")
        # Pairs that this stage leaves out count with what earlier stages proved for them, be it nothing.
        excluded = stage.forbidden | ruled_out
        bound, bounds = stage_bounds(rest, stage, excluded)
        floor = float(pair_bounds[excluded].min(initial=math.inf))
        pair_bounds = np.maximum(pair_bounds, np.where(excluded, -math.inf, np.minimum(bounds, floor)))
        best = max(best, min(bound, floor))
    if node.line is not None:
        best = max(best, _branch_bound(node.line, (rows, columns), pair_bounds, children))
    # Fixing pairs rounds the reduced problem's data: allow for it once more on the scale of the whole.
    return _lowered(best, problem.scale, 4 * len(fixed))


def _branch_bound(
    line: Pair, free: tuple[IntArray, IntArray], pair_bounds: FloatArray, children: dict[Pair | None, float]
) -> float:
    """Every permutation pairs the line with one of its free partners: the least of their bounds holds for all."""
    side, index = line
    rows, columns = free
    at = np.flatnonzero(free[side] == index) if side in (0, 1) else np.array([])
    if len(at) != 1:
        raise ValueError(f"certificate: a node branches on {line}, which is not free there")
    values = []
    for other in range(len(rows)):
        a, b = (int(at[0]), other) if side == ROW else (other, int(at[0]))
        values.append(max(pair_bounds[a, b], children.get((int(rows[a]), int(columns[b])), -math.inf)))
    return float(min(values))


def stage_bounds(problem: QAP, stage: Stage, excluded: BoolArray) -> tuple[float, FloatArray]:
    """Bound of all permutations without excluded pairs, and of those that use a given pair."""
    n = problem.n
    if n == 1:
        value = _lowered(problem.objective([0]), problem.scale, 1)
        return value, np.full((1, 1), value)
    with np.errstate(invalid="ignore", over="ignore"):
        leader = _leaders(problem, stage)
        for i in range(n):
            leader[i] += _charges(problem, stage, excluded, i)
        leader[excluded] = math.inf
        beta = np.where(np.isfinite(stage.column_duals), stage.column_duals, 0.0)
        slack = leader - beta
        alpha = slack.min(axis=1)
        if np.isnan(alpha).any() or np.isneginf(alpha).any():
            return -math.inf, np.full((n, n), -math.inf)
        if np.isposinf(alpha).any():  # some source has no partner left: nothing is feasible
            return math.inf, np.full((n, n), math.inf)
        total = math.fsum([*alpha, *beta, problem.constant])
        size = float(np.abs(alpha).sum() + np.abs(beta).sum() + abs(problem.constant))
        bounds = total + (slack - alpha[:, None])
        finite = np.where(np.isfinite(slack), np.abs(slack), 0.0)
        return _lowered(total, size, 4), bounds - 4 * EPS * (size + 4 * finite.max() + np.abs(bounds))


def _leaders(problem: QAP, stage: Stage) -> FloatArray:
    """Leaders of all pairs, lowered by a bound of their rounding errors."""
    n = problem.n
    U, V = _without_diagonal(stage.U, 0), _without_diagonal(stage.V, 1)
    terms = [problem.linear, U.sum(axis=2, dtype=np.float64), V.sum(axis=2, dtype=np.float64)]
    terms += [np.outer(np.diag(A), np.diag(B)) for A, B in problem.factors]
    size = np.abs(U).sum(axis=2, dtype=np.float64) + np.abs(V).sum(axis=2, dtype=np.float64)
    size += sum(np.abs(term) for term in (terms[0], *terms[3:]))
    return np.asarray(sum(terms) - (2 * n + len(terms) + 4) * EPS * size)


def _charges(problem: QAP, stage: Stage, excluded: BoolArray, i: int) -> FloatArray:
    """For each j: half of the least residuals against all other rows; +inf where a row has no partner left."""
    n = problem.n
    U, V = stage.U.astype(np.float64, copy=False), stage.V.astype(np.float64, copy=False)
    residual = np.zeros((n, n, n))  # [j, k, l]
    for A, B in problem.factors:
        residual += A[i][None, :, None] * B[:, None, :]
        residual += A[:, i][None, :, None] * B.T[:, None, :]
    size = float(
        sum(np.abs(A[i]).max() * np.abs(B).max() + np.abs(A[:, i]).max() * np.abs(B).max() for A, B in problem.factors)
    )
    for part in (U[i][:, :, None], V[i][:, None, :], U[:, :, i][None], V.transpose(2, 0, 1)):
        residual -= part
        size += float(np.abs(part).max())
    residual[:, excluded] = math.inf
    j = np.arange(n)
    residual[j, :, j] = math.inf
    least = residual.min(axis=2)
    least[:, i] = 0.0
    error = (2 * len(problem.factors) + 6) * EPS * size * n + n * EPS * np.abs(least).sum(
        axis=1, where=np.isfinite(least)
    )
    return np.asarray(0.5 * (least.sum(axis=1) - error))


def _without_diagonal(duals: DualArray, axis: int) -> DualArray:
    """A copy in which the entries with k == i (axis 0) or l == j (axis 1) are zero."""
    copy = duals.copy()
    index = np.arange(copy.shape[0])
    if axis == 0:
        copy[index, :, index] = 0
    else:
        copy[:, index, index] = 0
    return copy


def _lowered(value: float, size: float, operations: int) -> float:
    """`value` less a bound of the rounding error of that many operations on numbers of that size."""
    return value - operations * EPS * size if math.isfinite(value) else value
