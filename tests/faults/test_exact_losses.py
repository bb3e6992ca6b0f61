"""What is claimed holds in the user's own numbers, in exact rational arithmetic. BLINDMATCH_FUZZ=4000 tries so many."""

import math
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from faults.exact_losses import Case, random_qap, random_task

import blindmatch as bm

COUNT = int(os.environ.get("BLINDMATCH_FUZZ", "60"))
SOLVERS = ("auto", "auto", "branch-and-bound", "dual-ascent", "semidefinite", "tabu")


def check(case: Case, result: bm.Result, sign: int) -> None:
    """`sign` is -1 for the largest cost."""
    found, best = case.costs[tuple(result.permutation.tolist())], sign * min(sign * c for c in case.costs.values())
    scale = result.problem.scale
    assert found <= Fraction(result.cost) <= found + Fraction(math.ulp(result.cost)) + Fraction(1e-15 * scale)
    assert result.lower_bound is None or result.lower_bound == -math.inf or Fraction(result.lower_bound) <= best
    assert result.upper_bound == math.inf or best <= Fraction(result.upper_bound)
    tolerance = Fraction(1.001 * max(1e-6 * abs(float(found)), 1e-12 * scale))
    assert result.status != "optimal" or abs(found - best) <= tolerance
    if result.pool.complete:
        pool = {tuple(one.tolist()) for one in result.pool}
        worst = max(sign * case.costs[one] for one in pool)
        slack = Fraction(1.001 * max(1e-6 * abs(float(worst)), 1e-12 * scale))
        assert all(one in pool or sign * cost >= worst - slack for one, cost in case.costs.items())


def check_saved(case: Case, result: bm.Result, path: Path, sign: int) -> None:
    """What is loaded claims the same; a file has no pool."""
    again = bm.load(result.save(path))
    assert (again.cost, again.status) == (result.cost, result.status)
    check(case, replace(again, pool=result.pool), sign)


@pytest.mark.parametrize("first", range(0, COUNT, 20))
def test_tasks(first, tmp_path):
    for seed in range(first, first + 20):
        rng = np.random.default_rng([29, seed])
        case = random_task(rng)
        size = int(rng.choice([1, 1, 2]))
        result = bm.match(**case.arguments, solver=str(rng.choice(SOLVERS[:4])), pool_size=size, rng=0, threads=1)
        check(case, result, 1)
        if seed % 4 == 0:
            check_saved(case, result, tmp_path / "m.npz", 1)


@pytest.mark.parametrize("first", range(0, COUNT, 20))
def test_problems(first, tmp_path):
    for seed in range(first, first + 20):
        rng = np.random.default_rng([31, seed])
        case = random_qap(rng)
        sign = -1 if case.arguments["maximize"] else 1
        if not case.costs:
            with pytest.raises(ValueError, match="leaves no permutation"):
                bm.solve(**case.arguments)
            continue
        size = int(rng.choice([1, min(4, len(case.costs))]))
        result = bm.solve(**case.arguments, solver=str(rng.choice(SOLVERS)), pool_size=size, rng=0, threads=1)
        check(case, result, sign)
        assert np.array_equal(result.pool[0], result.permutation)
        if seed % 4 == 0:
            check_saved(case, result, tmp_path / "m.npz", sign)


def test_a_common_offset_of_edges_between_the_sides_is_subtracted():
    """A copy costs nothing, whatever the offset and the weight; before, the costs were sums of rounding errors."""
    rng = np.random.default_rng(0)
    A, there, p = rng.random((4, 4)), rng.random((4, 4)) + 1e9, np.array([2, 0, 3, 1])
    B, back = np.empty((4, 4)), np.empty((4, 4))
    B[np.ix_(p, p)], back[p] = A, there[:, p]
    result = bm.match(kernels=[(A, B)], crossed=[(there, back)], weights=[3.0], standardize=False, rng=0)
    assert result.permutation.tolist() == p.tolist()
    assert 0 <= result.cost < 1e-12
    assert result.status == "optimal"
