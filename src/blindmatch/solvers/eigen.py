"""Eigenvalues and eigenvectors of symmetric matrices; Ctrl-C and other threads do not wait for LAPACK.

numpy always computes in float64, which takes twice as long as float32, and scipy's functions hold the GIL. So this
module calls LAPACK's driver (divide and conquer) through the pointer that scipy offers to compiled code.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import cython_lapack

from blindmatch.errors import pip_install
from blindmatch.solvers.base import Dependency
from blindmatch.validation import BoolArray, FloatArray

_SLOW = 1800  # from this size on, LAPACK runs in another thread, so that Ctrl-C need not wait for it
_SIGNATURE, _ARGUMENTS = b"void (char *, char *, int *, ", 11  # of the driver: its start, and their number

Floats = NDArray[np.floating[Any]]
Result = TypeVar("Result")
Spectrum = tuple[Floats, Floats]  # eigenvalues, ascending, and the eigenvectors as columns


def whole_spectrum(A: Floats) -> Spectrum:
    """All eigenvalues and eigenvectors."""
    return responsively(lambda: _all_of(A), len(A))


def responsively(work: Callable[[], Result], size: int) -> Result:
    """Return the result of `work`, which releases the GIL. Large work runs in a thread, so that Ctrl-C acts at once."""
    if size < _SLOW:
        return work()
    job: Future[Result] = Future()

    def run() -> None:
        try:
            job.set_result(work())
        except BaseException as error:
            job.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not job.done():
        with suppress(TimeoutError):
            job.result(0.05)
    return job.result()


def _all_of(A: Floats) -> Spectrum:
    driver = _driver(A.dtype.char)
    found = None if driver is None or not np.isfinite(A).all() else _divide_and_conquer(driver, A)
    if found is not None:
        return found
    try:
        values, vectors = np.linalg.eigh(A)
    except np.linalg.LinAlgError:  # very rare; this driver is slower and does not fail
        values, vectors = scipy.linalg.eigh(A, driver="ev", check_finite=False)
    return values, vectors


def _divide_and_conquer(driver: Any, A: Floats) -> Spectrum | None:
    d = len(A)
    vectors, values = A.copy(), np.empty(d, A.dtype)  # LAPACK overwrites the matrix with the eigenvectors, one per row
    work, integers = np.empty(1 + 6 * d + 2 * d * d, A.dtype), np.empty(3 + 5 * d, np.intc)
    size, room, integer_room, info = (ctypes.c_int(k) for k in (d, len(work), len(integers), 0))
    arguments = [b"V", b"L", size, vectors, size, values, work, room, integers, integer_room, info]
    driver(*map(_address, arguments))
    return (values, vectors.T) if info.value == 0 else None


@cache
def _driver(kind: str) -> Any:
    """LAPACK's driver as a function that releases the GIL; None if its signature in scipy is not the expected one."""
    capsule = cython_lapack.__pyx_capi__[{"f": "ssyevd", "d": "dsyevd"}[kind]]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    if not signature.startswith(_SIGNATURE) or signature.count(b",") + 1 != _ARGUMENTS:
        return None
    return ctypes.CFUNCTYPE(None, *([ctypes.c_void_p] * _ARGUMENTS))(api.PyCapsule_GetPointer(capsule, signature))


def _address(argument: Any) -> Any:
    if isinstance(argument, bytes):
        return argument
    return argument.ctypes.data if isinstance(argument, np.ndarray) else ctypes.addressof(argument)


TORCH = Dependency("torch", pip_install("gpu"))


class Arrays:
    """Arrays of numpy."""

    xp: Any = np  # for `clip` and `linalg.norm`

    def put(self, array: NDArray[Any], dtype: DTypeLike) -> Any:
        """A copy for the steps."""
        return np.array(array, dtype)

    def get(self, array: Any) -> NDArray[Any]:
        """The numbers as an array of numpy."""
        return np.asarray(array)

    def whole_spectrum(self, A: Any) -> Spectrum:
        """All eigenvalues, ascending, as an array of numpy, and the eigenvectors."""
        return whole_spectrum(A)


class TorchArrays(Arrays):
    """Tensors of torch on a device, such as "cuda" or "cpu"."""

    def __init__(self, device: str) -> None:
        self.xp = TORCH.load("semidefinite")
        try:
            self.xp.zeros(1, device=device).cpu()
        except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
            reason = str(error).splitlines()[0]
            raise ValueError(f"device={device!r} cannot be used: {reason}") from error
        self.device = device

    def put(self, array: NDArray[Any], dtype: DTypeLike) -> Any:
        """A copy on the device."""
        return self.xp.tensor(np.ascontiguousarray(array, dtype), device=self.device)

    def get(self, array: Any) -> NDArray[Any]:
        """A copy of the device's numbers."""
        return np.asarray(array.cpu().numpy())

    def whole_spectrum(self, A: Any) -> Spectrum:
        """All eigenvalues, ascending, as an array of numpy, and the eigenvectors."""

        def solve() -> Spectrum:
            values, vectors = self.xp.linalg.eigh(A)
            return self.get(values), vectors

        return responsively(solve, len(A))


NUMPY = Arrays()


class Equations:
    """The equations of the face, L'y = 0: a column of L has -1 for the 1, and 1 for each pair of a row or a column."""

    def __init__(self, allowed: BoolArray) -> None:
        n = len(allowed)
        self.rows, self.columns = np.nonzero(allowed)
        p = len(self.rows)
        pairs = np.arange(1, p + 1)
        line = np.concatenate([np.zeros(2 * n, np.intp), pairs, pairs])
        equation = np.concatenate([np.arange(2 * n), self.rows, n + self.columns])
        self.L = scipy.sparse.csr_array((np.repeat([-1.0, 1.0], [2 * n, 2 * p]), (line, equation)))
        self.Lt = self.L.T.tocsr()
        self.G = np.linalg.pinv((self.Lt @ self.L).toarray(), hermitian=True)  # the projection onto it is I - LGL'

    def sums(self, M: Floats) -> FloatArray:
        """ML, for a matrix with as many columns as y has entries."""
        return np.asarray((self.Lt @ M.T).T)

    def multipliers(self, sums: FloatArray, level: float) -> FloatArray:
        """D with LD' + DL' = S - QSQ for S = s - level, where Q projects onto the face; `sums` are sL."""
        M = sums - level * self.L
        inner = (self.Lt @ M) @ self.G  # L'SLG
        return np.asarray(M @ self.G - 0.5 * (self.L @ (self.G @ inner)))


class Face:
    """An orthonormal basis V of all y for which every row and every column of x sums to y_0.

    V is the last columns of a product of at most 2n Householder reflections, I - U S U' (compact WY form). So a product
    with V takes O(n) operations per entry, not O(n^2).
    """

    def __init__(self, equations: Equations, dtype: type[np.floating[Any]], arrays: Arrays = NUMPY) -> None:
        L = equations.L.toarray()
        (reflectors, tau), R, _ = scipy.linalg.qr(L, mode="raw", pivoting=True, check_finite=False)
        size = np.abs(np.diag(R))
        k = int((size > 1e-9 * size[0]).sum())
        U = np.tril(reflectors[:, :k], -1)
        U[np.arange(k), np.arange(k)] = 1.0
        S = np.zeros((k, k))
        for j in range(k):
            S[:j, j] = -tau[j] * (S[:j, :j] @ (U[:, :j].T @ U[:, j]))
            S[j, j] = tau[j]
        self.rank = k
        self.dimension = len(L) - k
        self.U: Floats = arrays.put(U, dtype)
        self.S: Floats = arrays.put(S, dtype)
        self.US: Floats = arrays.put(U @ S, dtype)

    def restrict(self, M: Floats) -> Floats:
        """V'MV of a symmetric matrix M."""
        k = self.rank
        MU = M @ self.US
        inner = (self.S.T @ (self.U.T @ MU)) @ self.U[k:].T
        result: Floats = M[k:, k:] - MU[k:] @ self.U[k:].T - self.U[k:] @ (MU[k:].T - inner)
        return result

    def extend(self, F: Floats) -> Floats:
        """VF."""
        k = self.rank
        result: Floats = -self.US @ (self.U[k:].T @ F)
        result[k:] += F
        return result
