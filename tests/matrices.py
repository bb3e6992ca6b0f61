"""Stages with a factor, honest and forged, of small problems whose optimum is known in exact arithmetic.

python tests/matrices.py [COUNT] [SEED]     check so many against enumeration
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # where it is run as a program

from proofs import exact_cost, random_stage
from strategies import KINDS, all_costs, random_problem

import blindmatch as bm
from blindmatch.problem.optimality import tolerance
from blindmatch.proof.certificate import Certificate, Node, Stage
from blindmatch.proof.semidefinite import SemidefiniteTerm, semidefinite_term
from blindmatch.solvers.base import Budget
from blindmatch.solvers.semidefinite import SemidefiniteRun
from blindmatch.solvers.semidefinite_node import has_choice
from blindmatch.solvers.semidefinite_tree import SemidefiniteTree


def small_problem(rng: np.random.Generator) -> bm.QAP:
    """2 to 7 items of any kind, with forbidden or known pairs in half of them, of any size."""
    n, kind = int(rng.choice([2, 3, 4, 5, 5, 6, 6, 7])), str(rng.choice(KINDS))
    problem = random_problem(
        int(rng.integers(2**32)),
        n,
        kind,
        integer=bool(rng.random() < 0.4),
        linear=bool(rng.random() < 0.5),
        forbidden=float(rng.choice([0.0, 0.0, 0.3, 0.6])),
    )
    if rng.random() < 0.2:
        problem = problem.with_known_pairs([(0, 0)])
    if rng.random() < 0.3:
        power = int(rng.integers(-200, 200))
        factors = [(np.ldexp(A, power), B) for A, B in problem.factors]
        linear, constant = np.ldexp(problem.linear, power), float(np.ldexp(problem.constant, power))
        problem = bm.QAP.from_factors(factors, linear, constant, forbidden=problem.forbidden)
    return problem


def exact_optimum(problem: bm.QAP) -> Fraction:
    """The least cost without any rounding: of the permutations that are nearly the best in float64."""
    permutations, costs = all_costs(problem)
    near = permutations[costs <= costs.min() + 1e-9 * problem.scale]
    return min(exact_cost(problem, p) for p in near[:50])


def forged_factor(rng: np.random.Generator, size: int) -> np.ndarray:
    """Any rank from none to all: dense, sparse, rows of very different sizes, huge, tiny; float16 to float64."""
    F = rng.standard_normal((size, int(rng.integers(0, size + 1))))
    kind = rng.integers(4)
    if kind == 0:
        F *= rng.random(F.shape) < 0.1
    elif kind == 1:
        F *= 10.0 ** rng.integers(-12, 4, (size, 1))
    elif kind == 2:
        F = np.abs(F)
    F *= 10.0 ** (rng.integers(-200, 118) if rng.random() < 0.2 else rng.integers(-4, 4))
    largest = np.abs(F).max(initial=0.0)
    dtype = np.float16 if largest < 1e4 else np.float32 if largest < 1e30 else np.float64
    return np.asarray(F, dtype=dtype if rng.random() < 0.3 else np.float64)


def forged_stage(rng: np.random.Generator, problem: bm.QAP) -> Stage:
    """Any duals with any factor; sometimes it knows of the forbidden pairs."""
    none = np.zeros((problem.n, problem.n), dtype=bool)
    forbidden = none if problem.forbidden is None or rng.random() < 0.3 else problem.forbidden
    plain = random_stage(rng, problem.n, float(rng.choice([0.0, 0.1, 1.0])), forbidden=forbidden)
    factor = forged_factor(rng, plain.pair_count + 1)
    return Stage(plain.U, plain.V, plain.column_duals, plain.forbidden, factor)


def honest_stages(problem: bm.QAP, rounds: int) -> tuple[Stage, ...]:
    """What a short run of the solver makes, from level 1 onwards or from nothing."""
    budget = Budget(threads=1)
    permutations, costs = all_costs(problem)
    budget.offer(permutations[costs.argmin()].astype(np.intp), problem.objective(permutations[costs.argmin()]))
    certificate = SemidefiniteRun(problem, budget, ()).run(rounds).certificate
    assert certificate is not None
    return certificate.nodes[0].stages


def exact_entry(term: SemidefiniteTerm, a: int, b: int) -> Fraction:
    """An entry of FF' without any rounding."""
    products = (Fraction(x) * Fraction(y) for x, y in zip(*term.factor[[a, b]].tolist(), strict=True))
    return sum(products, Fraction(0))


def check_entries(rng: np.random.Generator, term: SemidefiniteTerm, n: int) -> None:
    """What the term says of some entries of FF' is true but for its error."""
    linear, error = term.linear(n).ravel(), Fraction(term.error)
    assert abs(exact_entry(term, 0, 0) - Fraction(term.constant)) <= error
    for at in rng.integers(0, len(term.pairs), min(4, len(term.pairs))).tolist():
        pair = np.array([term.pairs[at]])
        row = term.rows(pair // n, pair % n, n)[0].ravel()
        for other in rng.integers(0, len(term.pairs), 4).tolist():
            entry = exact_entry(term, 1 + at, 1 + other)
            assert abs(2 * entry - Fraction(float(row[term.pairs[other]]))) <= 2 * error
            assert abs(entry) <= Fraction(term.largest)
        own = 2 * exact_entry(term, 0, 1 + at) + exact_entry(term, 1 + at, 1 + at)
        rounding = Fraction(2.0**-50) * Fraction(term.largest)
        assert abs(own - Fraction(float(linear[pair[0]]))) <= 3 * error + rounding


def check_problem(rng: np.random.Generator) -> tuple[float, float]:
    """One problem, a forged and an honest certificate of it: neither proves too much. Returns both gaps."""
    problem = small_problem(rng)
    best = exact_optimum(problem)
    stage = forged_stage(rng, problem)
    excluded = stage.forbidden if problem.forbidden is None else stage.forbidden | problem.forbidden
    assert stage.factor is not None
    check_entries(rng, semidefinite_term(stage.factor, stage.forbidden, excluded), problem.n)
    gaps = []
    for stages in ((stage,), honest_stages(problem, int(rng.integers(1, 8)))):
        bound = bm.verify(problem, Certificate(problem.n, (Node(stages=stages),)))
        assert bound == -np.inf or Fraction(bound) <= best, (float(best), bound)
        gaps.append(float(best) - bound)
    return gaps[0], gaps[1] / max(problem.scale, 1e-300)


def check_tree(rng: np.random.Generator) -> int:
    """The tree of semidefinite bounds below a weak root: it ends, and its proof is that of the optimum. Its nodes."""
    problem = small_problem(rng)
    budget = Budget(threads=1)
    permutations, costs = all_costs(problem)
    start = permutations[int(rng.integers(len(costs)))].astype(np.intp)  # any permutation: the tree has to find better
    budget.offer(start, problem.objective(start))
    run = SemidefiniteRun(problem, budget, ())
    if not has_choice(run.allowed):
        return 0
    run.run(int(rng.integers(2)))  # or none at all, so that the tree has to do everything
    tree = SemidefiniteTree(problem, run.costs, budget, (), 1 << 30)
    tree.begin(run.as_root())
    tree.run()
    certificate = tree.certificate
    assert certificate is not None
    bound, best = bm.verify(problem, certificate), exact_optimum(problem)
    assert Fraction(bound) <= best, (float(best), bound)
    assert tree.bound >= tree.target
    assert bound >= float(best) - tolerance(problem, float(best)), (float(best), bound)
    assert budget.best is not None
    assert abs(budget.best[0] - float(best)) <= tolerance(problem, float(best))
    return tree.count


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    results = np.array([check_problem(np.random.default_rng([seed, index])) for index in range(count)])
    closed = np.mean(results[:, 1] < 1e-6)
    nodes = [check_tree(np.random.default_rng([seed, 1, index])) for index in range(count)]
    sys.stdout.write(f"{count} trees of up to {max(nodes)} nodes, {sum(nodes)} in all: each proves the optimum\n")
    sys.stdout.write(f"{count} problems: no certificate proves too much; honest ones close {closed:.0%} of the gaps\n")
