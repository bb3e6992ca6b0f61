"""Print a match, assess it, write files, and end with the right exit code."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from blindmatch.cli.console import echo_json, output
from blindmatch.cli.options import Given
from blindmatch.cli.outputs import Delivery, check_outputs, write_page
from blindmatch.cli.progress import show_progress
from blindmatch.cli.texts import Tables, match_text, trust_text, unmatched_items
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


def solve_options(given: Given, executor: Executor | None = None) -> SolveOptions:
    """Options of a run, for the library. Only branch-and-bound has a state to keep, or pieces to give to workers."""
    solver, checkpoint = as_solver(given.solver), vars(given).get("checkpoint")
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


def check_answer(given: Given, inputs: Sequence[Path | None] = ()) -> None:
    """Refuse now what would fail only after a long run."""
    check_certificate(given.certificate, as_solver(given.solver))
    check_outputs(given, inputs)


def check_certificate(path: Path | None, solver: Solver) -> None:
    """Refuse a certificate from a solver that proves nothing, or whose proof nobody can check."""
    can = solver.capabilities
    if path is None or (can.bound and can.certificate):
        return
    lacks = "writes no certificate of its bound" if can.bound else "proves no bound"
    raise ValueError(f"--certificate: --solver {solver.name} {lacks}; see 'blindmatch solvers'")


def solve_with_progress(solve: Callable[[SolveOptions], Result], options: SolveOptions, given: Given) -> Result:
    """Solve with a line of progress on the terminal."""
    with show_progress("starting", given.seconds, verbose=given.verbose, log=given.log) as line:
        return solve(replace(options, callback=None if line is None else line.moment))


def assess_with_progress(result: Result, plan: AssessmentPlan, given: Given) -> Assessment:
    """Assess with a line of progress on the terminal; after a match it may take as long again."""
    seconds = given.assess_time if "assess_time" in vars(given) else given.seconds or 60.0
    with show_progress("assessing", verbose=given.verbose, log=given.log) as line:
        report = None if line is None else line.share
        return assess_result(result, plan, Schedule.of(given.seed, given.threads, seconds, report))


def check_trust(given: Given, assesses: bool = True) -> None:
    """Refuse now what would fail only after a match."""
    if given.min_confidence is not None:
        as_share(given.min_confidence, "--min-confidence")
    as_stated_prior(given.prior, "--prior")
    if given.prior is not None and given.prior_from is not None:
        raise ValueError(f"--prior {given.prior:g} and --prior-from are given; expected one of them")
    if not assesses and (given.prior is not None or given.prior_from is not None):
        option = "--prior-from" if given.prior is None else f"--prior {given.prior:g}"
        raise ValueError(f"{option} needs --assess or --min-confidence")


def plan_of(given: Given, task: Task, *, large: bool = False) -> AssessmentPlan:
    """Read what an assessment draws from; a large match has a confidence of its own."""
    if large:
        refuse_prior(given.prior, max(task.sizes), "--prior")
        refuse_prior(given.prior_from, max(task.sizes), "--prior-from")
    null, prior, background = None, given.prior, vars(given).get("background")
    if background is not None:
        null = as_background(load_embeddings(background).values, task, f"--background {background}")
    if given.prior_from is not None:
        source, target = (load_embeddings(path).values for path in given.prior_from)
        prior = as_prior((source, target), task, "--prior-from")
    return AssessmentPlan(null, vars(given).get("draws", 199), prior=prior)


class Answer(Delivery):
    """A match on its way to the user: each step is taken once, whatever becomes of the others."""

    def __init__(
        self,
        match: Match,
        given: Given,
        text: Sequence[object] | None = None,
        tables: Tables | None = None,
        candidates: IntArray | None = None,
        fresh: bool = True,
    ) -> None:
        super().__init__(given.json)
        self.match = self._page = match  # what is printed, and what the report shows
        self._given, self._tables, self._candidates, self._fresh = given, tables, candidates, fresh
        self._text = match_text(match) if text is None else text
        self._printed = self._certificate_done = False
        cut = fresh and match.result.status == "interrupted"
        self._cut = ["this is the best so far"] if cut else []

    def assess(self, plan: AssessmentPlan, least: float | None = None) -> None:
        """Assess the match, and leave out the pairs whose confidence is below `least`.

        The answer comes first, so nothing is printed before it. Whatever happens to the assessment, the match is
        printed.
        """
        match = self.match
        try:
            self._write_certificate()
            # A saved match may have been cut short long ago: it is assessed all the same.
            result, trust = assessed_or_kept(
                match.result, lambda: assess_with_progress(match.result, plan, self._given), least, fresh=self._fresh
            )
        except BaseException:
            self._print()
            raise
        self.match = replace(match, result=result, trust=trust)
        if trust is not None:
            self._page = replace(self.match, certificate_file=self._page.certificate_file)
            self._text = (
                [] if self._json else trust_text(trust, self.match, output().width, evidence=self._given.evidence)
            )
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
        result, trust = self.match.result, self.match.trust
        self._print()
        self._write_certificate()
        self.write(self._given.save, lambda path: result.save(path, trust), "Saved match")
        self.write(self._given.report, partial(write_page, self._page), "Report")
        self.end(", and ".join(self._cut))

    def _print(self) -> None:
        if self._printed:
            return
        self._printed, price = True, self.match.price
        if self._json:
            values = as_json(self.match)
            if self._tables is not None:
                values["columns"] = self._tables.to_dict()
            if self._candidates is not None:
                values["candidates"] = self._candidates.tolist()
            if price is not None:
                values |= {"unmatched_cost": price.price, "matched_at_price": [list(point) for point in price.curve]}
            return self.show(lambda: echo_json(values))
        texts = [*self._text, *([] if self._tables is None else self._tables.texts)]
        if price is not None:
            told = f"Suggested price of an unmatched item: {price.price:.3g}. A quick search finds {price.text}."
            texts.append(Text(told))
        self.show(lambda: print_all(texts))

    def _write_certificate(self) -> None:
        path = vars(self._given).get("certificate")
        if not self._certificate_done:
            self._certificate_done = True
            written = self.write_certificate(path, self.match.result, "Proof")
            # Where it was not written, the report must not describe an older file of that name.
            self._page = replace(self._page, certificate_file=path if written else None)


def print_all(parts: Sequence[object]) -> None:
    """Print tables and sentences on stdout."""
    console = output()
    for part in parts:
        console.print(part)


def as_json(match: Match) -> dict[str, Any]:
    """The result with its pairs, ready for JSON."""
    pairs = []
    for i, j, source, target in match.named_pairs:
        pair: dict[str, Any] = {"source": i, "target": j}
        pair |= {} if match.source_names is None else {"source_name": source}
        pair |= {} if match.target_names is None else {"target_name": target}
        pair |= {} if match.truth is None else {"right": bool(match.truth[i] == j)}
        pairs.append(pair)
    values: dict[str, Any] = {**match.result.to_dict(), "pairs": pairs, **unmatched_items(match)}
    values |= {"settings": dict(match.result.settings), "trace": moments(match)}
    values |= {} if match.right is None else {"right": match.right}
    return values if match.trust is None else {**values, "trust": match.trust.to_dict()}
