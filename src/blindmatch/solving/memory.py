"""Predict the memory of a run and compare it with what is available, so that a run that is too large does not start."""

from __future__ import annotations

from dataclasses import replace

from blindmatch.machine import available_bytes
from blindmatch.problem.qap import QAP
from blindmatch.solvers.auto import Auto
from blindmatch.solvers.base import Solver


def fitting(problem: QAP, solver: Solver) -> tuple[Solver, str]:
    """The solver and no note, or "auto" without branch and bound, and why, if memory is too short for that.

    Any other solver that would run out of memory is refused, by a ValueError with the figures and an alternative.
    """
    needed, there = solver.memory(problem), available_bytes()
    if needed <= there:
        return solver, ""
    if isinstance(solver, Auto):
        smaller = replace(solver, largest=max(1, min(problem.n - 1, int(problem.n * (there / needed) ** (1 / 3)))))
        if smaller.memory(problem) <= there:
            figures = f"about {_gigabytes(needed)} of memory for n={problem.n}, and {_gigabytes(there)} is free"
            return smaller, f"branch and bound needs {figures}"
    instead = (
        "solver='auto' or 'tabu', which need n^2 numbers" if solver.name not in ("auto", "tabu") else "fewer items"
    )
    raise ValueError(
        f"solver={solver.name!r} needs about {_gigabytes(needed)} of memory for n={problem.n}, and "
        f"{_gigabytes(there)} is free; use {instead}"
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.3g} GB"
