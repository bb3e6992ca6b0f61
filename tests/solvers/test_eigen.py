"""The eigenvalue problems of the semidefinite bound."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from blindmatch.solvers import eigen


def symmetric(d: int, dtype: type) -> np.ndarray:
    A = np.random.default_rng(d).standard_normal((d, d))
    return (A + A.T).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("through_scipy", [False, True])
def test_the_upper_part_is_that_of_the_whole(monkeypatch, dtype, through_scipy):
    if through_scipy:
        monkeypatch.setattr(eigen, "_driver", lambda kind, name: None)
    A = symmetric(60, dtype)
    kept = A.copy()
    values, vectors = eigen.whole_spectrum(A)
    cut = float(values[40] + values[41]) / 2
    upper = eigen.upper_spectrum(A, cut)
    assert upper is not None
    accuracy = 1e3 * np.finfo(dtype).eps
    np.testing.assert_allclose(upper[0], values[41:], atol=accuracy)
    expected = (vectors[:, 41:] * values[41:]) @ vectors[:, 41:].T
    np.testing.assert_allclose((upper[1] * upper[0]) @ upper[1].T, expected, atol=accuracy)
    assert upper[0].dtype == upper[1].dtype == dtype
    np.testing.assert_array_equal(A, kept)


@pytest.mark.parametrize("name", ["syevd", "syevr"])
def test_scipy_offers_the_drivers(name):
    assert eigen._driver("f", name) is not None
    assert eigen._driver("d", name) is not None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 60, 150])
def test_the_whole_spectrum_gives_the_matrix(d, dtype):
    A = symmetric(d, dtype)
    kept = A.copy()
    values, vectors = eigen.whole_spectrum(A)
    assert values.dtype == vectors.dtype == dtype
    accuracy = 200 * d * np.finfo(dtype).eps
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A.astype(np.float64)), atol=accuracy)
    np.testing.assert_allclose((vectors * values) @ vectors.T, A, atol=accuracy)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(d), atol=accuracy)
    np.testing.assert_array_equal(A, kept)


def test_nothing_is_above_the_largest():
    A = symmetric(20, np.float32)
    upper = eigen.upper_spectrum(A, 1e4)
    assert upper is not None
    assert len(upper[0]) == 0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_lapack_does_not_see_what_is_not_finite(value, capfd):
    A = symmetric(20, np.float32)
    A[2, 3] = A[3, 2] = value
    assert eigen.upper_spectrum(A, 0.0) is None
    assert capfd.readouterr().err == ""


def test_large_problems_leave_the_thread_that_ctrl_c_reaches(monkeypatch):
    monkeypatch.setattr(eigen, "_SLOW", 10)
    workers = []
    above = eigen._above
    monkeypatch.setattr(eigen, "_above", lambda A, cut: (workers.append(threading.current_thread()), above(A, cut))[1])
    A = symmetric(20, np.float32)
    upper = eigen.upper_spectrum(A, 0.0)
    assert upper is not None
    np.testing.assert_allclose(upper[0], [v for v in np.linalg.eigvalsh(A) if v > 0], atol=1e-3)
    assert workers
    assert workers[0] is not threading.main_thread()


def test_a_failure_there_is_raised_here(monkeypatch):
    monkeypatch.setattr(eigen, "_SLOW", 10)

    def fail(A):
        raise MemoryError("no room")

    monkeypatch.setattr(eigen, "_all_of", fail)
    with pytest.raises(MemoryError, match="no room"):
        eigen.whole_spectrum(symmetric(20, np.float32))
