"""What the commands do with a match: print it, assess it, write files, and end with the right exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import typer

from blindmatch.cli.console import FAILED, complain, echo_json, output
from blindmatch.cli.options import OutputOptions, SolverOptions
from blindmatch.cli.outputs import Delivery, check_outputs, write_page
from blindmatch.cli.progress import watched
from blindmatch.cli.tables import Tables
from blindmatch.cli.texts import match_text, trust_text, unmatched
from blindmatch.io.embeddings import load_embeddings
from blindmatch.matching.match_task import SolveOptions, by_coordinates
from blindmatch.problem.task import Task
from blindmatch.report import Match
from blindmatch.report.content import moments
from blindmatch.solvers.base import Solver
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solving.result import Result
from blindmatch.solving.run import as_solver
from blindmatch.trust import Assessment
from blindmatch.trust.abstention import assessed_or_kept
from blindmatch.trust.assessment import AssessmentPlan, Schedule, as_background, as_share, assess_result
from blindmatch.trust.prior import as_prior, as_stated_prior, refuse_prior
from blindmatch.validation import IntArray, at_least, positive


@dataclass(frozen=True)
class Request:
    """How to solve, and where the answer goes."""

    solving: SolverOptions
    outputs: OutputOptions
    checkpoint: Path | None = None
    executor: Executor | None = None
    start: IntArray | None = None

    @property
    def solver(self) -> Solver:
        """The solver with its options."""
        if self.checkpoint is None and self.executor is None:
            return as_solver(self.solving.solver)
        if self.solving.solver not in ("auto", BranchAndBound.name):
            option = "--engine" if self.checkpoint is None else "--checkpoint"
            raise ValueError(f"{option}: solver={self.solving.solver!r} cannot use it; only branch-and-bound can")
        return BranchAndBound(checkpoint=self.checkpoint, executor=self.executor)

    def check(self, inputs: Sequence[Path | None] = (), others: Mapping[str, Path | None] | None = None) -> None:
        """Refuse now what would fail only after a long run."""
        out = self.outputs
        check_certificate(out.certificate, self.solver)
        written = {"--certificate": out.certificate, "--report": out.report, "--save": out.save, **(others or {})}
        check_outputs({**written, "--checkpoint": self.checkpoint, "--log": self.solving.log}, inputs)

    def solved(self, solve: Callable[[SolveOptions], Result]) -> Result:
        """Solve with live progress."""
        given = self.solving
        with watched("starting", given.seconds, verbose=given.verbose, log=given.log) as line:
            return solve(replace(self.options, callback=None if line is None else line.moment))

    @property
    def options(self) -> SolveOptions:
        """How to solve, for the library."""
        given = self.solving
        return SolveOptions(self.solver, given.time_limit, given.seed, None, given.threads, self.start)


def check_certificate(path: Path | None, solver: Solver) -> None:
    """Refuse a certificate from a solver that proves nothing, or whose proof nobody can check."""
    can = solver.capabilities
    if path is None or (can.bound and can.certificate):
        return
    lacks = "writes no certificate of its bound" if can.bound else "proves no bound"
    raise ValueError(f"--certificate: --solver {solver.name} {lacks}; see 'blindmatch solvers'")


@dataclass(frozen=True)
class AssessOptions:
    """How to assess: `min_confidence` None keeps all pairs."""

    min_confidence: float | None = None
    prior: float | None = None
    prior_from: tuple[Path, Path] | None = None
    background: Path | None = None
    draws: int = 199
    time_limit: float = 60.0

    def check(self) -> None:
        """Refuse now what would fail only after a match."""
        at_least(self.draws, 1, "--draws")
        positive(self.time_limit, "--assess-time")
        if self.min_confidence is not None:
            as_share(self.min_confidence, "--min-confidence")
        as_stated_prior(self.prior, "--prior")
        if self.prior is not None and self.prior_from is not None:
            raise ValueError(f"--prior {self.prior:g} and --prior-from are given; expected one of them")

    def check_size(self, task: Task, request: Request) -> None:
        """Refuse a prior for a match that will be too large to use it."""
        if by_coordinates(task, request.options):
            refuse_prior(self.prior, max(task.sizes), "--prior")
            refuse_prior(self.prior_from, max(task.sizes), "--prior-from")

    def plan(self, task: Task) -> AssessmentPlan:
        """What to draw from, read before the match."""
        null = None
        if self.background is not None:
            null = as_background(load_embeddings(self.background).values, task, f"--background {self.background}")
        known = self.prior_from and (
            load_embeddings(self.prior_from[0]).values,
            load_embeddings(self.prior_from[1]).values,
        )
        prior = self.prior if known is None else as_prior(known, task, "--prior-from")
        return AssessmentPlan(null, self.draws, prior=prior)


def assess_with_progress(
    result: Result, plan: AssessmentPlan, solving: SolverOptions, time_limit: float = 60.0
) -> Assessment:
    """Assess with a line of progress on the terminal."""
    with watched("assessing", verbose=solving.verbose, log=solving.log) as line:
        report = None if line is None else line.share
        return assess_result(result, plan, Schedule.of(solving.seed, solving.threads, time_limit, report))


class Answer:
    """A match on its way to the user: each step is taken once, whatever becomes of the others."""

    def __init__(
        self,
        match: Match,
        request: Request,
        text: Sequence[object] | None = None,
        tables: Tables | None = None,
        candidates: IntArray | None = None,
        fresh: bool = True,
    ) -> None:
        self._request, self._tables, self._candidates, self._fresh = request, tables, candidates, fresh
        self._delivery = Delivery(request.outputs.json)
        self._match = self._page = match  # what is printed as JSON, and what the report shows
        self._text = match_text(match) if text is None else text
        self._printed = self._certificate_done = False
        cut = fresh and match.result.status == "interrupted"
        self._cut = ["this is the best so far"] if cut else []

    @property
    def match(self) -> Match:
        """The match as it is now: with its assessment, without pairs that are not to be believed."""
        return self._match

    def assess(self, assessment: AssessOptions, plan: AssessmentPlan) -> None:
        """Assess the match, and leave out the pairs that are not to be believed.

        On a terminal the match is printed first, unless pairs may be left out. Whatever happens to the assessment, the
        match is printed.
        """
        match, request, least = self._match, self._request, assessment.min_confidence
        if not request.outputs.json and least is None:
            self._print()

        def trust_of_match() -> Assessment:
            return assess_with_progress(match.result, plan, request.solving, assessment.time_limit)

        try:
            self._write_certificate()
            # A saved match may have been cut short long ago: it is assessed all the same.
            result, trust = assessed_or_kept(match.result, trust_of_match, least, fresh=self._fresh)
        except BaseException:
            self._print()
            raise
        self._match = replace(match, result=result, trust=trust)
        if result.left_out:
            self._text = match_text(self._match)
        if not request.outputs.json:
            self._print()
        if trust is not None:
            self._page = replace(self._match, certificate_file=self._page.certificate_file)
            if not request.outputs.json:
                self._delivery.show(lambda: print_all(trust_text(trust, self._match, output().width)))
        elif match.result.pairs:
            kept = "" if least is None else " and all its pairs are kept"
            self._cut.append(f"{'it' if self._cut else 'the match is complete, but'} was not assessed{kept}")

    def write(self, what: str, path: Path | None, write_it: Callable[[Path], object]) -> None:
        """Print the match, and write a further file if it was asked for."""
        self._print()
        self._delivery.write(path, write_it, what)

    def finish(self) -> None:
        """Print the match, write the files that were asked for, and end with the right exit code."""
        out, result = self._request.outputs, self._match.result
        self._print()
        self._write_certificate()
        trust = self._match.trust
        self.write("Saved match", out.save, lambda path: self._match.result.save(path, trust))
        self.write("Report", out.report, partial(write_page, self._page))
        unproved = out.certificate is not None and result.certificate is None
        if unproved:
            complain(f"{out.certificate}: not written, because solver={result.solver!r} left no certificate")
        self._delivery.end(", and ".join(self._cut))
        if unproved:
            raise typer.Exit(FAILED)

    def _print(self) -> None:
        if not self._printed:
            self._printed = True
            self._delivery.show(self._print_json if self._request.outputs.json else self._print_text)

    def _print_json(self) -> None:
        values = as_json(self._match)
        if self._tables is not None:
            values["columns"] = self._tables.to_dict()
        if self._candidates is not None:
            values["candidates"] = self._candidates.tolist()
        price = self._match.price
        if price is not None:
            values["unmatched_cost"] = price.price
            values["matched_at_price"] = [list(point) for point in price.curve]
        echo_json(values)

    def _print_text(self) -> None:
        print_all([*self._text, *([] if self._tables is None else self._tables.texts)])
        price = self._match.price
        if price is not None:
            suggested, search = f"{price.price:.3g}", price.text
            text = f"Suggested price of an unmatched item: {suggested}. A quick search finds {search}."
            output().print(text, markup=False)

    def _write_certificate(self) -> None:
        if self._certificate_done:
            return
        self._certificate_done = True
        certificate, path = self._match.result.certificate, self._request.outputs.certificate
        written = certificate is not None and self._delivery.write(path, certificate.save, "Proof")
        # Where it was not written, the report must not describe an older file of that name.
        self._page = replace(self._page, certificate_file=path if written else None)


def print_all(parts: Sequence[object]) -> None:
    """Print tables and sentences on stdout."""
    console = output()
    for part in parts:
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
    values |= {"settings": dict(match.result.settings), "trace": moments(match)}
    if match.right is not None:
        values["right"] = match.right
    if match.trust is not None:
        values["trust"] = match.trust.to_dict()
    return values
