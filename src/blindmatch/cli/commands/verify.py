"""``verify``: the bound that a certificate proves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command


@command(
    "blindmatch match images.npy texts.npy --save match.npz",
    "blindmatch verify match.npz",
    "blindmatch verify nug12.dat proof.npz",
    "blindmatch verify images.npy texts.npy proof.npz --distortion cka",
)
def verify(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="MATCH",
            help="What --save wrote (.npz). Or PROBLEM CERTIFICATE: a problem (.dat, .npz) and what --certificate "
            "wrote. Or SOURCE TARGET CERTIFICATE as they were given to 'match', with the same --distortion, --metric, "
            "--scale, --no-standardize and options for pairs.",
            show_default=False,
        ),
    ],
    what: opt.TaskOptions,
    json: opt.Json = False,
) -> None:
    """Recompute, from scratch and without any solver, the lower bound that a certificate proves."""
    import time

    from blindmatch.cli.console import FAILED, complain, echo_json, output
    from blindmatch.cli.inputs import certified
    from blindmatch.cli.progress import busy
    from blindmatch.problem.fingerprint import differs
    from blindmatch.proof import checker
    from blindmatch.report.verdict import counted

    start, path = time.perf_counter(), files[-1]
    problem, others, certificate = certified(files, what)
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
