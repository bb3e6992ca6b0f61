"""What the commands do."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import typer

from blindmatch.cli.assessing import Assessment, trust_text
from blindmatch.cli.console import FAILED, INTERRUPTED, complain, echo_json, output
from blindmatch.cli.inputs import EmbeddingFiles, Loaded, ProblemFile, Search
from blindmatch.cli.outputs import Delivery, check_outputs, write_page
from blindmatch.cli.progress import busy, live_progress
from blindmatch.cli.saved import Saved, saved_match
from blindmatch.cli.tables import demo_text, match_text, solver_legend, solver_rows, solver_table, unmatched
from blindmatch.demo import load_demo
from blindmatch.problem.distortion import DISTORTIONS, GromovWasserstein
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate
from blindmatch.proof.checker import verify
from blindmatch.report import Match
from blindmatch.report.content import moments
from blindmatch.solvers.base import Solver
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solving.result import Result
from blindmatch.solving.run import as_solver, solve
from blindmatch.trust import Trust


@dataclass(frozen=True)
class Run:
    """How to solve, and where the answer goes."""

    solver: str
    time_limit: float | None
    seed: int
    threads: int | None
    json: bool
    certificate: Path | None
    report: Path | None
    checkpoint: Path | None = None

    @property
    def settings(self) -> dict[str, str]:
        """What was asked for, for the report."""
        return {
            "solver": self.solver,
            "time limit": "none" if self.time_limit is None else f"{self.time_limit:g} s",
            "seed": str(self.seed),
            "threads": "all cores" if self.threads is None else str(self.threads),
        }

    def configured_solver(self) -> Solver:
        """The solver with its options."""
        if self.checkpoint is None:
            return as_solver(self.solver)
        if self.solver not in ("auto", BranchAndBound.name):
            raise ValueError(f"--checkpoint: solver={self.solver!r} keeps none; only branch-and-bound does")
        return BranchAndBound(checkpoint=self.checkpoint)

    def check(self, inputs: Sequence[Path] = ()) -> None:
        """Refuse now what would fail only after a long run."""
        can = self.configured_solver().capabilities
        if self.certificate is not None and not can.bound:
            raise ValueError(f"--certificate: solver={self.solver!r} proves no bound; see 'blindmatch solvers'")
        written = {"--certificate": self.certificate, "--report": self.report, "--checkpoint": self.checkpoint}
        check_outputs(written, inputs)

    def solve(self, problem: QAP) -> Result:
        """Solve with live progress."""
        with live_progress(self.time_limit) as callback:
            return solve(
                problem,
                self.configured_solver(),
                time_limit=self.time_limit,
                rng=self.seed,
                callback=callback,
                threads=self.threads,
            )


def run_match(
    inputs: EmbeddingFiles, run: Run, assessment: Assessment | None = None, saved: Path | None = None
) -> None:
    """Match two files of embeddings, or take a `saved` match of them, and tell whether to believe it."""
    background = None if assessment is None else assessment.background
    run.check((*inputs.paths, *(path for path in (saved, background) if path is not None)))
    if assessment is not None:
        assessment.check()
    title = f"{inputs.source.name} matched with {inputs.target.name}"
    if saved is None:
        with busy("reading"):
            loaded = inputs.load(Search(run.seed, run.time_limit, run.threads))
        match = _match_of(loaded, run.solve(loaded.problem), inputs.settings, run, title)
    else:
        loaded = inputs.load_for_certificate(sys.maxsize)
        match = saved_match(saved, _match_of(loaded, Saved.load(saved).result, inputs.settings, run, title))
    if assessment is None:
        _finish(match, run)
        return
    match, cut = assessment.added_to(match, inputs, run.seed, run.threads, fresh=saved is None)
    _finish(match, run, cut=cut)


def run_solve(path: Path, run: Run) -> None:
    """Solve a problem from a file."""
    inputs = ProblemFile(path)
    run.check(inputs.paths)
    loaded = inputs.load()
    _finish(_match_of(loaded, run.solve(loaded.problem), inputs.settings, run, path.name), run)


def run_demo(data: str, run: Run) -> None:
    """Match bundled data whose answer is known."""
    run.check()
    demo = load_demo(data, run.seed)
    distortion = GromovWasserstein()
    kernels = distortion.kernels(demo.source, demo.target)
    problem = distortion.problem_of(*kernels)
    loaded = Loaded(problem, kernels, demo.source_names, demo.target_names)
    settings = {"data": data, "source": demo.source_model, "target": demo.target_model, "distortion": "gw"}
    result = run.solve(problem)
    match = _match_of(loaded, result, settings, run, f"{demo.about[0].upper()}{demo.about[1:]}")
    match = replace(match, truth=demo.truth.tolist())
    proved = None if result.certificate is None else verify(problem, result.certificate)
    _finish(match, run, demo_text(match, demo, proved, problem.objective(demo.truth)))


def run_verify(inputs: ProblemFile | EmbeddingFiles, path: Path, json: bool) -> None:
    """Check a certificate."""
    start = time.perf_counter()
    certificate = Certificate.load(path)
    loaded = inputs.load_for_certificate(certificate.size)
    problem = loaded.problem
    try:
        with busy("checking the proof"):
            bound = min(verify(problem, certificate), loaded.cost_beyond)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    seconds = time.perf_counter() - start
    if json:
        echo_json({"lower_bound": bound, "size": problem.n, "seconds": seconds})
    elif bound > float("-inf"):
        output().print(f"Verified in {seconds:.2f} s: every pairing costs at least {bound!r}.", soft_wrap=True)
    if bound == float("-inf"):
        complain(f"{path}: proves nothing about this problem")
        raise typer.Exit(FAILED)


def run_solvers(json: bool) -> None:
    """List the solvers."""
    rows = solver_rows()
    if json:
        echo_json(rows)
    else:
        output().print(solver_table(rows), solver_legend())


def _match_of(loaded: Loaded, result: Result, settings: dict[str, str], run: Run, title: str) -> Match:
    return Match(
        loaded.unpadded(result),
        loaded.kernels,
        loaded.source_names,
        loaded.target_names,
        loaded.truth,
        settings={**settings, **run.settings},
        title=title,
        problem=loaded.problem,
        similarity="distortion" in settings and DISTORTIONS[settings["distortion"]].similarities,
        command=shlex.join(["blindmatch", *sys.argv[1:]]),
        certificate_file=run.certificate,
        source_images=loaded.images[0],
        target_images=loaded.images[1],
    )


def _finish(match: Match, run: Run, text: Sequence[object] | None = None, cut: str | None = None) -> None:
    """Print the answer, write the files that were asked for, and end with the right code.

    `cut` tells what Ctrl-C ended, if it was not the match.
    """
    result, delivery = match.result, Delivery()
    delivery.show(lambda: echo_json(as_json(match)) if run.json else _print(match, text))
    if result.certificate is None or not delivery.write(run.certificate, result.certificate.save):
        match = replace(match, certificate_file=None)  # an older file of that name is not what the report tells of
    if delivery.write(run.report, partial(write_page, match)) and not run.json:
        delivery.show(lambda: output().print(f"Report: {run.report}", markup=False, soft_wrap=True))
    now = result.status == "interrupted" and match.told_by is None  # not when the saved match was made
    interrupted = [*(["this is the best so far"] if now else []), *([cut] if cut else [])]
    if interrupted:
        complain(f"interrupted; {', and '.join(interrupted)}")
    unproved = run.certificate is not None and result.certificate is None
    if unproved:
        complain(f"{run.certificate}: not written, for solver={result.solver!r} left no certificate")
    delivery.end()
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if unproved:
        raise typer.Exit(FAILED)


def _print(match: Match, text: Sequence[object] | None) -> None:
    shown = match_text(match) if text is None else text
    if isinstance(match.trust, Trust):  # its table has the pairs as well
        shown = [*trust_text(match.trust, match), *shown[1:]]
    console = output()
    for part in shown:
        console.print(part)


def as_json(match: Match) -> dict[str, object]:
    """The result with its pairs, ready for JSON."""
    pairs = []
    for i, j, source, target in match.named_pairs:
        pair: dict[str, object] = {"source": i, "target": j}
        if match.source_names is not None:
            pair["source_name"] = source
        if match.target_names is not None:
            pair["target_name"] = target
        if match.truth is not None:
            pair["right"] = bool(match.truth[i] == j)
        pairs.append(pair)
    values: dict[str, object] = {**match.result.to_dict(), "pairs": pairs, **unmatched(match)}
    values |= {"settings": dict(match.settings), "trace": moments(match)}  # what 'blindmatch report' tells as well
    if match.right is not None:
        values["right"] = match.right
    if match.trust is not None:
        values["trust"] = match.trust.to_dict()
    return values
