"""Read and write the text files of QAPLIB: ``.dat`` problems and ``.sln`` solutions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from blindmatch.io.files import text_of, write_atomically
from blindmatch.validation import FloatArray, IntArray

_LIMIT = 10_000  # a larger size means a broken or hostile file


def read_dat(path: str | Path) -> tuple[FloatArray, FloatArray]:
    """Return the two matrices of a ``.dat`` file: cost(p) = sum_ik A[i, k] B[p[i], p[k]]."""
    numbers = _numbers(path)
    n = _size(numbers, path)
    if len(numbers) != 1 + 2 * n * n:
        raise ValueError(f"{path}: n={n} needs {2 * n * n} numbers after it, found {len(numbers) - 1}")
    A, B = numbers[1:].reshape(2, n, n)
    return A, B


def read_sln(path: str | Path) -> tuple[float, IntArray]:
    """Return the stated cost and the permutation (0-based, as the file lists it) of a ``.sln`` file.

    Some public files list the inverse permutation, so check it against the problem: ``np.argsort(p)`` is the inverse.
    """
    numbers = _numbers(path)
    n = _size(numbers, path)
    if len(numbers) != n + 2:
        raise ValueError(f"{path}: n={n} needs a cost and {n} indices after it, found {len(numbers) - 1} numbers")
    indices = numbers[2:] - (numbers[2:].min() == 1)
    if not np.array_equal(np.sort(indices), np.arange(n)):
        raise ValueError(f"{path}: the {n} indices are not a permutation")
    return float(numbers[1]), indices.astype(np.intp)


def write_sln(path: str | Path, cost: float, permutation: IntArray) -> None:
    """Write a ``.sln`` file: the size and the cost, then the location of each facility, counted from 1."""
    words = " ".join(str(j + 1) for j in permutation.tolist())
    text = f"{len(permutation)} {cost:.17g}\n{words}\n"
    write_atomically(path, lambda file: file.write(text.encode()))


def _numbers(path: str | Path) -> FloatArray:
    try:
        text = text_of(path, "ascii")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
    try:
        numbers = np.array([float(word) for word in text.replace(",", " ").split()])
    except ValueError as error:
        raise ValueError(f"{path}: {str(error)[:200]}") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{path}: holds {numbers[~np.isfinite(numbers)][0]}; every number must be finite")
    return numbers


def _size(numbers: FloatArray, path: str | Path) -> int:
    if not len(numbers) or numbers[0] != np.rint(numbers[0]) or not 1 <= numbers[0] <= _LIMIT:
        first = numbers[0] if len(numbers) else "nothing"
        raise ValueError(f"{path}: starts with {first}; expected the size, an integer from 1 to {_LIMIT}")
    return int(numbers[0])
