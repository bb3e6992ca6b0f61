"""A small folder of embeddings from the bundled data, to try each experiment without further data."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from blindmatch.experiments.data import Catalogue, read_catalogue
from blindmatch.io.files import write_atomically

ABOUT = (
    "bundled: CIFAR-10 by EfficientNet-Lite2, four vectors per class (each the mean of a quarter of its images), "
    "and the class names by gte-small and all-MiniLM-L6-v2"
)


def write_sample(folder: Path) -> Catalogue:
    """Write the bundled embeddings in the format of an embeddings folder, and read the folder."""
    with files("blindmatch").joinpath("data", "cifar10.npz").open("rb") as file:
        arrays = dict(np.load(file, allow_pickle=False))
    parts, names = arrays["source_parts"], arrays["names"]
    labels = np.repeat(np.arange(len(parts)), parts.shape[1])
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "vision__cifar10__efficientnet_lite2.npz", parts.reshape(len(labels), -1), names, labels=labels)
    _write(folder / "language__cifar10__gte_small.npz", arrays["prompts"], names)
    _write(folder / "language__cifar10__all_minilm_l6_v2.npz", arrays["target_paper"], names)
    return replace(read_catalogue(folder), about=ABOUT)


def _write(path: Path, embeddings: Any, names: Any, **more: Any) -> None:
    if not path.exists():
        write_atomically(path, lambda file: np.savez(file, embeddings=embeddings, class_names=names, **more))
