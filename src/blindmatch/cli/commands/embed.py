"""``embed images``, ``embed texts``, ``embed classes``: embeddings from images and texts; ``embed export``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from blindmatch.cli import completion
from blindmatch.cli import options as opt
from blindmatch.cli.app import group
from blindmatch.cli.engines import ShardEngineOptions

embed = group(
    "embed",
    "Make embeddings of images and texts, ready for 'match'.",
    "blindmatch embed images photos -m offline:efficientnet-lite0 --class-means -o images.npz",
    "blindmatch embed texts names.txt -m offline:all-MiniLM-L6-v2 -o texts.npz",
    "blindmatch embed texts names.txt -m offline:all-MiniLM-L6-v2 -m offline:all-mpnet-base-v2 -o both.npz",
)


@dataclass(frozen=True)
class ModelOptions:
    """Which model, and where its embeddings go."""

    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            autocompletion=completion.models,
            help="From 'blindmatch models'; or timm:NAME, st:NAME, openclip:NAME, hf:NAME, random:NAME?seed=0, a "
            "folder. Repeat it for several models: the file then has views, which 'match' uses together.",
        ),
    ]
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write: .safetensors or .npz.")]


@dataclass(frozen=True)
class ImageOptions:
    """Which images of a set."""

    limit: Annotated[int | None, typer.Option(help="The largest number of images of each class.")] = None
    classes: Annotated[Path | None, typer.Option(metavar="FILE", help="Only these classes, one per line.")] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail at an image that cannot be read; the default is to list it.")
    ] = False


@dataclass(frozen=True)
class TextOptions:
    """How names become texts."""

    prompts: Annotated[
        str | None, typer.Option(help="Templates: cifar, imagenet, imagenet7, name, definition, a dataset, or a file.")
    ] = None
    wordnet: Annotated[
        Path | None, typer.Option("--wordnet", metavar="FOLDER", help="WordNet 3.0, for definitions.")
    ] = None


@dataclass(frozen=True)
class EncodingOptions:
    """Where data come from and where models run."""

    split: Annotated[str | None, typer.Option(help="Of a dataset: test, train, val. Default: as in the paper.")] = None
    root: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder of the datasets.")] = Path("data")
    download: Annotated[bool, typer.Option("--download", help="Download missing weights and data.")] = False
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto"
    precision: Annotated[str, typer.Option(help="auto, float32, bfloat16, float16.")] = "auto"
    batch_size: Annotated[int, typer.Option(help="Halved if memory runs out.")] = 32
    json: opt.Json = False

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
    source: Annotated[
        str,
        typer.Argument(
            metavar="IMAGES", help="A folder class/*.jpg; cifar10, cifar100, cinic10, imagenet100, coco; hf:NAME."
        ),
    ],
    encoder: ModelOptions,
    which: ImageOptions,
    encoding: EncodingOptions,
    engine: ShardEngineOptions,
    class_means: Annotated[bool, typer.Option("--class-means", help="One row per class.")] = False,
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
    source: Annotated[
        str,
        typer.Argument(metavar="TEXTS", help=".txt, .csv, .tsv, .parquet; a folder of classes; a dataset; hf:NAME."),
    ],
    encoder: ModelOptions,
    words: TextOptions,
    encoding: EncodingOptions,
    engine: ShardEngineOptions,
    all_prompts: Annotated[bool, typer.Option("--all-prompts", help="One row per prompt, no mean.")] = False,
    column: Annotated[str | None, typer.Option(help="Of a table, the column with the texts.")] = None,
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
    source: Annotated[str, typer.Argument(metavar="IMAGES", help="A folder class/*.jpg, or a dataset with classes.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder to write to.")],
    words: TextOptions,
    which: ImageOptions,
    encoding: EncodingOptions,
    engine: ShardEngineOptions,
    vision: Annotated[
        list[str] | None,
        typer.Option(help="Vision models, repeatable; 'paper' for all 32. Default: a small offline one."),
    ] = None,
    language: Annotated[
        list[str] | None,
        typer.Option(help="Language models, repeatable; 'paper' for all 27. Default: a small offline one."),
    ] = None,
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
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            autocompletion=completion.models,
            help="A vision model of timm or EfficientNet-Lite, or a language model of sentence-transformers.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="The folder to write. Default: the model's name in $BLINDMATCH_ONNX."
        ),
    ] = None,
    modality: Annotated[str | None, typer.Option(help="vision or language, where the name may mean both.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Download missing weights.")] = False,
    json: opt.Json = False,
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
