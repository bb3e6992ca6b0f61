"""``embed images``, ``embed texts``, ``embed classes``: their options. The work is imported when a command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import completion
from blindmatch.cli import options as opt
from blindmatch.cli.app import Application, app
from blindmatch.cli.console import one_line_errors

embed = Application(
    help="Make embeddings of images and texts, ready for 'match'.",
    epilog=opt.examples(
        "blindmatch embed images photos -m offline:efficientnet-lite0 --class-means -o images.npz",
        "blindmatch embed texts names.txt -m offline:all-MiniLM-L6-v2 -o texts.npz",
    ),
)
app.add_typer(embed, name="embed")

Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        autocompletion=completion.models,
        help="From 'blindmatch models'; or timm:NAME, st:NAME, openclip:NAME, hf:NAME, random:NAME?seed=0, a folder.",
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to: .safetensors or .npz.")]
Split = Annotated[str | None, typer.Option(help="Of a dataset: test, train, val. Default: as in the paper.")]
Root = Annotated[Path, typer.Option(metavar="FOLDER", help="Where datasets are.")]
Download = Annotated[bool, typer.Option("--download", help="Fetch weights and data that are not here yet.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
Precision = Annotated[str, typer.Option(help="auto, float32, bfloat16, float16.")]
BatchSize = Annotated[int, typer.Option(help="Halved where memory runs out.")]
Limit = Annotated[int | None, typer.Option(help="At most so many images of each class.")]
Classes = Annotated[Path | None, typer.Option(metavar="FILE", help="Only these classes, one on each line.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail at an image that cannot be read; default: list it.")]
Prompts = Annotated[
    str | None, typer.Option(help="Templates: cifar, imagenet, imagenet7, name, definition, a dataset, or a file.")
]
WordNet = Annotated[Path | None, typer.Option("--wordnet", metavar="FOLDER", help="WordNet 3.0, for definitions.")]


@embed.command(
    epilog=opt.examples(
        "blindmatch embed images photos -m offline:efficientnet-lite0 -o images.npz --class-means",
        "blindmatch embed images cifar10 -m dinov2-vit-b14 -o images.safetensors --download",
    )
)
def images(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IMAGES", help="A folder class/*.jpg; cifar10, cifar100, cinic10, imagenet100, coco; hf:NAME."
        ),
    ],
    model: Model,
    out: Out,
    class_means: Annotated[bool, typer.Option("--class-means", help="One row for each class.")] = False,
    split: Split = None,
    root: Root = Path("data"),
    limit: Limit = None,
    classes: Classes = None,
    download: Download = False,
    strict: Strict = False,
    device: Device = "auto",
    precision: Precision = "auto",
    batch_size: BatchSize = 32,
    json: opt.Json = False,
) -> None:
    """Embed images. A killed run goes on where it was."""
    with one_line_errors():
        from blindmatch.cli.embedding import Settings, run_images

        settings = Settings(device, precision, batch_size, download, root, split, json)
        run_images(source, model, out, class_means, limit, classes, strict, settings)


@embed.command(
    epilog=opt.examples(
        "blindmatch embed texts names.txt -m offline:all-MiniLM-L6-v2 -o texts.npz --prompts cifar10",
        "blindmatch embed texts captions.csv --column caption -m all-mpnet-base-v2 -o texts.safetensors --download",
    )
)
def texts(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TEXTS", help=".txt, .csv, .tsv, .parquet; a folder of classes; a dataset's name; hf:NAME."
        ),
    ],
    model: Model,
    out: Out,
    prompts: Prompts = None,
    all_prompts: Annotated[bool, typer.Option("--all-prompts", help="A row for each prompt, no mean.")] = False,
    column: Annotated[str | None, typer.Option(help="Of a table, the column with the texts.")] = None,
    wordnet: WordNet = None,
    split: Split = None,
    root: Root = Path("data"),
    download: Download = False,
    device: Device = "auto",
    precision: Precision = "auto",
    batch_size: BatchSize = 32,
    json: opt.Json = False,
) -> None:
    """Embed texts, or names of classes in prompts. A killed run goes on where it was."""
    with one_line_errors():
        from blindmatch.cli.embedding import Settings, run_texts

        settings = Settings(device, precision, batch_size, download, root, split, json)
        run_texts(source, model, out, prompts, all_prompts, column, wordnet, settings)


@embed.command(
    epilog=opt.examples(
        "blindmatch embed classes photos -o pair",
        "blindmatch embed classes cifar10 --vision paper --language paper -o study --download",
    )
)
def classes(
    source: Annotated[str, typer.Argument(metavar="IMAGES", help="A folder class/*.jpg, or a dataset with classes.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where to.")],
    vision: Annotated[
        list[str] | None,
        typer.Option(help="Vision models, repeatable; 'paper' for all 32. Default: a small offline one."),
    ] = None,
    language: Annotated[
        list[str] | None,
        typer.Option(help="Language models, repeatable; 'paper' for all 27. Default: a small offline one."),
    ] = None,
    prompts: Prompts = None,
    wordnet: WordNet = None,
    split: Split = None,
    root: Root = Path("data"),
    limit: Limit = None,
    classes: Classes = None,
    download: Download = False,
    strict: Strict = False,
    device: Device = "auto",
    precision: Precision = "auto",
    batch_size: BatchSize = 32,
    json: opt.Json = False,
) -> None:
    """Embed classes of images and their names with each of some models: both sides of a match at once."""
    with one_line_errors():
        from blindmatch.cli.embedding import Settings, run_classes

        settings = Settings(device, precision, batch_size, download, root, split, json)
        run_classes(source, out, vision, language, prompts, wordnet, limit, classes, strict, settings)
