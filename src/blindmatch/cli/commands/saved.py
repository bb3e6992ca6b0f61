"""``verify``, ``assess`` and ``report``: what is done with a saved match, or with a certificate."""

from __future__ import annotations

from pathlib import Path

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command

PAGE = Path("report.html")


@command(
    "blindmatch match images.npy texts.npy --save match.npz",
    "blindmatch verify match.npz",
    "blindmatch verify nug12.dat proof.npz",
    "blindmatch verify images.npy texts.npy proof.npz --distortion cka",
)
def verify(files: list[Path], what: opt.TaskOptions, json: bool = False) -> None:
    """Recompute, from scratch and without any solver, the lower bound that a certificate proves."""
    import time

    from blindmatch.cli.console import FAILED, complain, echo_json, output
    from blindmatch.cli.inputs import read_certified
    from blindmatch.cli.progress import busy
    from blindmatch.problem.fingerprint import differs
    from blindmatch.proof import checker
    from blindmatch.report.verdict import counted

    start, path = time.perf_counter(), files[-1]
    problem, others, certificate = read_certified(files, what)
    try:
        with busy(f"checking the proof, {counted(len(certificate.nodes), 'node')}"):
            bound = min(checker.verify(problem, certificate), others)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    seconds = time.perf_counter() - start
    other = differs(problem, certificate.fingerprint)
    if json:
        values = {"lower_bound": bound, "size": problem.n, "seconds": seconds}
        echo_json({**values, "same_problem": not other if certificate.fingerprint else None})
    elif bound > float("-inf"):
        output().print(f"Verified in {seconds:.2f} s: every pairing costs at least {bound!r}.", soft_wrap=True)
    if other:
        options = " or other options, such as --distortion, --metric and --scale" if len(files) == 3 else ""
        complain(
            f"{path}: it was written for another problem (other data{options}); the bound is that of the one given"
        )
    if bound == float("-inf"):
        complain(f"{path}: proves nothing about this problem")
        raise typer.Exit(FAILED)


@command(
    "blindmatch match images.npy texts.npy --save match.npz",
    "blindmatch assess match.npz",
    "blindmatch assess match.npz --background words.npy --report report.html",
    "blindmatch assess match.npz --draws 999 --save assessed.npz",
)
def assess(
    match: Path,
    *,
    items: opt.ItemOptions,
    background: opt.File = None,
    draws: int = 199,
    assess_time: float = 60.0,
    trust: opt.TrustOptions,
    run: opt.RunOptions,
    json: bool = False,
    report: opt.File = None,
    save: opt.File = None,
) -> None:
    """Assess a match: whether it could be chance, how likely each pair is right, which pairs could be exchanged."""
    from blindmatch.cli.answers import Answer, check_trust, plan_of
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
    answer = Answer(shown_match(items, result), opt.OutputOptions(json=json, report=report, save=save), fresh=False)
    answer.assess(plan, run, assess_time, trust.min_confidence)
    answer.finish()


@command(
    "blindmatch match a.npy b.npy --save match.npz",
    "blindmatch report match.npz --out report.html",
    "blindmatch report match.npz --source-images photos/ --truth rows",
)
def report(match: Path, items: opt.ItemOptions, out: Path = PAGE, title: str | None = None, json: bool = False) -> None:
    """Make the report of a saved match. Cost, bound and status are computed again from the data and the proof."""
    from dataclasses import replace
    from functools import partial

    from blindmatch.cli.console import echo_json
    from blindmatch.cli.inputs import read_match
    from blindmatch.cli.items import check_items, item_files, shown_match
    from blindmatch.cli.outputs import Delivery, check_outputs, write_page

    check_items(items, out)
    check_outputs({"--out": out}, [match, *item_files(items)])
    result = read_match(match)
    shown = shown_match(items, result if title is None else replace(result, title=title))
    delivery = Delivery()
    if delivery.write(out, partial(write_page, shown)):
        answer = {"report": str(out), "bytes": out.stat().st_size}
        delivery.show(lambda: echo_json(answer)) if json else delivery.announce(f"Report: {out}")
    delivery.end()
