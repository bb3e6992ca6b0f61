"""A table of the solvers and their abilities."""

from __future__ import annotations

import inspect
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from blindmatch.cli.console import UNBOUNDED
from blindmatch.solvers import SOLVERS
from blindmatch.solvers.base import Capabilities

_WITH_NOTES = 78  # columns of a terminal that the table of solvers needs
ABILITIES = {
    "bound": ("bound", "proves a lower bound"),
    "exact": ("exact", "ends with a proof of optimality, given time"),
    "linear": ("linear", "takes a linear term (known pairs lead to one)"),
    "forbidden": ("forbid", "takes forbidden pairs"),
    "asymmetric": ("asym", "takes asymmetric matrices"),
    "unequal": ("uneq", "takes sets of unequal sizes"),
}


def solver_rows() -> list[dict[str, Any]]:
    """A row for each solver with its abilities, ready for JSON."""
    return [_solver_row(name, solver) for name, solver in SOLVERS.items()]


def _solver_row(name: str, solver: Any) -> dict[str, Any]:
    can: Capabilities = solver.capabilities
    return {
        "name": name,
        **{ability: getattr(can, ability) for ability in ABILITIES},
        "max_size": can.max_size,
        "installed": can.installed,
        "install": None if can.requires is None else can.requires.install,
        "options": list(inspect.signature(solver).parameters),
        "note": can.note,
    }


def solver_table(rows: list[dict[str, Any]], width: int = UNBOUNDED) -> Table | Group:
    """The solvers as a table, or as a list if that is too wide; what is not installed shows how to get it."""
    if width < _WITH_NOTES:
        return Group(*(part for row in rows for part in _solver_lines(row)))
    table = Table(show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), box=None)
    table.add_column("solver", no_wrap=True)
    for title, _ in ABILITIES.values():
        table.add_column(title, justify="center", no_wrap=True)
    table.add_column("max n", justify="right", no_wrap=True)
    table.add_column("note", overflow="fold")
    for row in rows:
        marks = ["✓" if row[key] else "-" for key in ABILITIES]
        table.add_row(row["name"], *marks, _largest(row), Text(_note(row)))
    return table


def _solver_lines(row: dict[str, Any]) -> tuple[Text, Padding]:
    """A solver and what it can do, for a narrow terminal."""
    able = ", ".join(title for key, (title, _) in ABILITIES.items() if row[key])
    return Text(row["name"], style="bold"), Padding(Text(f"{able}; max n: {_largest(row)}\n{_note(row)}"), (0, 0, 0, 2))


def _largest(row: dict[str, Any]) -> str:
    return "any" if row["max_size"] is None else str(row["max_size"])


def _note(row: dict[str, Any]) -> str:
    return str(row["note"]) if row["installed"] else f"not installed: {row['install']}"


def solver_legend() -> Text:
    """The legend of the columns."""
    return Text("\n" + "; ".join(f"{title}: {meaning}" for title, meaning in ABILITIES.values()) + ".")
