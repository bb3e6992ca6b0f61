"""``match``: two files of embeddings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command


@command(
    "blindmatch match images.npy texts.npy",
    "blindmatch match a.parquet b.csv --distortion cka --report report.html",
    "blindmatch match a.npy b.npy --assess --save match.npz",
    "blindmatch match a.npz b.npz --known 0:4 --known cat:chat --forbid dog:chat --json",
    "blindmatch match a.npy b.npy --source-images photos/ --target-names words.txt --truth t.csv --report r.html",
    "blindmatch match words.npy mots.npy --candidates 5 --output partners.csv",
    "blindmatch match a.npy b.npy --unmatched-cost 10 --similarity hints.npy --similarity-weight 5",
)
def match(
    source: opt.Source,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Embeddings of any other dimension.")],
    what: opt.TaskOptions,
    solving: opt.SolverOptions,
    outputs: opt.OutputOptions,
    items: opt.ItemOptions,
    start: opt.Start = None,
    checkpoint: opt.Checkpoint = None,
    assess: opt.Assess = False,
    min_confidence: opt.MinConfidence = None,
    prior: opt.Prior = None,
    prior_from: opt.PriorFrom = None,
    output: Annotated[
        opt.File,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the partner of each source and its confidence (.csv), or add them to SOURCE (.h5ad).",
        ),
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(
            metavar="K", help="Tell the K best partners of each source, in --json and --output: 30 items or more."
        ),
    ] = 0,
) -> None:
    """Match two files of embeddings by the relations inside each alone."""
    from blindmatch.cli.answers import Answer, AssessOptions, Request
    from blindmatch.cli.console import complain
    from blindmatch.cli.inputs import TaskInput, command_line
    from blindmatch.cli.items import check_items
    from blindmatch.cli.partners import best_partners, check_partners, write_partners
    from blindmatch.cli.saved import read_start
    from blindmatch.matching.match_task import match_task

    check_items(items, outputs.report)
    inputs, request = TaskInput(source, target, what, items), Request(solving, outputs, checkpoint)
    request.check([*inputs.paths, start], {"--output": output})
    check_partners(output, candidates, inputs)
    assessment, assesses = AssessOptions(min_confidence, prior, prior_from), assess or min_confidence is not None
    assessment.check()
    if not assesses and (prior is not None or prior_from is not None):
        option = "--prior-from" if prior is None else f"--prior {prior:g}"
        raise ValueError(f"{option} needs --assess or --min-confidence")
    task = inputs.task
    inputs.tables.warn()
    if start is not None:
        request = replace(request, start=read_start(start))
    assessment.check_size(task, request)
    plan = assessment.plan(task) if assesses else None
    found = request.solved(partial(match_task, task))
    match = inputs.match(found, {**solving.settings, "command": command_line()})
    best = best_partners(match, candidates)
    answer = Answer(match, request, tables=inputs.tables, candidates=best)
    if plan is not None:
        answer.assess(assessment, plan)
    answer.write("Partners", output, lambda path: write_partners(answer.match, inputs, candidates, path))
    if candidates and best is None:
        complain(f"--candidates {candidates}: not known; they are of 30 items or more that --solver auto matches")
    answer.finish()
