"""Solve random problems that strain the core's float32 arithmetic: python tests/fuzz/crash.py FIRST COUNT [SOLVER ...].

Runs in a process of its own, so that a crash of the core does not take the test run with it. The number of each problem
is printed before it is solved: the last one printed is the one that crashed. `case_of(number)` makes it again.
"""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import blindmatch as bm
from blindmatch.solvers import strengthened
from blindmatch.trust.alternatives import without_pair

SOLVERS = ("dual-ascent", "auto")
# Problems that are hard are cut short. Most are small, since these are quick; one of 16 is larger, and one of 200 gets
# a size at which branch and bound turns to the semidefinite bound. That comes after hundreds of nodes,
# and here after a few, so that it comes within seconds.
SMALL, LARGE, STRENGTHENED = (4, 10, 1.0), (11, 40, 0.4), (16, 22, 4.0)  # smallest and largest n, seconds a solution


def _vectors(rng: np.random.Generator, n: int) -> bm.QAP:
    """Unrelated vectors of many dimensions: all inner products are nearly equal."""
    X, Y = rng.normal(size=(2, n, int(rng.choice([16, 128, 1024]))))
    return bm.InnerProduct(standardize=False, normalize=True).problem(X, Y)


def _distances(rng: np.random.Generator, n: int) -> bm.QAP:
    X = rng.normal(size=(n, 4))
    return bm.GromovWasserstein().problem(X, X[rng.permutation(n)] + rng.choice([0.1, 1.0]) * rng.normal(size=(n, 4)))


def _raw_units(rng: np.random.Generator, n: int) -> bm.QAP:
    """A table whose columns have wildly different units, such as population, area and income."""
    scales = 10.0 ** rng.uniform(-3, 9, size=5)
    X = rng.lognormal(sigma=2.0, size=(n, 5)) * scales
    Y = X[rng.permutation(n)] * rng.lognormal(sigma=0.3, size=(n, 5))
    kind = rng.integers(3)
    if kind == 0:
        return bm.GromovWasserstein().problem(X, Y)
    return bm.InnerProduct(standardize=False, normalize=kind == 1).problem(X, Y)


def _nearly_tied(rng: np.random.Generator, n: int) -> bm.QAP:
    A, B = rng.integers(-2, 3, size=(2, n, n)) + 10.0 ** rng.uniform(-12, -4) * rng.normal(size=(2, n, n))
    return bm.QAP(A + A.T, B + B.T)


def _integers(rng: np.random.Generator, n: int) -> bm.QAP:
    A, B = rng.integers(0, int(rng.choice([2, 4, 100])), size=(2, n, n)).astype(float)
    return bm.QAP(A + A.T, B + B.T, linear=rng.integers(0, 9, size=(n, n)) if rng.random() < 0.3 else None)


def _neighbours(rng: np.random.Generator, n: int) -> bm.QAP:
    X = rng.normal(size=(n, 3))
    return bm.MutualKNN(k=min(3, n - 1)).problem(X, X[rng.permutation(n)] + 0.3 * rng.normal(size=(n, 3)))


def _scales(rng: np.random.Generator, n: int) -> bm.QAP:
    """Denormal and huge numbers, in all entries or in some."""
    A, B = rng.integers(-9, 10, size=(2, n, n)).astype(float)
    A *= rng.choice([5e-324, 1e-300, 1e-30, 1e30, 1e90])
    if rng.random() < 0.5:
        A *= rng.choice([1.0, 1e-20], size=(n, n))
    if rng.random() < 0.3:
        B[rng.random((n, n)) < 0.5] *= 5e-324
    return bm.QAP(A, B)


strengthened._LOOK_NODES, strengthened._LOOK_SHARE = 1e6, 0.03

KINDS: tuple[Callable[[np.random.Generator, int], bm.QAP], ...] = (
    _vectors,
    _distances,
    _raw_units,
    _nearly_tied,
    _integers,
    _neighbours,
    _scales,
)


@dataclass(frozen=True)
class Case:
    """A problem, and how it is to be solved."""

    problem: bm.QAP
    threads: int
    seconds: float
    regrets: bool  # whether pairs of the match are then forbidden one by one, as the proved regret of a pair needs it


def case_of(number: int) -> Case:
    """The case of this number."""
    rng = np.random.default_rng([number, 2025])
    smallest, largest, seconds = STRENGTHENED if number % 200 == 0 else LARGE if rng.random() < 1 / 16 else SMALL
    n = int(rng.integers(smallest, largest + 1))
    problem = KINDS[number % len(KINDS)](rng, n)
    if rng.random() < 0.2:
        mask = rng.random((n, n)) < 0.3
        mask[np.arange(n), rng.permutation(n)] = False
        problem = bm.QAP.from_factors(problem.factors, problem.linear, problem.constant, forbidden=mask)
    return Case(problem, threads=int(rng.integers(1, 4)), seconds=seconds, regrets=bool(rng.random() < 0.25))


def check(problem: bm.QAP, solver: str, number: int, case: Case) -> bm.Result:
    """Solve; the result is a permutation of allowed pairs, and its bound is not above its cost."""
    result = bm.solve(problem, solver, rng=number, threads=case.threads, time_limit=case.seconds)
    assert problem.allows(result.permutation)
    assert result.lower_bound is None or result.lower_bound <= result.cost
    return result


def solve_case(number: int, solvers: tuple[str, ...]) -> None:
    """Solve the case of this number; no bound is above the cost of any match that was found."""
    case = case_of(number)
    results = [check(case.problem, solver, number, case) for solver in solvers]
    costs = [result.cost for result in results]
    if case.regrets:
        match = results[-1].permutation
        for i in range(min(3, case.problem.n)):
            other = without_pair(case.problem, i, int(match[i]))
            if other is not None:
                costs.append(check(other, solvers[-1], number, case).cost)
    rounding = 1e-12 * case.problem.scale
    for result in results:
        assert result.lower_bound is None or result.lower_bound <= min(costs) + rounding


def main(first: int, count: int, solvers: tuple[str, ...] = SOLVERS) -> None:
    """Solve the cases `first` to `first + count - 1`."""
    for number in range(first, first + count):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        solve_case(number, solvers)


if __name__ == "__main__":
    faulthandler.enable()
    main(int(sys.argv[1]), int(sys.argv[2]), tuple(sys.argv[3:]) or SOLVERS)
