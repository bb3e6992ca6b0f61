"""``embed images``, ``embed texts``, ``embed classes``: embeddings from images and texts; ``embed export``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from blindmatch.cli.app import group
from blindmatch.cli.engines import EngineOptions

embed = group(
    "embed",
    "Make embeddings of images and texts, ready for 'match'.",
    "blindmatch embed images photos -m offline:efficientnet-lite0 --class-means -o images.npz",
    "blindmatch embed texts names.txt -m offline:all-MiniLM-L6-v2 -o texts.npz",
    "blindmatch embed texts names.txt -m offline:all-MiniLM-L6-v2 -m offline:all-mpnet-base-v2 -o both.npz",
)


@dataclass(frozen=True)
class ModelOptions:
    """The models, and the file of their embeddings."""

    model: list[str]
    out: Path


@dataclass(frozen=True)
class ImageOptions:
    """A choice among the images of a set."""

    limit: int | None = None
    classes: Path | None = None
    strict: bool = False


@dataclass(frozen=True)
class TextOptions:
    """Options that turn names into texts."""

    prompts: str | None = None
    wordnet: Path | None = None


@dataclass(frozen=True)
class EncodingOptions:
    """The source of the data, and the device of the models."""

    split: str | None = None
    root: Path = Path("data")
    download: bool = False
    device: str = "auto"
    precision: str = "auto"
    batch_size: int = 32
    json: bool = False

    @property
    def place(self) -> dict[str, Any]:
        """For the loaders of models."""
        return {"device": self.device, "precision": self.precision, "download": self.download}

    @property
    def data(self) -> dict[str, Any]:
        """For the readers of datasets."""
        return {"split": self.split, "root": self.root, "download": self.download}


@embed.command(
    "blindmatch embed images photos -m offline:efficientnet-lite0 -o images.npz --class-means",
    "blindmatch embed images cifar10 -m dinov2-vit-b14 -o images.safetensors --download",
    "blindmatch embed images photos -m clip-rn50 -o x.npz --engine dask --address tcp://host:8786 --job GPU=1",
)
def images(
    source: str,
    encoder: ModelOptions,
    which: ImageOptions,
    encoding: EncodingOptions,
    engine: EngineOptions,
    class_means: bool = False,
) -> None:
    """Embed images. A run that was killed resumes where it stopped."""
    from blindmatch.cli.encoding import extract_with_progress, place_of, quiet_libraries, show
    from blindmatch.cli.outputs import check_outputs
    from blindmatch.encoders import load_images
    from blindmatch.encoders.extract import as_models
    from blindmatch.encoders.registry import find_model

    check_outputs({"--out": encoder.out})
    models = as_models(encoder.model)
    for model in models:
        find_model(model, "vision")
    read = load_images(source, limit=which.limit, classes=which.classes, **encoding.data)
    if class_means and read.class_names is None:
        raise ValueError(f"--class-means: {read.name} has no classes; expected a subfolder for each")
    with quiet_libraries(), place_of(encoding.place, engine, encoder.out.parent) as place:
        works = [place.work(model, read, which.strict) for model in models]
        found = extract_with_progress(works, encoder.out, class_means, encoding.batch_size)
    show([(encoder.out, found)], encoding.json)


@embed.command(
    "blindmatch embed texts names.txt -m offline:all-MiniLM-L6-v2 -o texts.npz --prompts cifar10",
    "blindmatch embed texts captions.csv --column caption -m all-mpnet-base-v2 -o texts.safetensors --download",
)
def texts(
    source: str,
    encoder: ModelOptions,
    words: TextOptions,
    encoding: EncodingOptions,
    engine: EngineOptions,
    all_prompts: bool = False,
    column: str | None = None,
) -> None:
    """Embed texts, or class names in prompts. A run that was killed resumes where it stopped."""
    from blindmatch.cli.encoding import extract_with_progress, place_of, quiet_libraries, show
    from blindmatch.cli.outputs import check_outputs
    from blindmatch.encoders import load_texts
    from blindmatch.encoders.extract import as_models
    from blindmatch.encoders.registry import find_model

    check_outputs({"--out": encoder.out}, [Path(source)])
    models = as_models(encoder.model)
    for model in models:
        find_model(model, "language")
    read = load_texts(source, prompts=words.prompts, column=column, wordnet=words.wordnet, **encoding.data)
    with quiet_libraries(), place_of(encoding.place, engine, encoder.out.parent) as place:
        works = [place.work(model, read) for model in models]
        found = extract_with_progress(works, encoder.out, not all_prompts, encoding.batch_size)
    show([(encoder.out, found)], encoding.json)


@embed.command(
    "blindmatch embed classes photos -o pair",
    "blindmatch embed classes cifar10 --vision paper --language paper -o study --download",
)
def classes(
    source: str,
    out: Path,
    words: TextOptions,
    which: ImageOptions,
    encoding: EncodingOptions,
    engine: EngineOptions,
    vision: list[str] | None = None,
    language: list[str] | None = None,
) -> None:
    """Embed classes of images and their names with one or more models: both sides of a match at once."""
    from blindmatch.cli.encoding import (
        chosen,
        class_prompts,
        extract_with_progress,
        place_of,
        quiet_libraries,
        show,
        works,
        write_means,
    )
    from blindmatch.encoders import load_images

    models = chosen(vision, "vision"), chosen(language, "language")
    read = load_images(source, limit=which.limit, classes=which.classes, wordnet=words.wordnet, **encoding.data)
    if read.class_names is None:
        raise ValueError(f"{read.name}: no classes; expected a folder with a subfolder for each")
    names = class_prompts(read, source, words.prompts, words.wordnet)
    out.mkdir(parents=True, exist_ok=True)
    with quiet_libraries(), place_of(encoding.place, engine, out) as place:
        found = [
            (out / name, extract_with_progress([work], out / name, False, encoding.batch_size))
            for name, work in works(read, names, models, which.strict, place)
        ]
    show(found, encoding.json, write_means(out, found, len(models[0])))


@embed.command(
    "blindmatch embed export offline:efficientnet-lite2",
    "blindmatch embed export st:thenlper/gte-small -o gte-small --download",
)
def export(
    model: str, out: Path | None = None, modality: str | None = None, download: bool = False, json: bool = False
) -> None:
    r"""Write a model as ONNX, to run it where torch is not installed.

    Here it needs torch: pip install 'blindmatch\[onnx-export]'.
    There, pip install 'blindmatch\[onnx]' is enough.

    Give the folder as the model: -m FOLDER. Or put it, under the model's name,
    into the folder that $BLINDMATCH_ONNX names (default: blindmatch/onnx in the
    user's cache folder): where torch is missing, the name alone finds it.
    """
    from blindmatch.cli.console import echo_json, plain
    from blindmatch.cli.encoding import quiet_libraries
    from blindmatch.encoders.onnx_export import export_encoder
    from blindmatch.encoders.registry import MODALITIES
    from blindmatch.errors import unknown_name

    kind = next((known for known in MODALITIES if known == modality), None)
    if modality is not None and kind is None:
        raise unknown_name("--modality", modality, MODALITIES)
    with quiet_libraries():
        folder, difference = export_encoder(model, out, modality=kind, download=download)
    if json:
        echo_json({"folder": str(folder), "difference_to_torch": difference})
    else:
        typer.echo(f"{plain(str(folder))}: differs from torch by at most {difference:.1g} (embeddings of length 1)")
