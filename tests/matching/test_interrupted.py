"""Ctrl-C between the steps of a match by coordinates: the best start so far is the result."""

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.matching import coordinate_matches


def spaces(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6))
    return X, X @ np.linalg.qr(rng.standard_normal((6, 6)))[0]


@pytest.mark.parametrize("step", ["settle", "held_out_margins"])
def test_ctrl_c_between_starts_and_solver(monkeypatch, step):
    def press(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(coordinate_matches, step, press)
    X, Y = spaces()
    result = bm.match(X, Y, rng=0)
    assert result.status == "interrupted"
    assert (result.permutation == np.arange(len(X))).all()
    assert result.cost == bm.Task(X, Y).problem.objective(result.permutation)
