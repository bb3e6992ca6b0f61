"""``report``: a saved result as a page to look at. The work is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import app
from blindmatch.cli.console import one_line_errors


@app.command(
    epilog=opt.examples(
        "blindmatch match a.npy b.npy --json > match.json",
        "blindmatch report match.json a.npy b.npy --out report.html",
        "blindmatch report match.json a.npy b.npy --distortion cka --certificate proof.npz",
        "blindmatch report match.json a.npy b.npy --source-images photos/ --truth rows",
        "blindmatch report solved.json nug12.dat",
    )
)
def report(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What --json printed, in a file.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE TARGET",
            help="The embeddings as they were given to 'match', with the same --distortion, --no-standardize and "
            "options for pairs; or the problem (.dat, .npz) that 'solve' had.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the report goes.")] = Path(
        "report.html"
    ),
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", "-c", metavar="FILE", help="The proof: it is checked again, and its hash told."),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="What was matched; by default the files.")] = None,
    distortion: opt.Distortion = "gw",
    standardize: opt.Standardize = True,
    known: opt.Known = None,
    known_pairs: opt.KnownPairs = None,
    forbid: opt.Forbid = None,
    forbidden_pairs: opt.ForbiddenPairs = None,
    similarity: opt.Similarity = None,
    similarity_weight: opt.SimilarityWeight = 1.0,
    unmatched_cost: opt.UnmatchedCost = None,
    max_unmatched: opt.MaxUnmatched = None,
    json: opt.Json = False,
    truth: opt.Truth = None,
    source_names: opt.SourceNames = None,
    target_names: opt.TargetNames = None,
    source_images: opt.SourceImages = None,
    target_images: opt.TargetImages = None,
) -> None:
    """Make the report of a result that was saved as JSON."""
    with one_line_errors():
        from blindmatch.cli.inputs import EmbeddingFiles, ProblemFile
        from blindmatch.cli.items import ItemOptions
        from blindmatch.cli.pairs import PairOptions
        from blindmatch.cli.saved import run_report

        pairs = PairOptions(
            tuple(known or ()),
            known_pairs,
            tuple(forbid or ()),
            forbidden_pairs,
            similarity,
            similarity_weight,
            unmatched_cost,
            max_unmatched,
        )
        items = ItemOptions(truth, source_names, target_names, source_images, target_images)
        if len(files) == 1 and items != ItemOptions():
            raise ValueError("--truth, names and images are for embeddings; a problem has only indices")
        if len(files) == 1:
            run_report(result, ProblemFile(files[0]), out, certificate, title, json)
        elif len(files) == 2:
            items.check(out)
            inputs = EmbeddingFiles(files[0], files[1], distortion, standardize, pairs, items)
            run_report(result, inputs, out, certificate, title, json)
        else:
            raise ValueError(f"{len(files)} files given after {result}; expected SOURCE TARGET, or PROBLEM")
