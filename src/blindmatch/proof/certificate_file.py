"""The file of a certificate: one ``.npz`` archive of plain arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.io.files import read_npz, write_atomically
from blindmatch.proof.certificate import Certificate, Node, Pair, Stage

_LARGEST_STAGE = 2**16
_LONGEST_FINGERPRINT = 64  # numbers; `problem/fingerprint.py` makes seven
_FORMAT = "blindmatch certificate 1"
_REQUIRED = (
    *("format", "size", "forced", "parent", "pair", "line", "spectral", "stage_node", "stage_size"),
    *("symmetry_side", "symmetry_image", "skipped", "U", "V", "column_duals", "forbidden"),
)
_FACTORS = ("factor_stage", "factor_rank", "factor")
FIELDS = (*_REQUIRED, *_FACTORS, "fingerprint", "point")  # files of earlier versions have only those that are required


def write_certificate(path: str | Path, certificate: Certificate) -> None:
    """Write to an ``.npz`` file, whole or not at all."""
    write_atomically(path, lambda file: np.savez_compressed(file, **certificate_arrays(certificate)))


def certificate_arrays(certificate: Certificate) -> dict[str, Any]:
    """The arrays of the file."""
    stages = [(index, stage) for index, node in enumerate(certificate.nodes) for stage in node.stages]

    def flat(values: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
        return np.concatenate([np.empty(0, dtype), *(value.ravel() for value in values)]).astype(dtype, copy=False)

    dual_type = np.result_type(*(array.dtype for _, s in stages for array in (s.U, s.V)), np.float16)
    none = (-1, -1)
    factors = {index: stage.factor for index, (_, stage) in enumerate(stages) if stage.factor is not None}
    factor_type = np.result_type(*(factor.dtype for factor in factors.values()), np.float16)
    skipped = [(index, *child) for index, node in enumerate(certificate.nodes) for child in node.skipped]
    images = np.array([image for _, image in certificate.symmetries], dtype=np.int64)
    return {
        "format": np.array(_FORMAT),
        "size": np.array(certificate.size),
        "fingerprint": np.array(certificate.fingerprint, dtype=np.float64),
        "forced": np.array(certificate.forced, dtype=np.int64).reshape(-1, 2),
        "parent": np.array([node.parent for node in certificate.nodes], dtype=np.int64),
        "pair": np.array([node.pair or none for node in certificate.nodes], dtype=np.int64).reshape(-1, 2),
        "line": np.array([node.line or none for node in certificate.nodes], dtype=np.int64).reshape(-1, 2),
        "spectral": np.array([node.spectral for node in certificate.nodes], dtype=bool),
        "symmetry_side": np.array([side for side, _ in certificate.symmetries], dtype=np.int64),
        "symmetry_image": images.reshape(-1, certificate.size),
        "skipped": np.array(skipped, dtype=np.int64).reshape(-1, 4),
        "stage_node": np.array([index for index, _ in stages], dtype=np.int64),
        "stage_size": np.array([stage.size for _, stage in stages], dtype=np.int64),
        "U": flat([stage.U for _, stage in stages], dual_type),
        "V": flat([stage.V for _, stage in stages], dual_type),
        "column_duals": flat([stage.column_duals for _, stage in stages], np.float64),
        "forbidden": np.packbits(flat([stage.forbidden for _, stage in stages], bool)),
        "point": np.zeros((0, 0)) if certificate.nodes[0].point is None else certificate.nodes[0].point,
        "factor_stage": np.array(list(factors), dtype=np.int64),
        "factor_rank": np.array([factor.shape[1] for factor in factors.values()], dtype=np.int64),
        "factor": flat(list(factors.values()), factor_type),
    }


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate; a file that is not one gets a ValueError."""
    try:
        return certificate_of(read_npz(path, FIELDS))
    except Exception as error:  # forged arrays raise anything: OverflowError, TypeError, ...
        if isinstance(error, OSError) and error.filename is not None:
            raise
        what = str(error).removeprefix(f"{path}: ")
        raise ValueError(f"{path}: not a blindmatch certificate ({what})") from None


def certificate_of(arrays: dict[str, NDArray[Any]]) -> Certificate:
    """The certificate in these arrays; anything may be raised if there is none."""
    missing = [name for name in _REQUIRED if name not in arrays]
    if missing:
        raise ValueError(f"no array {missing[0]!r} in it")
    if str(arrays["format"]) != _FORMAT:
        raise ValueError(f"format {str(arrays['format'])!r}")
    sizes = arrays["stage_size"].astype(np.int64)
    if ((sizes < 1) | (sizes > _LARGEST_STAGE)).any():  # larger cubes would wrap around
        raise ValueError(f"stages of sizes {sizes.min()} to {sizes.max()}; expected 1 to {_LARGEST_STAGE}")
    squares, cubes = sizes**2, sizes**3
    if len(arrays["forbidden"]) != -(-int(squares.sum()) // 8):
        raise ValueError(f"{len(arrays['forbidden'])} bytes of forbidden pairs")
    bits = np.unpackbits(arrays["forbidden"], count=int(squares.sum())).astype(bool)
    parts = {
        "U": _cut(arrays["U"], cubes),
        "V": _cut(arrays["V"], cubes),
        "column_duals": _cut(arrays["column_duals"].astype(np.float64), sizes),
        "forbidden": _cut(bits, squares),
    }
    factors = _factors(arrays, parts["forbidden"])
    stages: dict[int, list[Stage]] = {}
    for index, (node, m) in enumerate(zip(arrays["stage_node"].tolist(), sizes.tolist(), strict=True)):
        stage = Stage(
            parts["U"][index].reshape(m, m, m),
            parts["V"][index].reshape(m, m, m),
            parts["column_duals"][index],
            parts["forbidden"][index].reshape(m, m),
            factors.get(index),
        )
        stages.setdefault(node, []).append(stage)
    skipped: dict[int, list[tuple[int, int, int]]] = {}
    for index, child, sibling, symmetry in arrays["skipped"].astype(np.int64).tolist():
        skipped.setdefault(index, []).append((child, sibling, symmetry))
    nodes = []
    rows = zip(*(arrays[name].tolist() for name in ("parent", "pair", "line", "spectral")), strict=True)
    for index, (parent, pair, line, spectral) in enumerate(rows):
        left_out = tuple(skipped.get(index, ()))
        own = tuple(stages.get(index, ()))
        nodes.append(
            Node(parent, _pair(pair), own, _pair(line), bool(spectral), left_out, None if index else _point(arrays))
        )
    if not nodes or any(isinstance(value, float) for node in nodes for value in (node.parent, *(node.pair or ()))):
        raise ValueError("no nodes, or nodes that are not numbered by integers")
    images = arrays["symmetry_image"].astype(np.intp)
    symmetries = tuple(zip(arrays["symmetry_side"].astype(int).tolist(), images, strict=True))
    forced = tuple((int(i), int(j)) for i, j in arrays["forced"].tolist())
    return Certificate(int(arrays["size"]), tuple(nodes), forced, symmetries, _fingerprint(arrays))


def _point(arrays: dict[str, NDArray[Any]]) -> NDArray[np.float64] | None:
    """The point of the root."""
    found = arrays.get("point", np.zeros((0, 0)))
    return found.astype(np.float64) if found.size else None


def _fingerprint(arrays: dict[str, NDArray[Any]]) -> tuple[float, ...]:
    values = arrays.get("fingerprint", np.empty(0))
    if values.dtype != np.float64 or values.ndim != 1 or len(values) > _LONGEST_FINGERPRINT:
        raise ValueError(
            f"a fingerprint of shape {values.shape} and type {values.dtype.name}; expected at most "
            f"{_LONGEST_FINGERPRINT} float64"
        )
    return tuple(values.tolist())


def _factors(arrays: dict[str, NDArray[Any]], forbidden: list[NDArray[Any]]) -> dict[int, NDArray[Any]]:
    """The factors of the stages that have one."""
    if any(name not in arrays for name in _FACTORS):
        return {}
    numbers = arrays["factor_stage"].astype(np.int64).tolist()
    ranks = arrays["factor_rank"].astype(np.int64)
    if len(set(numbers)) < len(numbers) or not all(0 <= number < len(forbidden) for number in numbers):
        raise ValueError(f"factors of the stages {numbers}")
    rows = np.array([1 + np.count_nonzero(~forbidden[number]) for number in numbers], dtype=np.int64)
    if ranks.shape != rows.shape or ((ranks < 0) | (ranks > rows)).any():  # larger products would wrap around
        raise ValueError(f"factors with {ranks.tolist()} columns for {rows.tolist()} rows")
    parts = _cut(arrays["factor"], rows * ranks)
    return {number: part.reshape(m, r) for number, part, m, r in zip(numbers, parts, rows, ranks, strict=True)}


def _pair(values: list[int]) -> Pair | None:
    return None if values[0] < 0 else (int(values[0]), int(values[1]))


def _cut(values: NDArray[Any], lengths: NDArray[np.int64]) -> list[NDArray[Any]]:
    if (lengths < 0).any() or values.ndim != 1 or len(values) != lengths.sum():
        raise ValueError(f"{len(values)} numbers where {lengths.sum()} are announced")
    return np.split(values, np.cumsum(lengths)[:-1]) if len(lengths) else []
