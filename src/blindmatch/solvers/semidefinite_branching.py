"""Choose the row or column on which a node of the semidefinite tree branches, and skip symmetric children."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blindmatch.proof.certificate import COLUMN, ROW, Pair
from blindmatch.proof.checker import NodeView
from blindmatch.validation import BoolArray, FloatArray, IntArray

_WEIGHT = 3.0  # a child with the whole gap left counts e^3 times as much as one that is nearly closed

Symmetry = tuple[int, IntArray]  # (ROW or COLUMN, image)
Skipped = tuple[int, int, int]  # child, sibling, number of the symmetry


@dataclass(frozen=True)
class BranchingLine:
    """A row or a column to branch on."""

    line: Pair  # (ROW or COLUMN, its index in the problem)
    skipped: tuple[Skipped, ...]
    children: list[Pair]  # their pairs, as indices into the rows and columns that the node leaves


def best_line(view: NodeView, bounds: FloatArray, target: float, symmetries: tuple[Symmetry, ...]) -> BranchingLine:
    """The line whose children should take the least work. Pairs whose bounds reach the target need no child."""
    gap = target - float(bounds.min())
    share = np.clip((target - bounds) / gap, 0, 1) if gap < np.inf else np.ones_like(bounds)
    weights = np.where(bounds < target, np.exp(_WEIGHT * share), 0.0)
    lines = []
    for side in (ROW, COLUMN):
        skipped = _skipped(view, side, symmetries)
        work = (weights if side == ROW else weights.T) @ _needed(view, side, skipped)
        at = int(np.argmin(work))
        lines.append((float(work[at]), side, at, skipped))
    _, side, at, skipped = min(lines, key=lambda entry: entry[:2])
    return _line(view, bounds < target, side, at, skipped)


def given_line(
    view: NodeView, bounds: FloatArray, target: float, symmetries: tuple[Symmetry, ...], line: Pair
) -> BranchingLine:
    """The children of a line that an earlier run chose."""
    side, index = line
    at = int(np.flatnonzero((view.rows, view.columns)[side] == index)[0])
    return _line(view, bounds < target, side, at, _skipped(view, side, symmetries))


def _line(view: NodeView, open_: BoolArray, side: int, at: int, skipped: tuple[Skipped, ...]) -> BranchingLine:
    partners = np.flatnonzero(_needed(view, side, skipped) & (open_[at] if side == ROW else open_[:, at]))
    children = [(at, int(other)) if side == ROW else (int(other), at) for other in partners]
    return BranchingLine((side, int((view.rows, view.columns)[side][at])), skipped, children)


def _needed(view: NodeView, side: int, skipped: tuple[Skipped, ...]) -> BoolArray:
    """The partners of a line that must become children: those that no symmetry maps to a sibling."""
    return ~np.isin((view.columns, view.rows)[side], [child for child, _, _ in skipped])


def _skipped(view: NodeView, side: int, symmetries: tuple[Symmetry, ...]) -> tuple[Skipped, ...]:
    """Children to skip: a symmetry that keeps all fixed pairs maps a sibling to them. The first of each orbit stays."""
    usable = [
        (number, image)
        for number, (of, image) in enumerate(symmetries)
        if of == 1 - side and all(image[pair[of]] == pair[of] for pair in view.fixed)
    ]
    gone: dict[int, Skipped] = {}
    for sibling in (view.columns, view.rows)[side].tolist():
        if sibling in gone:
            continue
        for number, image in usable:
            child = int(image[sibling])
            if child > sibling and child not in gone:
                gone[child] = (child, sibling, number)
    return tuple(gone.values())
