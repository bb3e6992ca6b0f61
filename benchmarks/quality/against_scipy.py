"""FAQ and 2-opt beside scipy's, with the same number of restarts, one thread, on every QAPLIB instance up to a size."""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table

import blindmatch as bm

from . import runners
from .instances import all_of_qaplib


def compare(restarts: int, largest: int, methods: tuple[str, ...] = ("faq", "2opt")) -> bool:
    """Print the ratios of this run; whether ours was never worse."""
    runners.RESTARTS = restarts
    console = Console()
    fine = True
    instances = all_of_qaplib(largest)
    for method in methods:
        name = {"faq": "faq", "2opt": "two-opt"}[method]
        table = Table(
            title=f"{name}, {restarts} restarts: where scipy's best is better than ours", title_justify="left"
        )
        for column in ("instance", "n", "scipy", "ours", "best known", "scipy s", "ours s"):
            table.add_column(column, justify="right")
        times, better, worse = [], 0, 0
        for instance in instances:
            problem = instance.problem
            theirs = runners.timed(runners.scipy_method(method))(problem, float("inf"))
            start = time.perf_counter()
            result = bm.solve(problem, bm.SOLVERS[name](restarts=restarts), rng=0, threads=1)
            seconds = time.perf_counter() - start
            times.append((theirs.seconds, seconds))
            better += result.cost < theirs.cost
            if result.cost > theirs.cost:
                worse += 1
                cells = (problem.n, theirs.cost, result.cost, instance.best_known)
                table.add_row(instance.name, *map(str, cells), f"{theirs.seconds:.3f}", f"{seconds:.3f}")
        ratios = np.array([a / b for a, b in times])
        total = sum(a for a, _ in times) / sum(b for _, b in times)
        console.print(table)
        equal = len(instances) - better - worse
        console.print(f"{name}: {len(instances)} instances: better on {better}, equal on {equal}, worse on {worse}")
        console.print(
            f"scipy's time over ours: least {ratios.min():.1f}, median {np.median(ratios):.0f}, all {total:.0f}"
        )
        fine = fine and worse == 0
    return fine
