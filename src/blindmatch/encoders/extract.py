"""``embed_images`` and ``embed_texts``: a set and a model in, embeddings and a manifest out."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from blindmatch.encoders.datasets import load_images, load_texts
from blindmatch.encoders.item_sets import ImageSet, TextSet
from blindmatch.encoders.registry import Encoder, OnProgress
from blindmatch.encoders.shards import Place, ShardStore, Work, compute_shards
from blindmatch.geometry.prototypes import class_means
from blindmatch.io.embeddings import Embeddings, views_in
from blindmatch.io.files import Arrays, file_digest, read_arrays, write_arrays, write_text

SUFFIXES = (".npz", ".safetensors")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Extracted:
    """Embeddings with their manifest; `arrays` is the content of their file."""

    arrays: Arrays
    manifest: dict[str, Any]

    @property
    def embeddings(self) -> Embeddings:
        """The form that the rest of the package uses: one row per item, class or image."""
        values = np.asarray(self.arrays["embeddings"], dtype=np.float64)
        parts = views_in(Path("embeddings"), values, self.arrays)
        return Embeddings(values, tuple(self.arrays["names"].tolist()), self.arrays.get("labels"), parts=parts)


def embed_images(
    images: str | Path | ImageSet,
    model: str | Encoder | Sequence[str | Encoder],
    out: str | Path | None = None,
    *,
    means: bool = False,
    batch_size: int = 32,
    strict: bool = False,
    progress: OnProgress | None = None,
    **options: Any,
) -> Embeddings:
    """Embed images with a vision model.

    Parameters
    ----------
    images
        A folder ``class/*.jpg``, the name of a dataset (see `load_images`), or an `ImageSet`.
    model
        A name (see `find_model`), or a loaded encoder; or several, whose embeddings are views of the same items:
        ``bm.match`` takes what is returned, or the file.
    out
        An ``.npz`` or ``.safetensors`` file; a manifest is written next to it (``.json``). Finished parts are kept in a
        folder next to it until the end, so a killed run resumes from there. Without a file nothing is kept.
    means
        One row per class, the normalised mean of its normalised images (the paper's Eq. 1), instead of one per image.
    batch_size
        Number of images at a time; halved if memory runs out.
    strict
        Raise an error at the first image that cannot be read. By default such an image is skipped, with a warning and a
        line in the manifest.
    progress
        Called with (done, total).
    options
        `device` and `precision` (see `as_device`); `download` allows downloads of weights and data; `executor`: workers
        that load the model and embed, any ``concurrent.futures`` executor or a Dask client. For `load_images`: `split`,
        `root`, `limit`, `classes`.

    Examples
    --------
    >>> import tempfile; from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for colour in ("red", "blue"):
    ...         Path(folder, colour).mkdir(); Image.new("RGB", (64, 48), colour).save(Path(folder, colour, "1.png"))
    ...     found = embed_images(folder, "pixels", means=True)
    >>> found.names, found.values.shape
    (('blue', 'red'), (2, 3072))
    """
    place, rest = _place(options)
    chosen = images if isinstance(images, ImageSet) else load_images(images, **rest)
    if means and chosen.class_names is None:
        raise ValueError(f"{chosen.name}: means need classes; expected a folder with a subfolder for each")
    works = [place.work(one, chosen, strict) for one in as_models(model)]
    return extract(works, out, batch_size, means, progress).embeddings


def embed_texts(
    texts: str | Path | Sequence[str] | TextSet,
    model: str | Encoder | Sequence[str | Encoder],
    out: str | Path | None = None,
    *,
    means: bool = True,
    batch_size: int = 32,
    progress: OnProgress | None = None,
    **options: Any,
) -> Embeddings:
    """Embed texts with a language model.

    Parameters
    ----------
    texts
        A list, a file, the name of a dataset (see `load_texts`), or a `TextSet`.
    model, out, batch_size, progress
        As in `embed_images`.
    means
        If several texts belong to one item (prompts to a class, captions to an image): one row per item, their
        normalised mean. False: one row per text.
    options
        As in `embed_images`, and for `load_texts`: `prompts`, `column`, `split`, `root`, `wordnet`.
    """
    place, rest = _place(options)
    chosen = texts if isinstance(texts, TextSet) else load_texts(texts, **rest)
    works = [place.work(one, chosen) for one in as_models(model)]
    return extract(works, out, batch_size, means, progress).embeddings


def _place(options: dict[str, Any]) -> tuple[Place, dict[str, Any]]:
    where = {"device": "auto", "precision": "auto", "download": False}
    where |= {name: options[name] for name in where if name in options}
    rest = {name: value for name, value in options.items() if name not in ("device", "precision", "executor")}
    return Place(where, options.get("executor")), rest


def as_models(given: Any) -> list[Any]:
    """One model, or several different ones, as a list."""
    models = list(given) if isinstance(given, list | tuple) else [given]
    if not models or len(set(map(str, models))) < len(models):
        raise ValueError(f"model={given!r}; expected one model, or several different ones")
    return models


def extract(
    works: Sequence[Work], out: str | Path | None, batch_size: int, means: bool, progress: OnProgress | None
) -> Extracted:
    """Run works on the same items in shards, here or on workers, and write their results; of several, as views.

    Finished shards, and a finished file of the same plan, are only read.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"batch_size={batch_size!r}; expected at least 1")
    out = None if out is None else Path(out)
    if out is not None and (out.suffix not in SUFFIXES or not out.parent.is_dir() or out.is_dir()):
        raise ValueError(f"out={str(out)!r}; expected a file {' or '.join(SUFFIXES)} in a folder that exists")
    items = [works[0].items.name, len(works[0].items), works[0].items.fingerprint()]
    # Everything that decides the result.
    plans = [{"model": work.encoder.description, "set": items, "batch_size": batch_size} for work in works]
    digests = [_digest(json.dumps([plan, means], sort_keys=True)) for plan in plans]
    digest = digests[0] if len(works) == 1 else _digest(json.dumps(digests))
    finished = None if out is None else _read_finished(out, digest)
    if finished is not None:
        return finished
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(scratch) / "x.npz" if out is None else out
        if len(works) == 1:
            store = ShardStore(kept.with_name(f"{kept.name}.parts"), plans[0])
            found = _assemble(works[0], store, batch_size, progress)
            if means and "labels" in found.arrays:
                found = average_classes(found)
            done_with = [store.folder]
        else:  # each keeps its own file until the end, so a killed run resumes
            views = [kept.with_name(f"{kept.stem}.view{at}{kept.suffix}") for at in range(len(works))]
            each = zip(works, views, strict=True)
            found = _side_by_side(works, [extract([work], view, batch_size, means, progress) for work, view in each])
            done_with = [*views, *map(manifest_path, views)]
        if out is not None:
            write_arrays(out, found.arrays)
            text = json.dumps(found.manifest | {"plan_sha256": digest, "sha256": file_digest(out)}, indent=1) + "\n"
            write_text(manifest_path(out), text)
            for path in done_with:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _side_by_side(works: Sequence[Work], found: Sequence[Extracted]) -> Extracted:
    """The embeddings of several models in one array, with what each is called and how many columns it has."""
    blocks = [one.arrays["embeddings"] for one in found]
    names = [work.encoder.model.name for work in works]
    labels = [name if names.count(name) == 1 else f"{name} ({at + 1})" for at, name in enumerate(names)]
    arrays = {name: array for name, array in found[0].arrays.items() if name != "parameters"}
    arrays |= {"embeddings": np.hstack(blocks), "views": np.array(labels)}
    arrays["widths"] = np.array([block.shape[1] for block in blocks], dtype=np.int64)
    manifest = found[0].manifest | {"model": {"name": " + ".join(labels)}, "views": [one.manifest for one in found]}
    return Extracted(arrays, manifest)


def _read_finished(out: Path, digest: str) -> Extracted | None:
    path = manifest_path(out)
    if not out.exists() or not path.exists():
        return None
    try:
        manifest = json.loads(path.read_text("utf-8"))
        if manifest["plan_sha256"] != digest or manifest["sha256"] != file_digest(out):
            return None
    except (ValueError, KeyError, TypeError):
        return None
    return Extracted(read_arrays(out), manifest)


def manifest_path(out: Path) -> Path:
    """The path of the manifest of a file of embeddings."""
    return out.with_name(f"{out.name}.json")


def _assemble(work: Work, store: ShardStore, batch_size: int, progress: OnProgress | None) -> Extracted:
    shards, names = compute_shards(work, store, batch_size, progress), work.items.names
    filled = [shard for shard in shards if len(shard.rows)]
    skipped = [{"name": names[row], "reason": reason} for shard in shards for row, reason in shard.skipped]
    for entry in skipped:
        logger.warning("%s left out: %s", entry["name"], entry["reason"])
    if not filled:
        first = f", such as {skipped[0]['name']}: {skipped[0]['reason']}" if skipped else ""
        raise ValueError(f"{work.items.name}: none of {len(work.items)} images can be read{first}")
    values = np.concatenate([shard.embeddings for shard in filled])
    rows = np.concatenate([shard.rows for shard in filled])
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        name = names[int(rows[np.argmin(finite)])]
        raise ValueError(f"{name}: the model returns numbers that are not finite; try precision='float32'")
    arrays: Arrays = {"embeddings": values, "names": np.array(names, dtype=str)[rows]}
    labels, classes = work.items.labels, work.items.class_names
    if labels is not None and classes is not None:
        arrays["labels"] = np.array(labels, dtype=np.int64)[rows]
        arrays["class_names"] = np.array(classes, dtype=str)
        lost = sorted({*range(len(classes))} - {*arrays["labels"].tolist()})
        if lost:
            raise ValueError(f"{work.items.name}: no readable image is left of class {classes[lost[0]]!r}")
    if isinstance(work.items, TextSet) and work.items.templates is not None:
        arrays["templates"] = np.array(work.items.templates, dtype=str)
    if work.encoder.model.parameters is not None:
        arrays["parameters"] = np.array(work.encoder.model.parameters, dtype=np.int64)
    digests = "\n".join(digest for shard in filled for digest in shard.digests)
    manifest = {
        "made_by": f"blindmatch {version('blindmatch')}",
        "model": work.encoder.description,
        "dataset": {
            "name": work.items.name,
            **work.items.about,
            "items": len(rows),
            "content_sha256": _digest(digests),
        },
        "batch_size": batch_size,
        "embeddings": {"shape": list(values.shape), "dtype": "float32", "rows": "items"},
        "skipped": skipped,
        "ignored_files": list(getattr(work.items, "ignored", ())),
    }
    return Extracted(arrays, manifest)


def average_classes(found: Extracted) -> Extracted:
    """One row per class or item, in the order of the class names (Eq. 1 of the paper)."""
    values, labels, names = (found.arrays[key] for key in ("embeddings", "labels", "class_names"))
    means = class_means(values, labels, classes=range(len(names)))[1]
    arrays = {"embeddings": means.astype(np.float32), "names": names}
    arrays |= {key: found.arrays[key] for key in ("parameters", "templates") if key in found.arrays}
    about = {"shape": list(means.shape), "dtype": "float32", "rows": "normalised means of normalised items"}
    return Extracted(arrays, found.manifest | {"embeddings": about})
