"""``match --ask``: ask which pairs are right, one at a time, and match again after each answer."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import typer

from blindmatch.cli.console import plain
from blindmatch.cli.options import Given
from blindmatch.io.files import text_of, write_atomically
from blindmatch.problem.task import Task
from blindmatch.solving.result import Result

_HELP = "the number of a candidate, the name or =INDEX of another target, Enter to skip, q to end"


def check_dialogue(given: Given) -> None:
    """Refuse a dialogue with nobody, and make the file for the answers."""
    answers = given.known_pairs
    if not given.ask:
        return
    if given.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ValueError("--ask needs a terminal, and no --json: somebody must answer")
    if answers is not None and not answers.exists():
        write_atomically(answers, lambda file: file.write(b"source,target\n"))


def ask_and_match(found: Result, match: Callable[[Task], Result], answers: Path | None) -> Result:
    """Ask until nothing is open or nobody answers; every answer is kept in the file `answers` at once."""
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
        if answers is not None:
            _append(answers, task, source, target)
        hints = replace(task.hints, known=(*task.hints.known, (source, target)))
        found = match(task.changed(hints=hints))


def _answer(task: Task, source: int, targets: Sequence[int]) -> int | None:
    """The partner of a source that a person tells; -1 if it is skipped, None at the end."""
    count = len(task.hints.known)
    known = "1 pair is" if count == 1 else f"{count} pairs are"
    typer.echo(f"\n{known} known. Which target belongs to {_label(task, 0, source)}?")
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
    cells = []
    for names, item in ((task.source_names, source), (task.target_names, target)):
        cells.append(names[item] if names is not None and names.count(names[item]) == 1 else str(item))
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    before = text_of(path)
    text = before + ("" if not before or before.endswith("\n") else "\n") + line.getvalue()
    write_atomically(path, lambda file: file.write(text.encode()))
