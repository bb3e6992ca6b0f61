"""The eigenvalue problems of the semidefinite bound."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest

from blindmatch.solvers import eigen


def symmetric(d: int, dtype: type) -> np.ndarray:
    A = np.random.default_rng(d).standard_normal((d, d))
    return (A + A.T).astype(dtype)


def test_scipy_offers_the_driver():
    assert eigen._driver("f") is not None
    assert eigen._driver("d") is not None


@pytest.mark.parametrize("through_numpy", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 60, 150])
def test_the_whole_spectrum_gives_the_matrix(monkeypatch, d, dtype, through_numpy):
    if through_numpy:
        monkeypatch.setattr(eigen, "_driver", lambda kind: None)
    A = symmetric(d, dtype)
    kept = A.copy()
    values, vectors = eigen.whole_spectrum(A)
    assert values.dtype == vectors.dtype == dtype
    accuracy = 200 * d * np.finfo(dtype).eps
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A.astype(np.float64)), atol=accuracy)
    np.testing.assert_allclose((vectors * values) @ vectors.T, A, atol=accuracy)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(d), atol=accuracy)
    np.testing.assert_array_equal(A, kept)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_lapack_does_not_see_what_is_not_finite(value, capfd):
    A = symmetric(20, np.float32)
    A[2, 3] = A[3, 2] = value
    with contextlib.suppress(np.linalg.LinAlgError):
        assert not np.isfinite(eigen.whole_spectrum(A)[0]).all()
    assert capfd.readouterr().err == ""


def test_large_problems_leave_the_thread_that_ctrl_c_reaches(monkeypatch):
    monkeypatch.setattr(eigen, "_SLOW", 10)
    workers = []
    whole = eigen._all_of
    monkeypatch.setattr(eigen, "_all_of", lambda A: (workers.append(threading.current_thread()), whole(A))[1])
    A = symmetric(20, np.float32)
    np.testing.assert_allclose(eigen.whole_spectrum(A)[0], np.linalg.eigvalsh(A), atol=1e-3)
    assert workers
    assert workers[0] is not threading.main_thread()


def test_a_failure_there_is_raised_here(monkeypatch):
    monkeypatch.setattr(eigen, "_SLOW", 10)

    def fail(A):
        raise MemoryError("no room")

    monkeypatch.setattr(eigen, "_all_of", fail)
    with pytest.raises(MemoryError, match="no room"):
        eigen.whole_spectrum(symmetric(20, np.float32))
