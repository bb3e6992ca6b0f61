"""The steps of the semidefinite bound on a device of torch."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from strategies import random_problem

import blindmatch as bm
from blindmatch.errors import SolverUnavailable
from blindmatch.solvers.eigen import NUMPY, TorchArrays
from blindmatch.solvers.semidefinite import Semidefinite
from blindmatch.solvers.semidefinite_stage import PairCosts
from blindmatch.solvers.splitting import Splitting


def test_steps_on_torch_are_those_of_numpy():
    pytest.importorskip("torch")
    costs = PairCosts(random_problem(4, 6, linear=True))
    allowed = np.ones((6, 6), dtype=bool)
    fewer = allowed.copy()
    fewer[0, 1] = fewer[3, 2] = False
    results = []
    for arrays in (NUMPY, TorchArrays("cpu")):
        splitting = Splitting(costs.centred_matrix(allowed), allowed, 9.0, np.float64, arrays)
        for step in range(30):
            splitting.project()
            splitting.advance()
            if step % 10 == 9:
                splitting.balance()
            if step == 15:
                splitting.shrink(fewer)
        splitting.project()
        dual = splitting.dual()  # its eigenvectors may have other signs
        results.append((dual.F @ dual.F.T, dual.D, splitting.marginals(), splitting.state.Y, splitting.beta))
    for numpy, torch in zip(*results, strict=True):
        np.testing.assert_allclose(torch, numpy, atol=1e-6)


def test_bounds_on_torch_are_those_of_numpy():
    pytest.importorskip("torch")
    problem = random_problem(2, 8)
    bounds = []
    for device in (None, "cpu"):
        result = bm.solve(problem, Semidefinite(rounds=3, device=device), rng=0, threads=1)
        assert bm.verify(problem, result.certificate) == result.lower_bound <= result.cost
        bounds.append(result.lower_bound)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-3)


def test_a_device_that_is_not_there():
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="device='meaningless' cannot be used"):
        bm.solve(random_problem(2, 8), Semidefinite(device="meaningless"), rng=0)


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SolverUnavailable, match=r"pip install .*\[gpu\]"):
        bm.solve(random_problem(2, 8), Semidefinite(device="cuda"), rng=0)


def test_a_device_is_a_name():
    with pytest.raises(ValueError, match="device=3; expected None"):
        Semidefinite(device=3)
