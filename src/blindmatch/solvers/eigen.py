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
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import cython_lapack

from blindmatch.errors import pip_install
from blindmatch.solvers.base import Dependency

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
