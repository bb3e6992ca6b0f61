"""``demo``, ``match`` and ``match-columns``: two sets of items."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blindmatch.cli import options as opt
from blindmatch.cli.app import command

if TYPE_CHECKING:
    from blindmatch.report import Match

_CLASSES = 5  # times as many items as on the other side: these may be classes of those


@command("blindmatch demo", "blindmatch demo --data countries", "blindmatch demo --seed 3 --report report.html")
def demo(*, data: str = "cifar10", solving: opt.SolverOptions, outputs: opt.OutputOptions) -> None:
    """Match bundled real data, shuffled, and show how many pairs are right."""
    from blindmatch.cli import answers
    from blindmatch.cli.texts import demo_text
    from blindmatch.demo import load_demo
    from blindmatch.matching.match import match_task
    from blindmatch.problem.task import Task
    from blindmatch.report import Match

    options = answers.solve_options(solving)
    answers.check_answer(outputs, options.solver, {"--log": solving.log})
    shown = load_demo(data, solving.seed)
    names = shown.source_names, shown.target_names
    task = Task(shown.source, shown.target, scale=shown.scale, source_names=names[0], target_names=names[1])
    result = answers.solve_with_progress(partial(match_task, task), options, solving)
    sides = {"source": shown.source_model, "target": shown.target_model}
    settings = {"data": data, **sides, "distortion": "gw", "scale": shown.scale}
    match = Match(
        answers.with_title(result, f"{shown.about[0].upper()}{shown.about[1:]}", {**settings, **solving.settings}),
        truth=shown.truth.tolist(),
        source_images=None if shown.source_images is None else list(shown.source_images),
    )
    proved = None if result.certificate is None else result.verify()
    text = demo_text(match, shown, proved, task.problem.objective(shown.truth))
    answers.Answer(match, outputs, text).finish()


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
    source: Path,
    target: Path,
    *,
    what: opt.TaskOptions,
    solving: opt.SolverOptions,
    outputs: opt.OutputOptions,
    items: opt.ItemOptions,
    start: opt.File = None,
    checkpoint: opt.File = None,
    assess: bool = False,
    trust: opt.TrustOptions,
    output: opt.File = None,
    ask: bool = False,
    candidates: int = 0,
) -> None:
    """Match two files of embeddings by the relations inside each alone."""
    from blindmatch.cli import answers
    from blindmatch.cli.console import complain
    from blindmatch.cli.dialogue import ask_and_match, check_dialogue
    from blindmatch.cli.inputs import TaskInput, read_start
    from blindmatch.cli.items import check_items
    from blindmatch.cli.outputs import check_partners, write_partners
    from blindmatch.matching.match import by_coordinates, match_task

    check_items(items, outputs.report)
    check_dialogue(ask, outputs.json, what.known_pairs)
    inputs, options = TaskInput(source, target, what, items), answers.solve_options(solving, checkpoint)
    others = {"--output": output, "--checkpoint": checkpoint, "--log": solving.log}
    answers.check_answer(outputs, options.solver, others, [*inputs.paths, start])
    check_partners(output, candidates, (source, target))
    assesses = assess or trust.min_confidence is not None
    answers.check_trust(trust, assesses)
    task = inputs.task
    inputs.tables.warn()
    if start is not None:
        options = replace(options, start=read_start(start))
    plan = answers.plan_of(trust, task, large=by_coordinates(task, options)) if assesses else None
    found = answers.solve_with_progress(partial(match_task, task), options, solving)
    if ask:
        again = partial(answers.solve_with_progress, options=replace(options, start=None), given=solving)
        found = ask_and_match(found, lambda task: again(partial(match_task, task)), what.known_pairs)
    shown, ranking = inputs.match(found, solving.settings), found.ranking
    best = found.candidates(min(candidates, ranking.most)) if candidates and ranking is not None else None
    answer = answers.Answer(shown, outputs, tables=inputs.tables, candidates=best)
    if plan is not None:
        answer.assess(plan, solving, solving.assess_seconds, trust.min_confidence)
    answer.write(output, lambda path: write_partners(answer.match, (source, target), candidates, path), "Partners")
    if candidates and best is None:
        complain(f"--candidates {candidates}: not known; they are of 30 items or more that --solver auto matches")
    hint = "" if outputs.json else _hint(answer.match, (source, target), inputs.labelled)
    if hint:
        complain(f"hint: {hint}")
    answer.finish()


def _hint(match: Match, files: tuple[Path, Path], labels: bool) -> str:
    """Advice for items without a partner, with the exact command; empty if there is none."""
    from blindmatch.report.pairs import price_advice

    n, m = match.sizes
    if max(n, m) >= max(_CLASSES * min(n, m), 20):
        many, few = files if n > m else files[::-1]
        means = "; or match the means of the labelled classes (bm.class_means)" if labels else ""
        classes = f"to find clusters and name them: {shlex.join(['blindmatch', 'classify', str(many), str(few)])}"
        return f"there are {n} sources and {m} targets. If the few are classes of the many, {classes}{means}"
    return price_advice(match)


@command(
    "blindmatch match-columns ours.csv theirs.csv",
    "blindmatch match-columns ours.xlsx:Staff theirs.db:people --assess --report columns.html",
    "blindmatch match-columns ours.csv theirs.csv --unmatched-cost none --json",
)
def match_columns(
    source: Path,
    target: Path,
    *,
    solving: opt.SolverOptions,
    outputs: opt.OutputOptions,
    unmatched_cost: Any = "auto",
    assess: bool = False,
) -> None:
    """Match the columns of two tables whose headers mean nothing, by how columns relate and by their shapes."""
    from blindmatch.cli import answers
    from blindmatch.matching.match_columns import column_task, columns_matched
    from blindmatch.report import Match

    options = answers.solve_options(solving)
    answers.check_answer(outputs, options.solver, {"--log": solving.log}, [source, target])
    given = column_task(source, target, unmatched_cost)
    plan = answers.plan_of(opt.TrustOptions(), given.task) if assess else None
    found = answers.solve_with_progress(partial(columns_matched, given), options, solving)
    settings = {"source": source.name, "target": target.name, **found.settings, **solving.settings}
    title = f"Columns of {source.name} matched with those of {target.name}"
    answer = answers.Answer(Match(answers.with_title(found, title, settings).sealed()), outputs)
    if plan is not None:
        answer.assess(plan, solving, solving.assess_seconds)
    answer.finish()
