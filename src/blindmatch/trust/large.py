"""Whether to believe a match without an assignment problem: too large, or with relations between many items."""

from __future__ import annotations

import numpy as np

from blindmatch.problem.qap import swap_costs
from blindmatch.problem.task import Task
from blindmatch.solving.result import Result
from blindmatch.trust.alternatives import Alternatives, interchangeable
from blindmatch.trust.report import Assessment
from blindmatch.validation import FloatArray, IntArray

_OTHERS = 512  # pairs to which the relations of each pair are compared
_CELLS = 2**21  # relations that are held at once


def assess_large(result: Result, match: IntArray, task: Task, rng: np.random.Generator) -> Assessment:
    """Support and confidence come from the match; the agreement of relations is measured on a random part of them."""
    agreement = _agreement(match, task, rng)
    known = agreement[np.isfinite(agreement)]
    regret, ties = _exchanges(match, task) if task.crossed else (None, [])
    return Assessment(
        p_value=None,
        p_value_error=None,
        z=None,
        draws=0,
        confidence=np.full(len(match), np.nan) if result.confidence is None else result.confidence,
        regret=None,
        found_regret=regret,
        stability=None,
        consensus=None,
        agreement=agreement,
        whole_agreement=float(known.mean()) if len(known) else None,
        chance_agreement=None,
        ambiguous=ties,
        better=0.0,
        seconds=0.0,
        support=result.support,
        match=match,
        stated_by="" if result.checked else "the saved match",
        task_digest=task.digest,
    )


def _exchanges(match: IntArray, task: Task) -> tuple[FloatArray, list[list[int]]]:
    """What the best exchange of each source's partner costs, and the groups in which exchanges cost nothing.

    For relations between the sides, of which no search is made here.
    """
    problem, cost = task.halves.problem, task.cost(match)
    swaps = swap_costs(problem, match) + sum(term.swap_costs(match) for term in task.crossed)
    least = np.maximum(swaps.min(axis=1), 0.0)
    found = Alternatives(cost, swaps, float(np.median(least)), cost + least, match[None], np.array([cost]))
    return least, interchangeable(found, np.arange(len(match)), 1e-9 * problem.scale)


def _agreement(match: IntArray, task: Task, rng: np.random.Generator) -> FloatArray:
    """(n,) the correlation of the relations of each pair to some others; nan without a partner."""
    rows = np.flatnonzero(match >= 0)
    found = np.full(len(match), np.nan)
    if len(rows) < 4:
        return found
    others = rng.choice(rows, min(_OTHERS, len(rows)), replace=False)
    for part in np.array_split(rows, -(-len(rows) * len(others) // _CELLS)):
        own = part[:, None] != others  # what an item is to itself does not count
        sides = [_relations(task, 0, part, others), _relations(task, 1, match[part], match[others])]
        for at, side in enumerate(sides):
            means = np.where(own, side, 0.0).sum(axis=1, keepdims=True) / own.sum(axis=1, keepdims=True)
            sides[at] = np.where(own, side - means, 0.0)
        sizes = np.linalg.norm(sides[0], axis=1) * np.linalg.norm(sides[1], axis=1)
        products = (sides[0] * sides[1]).sum(axis=1)
        found[part] = np.divide(products, sizes, out=np.full(len(part), np.nan), where=sizes > 0)
    return found


def _relations(task: Task, side: int, rows: IntArray, columns: IntArray) -> FloatArray:
    """Relations of some items to some others."""
    if not task.euclidean:
        return np.asarray(task.relations[side][np.ix_(rows, columns)])
    a, b = (task.points[side][items].astype(np.float64) for items in (rows, columns))
    if task.distortion.similarities:
        return np.asarray(a @ b.T)
    centre = b.mean(axis=0)  # differences of large numbers would lose digits
    a, b = a - centre, b - centre
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))
