"""``demo``: bundled data whose answer is known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from blindmatch.cli import completion
from blindmatch.cli import options as opt
from blindmatch.cli.app import command


@command("blindmatch demo", "blindmatch demo --data countries", "blindmatch demo --seed 3 --report report.html")
def demo(
    data: Annotated[
        str,
        typer.Option(help="Which bundled data: cifar10, colours, countries.", autocompletion=completion.demo_data),
    ] = "cifar10",
    solving: opt.SolverOptions = opt.SolverOptions(),  # noqa: B008 (it is immutable)
    outputs: opt.OutputOptions = opt.OutputOptions(),  # noqa: B008
) -> None:
    """Match bundled real data, shuffled, and show how many pairs are right."""
    from blindmatch.cli.answers import Answer, check_answer, solve_options, solve_with_progress
    from blindmatch.cli.inputs import command_line
    from blindmatch.cli.texts import demo_text
    from blindmatch.demo import load_demo
    from blindmatch.matching.match import match_task
    from blindmatch.problem.task import Task
    from blindmatch.report import Match

    options = solve_options(solving)
    check_answer(outputs, options.solver, {"--log": solving.log})
    shown = load_demo(data, solving.seed)
    task = Task(
        shown.source,
        shown.target,
        scale=shown.scale,
        source_names=shown.source_names,
        target_names=shown.target_names,
    )
    result = solve_with_progress(partial(match_task, task), options, solving)
    settings = {
        "data": data,
        "source": shown.source_model,
        "target": shown.target_model,
        "distortion": "gw",
        "scale": shown.scale,
    }
    match = Match(
        replace(
            result,
            title=f"{shown.about[0].upper()}{shown.about[1:]}",
            settings={**settings, **solving.settings, "command": command_line()},
        ),
        truth=shown.truth.tolist(),
        source_images=None if shown.source_images is None else list(shown.source_images),
    )
    proved = None if result.certificate is None else result.verify()
    Answer(match, outputs, demo_text(match, shown, proved, task.problem.objective(shown.truth))).finish()
