"""best_subsets against enumeration, against the known values of a real instance, and on bad input."""

import math
import signal
import sys
import threading
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindmatch.errors import SolverUnavailable
from blindmatch.matching.subsets import best_subsets
from blindmatch.problem.distortions import CKA, GromovWasserstein

INSTANCE = Path(__file__).parents[3] / "shared" / "data" / "instances" / "subsets-L100.npz"


def enumerated(cost, size, k):
    n = len(cost)
    return np.sort([cost[np.ix_(s, s)].sum() for s in combinations(range(n), size)])[:k]


def matrix(kind, n, seed):
    rng = np.random.default_rng(seed)
    if kind == "integers":  # many ties
        return rng.integers(-3, 4, size=(n, n)).astype(float)
    values = rng.normal(size=(n, n))  # asymmetric, negative values, a diagonal
    return values**2 if kind == "positive" else values


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("engine", ["search", "exact"])
def test_equals_enumeration(engine, data):
    n = data.draw(st.integers(1, 9))
    size = data.draw(st.integers(1, n))
    k = data.draw(st.integers(1, 12))
    kind = data.draw(st.sampled_from(["any", "positive", "integers"]))
    cost = matrix(kind, n, data.draw(st.integers(0, 2**32)))
    before = cost.copy()
    found = best_subsets(cost=cost, size=size, k=k, engine=engine, rng=0)
    expected = enumerated(cost, size, k)
    np.testing.assert_allclose(found.costs, expected, atol=1e-9)
    assert len({tuple(s) for s in found.subsets}) == len(found.subsets) == min(k, math.comb(n, size))
    for subset, value in zip(found.subsets, found.costs, strict=True):
        assert subset.tolist() == sorted(set(subset.tolist()))
        assert len(subset) == size
        assert value == cost[np.ix_(subset, subset)].sum()
    assert np.array_equal(cost, before)
    if engine == "exact":
        assert found.status == "optimal"
        assert expected[0] - 1e-9 <= found.lower_bound <= found.costs[0]
    else:
        assert (found.status, found.lower_bound) == ("heuristic", None)


def test_the_bound_is_not_above_the_sum_without_rounding():
    for seed in range(50):
        cost = np.round(matrix("any", 5, seed), 1)
        found = best_subsets(cost=cost, size=5, k=1, engine="exact", rng=0)
        assert Fraction(found.lower_bound) <= sum(Fraction(value) for value in cost.ravel().tolist())


@pytest.mark.parametrize("size", [4, 9, 14])
@pytest.mark.parametrize("engine", ["search", "exact"])
def test_equals_enumeration_of_thousands(engine, size):
    cost = matrix("positive", 17, size)
    found = best_subsets(cost=cost, size=size, k=50, engine=engine, rng=1)
    np.testing.assert_allclose(found.costs, enumerated(cost, size, 50), atol=1e-9)


@pytest.mark.parametrize(("engine", "module"), [("gurobi", "gurobipy"), ("scip", "pyscipopt")])
@pytest.mark.parametrize(("n", "size", "k"), [(8, 3, 4), (3, 3, 2), (4, 1, 9)])
def test_other_solvers_equal_enumeration(engine, module, n, size, k):
    pytest.importorskip(module)
    cost = matrix("any", n, 3)
    found = best_subsets(cost=cost, size=size, k=k, engine=engine, rng=0)
    np.testing.assert_allclose(found.costs, enumerated(cost, size, k), atol=1e-6)
    assert found.status == "optimal"
    assert found.lower_bound == pytest.approx(found.costs[0], abs=1e-6)


@pytest.mark.parametrize("engine", ["exact", "gurobi", "scip"])
@pytest.mark.parametrize("scale", [1e-25, 1e-12, 1e12, 1e25])
def test_costs_of_any_size(engine, scale):
    """Tolerances of other people's solvers are absolute."""
    if engine != "exact":
        pytest.importorskip({"gurobi": "gurobipy", "scip": "pyscipopt"}[engine])
    cost = scale * matrix("any", 8, 3)
    found = best_subsets(cost=cost, size=3, k=4, engine=engine, rng=0)
    best = enumerated(cost, 3, 4)
    np.testing.assert_allclose(found.costs, best, atol=1e-6 * scale)
    assert best[0] - 1e-6 * scale <= found.lower_bound <= best[0] + 1e-12 * scale


@pytest.mark.parametrize(("engine", "module"), [("gurobi", "gurobipy"), ("scip", "pyscipopt")])
def test_missing_solver_says_what_to_install(engine, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(SolverUnavailable, match=rf"engine='{engine}' needs .* pip install .*\[{engine}\]'"):
        best_subsets(cost=np.eye(3), size=2, engine=engine)


@pytest.mark.parametrize("engine", ["search", "exact"])
def test_does_not_depend_on_threads(engine):
    cost = matrix("positive", 24, 5)
    runs = [best_subsets(cost=cost, size=8, k=20, engine=engine, rng=7, threads=t) for t in (1, 2, 5)]
    for run in runs[1:]:
        assert np.array_equal(run.subsets, runs[0].subsets)
        assert np.array_equal(run.costs, runs[0].costs)


@pytest.mark.parametrize("distortion", ["gw", CKA()])
def test_embeddings_give_the_loss_of_the_standardised_kernels(distortion):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 4)), rng.normal(size=(12, 6))
    used = GromovWasserstein() if distortion == "gw" else distortion
    cost = used.loss(*used.kernels(X, Y))
    found = best_subsets(X, Y, size=5, k=3, distortion=distortion, engine="exact", rng=0)
    np.testing.assert_allclose(found.costs, enumerated(cost, 5, 3), atol=1e-9)


def test_finds_the_items_that_agree():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 8))
    Y = rng.normal(size=(60, 8))
    aligned = np.sort(rng.choice(60, 15, replace=False))
    Y[aligned] = X[aligned]
    found = best_subsets(X, Y, size=15, k=1, rng=0)
    assert np.array_equal(found.subsets[0], aligned)


def test_bound_is_valid_at_a_time_limit():
    cost = matrix("positive", 90, 2)
    reference = best_subsets(cost=cost, size=40, k=1, rng=0).costs[0]
    found = best_subsets(cost=cost, size=40, k=3, engine="exact", time_limit=0.5, rng=0)
    assert found.status == "time_limit"
    assert -np.inf < found.lower_bound <= min(reference, found.costs[0])
    assert len(found.subsets) == 3


@pytest.mark.parametrize("engine", ["search", "exact"])
def test_tiny_time_limit_still_answers(engine):
    found = best_subsets(cost=matrix("positive", 400, 2), size=100, k=5, engine=engine, time_limit=1e-6, rng=0)
    assert found.status == "time_limit"
    assert len(found.subsets) == 5
    assert found.costs.tolist() == sorted(found.costs)


def test_ctrl_c_keeps_the_best_and_its_bound():
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    found = best_subsets(cost=matrix("positive", 90, 2), size=40, engine="exact", time_limit=60, rng=0)
    timer.join()
    assert found.status == "interrupted"
    assert len(found.subsets) == 10
    assert found.lower_bound <= found.costs[0]


@pytest.mark.parametrize("engine", ["search", "exact"])
def test_constant_costs_do_not_hang(engine):
    found = best_subsets(cost=np.ones((40, 40)), size=20, k=10, engine=engine, rng=0, time_limit=60)
    assert found.status in ("heuristic", "optimal")
    assert found.costs.tolist() == [400.0] * 10


def test_to_dict_is_plain():
    row = best_subsets(cost=np.eye(4), size=2, k=2, engine="exact", rng=0).to_dict()
    assert row["costs"] == [2.0, 2.0]
    assert all(type(i) is int for subset in row["subsets"] for i in subset)


@pytest.mark.skipif(not INSTANCE.exists(), reason="the shared instance is not here")
@pytest.mark.parametrize(("size", "known"), [(10, 0.047815), (20, 0.728651), (40, 5.720782)])
def test_known_values_of_a_hundred_classes(size, known):
    with np.load(INSTANCE) as file:
        cost = file["cost"]
    for seed in range(3):
        found = best_subsets(cost=cost, size=size, k=10, rng=seed)
        assert found.costs[0] <= known
        assert len({tuple(s) for s in found.subsets}) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cost": np.eye(4), "size": 5}, "size=5; expected at most 4"),
        ({"cost": np.eye(4), "size": 0}, "size=0"),
        ({"cost": np.eye(4), "size": 2.0}, "size=2.0"),
        ({"cost": np.eye(4), "size": 2, "k": 0}, "k=0"),
        ({"cost": np.eye(4), "size": 2, "engine": "exakt"}, "did you mean 'exact'"),
        ({"cost": np.eye(4), "size": 2, "time_limit": 0}, "time_limit=0"),
        ({"cost": np.eye(4), "size": 2, "threads": 0}, "threads=0"),
        ({"cost": np.eye(4), "size": 2, "rng": "x"}, "rng='x'"),
        ({"cost": np.ones((2, 3)), "size": 2}, "cost has shape"),
        ({"cost": np.full((3, 3), np.nan), "size": 2}, "cost holds nan"),
        ({"cost": np.full((3, 3), 1e300), "size": 2}, "overflow float64"),
        ({"cost": np.eye(4), "source": np.eye(4), "size": 2}, "one or the other"),
        ({"source": np.eye(4), "size": 2}, "source and target are needed"),
        ({"source": np.eye(4), "target": np.eye(3), "size": 2}, "source has 4 items, and the other side has 3"),
        ({"source": np.eye(4), "target": np.eye(4), "size": 2, "distortion": "gv"}, "distortion='gv' is not known"),
        ({"source": np.eye(4), "target": np.eye(4), "size": 2, "distortion": 5}, "distortion=5 is neither a name nor"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        best_subsets(**arguments)
