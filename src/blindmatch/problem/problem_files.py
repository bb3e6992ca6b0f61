"""Read and write quadratic assignment problems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from blindmatch.errors import unknown_name
from blindmatch.io.files import read_npz, reading, text_of, write_atomically, write_text
from blindmatch.io.qaplib import read_sln, write_dat
from blindmatch.problem.exports import write_lp, write_mps
from blindmatch.problem.graph_matching import read_dd, write_dd
from blindmatch.problem.qap import QAP
from blindmatch.validation import IntArray, as_array

_READ, _WRITTEN = (".dat", ".txt", ".json", ".npz", ".dd"), (".dat", ".json", ".npz", ".dd", ".lp", ".mps")
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
        A QAPLIB file, ``.dat`` or ``.txt``; or ``.npz`` or ``.json`` with ``source_cost`` and ``target_cost`` and
        optionally ``linear``, ``constant`` and ``forbidden``: the arguments of ``bm.QAP``, and no others. Matrices with
        three axes are the factors of a sum. ``.dd`` is a graph-matching model, if its edges cost what a QAP can cost.
    """
    suffix = Path(path).suffix.lower()
    if Path(path).is_dir() and suffix not in _READ:
        raise ValueError(f"{path}: it is a folder; expected a file, .dat (QAPLIB), .json, .npz or .dd")
    if suffix in (".dat", ".txt"):
        return QAP.from_qaplib(path)
    if suffix == ".dd":
        return read_dd(path)
    if suffix not in _READ:
        written = "; problems are written in this format, not read" if suffix in _WRITTEN else ""
        raise ValueError(
            f"{path}: unknown kind of problem file {suffix!r}; expected .dat (QAPLIB), .json, .npz or .dd{written}"
        )
    arrays = read_npz(path) if suffix == ".npz" else _read_json(path)
    missing = [name for name in ("source_cost", "target_cost") if name not in arrays]
    if missing:
        found = ", ".join(arrays) or "nothing"
        hint = "; 'blindmatch match' and bm.match take embeddings" if "embeddings" in arrays else ""
        raise ValueError(f"{path}: no array {' and '.join(missing)} in it; it holds {found}{hint}")
    try:
        for name in arrays:
            if name not in _PROBLEM:
                raise unknown_name("array", name, _PROBLEM)
        factors: Any = [(arrays["source_cost"], arrays["target_cost"])]
        if all(as_array(arrays[name], name).ndim == 3 for name in ("source_cost", "target_cost")):
            factors = list(zip(*factors[0], strict=True))
        # The constant is a 0-d array, which QAP checks and converts.
        given: Any = {name: arrays[name] for name in ("linear", "constant", "forbidden") if name in arrays}
        return QAP.from_factors(factors, **given) if len(factors) > 1 else QAP(*factors[0], **given)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def save_problem(path: str | Path, problem: QAP) -> None:
    """Write a problem: ``.dat`` (QAPLIB), ``.json``, ``.npz``, ``.dd`` (graph matching), ``.lp`` or ``.mps``."""
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITTEN:
        raise ValueError(f"{path}: unknown kind of problem file {suffix!r}; expected one of {', '.join(_WRITTEN)}")
    writers = {".dd": write_dd, ".lp": write_lp, ".mps": write_mps}
    if suffix in writers:
        writers[suffix](path, problem)
        return
    if suffix == ".dat":
        if len(problem.factors) > 1 or problem.forbidden is not None or problem.constant or problem.sources < problem.n:
            lacking = "a sum of factor pairs, forbidden pairs, a constant or unequal sizes"
            raise ValueError(f"{path}: a .dat file cannot hold {lacking}; .json and .npz can")
        write_dat(path, [*problem.factors[0], *([problem.linear] if problem.linear.any() else [])])
        return
    arrays = _arrays(problem)
    if suffix == ".npz":
        write_atomically(path, lambda file: np.savez_compressed(file, **arrays))
    else:
        text = json.dumps({name: array.tolist() for name, array in arrays.items()})
        write_text(path, text)


def _arrays(problem: QAP) -> dict[str, Any]:
    n, many = problem.sources, len(problem.factors) > 1
    source, target = (np.stack(side) for side in zip(*problem.factors, strict=True))
    arrays = {"source_cost": source[:, :n, :n] if many else source[0, :n, :n]}
    arrays |= {"target_cost": target if many else target[0]}
    arrays |= {"linear": problem.linear[:n]} if problem.linear.any() else {}
    arrays |= {"constant": np.array(problem.constant)} if problem.constant else {}
    return arrays | ({} if problem.forbidden is None else {"forbidden": problem.forbidden[:n]})


def _read_json(path: str | Path) -> Mapping[str, Any]:
    with reading(path, "JSON"):
        values = json.loads(text_of(path))
        if not isinstance(values, dict):
            raise ValueError("expected an object with source_cost and target_cost")
    return values
