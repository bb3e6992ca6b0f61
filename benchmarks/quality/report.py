"""The rows as a table on the terminal, a CSV file and a plot."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    instance: str
    family: str
    n: int
    solver: str
    cost: float | None
    bound: float | None
    gap: float | None  # to the best known cost, relative
    proved: bool
    seconds: float | None
    note: str = ""


def print_table(rows: Sequence[Row]) -> None:
    console = Console(width=None if Console().is_terminal else 130)
    for instance in dict.fromkeys(row.instance for row in rows):
        mine = [row for row in rows if row.instance == instance]
        table = Table(title=f"{instance} ({mine[0].family}, n={mine[0].n})", title_justify="left")
        for column in ("solver", "cost", "bound", "gap to best", "proved", "seconds"):
            table.add_column(column, justify="left" if column == "solver" else "right")
        for row in mine:
            if row.cost is None:
                table.add_row(row.solver, row.note, "", "", "", "")
                continue
            bound = "" if row.bound is None else f"{row.bound:.6g}"
            proved = "yes" if row.proved else ""
            table.add_row(row.solver, f"{row.cost:.9g}", bound, _percent(row.gap), proved, f"{row.seconds:.3f}")
        console.print(table)
    console.print(_summary(rows))


def _summary(rows: Sequence[Row]) -> Table:
    table = Table(title="All instances", title_justify="left")
    for column in ("solver", "instances", "best found", "proved", "mean gap", "seconds"):
        table.add_column(column, justify="left" if column == "solver" else "right")
    for solver in dict.fromkeys(row.solver for row in rows):
        mine = [row for row in rows if row.solver == solver and row.gap is not None and row.seconds is not None]
        if mine:
            best = sum((row.gap or 0.0) <= 1e-9 for row in mine)
            gap = _percent(sum(row.gap or 0.0 for row in mine) / len(mine))
            proved = str(sum(row.proved for row in mine))
            seconds = f"{sum(row.seconds or 0.0 for row in mine):.2f}"
            table.add_row(solver, str(len(mine)), str(best), proved, gap, seconds)
    return table


def _percent(gap: float | None) -> str:
    return "" if gap is None else f"{100 * gap:.3f} %"


def write_csv(rows: Sequence[Row], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def plot(rows: Sequence[Row], path: Path) -> bool:
    """Gap against time, one mark a solver and instance; False where matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    families = list(dict.fromkeys(row.family for row in rows))
    solvers = list(dict.fromkeys(row.solver for row in rows if row.gap is not None))
    figure, axes = plt.subplots(1, len(families), figsize=(4.5 * len(families), 4.5), sharey=True, squeeze=False)
    colours, marks = plt.get_cmap("tab20"), "osD^v<>Ph*"
    for axis, family in zip(axes[0], families, strict=True):
        for index, solver in enumerate(solvers):
            mine = [row for row in rows if (row.family, row.solver) == (family, solver) and row.gap is not None]
            axis.plot(
                [max(row.seconds or 0.0, 1e-5) for row in mine],
                [max(100 * (row.gap or 0.0), 1e-4) for row in mine],
                marks[index % len(marks)],
                color=colours(index % 20),
                alpha=0.75,
                label=solver,
            )
        axis.set(title=family, xlabel="seconds", xscale="log", yscale="log")
    axes[0][0].set_ylabel("gap to the best known cost, % (0.0001: none)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.set_layout_engine("constrained")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return True
