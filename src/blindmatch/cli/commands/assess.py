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
    trust: opt.TrustOptions = opt.TrustOptions(),  # noqa: B008 (it is immutable)
    run: opt.RunOptions = opt.RunOptions(),  # noqa: B008
    json: opt.Json = False,
    report: opt.Report = None,
    save: opt.Save = None,
) -> None:
    """Assess a match: whether it could be chance, how likely each pair is right, which pairs could be exchanged."""
    from blindmatch.cli.answers import Answer, assess_with_progress, check_trust, plan_of
    from blindmatch.cli.inputs import read_match
    from blindmatch.cli.items import check_items, item_files, shown_match
    from blindmatch.cli.outputs import check_outputs
    from blindmatch.problem.task import Task
    from blindmatch.validation import at_least, positive

    check_items(items, report)
    read = [match, *item_files(items), background, *(trust.prior_from or ())]
    check_outputs({"--report": report, "--save": save, "--log": run.log}, read)
    at_least(draws, 1, "--draws")
    positive(assess_time, "--assess-time")
    check_trust(trust)
    result = read_match(match)
    if not isinstance(result.task, Task):
        raise ValueError(f"{match}: an assignment problem; an assessment compares two sets of items")
    plan = plan_of(trust, result.task, background, draws)
    shown = shown_match(items, result)
    answer = Answer(shown, opt.OutputOptions(json=json, report=report, save=save), fresh=False)
    answer.assess(trust.min_confidence, lambda: assess_with_progress(shown.result, plan, run, assess_time))
    answer.finish()
