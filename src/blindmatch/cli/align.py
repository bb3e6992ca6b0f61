"""``align``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import app
from blindmatch.cli.console import one_line_errors


@app.command(
    epilog=opt.examples(
        "blindmatch align a.npy b.npy --out map.npz",
        "blindmatch align a.npy b.npy --transform new.npy --to mapped.npy",
        "blindmatch align a.parquet b.npz --seed 3 --candidates 10 --json",
    )
)
def align(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help=f"Embeddings: {opt.FILES}.", show_default=False)],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Embeddings of other items, in any number, of any other dimension.")
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the map (.npz).")] = None,
    transform: Annotated[
        Path | None, typer.Option("--transform", metavar="FILE", help="Embeddings to carry from source to target.")
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", metavar="FILE", help="Where to write them (.npy).")] = None,
    components: Annotated[
        int | None,
        typer.Option(
            "--components",
            help="Dimension of the common space; by default 32 to 256, by the number of points.",
            show_default=False,
        ),
    ] = None,
    clusters: Annotated[int, typer.Option("--clusters", help="Centres on each side.")] = 20,
    clusterings: Annotated[int, typer.Option("--clusterings", help="Runs of k-means on each side.")] = 8,
    candidates: Annotated[
        int, typer.Option("--candidates", help="How many of the best matches of centres are proved and refined.")
    ] = 5,
    iterations: Annotated[int, typer.Option("--iterations", help="Rounds of refinement.")] = 20,
    solver: opt.Solver = "auto",
    time_limit: Annotated[
        float, typer.Option("--time-limit", "-t", metavar="SECONDS", help="For each match of centres.")
    ] = 5.0,
    seed: opt.Seed = 0,
    threads: opt.Threads = None,
    certificate: opt.Certificate = None,
    json: opt.Json = False,
) -> None:
    """Map one embedding space to another without a pair: different items on each side, tens of thousands of them."""
    with one_line_errors():
        from blindmatch.alignment.aligner import BlindAligner
        from blindmatch.cli.aligning import Files, run_align

        aligner = BlindAligner(
            components,
            n_clusters=clusters,
            n_clusterings=clusterings,
            n_candidates=candidates,
            solver=solver,
            time_limit=time_limit,
            n_iterations=iterations,
            random_state=seed,
            threads=threads,
        )
        run_align(Files(source, target, out, transform, to, certificate), aligner, json)
