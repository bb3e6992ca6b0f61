"""The solvers that the paper compares, by the names in its tables, and ours."""

from __future__ import annotations

from collections.abc import Iterable

from blindmatch.solvers import SOLVERS
from blindmatch.solvers.base import Solver
from blindmatch.solvers.faq import FAQ

PAPER_NAMES = {
    "random": "Random",
    "local-cka": "LocalCKA",
    "entropic-gw": "OT",
    "faq-published": "FAQ",
    "mpopt": "MPOpt",
    "gurobi": "Gurobi",
    "factorized-hahn-grant": "Ours",
}
"""Rows of the paper's tables. The paper's "Ours" is the factorised Hahn-Grant solver."""

LINEUP = (*PAPER_NAMES, "faq", "dual-ascent", "branch-and-bound")
KNOWN = (*SOLVERS, "faq-published")


def lineup_solver(name: str) -> Solver:
    """A solver of ``bm.SOLVERS``, or "faq-published": plain FAQ, best of 100 starts, as the paper ran it."""
    solver: Solver = FAQ(centre_diagonals=False, polish=False) if name == "faq-published" else SOLVERS[name]()
    return solver


def installed(names: Iterable[str]) -> list[str]:
    """The installed solvers; the others are left out of plans and named below the tables."""
    return [name for name in names if lineup_solver(name).capabilities.installed]


def missing_note(names: Iterable[str]) -> str:
    """A sentence about solvers that are not installed; empty if all are."""
    lost = [name for name in names if not lineup_solver(name).capabilities.installed]
    return f"Not installed, so there are no numbers: {', '.join(lost)}." if lost else ""


def label(name: str) -> str:
    """A name for a table: ours, with the paper's in brackets if it has one."""
    paper = PAPER_NAMES.get(name)
    return name if paper is None or paper.lower() == name else f"{name} (paper: {paper})"
