"""Read quadratic assignment problems from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from blindmatch.errors import unknown_name
from blindmatch.io.files import read_npz
from blindmatch.io.qaplib import read_sln
from blindmatch.problem.qap import QAP
from blindmatch.validation import IntArray

_PROBLEM = ("source_cost", "target_cost", "linear", "constant", "forbidden")  # arrays of a problem


def load_solution(path: str | Path, problem: QAP) -> IntArray:
    """Read the permutation of a QAPLIB ``.sln`` file for a problem.

    Some public files list the inverse permutation. The one that costs what the file says is taken, or else the cheaper
    one.
    """
    cost, listed = read_sln(path)
    if len(listed) != problem.n:
        raise ValueError(f"{path}: a solution of n={len(listed)}; the problem has n={problem.n}")
    both = (listed, np.argsort(listed))
    costs = [problem.objective(p) for p in both]
    stated = [p for p, found in zip(both, costs, strict=True) if np.isclose(found, cost, rtol=1e-9)]
    return stated[0] if stated else both[int(np.argmin(costs))]


def load_problem(path: str | Path) -> QAP:
    """Read a quadratic assignment problem.

    Parameters
    ----------
    path
        A QAPLIB ``.dat`` file, or an ``.npz`` file with the arrays ``source_cost`` and ``target_cost`` and optionally
        ``linear``, ``constant`` and ``forbidden``: the arguments of ``bm.QAP``, and no others.
    """
    suffix = Path(path).suffix.lower()
    if Path(path).is_dir() and suffix not in (".dat", ".npz"):
        raise ValueError(f"{path}: it is a folder; expected a file, .dat (QAPLIB) or .npz")
    if suffix == ".dat":
        return QAP.from_qaplib(path)
    if suffix != ".npz":
        raise ValueError(f"{path}: unknown kind of problem file {suffix!r}; expected .dat (QAPLIB) or .npz")
    arrays = read_npz(path)
    missing = [name for name in ("source_cost", "target_cost") if name not in arrays]
    if missing:
        found = ", ".join(arrays) or "nothing"
        hint = "; 'blindmatch match' and bm.match take embeddings" if "embeddings" in arrays else ""
        raise ValueError(f"{path}: no array {' and '.join(missing)} in it; it holds {found}{hint}")
    try:
        for name in arrays:
            if name not in _PROBLEM:
                raise unknown_name("array", name, _PROBLEM)
        return QAP(
            arrays["source_cost"],
            arrays["target_cost"],
            arrays.get("linear"),
            arrays.get("constant", 0.0),  # type: ignore[arg-type]  # a 0-d array; QAP checks and converts it
            forbidden=arrays.get("forbidden"),
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
