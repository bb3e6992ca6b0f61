"""The adapter to libmpopt: the real module where it is installed, a stand-in for its interface anywhere."""

import sys
import types
from collections import namedtuple
from importlib.util import find_spec

import numpy as np
import pytest
from strategies import all_permutations, optimum, random_problem, slack

import blindmatch as bm

Assignment = namedtuple("Assignment", "left right cost")


class Model:
    """As libmpopt's: it checks what it is given."""

    def __init__(self, no_left, no_right, no_assignments, no_edges):
        self.no_left, self.no_right = no_left, no_right
        self.counts = no_assignments, no_edges
        self.assignments, self.edges = [], []

    def add_assignment(self, id_assignment, left, right, cost):
        assert id_assignment == len(self.assignments)
        assert left < self.no_left
        assert right < self.no_right
        self.assignments.append(Assignment(left, right, cost))

    def add_edge(self, first, second, cost):
        assert first < second
        assert self.assignments[first].left != self.assignments[second].left
        assert self.assignments[first].right != self.assignments[second].right
        self.edges.append((first, second, cost))

    def evaluate(self, labels):
        used = [labels[a.left] == a.right for a in self.assignments]
        return sum(a.cost for a, use in zip(self.assignments, used, strict=True) if use) + sum(
            cost for first, second, cost in self.edges if used[first] and used[second]
        )


class Solver:
    """Knows the best labelling that leaves items out as well, and gives one that does before it gives that."""

    def __init__(self, model):
        assert model.counts == (len(model.assignments), len(model.edges))
        n, allowed = model.no_left, {(a.left, a.right) for a in model.assignments}
        labels = [
            [None if mask >> i & 1 else int(j) for i, j in enumerate(p)]
            for p in all_permutations(n)
            for mask in range(2**n)
        ]
        labels = [label for label in labels if all(j is None or (i, j) in allowed for i, j in enumerate(label))]
        self.best = min(labels, key=model.evaluate)
        self.bound, self.runs = model.evaluate(self.best), 0

    def set_random_seed(self, seed):
        assert 0 < seed < 2**31

    def run(self, batch_size, max_batches, greedy_generations):
        self.runs += 1

    def lower_bound(self):
        return self.bound - 1.0 / self.runs**2

    @property
    def labeling(self):
        return self.best if self.runs > 1 else [None] * len(self.best)


@pytest.fixture
def standin(monkeypatch):
    package, qap = types.ModuleType("mpopt"), types.ModuleType("mpopt.qap")
    qap.Model = Model
    qap.ModelDecomposition = lambda model, with_uniqueness: model
    qap.construct_solver = Solver
    qap.extract_primals = lambda decomposition, solver: types.SimpleNamespace(labeling=solver.labeling)
    package.qap = qap
    monkeypatch.setitem(sys.modules, "mpopt", package)
    monkeypatch.setitem(sys.modules, "mpopt.qap", qap)


@pytest.mark.usefixtures("standin")
@pytest.mark.parametrize("kind", ["symmetric", "asymmetric", "sum", "diagonal"])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_costs_and_bounds_come_back_on_our_scale(kind, forbidden):
    problem = random_problem(1, 4, kind, linear=True, forbidden=forbidden)
    result = bm.solve(problem, bm.SOLVERS["mpopt"](batches=20), rng=0)
    best = optimum(problem)
    assert result.cost == pytest.approx(best, abs=1e-9)
    assert best - 0.1 < result.lower_bound <= best + slack(problem)
    assert [point.iteration for point in result.trace][-1] == 20


@pytest.mark.skipif(find_spec("mpopt") is None, reason="libmpopt is not installed (it is not on PyPI)")
def test_the_real_one():
    problem = random_problem(1, 6, linear=True)
    result = bm.solve(problem, "mpopt", rng=0, time_limit=20)
    assert result.lower_bound <= optimum(problem) + slack(problem) <= result.cost + 2 * slack(problem)
    assert np.isfinite(result.lower_bound)
