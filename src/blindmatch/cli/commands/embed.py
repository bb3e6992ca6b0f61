"""``embed``: embeddings of images, texts, or classes and their names; a model in ONNX."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer

from blindmatch.cli.console import complain, echo_json, plain
from blindmatch.cli.options import Given, open_engine
from blindmatch.cli.outputs import check_outputs
from blindmatch.cli.progress import show_progress
from blindmatch.encoders import load_images, load_texts
from blindmatch.encoders.extract import Extracted, as_models, average_classes, extract, manifest_path
from blindmatch.encoders.item_sets import ImageSet, TextSet
from blindmatch.encoders.prompts import text_set_of_classes
from blindmatch.encoders.registry import MODALITIES, Modality, find_model, identifier, list_models
from blindmatch.encoders.shards import Place, Work
from blindmatch.errors import unknown_name
from blindmatch.io.files import write_arrays

CLASS_SETS = ("cifar10", "cifar100", "cinic10", "imagenet100")  # datasets that have prompts of their own
SMALL = {"vision": "offline:efficientnet-lite2", "language": "offline:all-MiniLM-L6-v2"}
LISTED = 5  # the number of skipped images that are named; the manifest has all


def images(given: Given) -> None:
    """Embed images."""
    check_outputs(given)
    models = as_models(_models(given.model, "vision"))
    read = load_images(given.source, limit=given.limit, classes=given.classes, **_data(given))
    if given.class_means and read.class_names is None:
        raise ValueError(f"--class-means: {read.name} has no classes; expected a subfolder for each")
    _embed(given, models, read, given.class_means)


def texts(given: Given) -> None:
    """Embed texts, or class names in prompts."""
    check_outputs(given, [Path(given.source)])
    models = as_models(_models(given.model, "language"))
    how = {"prompts": given.prompts, "column": given.column, "wordnet": given.wordnet}
    _embed(given, models, load_texts(given.source, **how, **_data(given)), not given.all_prompts)


def _embed(given: Given, models: list[Any], items: ImageSet | TextSet, means: bool) -> None:
    with _place(given, given.out.parent) as place:
        works = [place.work(model, items, vars(given).get("strict", False)) for model in models]
        found = _extract(works, given.out, means, given.batch_size)
    _show([(given.out, found)], given.json)


def classes(given: Given) -> None:
    """Embed classes of images and their names: both sides of a match at once."""
    models = _models(given.vision, "vision"), _models(given.language, "language")
    how = {"limit": given.limit, "classes": given.classes, "wordnet": given.wordnet}
    read, out = load_images(given.source, **how, **_data(given)), given.out
    if read.class_names is None:
        raise ValueError(f"{read.name}: no classes; expected a folder with a subfolder for each")
    prompts = given.prompts or (given.source if given.source in CLASS_SETS else "cifar")
    more: Any = {"definitions": read.definitions, "wordnet": given.wordnet}
    names, dataset = text_set_of_classes(read.name, read.class_names, prompts, **more), identifier(read.name)
    out.mkdir(parents=True, exist_ok=True)
    found = []
    with _place(given, out) as place:
        for side in (0, 1):
            for spec in models[side]:
                name = re.sub(r"[^\w.-]", "-", identifier(spec.removeprefix("offline:")))
                path = out / f"{MODALITIES[side]}__{dataset}__{name}.npz"
                work = place.work(spec, names) if side else place.work(spec, read, given.strict)
                found.append((path, _extract([work], path, False, given.batch_size)))
    _show(found, given.json, _write_means(out, found, len(models[0])))


def export(given: Given) -> None:
    """Write a model as ONNX."""
    from blindmatch.encoders.onnx_export import export_encoder

    kind = next((known for known in MODALITIES if known == given.modality), None)
    if given.modality is not None and kind is None:
        raise unknown_name("--modality", given.modality, MODALITIES)
    with _quiet_libraries():
        folder, difference = export_encoder(given.model, given.out, modality=kind, download=given.download)
    if given.json:
        echo_json({"folder": str(folder), "difference_to_torch": difference})
    else:
        typer.echo(f"{plain(str(folder))}: differs from torch by at most {difference:.1g} (embeddings of length 1)")


def _data(given: Given) -> dict[str, Any]:
    return {"split": given.split, "root": given.root, "download": given.download}


@contextmanager
def _place(given: Given, folder: Path) -> Iterator[Place]:
    """Open the engine that was asked for. A job of Slurm loads the model anew: it gets several shards."""
    options = {"device": given.device, "precision": given.precision, "download": given.download}
    with _quiet_libraries(), open_engine(given, folder) as (made, executor):
        yield Place(options, executor, made.workers if made is not None and given.engine == "slurm" else None)


def _models(words: Sequence[str] | None, modality: Modality) -> list[str]:
    """The models that were asked for, each checked before the first is loaded."""
    specs: list[str] = []
    for word in words or [SMALL[modality]]:
        if word == "paper":
            specs += [model.id for model in list_models() if model.paper and model.modality == modality]
        else:
            find_model(word, modality)
            specs.append(word)
    return specs


def _write_means(out: Path, found: Sequence[tuple[Path, Extracted]], count: int) -> list[Path]:
    """Write class means, ready for 'match': ``images.npz``, or ``images-MODEL.npz`` if there are several models."""
    paths = []
    for place, (path, result) in enumerate(found):
        side, alone = ("images", count == 1) if place < count else ("names", len(found) - count == 1)
        model = path.stem.rpartition("__")[2]
        paths.append(out / (f"{side}.npz" if alone else f"{side}-{model}.npz"))
        write_arrays(paths[-1], average_classes(result).arrays)
    return paths


def _extract(works: Sequence[Work], out: Path, means: bool, batch_size: int) -> Extracted:
    title = plain(f"{works[0].items.name}, {' + '.join(work.encoder.model.name for work in works)}")
    with show_progress(title) as line:
        return extract(works, out, batch_size, means, None if line is None else partial(line.step, title))


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Keep the libraries' own bars and messages off the terminal; `_show` says what matters."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when the hub's package is imported, later
    names = ("blindmatch.encoders", "transformers", "sentence_transformers", "timm", "torch.onnx")
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    try:
        for logger in levels:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def _show(found: Sequence[tuple[Path, Extracted]], json: bool, means: Sequence[Path] = ()) -> None:
    """Say what was written, and which images were left out."""
    for path, result in found:
        skipped = result.manifest["skipped"]
        for entry in skipped[:LISTED]:
            complain(f"left out {entry['name']}: {entry['reason']}")
        if len(skipped) > LISTED:
            complain(f"... and {len(skipped) - LISTED} more: {manifest_path(path)} lists them")
        ignored = result.manifest["ignored_files"]
        if ignored:
            complain(f"{len(ignored)} files have no suffix of an image and were not read, such as {ignored[0]}")
    if json:
        rows = [{"file": str(path), "manifest": str(manifest_path(path)), **result.manifest} for path, result in found]
        echo_json({"files": rows, "means": [str(path) for path in means]})
        return
    for path, result in found:
        shape = result.arrays["embeddings"].shape
        typer.echo(f"{path}: {shape[0]} x {shape[1]}, {plain(result.manifest['model']['name'])}")
    if len(means) == 2:
        typer.echo(f"{means[0]}, {means[1]}: the means of the classes\nNext: blindmatch match {means[0]} {means[1]}")
    elif means:
        typer.echo(f"means of the classes: {', '.join(path.name for path in means)}")
