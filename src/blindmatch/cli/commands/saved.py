"""``verify``, ``assess`` and ``report``: what is done with a saved match, or with a certificate."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import typer

from blindmatch.cli.answers import Answer, check_trust, plan_of
from blindmatch.cli.console import FAILED, complain, echo_json, output
from blindmatch.cli.inputs import read_certified, read_match
from blindmatch.cli.items import check_items, item_files, match_to_show
from blindmatch.cli.options import Given
from blindmatch.cli.outputs import Delivery, check_outputs, write_page
from blindmatch.cli.progress import busy
from blindmatch.problem.fingerprint import differs
from blindmatch.problem.task import Task
from blindmatch.proof import checker
from blindmatch.report.verdict import counted
from blindmatch.validation import at_least, positive


def verify(given: Given) -> None:
    """Recompute the lower bound that a certificate proves."""
    start, path = time.perf_counter(), given.files[-1]
    problem, others, certificate = read_certified(given)
    try:
        with busy(f"checking the proof, {counted(len(certificate.nodes), 'node')}"):
            bound = min(checker.verify(problem, certificate), others)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    seconds = time.perf_counter() - start
    other = differs(problem, certificate.fingerprint)
    if given.json:
        values = {"lower_bound": bound, "size": problem.n, "seconds": seconds}
        echo_json({**values, "same_problem": not other if certificate.fingerprint else None})
    elif bound > float("-inf"):
        output().print(f"Verified in {seconds:.2f} s: every pairing costs at least {bound!r}.", soft_wrap=True)
    if other:
        options = " or other options, such as --distortion, --metric and --scale" if len(given.files) == 3 else ""
        complain(
            f"{path}: it was written for another problem (other data{options}); the bound is that of the one given"
        )
    if bound == float("-inf"):
        complain(f"{path}: proves nothing about this problem")
        raise typer.Exit(FAILED)


def assess(given: Given) -> None:
    """Assess a saved match."""
    check_items(given)
    check_outputs(given, [given.match, *item_files(given), given.background, *(given.prior_from or ())])
    at_least(given.draws, 1, "--draws")
    positive(given.assess_time, "--assess-time")
    check_trust(given)
    result = read_match(given.match)
    if not isinstance(result.task, Task):
        raise ValueError(f"{given.match}: an assignment problem; an assessment compares two sets of items")
    plan = plan_of(given, result.task)
    answer = Answer(match_to_show(given, result), given, fresh=False)
    answer.assess(plan, given.min_confidence)
    answer.finish()


def report(given: Given) -> None:
    """Make the report of a saved match."""
    check_items(given)
    check_outputs(given, [given.match, *item_files(given)])
    result, out = read_match(given.match), given.out
    shown = match_to_show(given, result if given.title is None else replace(result, title=given.title))
    delivery = Delivery()
    if delivery.write(out, partial(write_page, shown)):
        answer = {"report": str(out), "bytes": out.stat().st_size}
        delivery.show(lambda: echo_json(answer)) if given.json else delivery.announce(f"Report: {out}")
    delivery.end()
