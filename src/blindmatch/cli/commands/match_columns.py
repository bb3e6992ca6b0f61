"""``match-columns``: the columns of two tables."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command

_TABLES = "A table: .csv, .tsv, .jsonl, .xlsx, .parquet, .db (SQLite)."


def _price(text: Any) -> Any:
    return None if text in (None, "none") else opt.price(text)


@command(
    "blindmatch match-columns ours.csv theirs.csv",
    "blindmatch match-columns ours.xlsx:Staff theirs.db:people --assess --report columns.html",
    "blindmatch match-columns ours.csv theirs.csv --unmatched-cost none --json",
)
def match_columns(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help=_TABLES, show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Another table, of other rows and columns.")],
    solving: opt.SolverOptions,
    outputs: opt.OutputOptions,
    unmatched_cost: Annotated[
        Any,
        typer.Option(
            metavar="PRICE",
            parser=_price,
            help="What each column without a partner adds to the cost: 'auto', a number, or 'none' to match all.",
        ),
    ] = "auto",
    assess: opt.Assess = False,
) -> None:
    """Match the columns of two tables whose headers mean nothing, by how columns relate and by their shapes."""
    from blindmatch.cli.answers import (
        Answer,
        assess_with_progress,
        check_answer,
        plan_of,
        solve_options,
        solve_with_progress,
    )
    from blindmatch.cli.inputs import command_line
    from blindmatch.matching.match_columns import column_task, columns_matched
    from blindmatch.report import Match

    options = solve_options(solving)
    check_answer(outputs, options.solver, {"--log": solving.log}, [source, target])
    given = column_task(source, target, unmatched_cost)
    plan = plan_of(opt.TrustOptions(), given.task) if assess else None
    found = solve_with_progress(partial(columns_matched, given), options, solving)
    settings = {"source": source.name, "target": target.name, **found.settings, **solving.settings}
    title = f"Columns of {source.name} matched with those of {target.name}"
    match = Match(replace(found, title=title, settings={**settings, "command": command_line()}).sealed())
    answer = Answer(match, outputs)
    if plan is not None:
        answer.assess(None, lambda: assess_with_progress(match.result, plan, solving, solving.assess_seconds))
    answer.finish()
