"""What the ``embed`` commands do."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from blindmatch.cli.console import complain, echo_json, plain
from blindmatch.cli.outputs import check_outputs
from blindmatch.encoders import load_image_encoder, load_images, load_text_encoder, load_texts
from blindmatch.encoders.extract import Extracted, extract, manifest_path
from blindmatch.encoders.items import ImageSet, TextSet
from blindmatch.encoders.registry import Modality, find_model, identifier, list_models
from blindmatch.encoders.shards import write_arrays
from blindmatch.encoders.streaming import OnProgress
from blindmatch.encoders.texts import of_classes
from blindmatch.encoders.work import ImageWork, TextWork, Work

SMALL = {"vision": "offline:efficientnet-lite2", "language": "offline:all-MiniLM-L6-v2"}
LISTED = 5  # so many of the images that were left out are named; the manifest has all


@dataclass(frozen=True)
class Settings:
    """Options that the commands share."""

    device: str
    precision: str
    batch_size: int
    download: bool
    root: Path
    split: str | None
    json: bool

    @property
    def place(self) -> dict[str, Any]:
        """For the loaders of models."""
        return {"device": self.device, "precision": self.precision, "download": self.download}

    @property
    def data(self) -> dict[str, Any]:
        """For the readers of datasets."""
        return {"split": self.split, "root": self.root, "download": self.download}


def run_images(
    source: str,
    model: str,
    out: Path,
    class_means: bool,
    limit: int | None,
    classes: Path | None,
    strict: bool,
    settings: Settings,
) -> None:
    """Embed images into a file."""
    check_outputs({"--out": out})
    find_model(model, "vision")
    images = load_images(source, limit=limit, classes=classes, **settings.data)
    if class_means and images.class_names is None:
        raise ValueError(f"--class-means: {images.name} has no classes; expected a subfolder for each")
    with quiet_libraries():
        work = ImageWork(images, load_image_encoder(model, **settings.place), strict)
        found = _extracted(work, out, class_means, settings)
    _tell([(out, found)], settings)


def run_texts(
    source: str,
    model: str,
    out: Path,
    prompts: str | None,
    all_prompts: bool,
    column: str | None,
    wordnet: Path | None,
    settings: Settings,
) -> None:
    """Embed texts into a file."""
    check_outputs({"--out": out}, [Path(source)])
    find_model(model, "language")
    texts = load_texts(source, prompts=prompts, column=column, wordnet=wordnet, **settings.data)
    with quiet_libraries():
        work = TextWork(texts, load_text_encoder(model, **settings.place))
        found = _extracted(work, out, not all_prompts, settings)
    _tell([(out, found)], settings)


def run_classes(
    source: str,
    out: Path,
    vision: Sequence[str] | None,
    language: Sequence[str] | None,
    prompts: str | None,
    wordnet: Path | None,
    limit: int | None,
    classes: Path | None,
    strict: bool,
    settings: Settings,
) -> None:
    """Embed both sides with each model into a folder; with one model a side, also their means, for 'match'."""
    models = _chosen(vision, "vision"), _chosen(language, "language")
    images = load_images(source, limit=limit, classes=classes, wordnet=wordnet, **settings.data)
    if images.class_names is None:
        raise ValueError(f"{images.name}: no classes; expected a folder with a subfolder for each")
    names = _prompts_of(images, source, prompts, wordnet)
    out.mkdir(parents=True, exist_ok=True)
    found: list[tuple[Path, Extracted]] = []
    dataset = identifier(images.name)
    with quiet_libraries():
        for spec in models[0]:
            encoder = load_image_encoder(spec, **settings.place)
            path = out / f"vision__{dataset}__{_file_name(spec)}.npz"
            found.append((path, _extracted(ImageWork(images, encoder, strict), path, False, settings)))
        for spec in models[1]:
            path = out / f"language__{dataset}__{_file_name(spec)}.npz"
            work = TextWork(names, load_text_encoder(spec, **settings.place))
            found.append((path, _extracted(work, path, False, settings)))
    means = _write_means(out, found, len(models[0]))
    _tell(found, settings, means)


def _chosen(words: Sequence[str] | None, modality: Modality) -> list[str]:
    """The words for models, each known to be right before the first of them is loaded."""
    specs: list[str] = []
    for word in words or [SMALL[modality]]:
        if word == "paper":
            specs += [model.id for model in list_models() if model.paper and model.modality == modality]
        else:
            find_model(word, modality)
            specs.append(word)
    return specs


def _prompts_of(images: ImageSet, source: str, prompts: str | None, wordnet: Path | None) -> TextSet:
    assert images.class_names is not None
    own = source if source in ("cifar10", "cifar100", "cinic10", "imagenet100") else "cifar"
    return of_classes(images.name, images.class_names, prompts or own, definitions=images.definitions, wordnet=wordnet)


def _file_name(spec: str) -> str:
    name = spec.removeprefix("offline:")
    return "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in identifier(name))


def _write_means(out: Path, found: Sequence[tuple[Path, Extracted]], count: int) -> list[Path]:
    """Class means in files of their own, which 'match' takes: ``images.npz``, or ``images-MODEL.npz`` of several."""
    from blindmatch.encoders.extract import averaged

    paths = []
    for place, (path, result) in enumerate(found):
        side, alone = ("images", count == 1) if place < count else ("names", len(found) - count == 1)
        model = path.stem.rpartition("__")[2]
        paths.append(out / (f"{side}.npz" if alone else f"{side}-{model}.npz"))
        write_arrays(paths[-1], averaged(result).arrays)
    return paths


def _extracted(work: Work, out: Path, means: bool, settings: Settings) -> Extracted:
    with _bar(f"{work.items.name}, {work.encoder.model.name}") as progress:
        return extract(work, out, settings.batch_size, means, progress)


@contextmanager
def _bar(title: str) -> Iterator[OnProgress | None]:
    """A bar with the time that is left, on stderr; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(plain(title), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep the libraries' own bars and chatter off the terminal; what we have to say is said in `_tell`."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when the hub's package is imported, later
    loggers = [
        logging.getLogger(name) for name in ("blindmatch.encoders", "transformers", "sentence_transformers", "timm")
    ]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _tell(found: Sequence[tuple[Path, Extracted]], settings: Settings, means: Sequence[Path] = ()) -> None:
    for path, result in found:
        skipped = result.manifest["skipped"]
        for entry in skipped[:LISTED]:
            complain(f"left out {entry['name']}: {entry['reason']}")
        if len(skipped) > LISTED:
            complain(f"... and {len(skipped) - LISTED} more: {manifest_path(path)} lists them")
        ignored = result.manifest["ignored_files"]
        if ignored:
            complain(f"{len(ignored)} files have no suffix of an image and were not read, such as {ignored[0]}")
    if settings.json:
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
