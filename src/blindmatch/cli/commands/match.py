"""``match``: two files of embeddings."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command

if TYPE_CHECKING:
    from blindmatch.problem.task import Task

_PRICED = 400  # items on both sides together, up to which a price is suggested
_CLASSES = 5  # times as many items as on the other side: these may be classes of those


@command(
    "blindmatch match images.npy texts.npy",
    "blindmatch match a.parquet b.csv --distortion cka --report report.html",
    "blindmatch match a.npy b.npy --assess --save match.npz",
    "blindmatch match dino.npy+clip.npy mpnet.npy+glove.npy",
    "blindmatch match a.npz b.npz --ask --known-pairs answers.csv",
    "blindmatch match left.csv right.csv --graph --edge-weights log --crossed all.csv",
    "blindmatch match a.npz b.npz --known 0:4 --known cat:chat --forbid dog:chat --json",
    "blindmatch match a.npy b.npy --source-images photos/ --target-names words.txt --truth t.csv --report r.html",
    "blindmatch match words.npy mots.npy --candidates 5 --output partners.csv",
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
    trust: opt.TrustOptions = opt.TrustOptions(),  # noqa: B008 (it is immutable)
    output: Annotated[
        opt.File,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the partner of each source and its confidence (.csv), or add them to SOURCE (.h5ad).",
        ),
    ] = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask",
            help="Ask for the most telling pairs on a terminal; the answers go into --known-pairs.",
            rich_help_panel=opt.PAIRS,
        ),
    ] = False,
    candidates: Annotated[
        int,
        typer.Option(
            metavar="K", help="Tell the K best partners of each source, in --json and --output: 30 items or more."
        ),
    ] = 0,
) -> None:
    """Match two files of embeddings by the relations inside each alone."""
    from blindmatch.cli.answers import (
        Answer,
        assess_with_progress,
        check_answer,
        check_trust,
        plan_of,
        solve_options,
        solve_with_progress,
    )
    from blindmatch.cli.console import complain
    from blindmatch.cli.dialogue import ask_and_match, check_dialogue
    from blindmatch.cli.inputs import TaskInput, command_line, read_start
    from blindmatch.cli.items import check_items
    from blindmatch.cli.outputs import check_partners, write_partners
    from blindmatch.matching.match import by_coordinates, match_task
    from blindmatch.trust.prior import refuse_prior

    check_items(items, outputs.report)
    check_dialogue(ask, outputs.json, what.known_pairs)
    inputs, options = TaskInput(source, target, what, items), solve_options(solving, checkpoint)
    others = {"--output": output, "--checkpoint": checkpoint, "--log": solving.log}
    check_answer(outputs, options.solver, others, [*inputs.paths, start])
    check_partners(output, candidates, (source, target))
    check_trust(trust)
    assesses = assess or trust.min_confidence is not None
    if not assesses and (trust.prior is not None or trust.prior_from is not None):
        option = "--prior-from" if trust.prior is None else f"--prior {trust.prior:g}"
        raise ValueError(f"{option} needs --assess or --min-confidence")
    task = inputs.task
    inputs.tables.warn()
    if start is not None:
        options = replace(options, start=read_start(start))
    if by_coordinates(task, options):
        refuse_prior(trust.prior, max(task.sizes), "--prior")
        refuse_prior(trust.prior_from, max(task.sizes), "--prior-from")
    plan = plan_of(trust, task) if assesses else None
    found = solve_with_progress(partial(match_task, task), options, solving)
    if ask:
        again = partial(solve_with_progress, options=replace(options, start=None), given=solving)
        found = ask_and_match(found, lambda task: again(partial(match_task, task)), what.known_pairs)
    match = inputs.match(found, {**solving.settings, "command": command_line()})
    ranking = found.ranking
    best = found.candidates(min(candidates, ranking.most)) if candidates and ranking is not None else None
    answer = Answer(match, outputs, tables=inputs.tables, candidates=best)
    twins = any("have the same relations as another" in note for note in found.notes)
    hint = "" if outputs.json else _hint(task, (source, target), inputs.labelled, twins)
    if plan is not None:
        answer.assess(
            trust.min_confidence, lambda: assess_with_progress(match.result, plan, solving, solving.assess_seconds)
        )
    answer.write(output, lambda path: write_partners(answer.match, (source, target), candidates, path), "Partners")
    if candidates and best is None:
        complain(f"--candidates {candidates}: not known; they are of 30 items or more that --solver auto matches")
    if hint:
        complain(f"hint: {hint}")
    answer.finish()


def _hint(task: Task, files: tuple[Path, Path], labels: bool, twins: bool) -> str:
    """What to try if items have no partner: the exact command; empty if there is nothing to suggest."""
    from blindmatch.cli.inputs import command_line

    n, m = task.sizes
    if max(n, m) >= max(_CLASSES * min(n, m), 20):
        many, few = files if n > m else files[::-1]
        means = "; or match the means of the labelled classes (bm.class_means)" if labels else ""
        classes = f"to find clusters and name them: {shlex.join(['blindmatch', 'classify', str(many), str(few)])}"
        return f"there are {n} sources and {m} targets. If the few are classes of the many, {classes}{means}"
    if task.hints.unmatched_cost is not None or n + m > _PRICED:
        return ""
    if n == m and not twins:
        return ""
    why = "some items cannot be told apart" if n == m else f"there are {n} sources and {m} targets"
    return f"{why}. If items may have no partner: {command_line()} --unmatched-cost auto"
