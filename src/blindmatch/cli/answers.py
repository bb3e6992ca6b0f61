"""Print a match, assess it, write files, and end with the right exit code."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path

from blindmatch.cli.console import echo_json, output
from blindmatch.cli.options import OutputOptions, RunOptions, SolverOptions, TrustOptions
from blindmatch.cli.outputs import Delivery, check_outputs, write_page
from blindmatch.cli.progress import watched
from blindmatch.cli.tables import Tables
from blindmatch.cli.texts import match_text, trust_text, unmatched_items
from blindmatch.io.embeddings import load_embeddings
from blindmatch.matching.match import SolveOptions
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
from blindmatch.validation import IntArray


def solve_options(
    given: SolverOptions, checkpoint: Path | None = None, executor: Executor | None = None
) -> SolveOptions:
    """Options of a run, for the library. Only branch-and-bound has a state to keep, or pieces to give to workers."""
    solver = as_solver(given.solver)
    if checkpoint is not None or executor is not None:
        if given.solver not in ("auto", BranchAndBound.name):
            option = "--engine" if checkpoint is None else "--checkpoint"
            raise ValueError(f"{option}: solver={given.solver!r} cannot use it; only branch-and-bound can")
        solver = BranchAndBound(checkpoint=checkpoint, executor=executor)
    return SolveOptions(solver, given.time_limit, given.seed, None, given.threads)


def with_title(result: Result, title: str, settings: Mapping[str, str]) -> Result:
    """The result with what reports and --json say about the run, and its command."""
    return replace(result, title=title, settings={**settings, "command": command_line()})


def command_line() -> str:
    """The command that runs, to copy."""
    return shlex.join(["blindmatch", *sys.argv[1:]])


def check_answer(
    outputs: OutputOptions, solver: str | Solver, others: Mapping[str, Path | None], inputs: Sequence[Path | None] = ()
) -> None:
    """Refuse now what would fail only after a long run."""
    check_certificate(outputs.certificate, as_solver(solver))
    written = {"--certificate": outputs.certificate, "--report": outputs.report, "--save": outputs.save}
    check_outputs({**written, **others}, inputs)


def check_certificate(path: Path | None, solver: Solver) -> None:
    """Refuse a certificate from a solver that proves nothing, or whose proof nobody can check."""
    can = solver.capabilities
    if path is None or (can.bound and can.certificate):
        return
    lacks = "writes no certificate of its bound" if can.bound else "proves no bound"
    raise ValueError(f"--certificate: --solver {solver.name} {lacks}; see 'blindmatch solvers'")


def solve_with_progress(solve: Callable[[SolveOptions], Result], options: SolveOptions, given: SolverOptions) -> Result:
    """Solve with a line of progress on the terminal."""
    with watched("starting", given.seconds, verbose=given.verbose, log=given.log) as line:
        return solve(replace(options, callback=None if line is None else line.moment))


def assess_with_progress(result: Result, plan: AssessmentPlan, given: RunOptions, time_limit: float) -> Assessment:
    """Assess with a line of progress on the terminal."""
    with watched("assessing", verbose=given.verbose, log=given.log) as line:
        report = None if line is None else line.share
        return assess_result(result, plan, Schedule.of(given.seed, given.threads, time_limit, report))


def check_trust(given: TrustOptions, assesses: bool = True) -> None:
    """Refuse now what would fail only after a match."""
    if given.min_confidence is not None:
        as_share(given.min_confidence, "--min-confidence")
    as_stated_prior(given.prior, "--prior")
    if given.prior is not None and given.prior_from is not None:
        raise ValueError(f"--prior {given.prior:g} and --prior-from are given; expected one of them")
    if not assesses and (given.prior is not None or given.prior_from is not None):
        option = "--prior-from" if given.prior is None else f"--prior {given.prior:g}"
        raise ValueError(f"{option} needs --assess or --min-confidence")


def plan_of(
    given: TrustOptions, task: Task, background: Path | None = None, draws: int = 199, *, large: bool = False
) -> AssessmentPlan:
    """Read what an assessment draws from; a large match has a confidence of its own."""
    if large:
        refuse_prior(given.prior, max(task.sizes), "--prior")
        refuse_prior(given.prior_from, max(task.sizes), "--prior-from")
    null = None
    if background is not None:
        null = as_background(load_embeddings(background).values, task, f"--background {background}")
    if given.prior_from is None:
        return AssessmentPlan(null, draws, prior=given.prior)
    source, target = (load_embeddings(path).values for path in given.prior_from)
    return AssessmentPlan(null, draws, prior=as_prior((source, target), task, "--prior-from"))


class Answer(Delivery):
    """A match on its way to the user: each step is taken once, whatever becomes of the others."""

    def __init__(
        self,
        match: Match,
        outputs: OutputOptions,
        text: Sequence[object] | None = None,
        tables: Tables | None = None,
        candidates: IntArray | None = None,
        fresh: bool = True,
    ) -> None:
        super().__init__(outputs.json)
        self.match = self._page = match  # what is printed, and what the report shows
        self._outputs, self._tables, self._candidates, self._fresh = outputs, tables, candidates, fresh
        self._text = match_text(match) if text is None else text
        self._printed = self._certificate_done = False
        cut = fresh and match.result.status == "interrupted"
        self._cut = ["this is the best so far"] if cut else []

    def assess(self, plan: AssessmentPlan, given: RunOptions, seconds: float, least: float | None = None) -> None:
        """Assess the match, and leave out the pairs whose confidence is below `least`.

        The answer comes first, so nothing is printed before it. Whatever happens to the assessment, the match is
        printed.
        """
        match = self.match
        try:
            self._write_certificate()
            # A saved match may have been cut short long ago: it is assessed all the same.
            result, trust = assessed_or_kept(
                match.result, lambda: assess_with_progress(match.result, plan, given, seconds), least, fresh=self._fresh
            )
        except BaseException:
            self._print()
            raise
        self.match = replace(match, result=result, trust=trust)
        if trust is not None:
            self._page = replace(self.match, certificate_file=self._page.certificate_file)
            self._text = [] if self._outputs.json else trust_text(trust, self.match, output().width)
        elif match.result.pairs:
            kept = "" if least is None else " and all its pairs are kept"
            self._cut.append(f"{'it' if self._cut else 'the match is complete, but'} was not assessed{kept}")
        self._print()

    def write(self, path: Path | None, write_it: Callable[[Path], object], what: str = "") -> bool:
        """Print the match, and write a further file if it was asked for."""
        self._print()
        return super().write(path, write_it, what)

    def finish(self) -> None:
        """Print the match, write the files that were asked for, and end with the right exit code."""
        out, result, trust = self._outputs, self.match.result, self.match.trust
        self._print()
        self._write_certificate()
        self.write(out.save, lambda path: result.save(path, trust), "Saved match")
        self.write(out.report, partial(write_page, self._page), "Report")
        self.end(", and ".join(self._cut))

    def _print(self) -> None:
        if not self._printed:
            self._printed = True
            self.show(self._print_json if self._outputs.json else self._print_text)

    def _print_json(self) -> None:
        values = as_json(self.match)
        if self._tables is not None:
            values["columns"] = self._tables.to_dict()
        if self._candidates is not None:
            values["candidates"] = self._candidates.tolist()
        price = self.match.price
        if price is not None:
            values["unmatched_cost"] = price.price
            values["matched_at_price"] = [list(point) for point in price.curve]
        echo_json(values)

    def _print_text(self) -> None:
        print_all([*self._text, *([] if self._tables is None else self._tables.texts)])
        price = self.match.price
        if price is not None:
            suggested, search = f"{price.price:.3g}", price.text
            text = f"Suggested price of an unmatched item: {suggested}. A quick search finds {search}."
            output().print(text, markup=False)

    def _write_certificate(self) -> None:
        if self._certificate_done:
            return
        self._certificate_done = True
        path = self._outputs.certificate
        written = self.write_certificate(path, self.match.result, "Proof")
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
    values: dict[str, object] = {**match.result.to_dict(), "pairs": pairs, **unmatched_items(match)}
    values |= {"settings": dict(match.result.settings), "trace": moments(match)}
    if match.right is not None:
        values["right"] = match.right
    if match.trust is not None:
        values["trust"] = match.trust.to_dict()
    return values
