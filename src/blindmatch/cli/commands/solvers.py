"""``solvers``: what each solver can do."""

from __future__ import annotations

from blindmatch.cli import options as opt
from blindmatch.cli.app import command


@command("blindmatch solvers", "blindmatch solvers --json")
def solvers(json: opt.Json = False) -> None:
    """List the solvers and what each can do."""
    from blindmatch.cli.console import echo_json, output
    from blindmatch.cli.texts import solver_legend, solver_rows, solver_table

    rows = solver_rows()
    if json:
        echo_json(rows)
    else:
        console = output()
        console.print(solver_table(rows, console.width), solver_legend())
