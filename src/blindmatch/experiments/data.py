"""Embeddings of images and texts by several models: a folder of files that workers read, and a small bundled one."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from blindmatch.errors import unknown_name
from blindmatch.geometry.kernels import unit_rows
from blindmatch.geometry.prototypes import prompt_means
from blindmatch.io.files import Arrays, file_digest, read_arrays, write_arrays
from blindmatch.validation import FloatArray

if TYPE_CHECKING:
    from blindmatch.experiments.protocol import Trial

Modality = Literal["vision", "language"]
KINDS = (".npz", ".safetensors")
_ROWS_AT_A_TIME = 64
_FILES_KEPT = 8
_BYTES_AHEAD = 50_000_000


@dataclass(frozen=True)
class Source:
    """One file: the embeddings of a dataset by a model."""

    modality: str
    dataset: str
    model: str
    path: str
    digest: str


@dataclass(frozen=True)
class Catalogue:
    """The files of a folder, and a description of them."""

    sources: tuple[Source, ...] = ()
    about: str = ""

    def datasets(self, wanted: Iterable[str] | None = None) -> list[str]:
        """Datasets with both modalities, in order; requested datasets must be among them."""
        ours, theirs = ({s.dataset for s in self.sources if s.modality == kind} for kind in ("vision", "language"))
        return _choose("dataset", wanted, sorted(ours & theirs))

    def models(self, modality: Modality, dataset: str, wanted: Iterable[str] | None = None) -> list[Source]:
        """Files of one modality and dataset by model; requested models must be among them."""
        found = {s.model: s for s in self.sources if s.modality == modality and s.dataset == dataset}
        return [found[name] for name in _choose(f"{modality} model", wanted, list(found))]


def _choose(what: str, wanted: Iterable[str] | None, known: list[str]) -> list[str]:
    if wanted is None:
        return known
    for name in wanted:
        if name not in known:
            raise unknown_name(what, name, known)
    return list(wanted)


def read_catalogue(folder: str | Path) -> Catalogue:
    """All files ``vision__DATASET__MODEL`` and ``language__DATASET__MODEL`` (.npz, .safetensors) of a folder."""
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"embeddings={str(folder)!r}: no such folder")
    sources = []
    for path in sorted(root.iterdir()):
        parts = path.stem.split("__")
        if path.suffix in KINDS and len(parts) == 3 and parts[0] in ("vision", "language"):
            sources.append(Source(parts[0], parts[1], parts[2], str(path.absolute()), file_digest(path)))
    if not sources:
        raise ValueError(
            f"embeddings={str(folder)!r}: no file vision__DATASET__MODEL or language__DATASET__MODEL "
            f"({', '.join(KINDS)}) in it"
        )
    return Catalogue(tuple(sources))


@dataclass(frozen=True, eq=False)
class Images:
    """Unit embeddings of images with their classes; without labels each image is its own class."""

    values: FloatArray
    labels: NDArray[np.intp]
    class_names: tuple[str, ...]
    paired: bool
    parameters: float | None = None

    @cached_property
    def members(self) -> tuple[NDArray[np.intp], ...]:
        """The images of each class."""
        return tuple(np.flatnonzero(self.labels == c) for c in range(len(self.class_names)))


# A worker uses the same few files repeatedly; reading and scaling them takes longer than many runs.
@lru_cache(maxsize=_FILES_KEPT)
def images(source: Source, normalize: bool = True) -> Images:
    """Embeddings of images from a file, which must still have the digest of the plan."""
    arrays = _read_unchanged(source)
    values = _rows(source.path, arrays["embeddings"], normalize)
    parameters = float(arrays["parameters"]) if "parameters" in arrays else None
    if "labels" not in arrays:
        names = tuple(str(name) for name in arrays.get("names", np.arange(len(values))))
        return Images(values, np.arange(len(values)), names, True, parameters)
    names, numbers = _class_numbers(source.path, arrays)
    return Images(values, numbers, names, False, parameters)


def read_ahead(runs: Iterable[Trial]) -> None:
    """Read the images of the first runs, if they are few, so that forked workers already have them."""
    files = dict.fromkeys(run.files["vision"] for run in runs if "vision" in run.files)
    left = _BYTES_AHEAD
    for source in list(files)[:_FILES_KEPT]:
        with contextlib.suppress(OSError, ValueError):  # the runs will report it
            left -= Path(source.path).stat().st_size
            if left < 0:
                return
            images(source)


def _rows(path: str, stored: NDArray[Any], normalize: bool) -> FloatArray:
    """Finite rows in float64, converted a few at a time: copying all of them takes more memory and time."""
    wrong = ValueError(f"{path}: embeddings of shape {stored.shape}; expected finite numbers (images, d)")
    if stored.ndim != 2 or stored.dtype.kind not in "fiu":
        raise wrong
    values = np.empty(stored.shape)
    for first in range(0, len(stored), _ROWS_AT_A_TIME):
        some = stored[first : first + _ROWS_AT_A_TIME].astype(np.float64)
        if not np.isfinite(some).all():
            raise wrong
        values[first : first + len(some)] = unit_rows(some) if normalize else some
    return values


@lru_cache(maxsize=64)
def texts(source: Source) -> tuple[FloatArray, tuple[str, ...] | None]:
    """One embedding per class, the mean over its prompts, and the class names if the file has them."""
    arrays = _read_unchanged(source)
    values = np.asarray(arrays["embeddings"], dtype=np.float64)
    if values.ndim == 2 and "labels" in arrays:  # one row per prompt
        names, numbers = _class_numbers(source.path, arrays)
        return prompt_means([values[numbers == c] for c in range(len(names))]), names
    means = prompt_means(values if values.ndim == 3 else values[:, None])
    found = arrays.get("class_names", arrays.get("names"))
    return means, None if found is None else tuple(str(name) for name in found)


@lru_cache(maxsize=256)
def half_means(source: Source, seed: int | None, fraction: float) -> FloatArray:
    """Means over a random share of each class, drawn like in ``bm.class_means``; over all images without a seed."""
    data = images(source)
    rng = np.random.default_rng(seed)
    chosen = list(data.members)
    if seed is not None:
        counts = (max(1, math.floor(fraction * len(rows) + 1e-9)) for rows in chosen)
        chosen = [np.sort(rng.choice(rows, count, replace=False)) for rows, count in zip(chosen, counts, strict=True)]
    sizes = np.array([len(rows) for rows in chosen])
    # Multiplying by a sparse matrix of ones reads the chosen rows in place; copying them would take twice as long.
    ends = np.concatenate([[0], np.cumsum(sizes)])
    picked = csr_array((np.ones(ends[-1]), np.concatenate(chosen), ends), shape=(len(sizes), len(data.values)))
    return unit_rows(np.asarray(picked @ data.values) / sizes[:, None])


@lru_cache(maxsize=64)
def class_texts(vision: Source, language: Source) -> FloatArray:
    """Text embeddings in the order of the image classes; classes are matched by name if both files have names."""
    data = images(vision)
    values, names = texts(language)
    if names is not None and set(data.class_names) <= set(names):
        return values[[names.index(name) for name in data.class_names]]
    if len(values) != len(data.class_names):
        raise ValueError(f"{language.path}: {len(values)} classes, but {vision.path} has {len(data.class_names)}")
    return values


@lru_cache
def class_count(source: Source) -> int:
    """The number of classes in a file of images, without reading its embeddings."""
    arrays = read_arrays(source.path, ("labels", "class_names"))
    if "class_names" in arrays:
        return len(arrays["class_names"])
    return len(np.unique(arrays["labels"])) if "labels" in arrays else len(images(source).class_names)


def _read_unchanged(source: Source) -> Arrays:
    path = source.path
    if file_digest(path) != source.digest:
        raise ValueError(f"{path}: changed since the sweep was planned; run it again")
    arrays = read_arrays(path)
    if "embeddings" not in arrays:
        raise ValueError(f"{path}: no array 'embeddings' in it; it holds {', '.join(arrays) or 'nothing'}")
    return arrays


def _class_numbers(path: str, arrays: Arrays) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    labels, names = arrays["labels"], arrays.get("class_names")
    if names is not None and labels.dtype.kind in "iu":
        if labels.min() < 0 or labels.max() >= len(names):
            raise ValueError(f"{path}: labels from {labels.min()} to {labels.max()}, but {len(names)} class names")
        return tuple(str(name) for name in names), labels.astype(np.intp)
    found, numbers = np.unique(labels, return_inverse=True)
    return tuple(str(name) for name in found), numbers.astype(np.intp)


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
    written = {
        "vision__cifar10__efficientnet_lite2": (parts.reshape(len(labels), -1), {"labels": labels}),
        "language__cifar10__gte_small": (arrays["prompts"], {}),
        "language__cifar10__all_minilm_l6_v2": (arrays["target_paper"], {}),
    }
    for name, (embeddings, more) in written.items():
        if not (folder / f"{name}.npz").exists():
            write_arrays(folder / f"{name}.npz", {"embeddings": embeddings, "class_names": names, **more})
    return replace(read_catalogue(folder), about=ABOUT)
