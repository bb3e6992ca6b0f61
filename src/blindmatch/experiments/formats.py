"""Read arrays from the files of an embeddings folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.io.files import Arrays, reading


def read_arrays(path: str | Path, only: Sequence[str] | None = None) -> Arrays:
    """The arrays of an ``.npz`` or ``.safetensors`` file by name, all or `only` some; lists in metadata count too."""
    read = _read_npz if Path(path).suffix == ".npz" else _read_safetensors
    arrays = read(Path(path), only)
    if only is None and "embeddings" not in arrays:
        raise ValueError(f"{path}: no array 'embeddings' in it; it holds {', '.join(arrays) or 'nothing'}")
    return arrays


def _read_npz(path: Path, only: Sequence[str] | None) -> Arrays:
    with reading(path, ".npz"), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files if only is None or name in only}


def _read_safetensors(path: Path, only: Sequence[str] | None) -> Arrays:
    try:
        from safetensors import safe_open
    except ImportError:
        raise ImportError(f"{path}: reading it needs safetensors: pip install 'blindmatch[files]'") from None
    with reading(path, ".safetensors"), safe_open(str(path), framework="numpy") as file:
        names = [name for name in file.keys() if only is None or name in only]  # noqa: SIM118 (it is no mapping)
        arrays: Arrays = {name: file.get_tensor(name) for name in names}
        for name, text in (file.metadata() or {}).items():
            values = _listed(text)
            if values is not None and name not in arrays and (only is None or name in only):
                arrays[name] = values
    return arrays


def _listed(text: str) -> NDArray[Any] | None:
    """Read names from the metadata, where they are JSON lists because tensors hold no text."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    return np.array(values) if isinstance(values, list | int | float) else None
