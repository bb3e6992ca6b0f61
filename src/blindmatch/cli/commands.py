"""What the commands do."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from blindmatch.certificate import Certificate
from blindmatch.checker import verify
from blindmatch.cli.assessing import Assessment, trust_text
from blindmatch.cli.console import FAILED, INTERRUPTED, complain, echo_json, output
from blindmatch.cli.inputs import EmbeddingFiles, Loaded, ProblemFile, Search
from blindmatch.cli.progress import busy, live_progress
from blindmatch.cli.saved import Saved, saved_match
from blindmatch.cli.tables import demo_text, match_text, solver_legend, solver_rows, solver_table, unmatched
from blindmatch.demo import load_demo
from blindmatch.distortion import DISTORTIONS, GromovWasserstein
from blindmatch.files import write_atomically
from blindmatch.problem import QAP
from blindmatch.report import Match, render
from blindmatch.report.content import moments
from blindmatch.result import Result
from blindmatch.solve import as_solver, solve
from blindmatch.solvers.base import Solver
from blindmatch.solvers.branch_and_bound import BranchAndBound
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
        for option, path in (("--certificate", self.certificate), ("--report", self.report)):
            if path is None:
                continue
            if not path.parent.is_dir() or path.is_dir():
                raise ValueError(f"{option} {path}: expected a file in a folder that exists")
            if any(path.exists() and given.exists() and path.samefile(given) for given in inputs):
                raise ValueError(f"{option} {path}: this would overwrite an input")

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
    run.check((*inputs.paths, *([] if saved is None else [saved])))
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
    if assessment is not None:
        match = assessment.added_to(match, inputs, run.seed, run.threads)
    _finish(match, run)


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


def _finish(match: Match, run: Run, text: Sequence[object] | None = None) -> None:
    """Write the files that were asked for, print the answer, and end with the right code."""
    result = match.result
    if run.certificate is not None and result.certificate is not None:
        result.certificate.save(run.certificate)
    if run.report is not None:
        with busy("writing the report"):
            page = render(match).encode()
        write_atomically(run.report, lambda file: file.write(page))
    if run.json:
        echo_json(as_json(match))
    else:
        console = output()
        shown = match_text(match) if text is None else text
        if isinstance(match.trust, Trust):  # its table has the pairs as well
            shown = [*trust_text(match.trust, match), *shown[1:]]
        for part in shown:
            console.print(part)
        if run.report is not None:
            console.print(f"Report: {run.report}", markup=False, soft_wrap=True)
    if result.status == "interrupted":
        complain("interrupted; this is the best so far")
        raise typer.Exit(INTERRUPTED)
    if run.certificate is not None and result.certificate is None:
        complain(f"{run.certificate}: not written, for solver={result.solver!r} left no certificate")
        raise typer.Exit(FAILED)


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
