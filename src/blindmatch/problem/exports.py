"""Write a problem as a mixed-integer program (``.lp``, ``.mps``) for other solvers.

It is the linearisation of Adams and Johnson (1994), whose linear relaxation is the level-1 RLT
bound. Binary variables x(i,j) pair source i with target j, and y(i,j,k,l) for i < k is their product x(i,j) x(k,l):

    minimise  sum_ij (L_ij + A_ii B_jj) x(i,j)  +  sum_{i<k, j!=l} (A_ik B_jl + A_ki B_lj) y(i,j,k,l)
    such that sum_j x(i,j) = 1,  sum_i x(i,j) = 1
              sum_l y(i,j,k,l) = x(i,j)  for each pair (i,j) and each other source k
              sum_k y(i,j,k,l) = x(i,j)  for each pair (i,j) and each other target l
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from blindmatch.io.files import write_atomically
from blindmatch.problem.qap import QAP

_LARGEST = 40  # items: n^4 / 2 variables, of which each takes a few lines

# A row: its name, the variables with coefficient 1, the variable with coefficient -1 or "", and the right-hand side.
Row = tuple[str, list[str], str, int]


def write_lp(path: str | Path, problem: QAP) -> None:
    """Write CPLEX's LP format, which all solvers read."""
    costs = _costs(problem)
    lines = ["\\ written by blindmatch", "Minimize", " obj:"]
    lines += [f"  {'+' if cost >= 0 else '-'} {abs(cost)!r} {name}" for name, cost in costs.items() if cost]
    lines += [f"  {'+' if problem.constant >= 0 else '-'} {abs(problem.constant)!r} one", "Subject To"]
    for name, ones, minus, right in _rows(problem.n):
        lines += [f" {name}: {' + '.join(ones)}{f' - {minus}' if minus else ''} = {right}"]
    lines += ["Bounds", " one = 1", *(f" {name} = 0" for name in _forbidden(problem)), "Binaries"]
    _write(path, [*lines, *(f" {name}" for name in costs if name[0] == "x"), "End"])


def write_mps(path: str | Path, problem: QAP) -> None:
    """Write the free MPS format."""
    costs = _costs(problem)
    columns: dict[str, list[str]] = {name: [f"obj {cost!r}"] if cost else [] for name, cost in costs.items()}
    kinds, right = [" N obj"], []
    for name, ones, minus, value in _rows(problem.n):
        kinds.append(f" E {name}")
        right += [f" rhs {name} {value}"] if value else []
        for one in ones:
            columns[one].append(f"{name} 1")
        if minus:
            columns[minus].append(f"{name} -1")
    x, y = (
        [f" {name} {entry}" for name, entries in columns.items() if name[0] == kind for entry in entries or ["obj 0"]]
        for kind in "xy"
    )
    lines = ["NAME blindmatch", "ROWS", *kinds, "COLUMNS"]
    lines += [" mark0 'MARKER' 'INTORG'", *x, " mark1 'MARKER' 'INTEND'", *y]
    # The right-hand side of the objective is subtracted.
    right += [f" rhs obj {-problem.constant!r}"] if problem.constant else []
    closed = set(_forbidden(problem))  # one bound each: of two, some programs use the first
    bounds = [f" FX bnd {x} 0" if x in closed else f" UP bnd {x} 1" for x in columns if x[0] == "x"]
    _write(path, [*lines, "RHS", *right, "BOUNDS", *bounds, "ENDATA"])


def _costs(problem: QAP) -> dict[str, float]:
    """The variables and their costs, x first."""
    n = problem.n
    if n > _LARGEST:
        raise ValueError(f"n={n}: the linearisation would have {n**4 // 2:.2g} variables; expected n <= {_LARGEST}")
    tensor = problem.dense()
    costs = {_x(i, j): float(tensor[i, j, i, j]) for i in range(n) for j in range(n)}
    for i, j, k, m in _products(n):
        costs[f"y({i},{j},{k},{m})"] = float(tensor[i, j, k, m] + tensor[k, m, i, j])
    return costs


def _products(n: int) -> Iterator[tuple[int, int, int, int]]:
    return ((i, j, k, m) for i in range(n) for k in range(i + 1, n) for j in range(n) for m in range(n) if j != m)


def _rows(n: int) -> Iterator[Row]:
    items = range(n)
    for i in items:
        yield f"source({i})", [_x(i, j) for j in items], "", 1
        yield f"target({i})", [_x(j, i) for j in items], "", 1
    for i, j in np.ndindex(n, n):
        for k in items:
            if k != i:
                yield f"s({i},{j},{k})", [_y(i, j, k, m) for m in items if m != j], _x(i, j), 0
            if k != j:
                yield f"t({i},{j},{k})", [_y(i, j, m, k) for m in items if m != i], _x(i, j), 0


def _x(i: int, j: int) -> str:
    return f"x({i},{j})"


def _y(i: int, j: int, k: int, m: int) -> str:
    return f"y({i},{j},{k},{m})" if i < k else f"y({k},{m},{i},{j})"


def _forbidden(problem: QAP) -> list[str]:
    return [_x(int(i), int(j)) for i, j in np.argwhere(~problem.allowed)]


def _write(path: str | Path, lines: list[str]) -> None:
    write_atomically(path, lambda file: file.write(("\n".join(lines) + "\n").encode("ascii")))
