"""Array operations for the steps of the splitting: numpy, or torch on a device.

`Splitting` and `Face` use only operators, indexing and these methods. Costs, proofs and checks stay in numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from blindmatch.errors import pip_install
from blindmatch.solvers.base import Dependency
from blindmatch.solvers.eigen import Spectrum, responsively, upper_spectrum, whole_spectrum

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

    def upper_spectrum(self, A: Any, cut: float) -> Spectrum | None:
        """The eigenvalues above `cut` and their eigenvectors; None if only the whole spectrum can be computed."""
        return upper_spectrum(A, cut)


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

    def upper_spectrum(self, A: Any, cut: float) -> Spectrum | None:
        """None: torch cannot compute a part of the spectrum."""
        return None


NUMPY = Arrays()
