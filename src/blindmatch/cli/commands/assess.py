"""``assess``: whether a match can be believed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command


@command(
    "blindmatch assess images.npy texts.npy",
    "blindmatch assess a.npy b.npy --target-names words.txt --truth rows",
    "blindmatch match images.npy texts.npy --json > match.json",
    "blindmatch assess match.json images.npy texts.npy --background words.npy --report report.html",
)
def assess(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[RESULT] SOURCE TARGET",
            help="What 'match --json' printed, and the embeddings as they were given to it, with the same "
            "--distortion, --metric, --scale, --no-standardize and options for pairs. Without RESULT they are matched "
            "first.",
            show_default=False,
        ),
    ],
    what: opt.TaskOptions,
    items: opt.ItemOptions,
    background: Annotated[
        opt.File, typer.Option(metavar="FILE", help="Other items of the target's space: makes the test exact.")
    ] = None,
    draws: Annotated[int, typer.Option(help="The largest number of unrelated spaces to match.")] = 199,
    assess_time: Annotated[float, typer.Option(metavar="SECONDS", help="Time limit of the assessment.")] = 60.0,
    min_confidence: opt.MinConfidence = None,
    prior: opt.Prior = None,
    prior_from: opt.PriorFrom = None,
    solving: opt.SolverOptions = opt.SolverOptions(),  # noqa: B008 (it is immutable)
    json: opt.Json = False,
    report: opt.Report = None,
) -> None:
    """Assess a match: whether it could be chance, how likely each pair is right, which pairs could be exchanged."""
    from blindmatch.cli.answers import Answer, Assessment, Request
    from blindmatch.cli.inputs import TaskInput, command_line
    from blindmatch.cli.items import check_items
    from blindmatch.cli.saved import Saved, saved_match
    from blindmatch.matching.match_task import match_task
    from blindmatch.report.verdict import counted

    if len(files) not in (2, 3):
        raise ValueError(f"{counted(len(files), 'file')} given; expected SOURCE TARGET or RESULT SOURCE TARGET")
    check_items(items, report)
    inputs, request = (
        TaskInput(files[-2], files[-1], what, items),
        Request(solving, opt.OutputOptions(json=json, report=report)),
    )
    request.check([*files[:-2], *inputs.paths, background, *(prior_from or ())])
    assessment = Assessment(min_confidence, prior, prior_from, background, draws, assess_time)
    assessment.check()
    task = inputs.task
    inputs.tables.warn()
    plan = assessment.plan(task)
    saved = Saved.load(files[0]).result if len(files) == 3 else None
    if saved is None:
        assessment.check_size(task, request)
    found = request.solved(partial(match_task, task)) if saved is None else saved
    settings = {**inputs.settings, **solving.settings}
    match = inputs.match(found, settings=settings, title=inputs.title, command=command_line())
    answer = Answer(
        match if saved is None else saved_match(files[0], match), request, tables=inputs.tables, price=inputs.price
    )
    answer.assess(task, assessment, plan)
    answer.finish()
