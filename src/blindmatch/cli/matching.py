"""``demo``, ``match``, ``solve``, ``verify``, ``solvers``: their options. The work is imported when a command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import completion
from blindmatch.cli import options as opt
from blindmatch.cli.app import app
from blindmatch.cli.console import one_line_errors


@app.command(epilog=opt.examples("blindmatch demo", "blindmatch demo --data colours --seed 3 --report report.html"))
def demo(
    data: Annotated[
        str, typer.Option(help="Which bundled data: cifar10 or colours.", autocompletion=completion.demo_data)
    ] = "cifar10",
    solver: opt.Solver = "auto",
    time_limit: opt.TimeLimit = 60.0,
    seed: opt.Seed = 0,
    threads: opt.Threads = None,
    json: opt.Json = False,
    certificate: opt.Certificate = None,
    report: opt.Report = None,
) -> None:
    """Match real data from the package, shuffled, and tell how many pairs are right."""
    with one_line_errors():
        from blindmatch.cli.commands import Run, run_demo

        run_demo(data, Run(solver, time_limit, seed, threads, json, certificate, report))


@app.command(
    epilog=opt.examples(
        "blindmatch match images.npy texts.npy",
        "blindmatch match a.parquet b.csv --distortion cka --report report.html",
        "blindmatch match a.npz b.npz --known 0:4 --known cat:chat --forbid dog:chat --json",
        "blindmatch match a.npy b.npy --source-images photos/ --target-names words.txt --truth t.csv --report r.html",
        "blindmatch match a.npy b.npy --unmatched-cost 10 --similarity hints.npy --similarity-weight 5",
    )
)
def match(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help=f"Embeddings: {opt.FILES}.", show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Embeddings of any other dimension.")],
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
    solver: opt.Solver = "auto",
    time_limit: opt.TimeLimit = None,
    seed: opt.Seed = 0,
    threads: opt.Threads = None,
    json: opt.Json = False,
    certificate: opt.Certificate = None,
    report: opt.Report = None,
    checkpoint: opt.Checkpoint = None,
    assess: opt.Assess = False,
    min_confidence: opt.MinConfidence = None,
    truth: opt.Truth = None,
    source_names: opt.SourceNames = None,
    target_names: opt.TargetNames = None,
    source_images: opt.SourceImages = None,
    target_images: opt.TargetImages = None,
) -> None:
    """Match two files of embeddings by the relations inside each alone."""
    with one_line_errors():
        from blindmatch.cli.assessing import Assessment
        from blindmatch.cli.commands import Run, run_match
        from blindmatch.cli.inputs import EmbeddingFiles
        from blindmatch.cli.items import ItemOptions
        from blindmatch.cli.pairs import PairOptions

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
        items.check(report)
        inputs = EmbeddingFiles(source, target, distortion, standardize, pairs, items)
        assessment = Assessment(min_confidence) if assess or min_confidence is not None else None
        run_match(inputs, Run(solver, time_limit, seed, threads, json, certificate, report, checkpoint), assessment)


@app.command(
    epilog=opt.examples(
        "blindmatch solve nug12.dat",
        "blindmatch solve problem.npz --solver tabu --time-limit 10 --json",
        "blindmatch solve nug12.dat --certificate proof.npz",
    )
)
def solve(
    problem: Annotated[
        Path, typer.Argument(metavar="PROBLEM", help=".dat (QAPLIB), or .npz with source_cost and target_cost.")
    ],
    solver: opt.Solver = "auto",
    time_limit: opt.TimeLimit = None,
    seed: opt.Seed = 0,
    threads: opt.Threads = None,
    json: opt.Json = False,
    certificate: opt.Certificate = None,
    report: opt.Report = None,
    checkpoint: opt.Checkpoint = None,
) -> None:
    """Solve a quadratic assignment problem from a file."""
    with one_line_errors():
        from blindmatch.cli.commands import Run, run_solve

        run_solve(problem, Run(solver, time_limit, seed, threads, json, certificate, report, checkpoint))


@app.command(
    epilog=opt.examples(
        "blindmatch verify nug12.dat proof.npz",
        "blindmatch verify images.npy texts.npy proof.npz --distortion cka",
    )
)
def verify(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROBLEM CERTIFICATE",
            help="The problem (.dat, .npz) and the certificate; or SOURCE TARGET CERTIFICATE as they were given to "
            "'match', with the same --distortion, --no-standardize and options for pairs.",
            show_default=False,
        ),
    ],
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
) -> None:
    """Recompute, from scratch and without any solver, the lower bound that a certificate proves."""
    with one_line_errors():
        from blindmatch.cli.commands import run_verify
        from blindmatch.cli.inputs import EmbeddingFiles, ProblemFile
        from blindmatch.cli.pairs import PairOptions
        from blindmatch.report.verdict import counted

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
        if len(files) == 2:
            run_verify(ProblemFile(files[0]), files[1], json)
        elif len(files) == 3:
            run_verify(EmbeddingFiles(files[0], files[1], distortion, standardize, pairs), files[2], json)
        else:
            given = counted(len(files), "file")
            raise ValueError(f"{given} given; expected PROBLEM CERTIFICATE or SOURCE TARGET CERTIFICATE")


@app.command(epilog=opt.examples("blindmatch solvers", "blindmatch solvers --json"))
def solvers(json: opt.Json = False) -> None:
    """List the solvers and what each can do."""
    with one_line_errors():
        from blindmatch.cli.commands import run_solvers

        run_solvers(json)
