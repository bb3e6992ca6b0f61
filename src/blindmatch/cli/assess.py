"""``assess``: whether a match can be believed. The work is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import app
from blindmatch.cli.console import one_line_errors


@app.command(
    epilog=opt.examples(
        "blindmatch assess images.npy texts.npy",
        "blindmatch match images.npy texts.npy --json > match.json",
        "blindmatch assess match.json images.npy texts.npy --background words.npy --report report.html",
    )
)
def assess(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[RESULT] SOURCE TARGET",
            help="What 'match --json' printed, and the embeddings as they were given to it, with the same "
            "--distortion, --no-standardize and options for pairs. Without RESULT they are matched first.",
            show_default=False,
        ),
    ],
    background: opt.Background = None,
    draws: opt.Draws = 199,
    assess_time: opt.AssessTime = 60.0,
    min_confidence: opt.MinConfidence = None,
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
    time_limit: opt.TimeLimit = 60.0,
    seed: opt.Seed = 0,
    threads: opt.Threads = None,
    json: opt.Json = False,
    report: opt.Report = None,
) -> None:
    """Tell whether a match can be believed: chance, confidence of each pair, what could be exchanged."""
    with one_line_errors():
        from blindmatch.cli.assessing import Assessment
        from blindmatch.cli.commands import Run, run_match
        from blindmatch.cli.inputs import EmbeddingFiles
        from blindmatch.cli.pairs import PairOptions
        from blindmatch.report.verdict import counted

        if len(files) not in (2, 3):
            raise ValueError(f"{counted(len(files), 'file')} given; expected SOURCE TARGET or RESULT SOURCE TARGET")
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
        inputs = EmbeddingFiles(files[-2], files[-1], distortion, standardize, pairs)
        run = Run(solver, time_limit, seed, threads, json, None, report)
        assessment = Assessment(min_confidence, background, draws, assess_time)
        run_match(inputs, run, assessment, files[0] if len(files) == 3 else None)
