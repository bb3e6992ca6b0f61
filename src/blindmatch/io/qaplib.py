"""Read and write the text files of QAPLIB: ``.dat`` problems and ``.sln`` solutions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from blindmatch.io.files import text_of, write_text
from blindmatch.validation import FloatArray, IntArray

_COMMENT = re.compile(r"(#|%|//|!).*|^[ \t]*(?!nan|inf)[a-z].*$", re.IGNORECASE | re.MULTILINE)  # and lines of words
_LIMIT = 10_000  # a larger size means a broken or hostile file


def read_dat(path: str | Path) -> tuple[FloatArray, ...]:
    """Return the matrices of a ``.dat`` file: cost(p) = sum_ik A[i, k] B[p[i], p[k]], and L[i, p[i]] if there is an L.

    Files in the wild have a best known cost after the size, comments (after #, %, // or !, or lines that begin with
    a word), or a third matrix, the linear term.
    """
    lines = _lines(path)
    numbers = np.concatenate([np.zeros(0), *lines])
    n = _size(numbers, path)
    found = len(numbers) - 1
    best = [len(line) for line in lines[:2]] == [1, 1] or len(lines[0]) == 2
    for count in (2, 3):
        if found in (count * n * n, count * n * n + best):
            return tuple(numbers[len(numbers) - count * n * n :].reshape(count, n, n))
    raise ValueError(
        f"{path}: n={n} needs {2 * n * n} numbers after it, or {3 * n * n} with a linear term (one more with a best "
        f"known cost), found {found}"
    )


def write_dat(path: str | Path, matrices: Iterable[FloatArray]) -> None:
    """Write matrices as a ``.dat`` file; integers without a decimal point, other numbers with all their digits."""

    def digits(value: float) -> str:
        return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)

    blocks = [[" ".join(map(digits, row)) for row in matrix.tolist()] for matrix in matrices]
    text = "\n\n".join([str(len(blocks[0])), *("\n".join(rows) for rows in blocks)]) + "\n"
    write_text(path, text)


def read_sln(path: str | Path) -> tuple[float, IntArray]:
    """Return the stated cost and the permutation (0-based, as the file lists it) of a ``.sln`` file.

    Some public files list the inverse permutation, so check it against the problem: ``np.argsort(p)`` is the inverse.
    """
    numbers = np.concatenate([np.zeros(0), *_lines(path)])
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
    write_text(path, text)


def _lines(path: str | Path) -> list[FloatArray]:
    try:
        text = text_of(path)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
    text = _COMMENT.sub("", text)
    try:
        rows = [words for line in text.replace(",", " ").splitlines() if (words := line.split())]
        lines = [np.array([float(word) for word in words]) for words in rows]
    except ValueError as error:
        word = str(error).partition(": ")[2][:60]
        raise ValueError(f"{path}: {word} is not a number; expected numbers separated by spaces or commas") from None
    for numbers in lines:
        if not np.isfinite(numbers).all():
            raise ValueError(f"{path}: holds {numbers[~np.isfinite(numbers)][0]}; every number must be finite")
    return lines


def _size(numbers: FloatArray, path: str | Path) -> int:
    if not len(numbers) or numbers[0] != np.rint(numbers[0]) or not 1 <= numbers[0] <= _LIMIT:
        first = f"{numbers[0]:.15g}" if len(numbers) else "nothing"
        raise ValueError(f"{path}: starts with {first}; expected the size, an integer from 1 to {_LIMIT}")
    return int(numbers[0])
