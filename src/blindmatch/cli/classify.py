"""``classify``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import app
from blindmatch.cli.console import one_line_errors


@app.command(
    epilog=opt.examples(
        "blindmatch classify images.npz classes.npz",
        "blindmatch classify images.npz classes.csv --normalize --clusters 20 --output predicted.csv",
        "blindmatch classify images.npz classes.csv --assess --report report.html",
        "blindmatch classify images.parquet classes.csv --json",
    )
)
def classify(
    images: Annotated[
        Path,
        typer.Argument(
            metavar="IMAGES",
            help=f"Embeddings of images, or whatever is to be classified: {opt.FILES}. With labels in it, the answer "
            "is compared with them.",
            show_default=False,
        ),
    ],
    classes: Annotated[Path, typer.Argument(metavar="CLASSES", help="One embedding a class, of any other dimension.")],
    clusters: Annotated[
        int | None, typer.Option("--clusters", help="By default as many as there are classes.", show_default=False)
    ] = None,
    starts: Annotated[int, typer.Option("--starts", help="Starts of k-means.")] = 100,
    normalize: Annotated[
        bool, typer.Option("--normalize/--no-normalize", help="Scale embeddings to unit length, as the paper does.")
    ] = False,
    distortion: opt.Distortion = "gw",
    standardize: opt.Standardize = True,
    solver: opt.Solver = "auto",
    time_limit: opt.TimeLimit = None,
    seed: opt.Seed = 0,
    threads: opt.Threads = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the class of each image (.csv).")
    ] = None,
    report: opt.Report = None,
    assess: opt.Assess = False,
    json: opt.Json = False,
) -> None:
    """Classify without a label: cluster the images, match the clusters with the classes."""
    with one_line_errors():
        from blindmatch.cli.classifying import Answer, run_classify
        from blindmatch.matching.classifier import BlindClassifier

        model = BlindClassifier(
            clusters,
            n_init=starts,
            normalize=normalize,
            distortion=distortion,
            solver=solver,
            standardize=standardize,
            time_limit=time_limit,
            random_state=seed,
            threads=threads,
        )
        run_classify(images, classes, model, Answer(output, report, json, assess))
