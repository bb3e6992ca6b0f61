"""Proofs made by hand or by a solver, and the exact value of what they prove, in Python's rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np

import blindmatch as bm
from blindmatch.proof.certificate import ROW, Certificate, Node, Stage
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant


def random_stage(rng, n, scale=1.0, dtype=np.float64, forbidden=None) -> Stage:
    """Duals without any sense."""
    U, V = ((scale * rng.standard_normal((n, n, n))).astype(dtype) for _ in range(2))
    mask = np.zeros((n, n), dtype=bool) if forbidden is None else forbidden
    return Stage(U, V, scale * rng.standard_normal(n), mask)


def branching_certificate(problem: bm.QAP, rng, *, dtype=np.float64, depth=2, leave_out=None) -> Certificate:
    """A small branch and bound: random lines, random duals at every node; `leave_out` drops one child (by index)."""
    nodes: list[Node] = []

    def grow(parent, pair, rows, columns, level):
        index = len(nodes)
        nodes.append(Node(parent, pair))
        stages = (random_stage(rng, len(rows), float(rng.choice([0.0, 0.1, 1.0])), dtype),) if rows else ()
        line = None
        if level < depth and rows:
            side = int(rng.integers(2))
            line = (side, int(rng.choice((rows, columns)[side])))
            for partner in (columns, rows)[side]:
                i, j = (line[1], partner) if side == ROW else (partner, line[1])
                grow(index, (i, j), [x for x in rows if x != i], [x for x in columns if x != j], level + 1)
        nodes[index] = Node(parent, pair, stages, line)

    everything = list(range(problem.n))
    grow(-1, None, everything, everything, 0)
    if leave_out is not None:
        leaves = [index for index, node in enumerate(nodes) if node.parent >= 0 and node.line is None]
        gone = leaves[leave_out % len(leaves)]
        nodes = [
            Node(node.parent - (node.parent > gone), node.pair, node.stages, node.line)
            for index, node in enumerate(nodes)
            if index != gone
        ]
    return Certificate(problem.n, tuple(nodes))


def exact_cost(problem: bm.QAP, p) -> Fraction:
    total = Fraction(problem.constant) + sum(Fraction(problem.linear[i, p[i]]) for i in range(problem.n))
    for A, B in problem.factors:
        for i in range(problem.n):
            for k in range(problem.n):
                total += Fraction(A[i, k]) * Fraction(B[p[i], p[k]])
    return total


def exact_bound(problem: bm.QAP, stage: Stage) -> Fraction:
    """What one stage proves without rounding; the formulas of stage_check.py, written down a second time."""
    n = problem.n
    U, V = ([[[Fraction(float(x)) for x in z] for z in y] for y in dual] for dual in (stage.U, stage.V))
    A, B = ([[[Fraction(float(x)) for x in row] for row in pair[side]] for pair in problem.factors] for side in (0, 1))
    factors = range(len(A))

    def residual(i, j, k, m):
        pair = sum(A[f][i][k] * B[f][j][m] + A[f][k][i] * B[f][m][j] for f in factors)
        return pair - (U[i][j][k] + V[i][j][m] + U[k][m][i] + V[k][m][j])

    total = Fraction(problem.constant)
    beta = [Fraction(float(x)) for x in stage.column_duals]
    for i in range(n):
        slacks = []
        for j in range(n):
            leader = Fraction(problem.linear[i, j]) + sum(A[f][i][i] * B[f][j][j] for f in factors)
            leader += sum(U[i][j][k] for k in range(n) if k != i) + sum(V[i][j][m] for m in range(n) if m != j)
            for k in range(n):
                if k == i:
                    continue
                leader += min(residual(i, j, k, m) for m in range(n) if m != j) / 2
            slacks.append(leader - beta[j])
        total += min(slacks)
    return total + sum(beta)


def exact_optimum(problem):
    return min(exact_cost(problem, p) for p in permutations(range(problem.n)))


def proved(problem, certificate):
    """What the checker says; a certificate that it refuses proves nothing."""
    try:
        return bm.verify(problem, certificate)
    except ValueError as error:
        assert "expected numbers between" in str(error)  # noqa: PT017
        return -math.inf


def plain(stage):
    return Certificate(stage.size, (Node(stages=(stage,)),))


def solved(problem, **options):
    """A certificate worth corrupting, and the bound that it proves."""
    result = bm.solve(problem, FactorizedHahnGrant(primal_heuristic=False, **options), rng=0)
    return result.certificate, bm.verify(problem, result.certificate)
