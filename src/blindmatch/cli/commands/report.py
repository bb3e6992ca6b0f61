"""``report``: a saved result as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command

PAGE = Path("report.html")


@command(
    "blindmatch match a.npy b.npy --json > match.json",
    "blindmatch report match.json a.npy b.npy --out report.html",
    "blindmatch report match.json a.npy b.npy --distortion cka --certificate proof.npz",
    "blindmatch report match.json a.npy b.npy --source-images photos/ --truth rows",
    "blindmatch report solved.json nug12.dat",
)
def report(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What --json printed, in a file.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE TARGET",
            help="The embeddings as they were given to 'match', with the same --distortion, --metric, --no-standardize "
            "and options for pairs; or the problem (.dat, .npz) that was given to 'solve'.",
            show_default=False,
        ),
    ],
    what: opt.TaskOptions,
    items: opt.ItemOptions,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The report to write.")] = PAGE,
    certificate: Annotated[
        opt.File,
        typer.Option("-c", "--certificate", metavar="FILE", help="The proof, to check again and to show its hash."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="What was matched; the files by default.")] = None,
    json: opt.Json = False,
) -> None:
    """Make the report of a result that was saved as JSON."""
    from dataclasses import replace
    from functools import partial

    from blindmatch.cli.console import echo_json
    from blindmatch.cli.inputs import task_or_problem
    from blindmatch.cli.items import check_items
    from blindmatch.cli.outputs import Delivery, check_outputs, write_page
    from blindmatch.cli.saved import Saved, proved, saved_match, warn_of_another_problem
    from blindmatch.proof.certificate import Certificate

    inputs = task_or_problem(files, what, items)
    if inputs is None:
        raise ValueError(f"{len(files)} files given after {result}; expected SOURCE TARGET, or PROBLEM")
    if len(files) == 1 and items != opt.ItemOptions():
        raise ValueError("--truth, names and images are for embeddings; a problem has only indices")
    check_items(items, out)
    check_outputs({"--out": out}, [result, *inputs.paths, certificate])
    saved = Saved.load(result)
    proof = None if certificate is None else Certificate.load(certificate)
    settings = {**saved.settings, **inputs.settings}
    match = inputs.match(saved.result, settings=settings, title=title or inputs.title, certificate_file=certificate)
    match = saved_match(result, match)
    if proof is not None and certificate is not None:
        problem, others = inputs.of_size(proof.size)
        checked = proved(match.result, problem, others, proof, certificate)
        match = replace(match, result=checked, settings=settings, claimed_by=None)
        warn_of_another_problem(problem, proof, certificate, embeddings=len(files) == 2)
    delivery = Delivery()
    if delivery.write(out, partial(write_page, match)):
        answer = {"report": str(out), "bytes": out.stat().st_size}
        delivery.show(lambda: echo_json(answer)) if json else delivery.announce(f"Report: {out}")
    delivery.end()
