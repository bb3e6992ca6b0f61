"""A few sums over the data of a problem, which tell it from other problems."""

from __future__ import annotations

import numpy as np

from blindmatch.problem.qap import QAP
from blindmatch.validation import FloatArray

_SAME = 1e-6  # relative: another machine may compute other last digits of the same kernels


def fingerprint(problem: QAP) -> tuple[float, ...]:
    """Weighted sums over the data, with other weights for each side: exchanging the sides gives another problem."""
    return tuple(_sums(problem)[0].tolist())


def differs(problem: QAP, known: tuple[float, ...]) -> bool:
    """Whether a fingerprint is that of another problem; False if there is none."""
    sums, sizes = _sums(problem)
    if len(known) != len(sums):
        return bool(known)
    return bool((np.abs(sums - np.array(known)) > _SAME * sizes).any())  # nothing is said where numbers overflow


def _sums(problem: QAP) -> tuple[FloatArray, FloatArray]:
    """The sums, and the same sums over absolute values."""
    index = np.arange(1, problem.n + 1)
    a, b, c = np.cos(index), np.sin(np.sqrt(2) * index), np.cos(np.sqrt(3) * index)
    forbidden = (~problem.allowed).astype(np.float64)
    sums, sizes = [problem.constant], [abs(problem.constant)]
    with np.errstate(over="ignore", invalid="ignore"):
        for u, v in ((a, b), (b, a)):
            products = [((u @ A @ v) * (u @ B @ c), _size(u, A, v) * _size(u, B, c)) for A, B in problem.factors]
            sums.append(float(sum(value for value, _ in products)))
            sizes.append(float(sum(size for _, size in products)))
            sums += [float(u @ problem.linear @ v), float(u @ forbidden @ v)]
            sizes += [_size(u, problem.linear, v), _size(u, forbidden, v)]
    return np.array(sums, dtype=np.float64), np.array(sizes, dtype=np.float64)


def _size(u: FloatArray, matrix: FloatArray, v: FloatArray) -> float:
    return float(np.abs(u) @ np.abs(matrix) @ np.abs(v))
