"""``assess``: whether a match can be believed."""

from __future__ import annotations

from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command


@command(
    "blindmatch match images.npy texts.npy --save match.npz",
    "blindmatch assess match.npz",
    "blindmatch assess match.npz --background words.npy --report report.html",
    "blindmatch assess match.npz --draws 999 --save assessed.npz",
)
def assess(
    match: opt.Saved,
    items: opt.ItemOptions,
    background: Annotated[
        opt.File, typer.Option(metavar="FILE", help="Other items of the target's space: makes the test exact.")
    ] = None,
    draws: Annotated[int, typer.Option(help="The largest number of unrelated spaces to match.")] = 199,
    assess_time: Annotated[float, typer.Option(metavar="SECONDS", help="Time limit of the assessment.")] = 60.0,
    min_confidence: opt.MinConfidence = None,
    prior: opt.Prior = None,
    prior_from: opt.PriorFrom = None,
    run: opt.RunOptions = opt.RunOptions(),  # noqa: B008 (it is immutable)
    json: opt.Json = False,
    report: opt.Report = None,
    save: opt.Save = None,
) -> None:
    """Assess a match: whether it could be chance, how likely each pair is right, which pairs could be exchanged."""
    from blindmatch.cli.answers import Answer, AssessOptions, Request
    from blindmatch.cli.items import check_items, item_files, shown_match
    from blindmatch.cli.saved import read_match
    from blindmatch.problem.task import Task

    check_items(items, report)
    solving = opt.SolverOptions(**vars(run))
    request = Request(solving, opt.OutputOptions(json=json, report=report, save=save))
    request.check([match, *item_files(items), background, *(prior_from or ())])
    assessment = AssessOptions(min_confidence, prior, prior_from, background, draws, assess_time)
    assessment.check()
    result = read_match(match)
    if not isinstance(result.task, Task):
        raise ValueError(f"{match}: an assignment problem; an assessment compares two sets of items")
    plan = assessment.plan(result.task)
    answer = Answer(shown_match(items, result), request, fresh=False)
    answer.assess(assessment, plan)
    answer.finish()
