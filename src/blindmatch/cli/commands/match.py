"""``demo``, ``match`` (and its dialogue, ``--ask``) and ``match-columns``: two sets of items."""

from __future__ import annotations

import csv
import io
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer

from blindmatch.cli import answers
from blindmatch.cli.console import complain, plain
from blindmatch.cli.inputs import TaskInput, read_start
from blindmatch.cli.items import check_items
from blindmatch.cli.options import Given
from blindmatch.cli.outputs import check_partners, write_partners
from blindmatch.cli.texts import demo_text
from blindmatch.demo import load_demo
from blindmatch.io.files import text_of, write_atomically, write_text
from blindmatch.matching import match as matching
from blindmatch.matching.match_columns import column_task, columns_matched
from blindmatch.problem.task import Task
from blindmatch.report import Match
from blindmatch.report.pairs import price_advice
from blindmatch.report.verdict import pairs_are
from blindmatch.solving.result import Result
from blindmatch.trust.assessment import AssessmentPlan

_CLASSES = 5  # times as many items as on the other side: these may be classes of those


def demo(given: Given) -> None:
    """Match bundled real data, shuffled."""
    options = answers.solve_options(given)
    answers.check_answer(given)
    shown = load_demo(given.data, given.seed)
    names = shown.source_names, shown.target_names
    task = Task(shown.source, shown.target, scale=shown.scale, source_names=names[0], target_names=names[1])
    result = answers.solve_with_progress(partial(matching.match_task, task), options, given)
    sides = {"source": shown.source_model, "target": shown.target_model}
    settings = {"data": given.data, **sides, "distortion": "gw", "scale": shown.scale, **given.settings}
    match = Match(
        answers.with_title(result, f"{shown.about[0].upper()}{shown.about[1:]}", settings),
        truth=shown.truth.tolist(),
        source_images=None if shown.source_images is None else list(shown.source_images),
    )
    proved = None if result.certificate is None else result.verify()
    answers.Answer(match, given, demo_text(match, shown, proved, task.problem.objective(shown.truth))).finish()


def match(given: Given) -> None:
    """Match two files of embeddings."""
    check_items(given)
    check_dialogue(given)
    inputs, options, files = TaskInput(given), answers.solve_options(given), (given.source, given.target)
    answers.check_answer(given, [*inputs.paths, given.start])
    check_partners(given)
    assesses = given.assess or given.min_confidence is not None
    answers.check_trust(given, assesses)
    task = inputs.task
    if given.start is not None:
        options = replace(options, start=read_start(given.start))
    plan = answers.plan_of(given, task, large=matching.by_coordinates(task, options)) if assesses else None
    with inputs.tables.warn_of_units():
        found = answers.solve_with_progress(partial(matching.match_task, task), options, given)
    if given.ask:
        again = partial(answers.solve_with_progress, options=replace(options, start=None), given=given)
        found = ask_and_match(found, lambda task: again(partial(matching.match_task, task)), given.known_pairs)
    shown, ranking, count = inputs.match(found), found.ranking, given.candidates
    best = found.candidates(min(count, ranking.most)) if count and ranking is not None else None
    answer = answers.Answer(shown, given, tables=inputs.tables, candidates=best)
    if plan is not None:
        answer.assess(plan, given.min_confidence)
    answer.write(given.output, lambda path: write_partners(answer.match, files, count, path), "Partners")
    if count and best is None:
        complain(f"--candidates {count}: not known; they are of 30 items or more that --solver auto matches")
    hint = "" if given.json else _hint(answer.match, files, inputs.labelled)
    if hint:
        complain(f"hint: {hint}")
    answer.finish()


def _hint(match: Match, files: tuple[Path, Path], labels: bool) -> str:
    """Advice for items without a partner, with the exact command; empty if there is none."""
    n, m = match.sizes
    if max(n, m) >= max(_CLASSES * min(n, m), 20):
        many, few = files if n > m else files[::-1]
        means = "; or match the means of the labelled classes (bm.class_means)" if labels else ""
        classes = f"to find clusters and name them: {shlex.join(['blindmatch', 'classify', str(many), str(few)])}"
        return f"there are {n} sources and {m} targets. If the few are classes of the many, {classes}{means}"
    return price_advice(match)


def match_columns(given: Given) -> None:
    """Match the columns of two tables whose headers mean nothing."""
    options, source, target = answers.solve_options(given), given.source, given.target
    answers.check_answer(given, [source, target])
    task = column_task(source, target, given.unmatched_cost)
    found = answers.solve_with_progress(partial(columns_matched, task), options, given)
    settings = {"source": source.name, "target": target.name, **found.settings, **given.settings}
    title = f"Columns of {source.name} matched with those of {target.name}"
    answer = answers.Answer(Match(answers.with_title(found, title, settings).sealed()), given)
    if given.assess:
        answer.assess(AssessmentPlan())
    answer.finish()


_HELP = "the number of a candidate, the name or =INDEX of another target, Enter to skip, q to end"


def check_dialogue(given: Given) -> None:
    """Refuse a dialogue with nobody, and make the file for the answers."""
    path = given.known_pairs
    if not given.ask:
        return
    if given.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ValueError("--ask needs a terminal, and no --json: somebody must answer")
    if path is not None and not path.exists():
        write_atomically(path, lambda file: file.write(b"source,target\n"))


def ask_and_match(found: Result, match: Callable[[Task], Result], path: Path | None) -> Result:
    """Ask until nothing is open or nobody answers; every answer is kept in the file `path` at once."""
    skipped: set[int] = set()
    while True:
        task = found.task
        assert isinstance(task, Task)
        doubts = [(source, targets) for source, targets in found.ask(1 + len(skipped)) if source not in skipped]
        if not doubts:
            typer.echo("Nothing is left to ask.")
            return found
        source, targets = doubts[0]
        try:
            target = _answer(task, source, targets)
        except (EOFError, KeyboardInterrupt, typer.Abort):
            target = None
        if target is None:
            return found
        if target < 0:
            skipped.add(source)
            continue
        if path is not None:
            _append(path, task, source, target)
        hints = replace(task.hints, known=(*task.hints.known, (source, target)))
        found = match(task.changed(hints=hints))


def _answer(task: Task, source: int, targets: Sequence[int]) -> int | None:
    """The partner of a source that a person tells; -1 if it is skipped, None at the end."""
    count = len(task.hints.known)
    typer.echo(f"\n{pairs_are(count)} known. Which target belongs to {_label(task, 0, source)}?")
    for number, target in enumerate(targets, 1):
        typer.echo(f"  {number}  {_label(task, 1, target)}")
    while True:
        word = input("> ").strip()
        if word in ("", "q"):
            return None if word else -1
        told = _target(task, word, targets)
        if told is not None and told in {j for _, j in task.hints.known}:
            typer.echo(f"{_label(task, 1, told)} has a partner already.")
        elif told is not None and task.hints.forbidden is not None and task.hints.forbidden[source, told]:
            typer.echo(f"{_label(task, 1, told)} is forbidden.")
        elif told is not None:
            return told
        else:
            typer.echo(f"{plain(word)!r} is not understood: {_HELP}.")


def _target(task: Task, word: str, targets: Sequence[int]) -> int | None:
    if word.isdecimal() and 1 <= int(word) <= len(targets):
        return targets[int(word) - 1]
    if word.startswith("=") and word[1:].isdecimal():
        return int(word[1:]) if int(word[1:]) < task.sizes[1] else None
    places = [j for j, name in enumerate(task.target_names or ()) if name == word]
    return places[0] if len(places) == 1 else None


def _label(task: Task, side: int, item: int) -> str:
    names = (task.source_names, task.target_names)[side]
    return str(item) if names is None else plain(names[item])


def _append(path: Path, task: Task, source: int, target: int) -> None:
    """Add an answer; by its names if they say which items are meant."""
    sides = ((task.source_names, source), (task.target_names, target))
    before, text = text_of(path), io.StringIO()
    text.write(before + ("" if not before or before.endswith("\n") else "\n"))
    cells = [str(item) if names is None or names.count(names[item]) > 1 else names[item] for names, item in sides]
    csv.writer(text, lineterminator="\n").writerow(cells)
    write_text(path, text.getvalue())
