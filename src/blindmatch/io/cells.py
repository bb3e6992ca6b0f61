"""AnnData, the file format of single-cell biology: embeddings in, partners and projections out."""

from __future__ import annotations

import mmap
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from blindmatch.errors import pip_install, unknown_name
from blindmatch.io.files import is_stream, reading, refuse_bomb

SUFFIX = ".h5ad"
_HEAP = b"GCOL\x01\x00\x00\x00"  # where a global heap of HDF5 begins
_INSTALL = pip_install("cells")


def split_key(path: str | Path) -> tuple[Path, str | None]:
    """The file and the key of ``cells.h5ad#X_pca``; None if there is no key."""
    file, _, key = str(path).rpartition("#")
    return (Path(file), key) if file.lower().endswith(SUFFIX) else (Path(path), None)


def read_cells(path: Path, key: str | None = None) -> tuple[Any, tuple[str, ...]]:
    """The matrix ``obsm[key]`` of a ``.h5ad`` file and the names of its cells.

    Without a key: the only matrix in ``obsm``, or ``X`` if there is none.
    """
    data = _read(path)
    return cells_matrix(data, str(path), key), tuple(map(str, data.obs_names))


def _read(path: Path) -> Any:
    try:
        import anndata
    except ImportError:
        raise ImportError(f"{path}: needs the package anndata: {_INSTALL}") from None
    with reading(path, SUFFIX):
        if is_stream(path):  # it may never end, or never begin
            raise ValueError("it is a pipe or a device; expected a file")
        path.open("rb").close()  # raises the usual error if the file is missing
        import h5py

        _refuse_endless_heaps(path)
        with h5py.File(path, "r") as file:
            refuse_bomb(_bytes(file, set()), path.stat().st_size)
        data = anndata.read_h5ad(path)
        for matrix in (data.X, *data.obsm.values()):
            if issparse(matrix):
                matrix.check_format(full_check=True)  # scipy reads foreign memory at wrong indices
        return data


def _refuse_endless_heaps(path: Path) -> None:
    """HDF5 goes from one text of a heap to the next by their sizes; at a gap of size 0 it stays for good."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        heap = data.find(_HEAP)
        while heap >= 0:
            at, end = heap + 16, heap + int.from_bytes(data[heap + 8 : heap + 16], "little")
            while at + 16 <= min(end, len(data)):
                number, size = struct.unpack_from("<H6xQ", data, at)
                if not number and size < 16:
                    raise ValueError(f"a heap of texts has a gap of {size} bytes")
                at += 16 + (size + 7) // 8 * 8 if number else size
            heap = data.find(_HEAP, heap + 16)


def _bytes(group: Any, seen: set[Any]) -> int:
    """The size of all arrays in a group, in memory. Whatever leads out of the file, or in circles, is refused."""
    import h5py

    total = 0
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{name!r} is a link to another place")
        item = group[name]
        place = h5py.h5o.get_info(item.id).addr
        if place in seen:
            raise ValueError(f"{name!r} occurs in several places")
        seen.add(place)
        if isinstance(item, h5py.Group):
            total += _bytes(item, seen)
        elif isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external is not None:
                raise ValueError(f"{name!r} is stored in other files")
            total += item.size * item.dtype.itemsize
    return total


def annotate_files(files: tuple[str | Path, str | Path], out: Path, permutation: ArrayLike, **extra: Any) -> None:
    """Copy the source's file to `out` with the match added: see ``annotate_cells``."""
    source, target = (_read(split_key(file)[0]) for file in files)
    annotate_cells(source, target, permutation, **extra)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:  # a file is written completely or not at all
        source.write_h5ad(Path(folder) / out.name)
        (Path(folder) / out.name).replace(out)


def cells_matrix(data: Any, name: str, key: str | None = None) -> Any:
    """``obsm[key]`` of an AnnData object; without a key the only matrix in ``obsm``, or ``X`` if there is none."""
    keys = [str(known) for known in data.obsm]
    if key is None:
        if len(keys) > 1:
            raise ValueError(f"{name}: obsm holds {', '.join(keys)}; choose one, as in {Path(name).name}#{keys[0]}")
        if not keys and data.X is None:
            raise ValueError(f"{name}: holds neither X nor anything in obsm")
        return data.obsm[keys[0]] if keys else data.X
    if key not in keys:
        raise unknown_name(f"{name}: obsm", key, keys)
    return data.obsm[key]


def annotate_cells(
    source: Any,
    target: Any,
    permutation: ArrayLike,
    *,
    confidence: ArrayLike | None = None,
    projected: ArrayLike | None = None,
    key: str = "blindmatch",
) -> None:
    """Write a match into two AnnData objects.

    Parameters
    ----------
    source, target
        The AnnData objects; they are changed.
    permutation
        The target of each source, -1 for none: ``result.permutation``.
    confidence
        The probability that each pair is right: ``result.assess().confidence`` or ``result.confidence``.
    projected
        Where each source lies in the space of the targets: ``bm.project(...).points``.
    key
        Partners become ``obs[f"{key}_partner"]`` (the name of the cell, missing where there is none) on both sides,
        confidences ``obs[f"{key}_confidence"]``, and the projection ``source.obsm[f"X_{key}"]``.
    """
    partners = np.asarray(permutation)
    n, m = source.n_obs, target.n_obs
    if partners.shape != (n,) or partners.dtype.kind not in "iu":
        raise ValueError(f"permutation has dtype {partners.dtype} and shape {partners.shape}; expected {n} integers")
    rows = np.flatnonzero(partners >= 0)
    if partners.min(initial=0) < -1 or partners.max(initial=-1) >= m or len(set(partners[rows])) < len(rows):
        raise ValueError(f"permutation must hold different targets below {m}, or -1, for the {n} cells of the source")
    back = np.full(m, -1)
    back[partners[rows]] = rows
    extra: dict[str, np.ndarray[Any, Any]] = {}
    for name, values, ndim in (("confidence", confidence, 1), ("projected", projected, 2)):
        if values is not None:
            extra[name] = np.asarray(values, dtype=np.float64)
            if extra[name].ndim != ndim or len(extra[name]) != n:
                raise ValueError(f"{name} has shape {extra[name].shape}; expected one row for each of {n} cells")
    for data, other, found in ((source, target, partners), (target, source, back)):
        names = np.asarray(other.obs_names, dtype=object)
        data.obs[f"{key}_partner"] = [names[at] if at >= 0 else None for at in found]
    if "confidence" in extra:
        source.obs[f"{key}_confidence"] = extra["confidence"]
        target.obs[f"{key}_confidence"] = np.where(back >= 0, extra["confidence"][back], np.nan)
    if "projected" in extra:
        source.obsm[f"X_{key}"] = extra["projected"]
