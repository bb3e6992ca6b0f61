"""Named arrays in ``.npz`` and ``.safetensors`` files."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np

from blindmatch.io.files import Arrays, missing_package, read_npz, reading, write_atomically

# Tensors cannot hold text or scalars: a .safetensors file stores these as JSON in its metadata.
_IN_METADATA = ("names", "labels", "class_names", "templates", "parameters", "views")
_KINDS = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.int64): "I64"}


def read_arrays(path: str | Path, only: Collection[str] | None = None) -> Arrays:
    """Return the arrays of a ``.npz`` or ``.safetensors`` file by name, all or `only` some."""
    return (read_npz if Path(path).suffix.lower() == ".npz" else _read_safetensors)(path, only)


def _read_safetensors(path: str | Path, only: Collection[str] | None) -> Arrays:
    try:
        from safetensors import safe_open
    except ImportError:
        raise missing_package(path, "safetensors") from None
    with reading(path, ".safetensors"):
        Path(path).open("rb").close()  # raises the usual error if the file is missing
        with safe_open(str(path), framework="numpy") as file:
            names = [name for name in file.keys() if only is None or name in only]  # noqa: SIM118 (not a mapping)
            arrays: Arrays = {name: file.get_tensor(name) for name in names}
            texts = file.metadata() or {}
        for name in _IN_METADATA:
            if name in texts and name not in arrays and (only is None or name in only):
                arrays[name] = np.array(json.loads(texts[name]))
    return arrays


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Write ``.npz`` or ``.safetensors``; the same arrays give the same bytes."""
    if path.suffix == ".npz":
        write_atomically(path, lambda file: np.savez(file, **arrays))
    else:
        write_atomically(path, lambda file: _write_safetensors(file, arrays))


def _write_safetensors(file: IO[bytes], arrays: Arrays) -> None:
    """Write ``.safetensors`` with a fixed order of metadata, which the format's own writer does not guarantee.

    The file has eight bytes with the length of the header, the header as JSON, then the arrays. Texts are metadata.
    """
    texts, tensors, blocks, place = {}, {}, [], 0
    for key, array in arrays.items():
        if array.dtype.kind == "U" or array.ndim == 0:
            texts[key] = json.dumps(array.tolist())
            continue
        blocks.append(np.ascontiguousarray(array).tobytes())
        offsets = [place, place := place + len(blocks[-1])]
        tensors[key] = {"dtype": _KINDS[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
    header: dict[str, Any] = {"__metadata__": texts, **tensors} if texts else tensors
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for block in blocks:
        file.write(block)
