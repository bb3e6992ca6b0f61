"""Which items to ask a person about: those whose partners settle most of what near-optimal matches disagree on."""

from __future__ import annotations

import time

import numpy as np

from blindmatch.problem.task import Task
from blindmatch.solving.result import Result
from blindmatch.trust.alternatives import find_alternatives
from blindmatch.trust.search import Part
from blindmatch.validation import FloatArray, IntArray, as_generator

Question = tuple[int, list[int]]
_MOST = 3  # candidates of a question
_WARMTH = 0.5  # of a typical swap: a match that costs so much more is e times less likely


def questions(
    result: Result, k: int, *, time_limit: float | None, rng: int | np.random.Generator | None, threads: int | None
) -> list[Question]:
    """The sources to ask about, the most useful first, each with its likeliest targets; this is ``Result.ask``."""
    task = result.task
    if not isinstance(task, Task):
        raise ValueError("ask is about pairs of two sets: expected a result of bm.match, not of bm.solve")
    whole = result.permutation if result.whole is None else result.whole
    given = {i for i, _ in task.hints.known}
    rows = np.array([i for i in np.flatnonzero(whole >= 0) if i not in given], dtype=np.intp)
    if not len(rows) or task.sizes[1] - len(given) < 2:
        return []
    if task.too_large:
        return _of_large(result, whole, rows, k)
    part = Part(as_generator(rng), threads, time.perf_counter() + (np.inf if time_limit is None else time_limit))
    found = find_alternatives(task.problem, task.completed(whole), rows, part)
    unit = _WARMTH * found.unit or 1.0
    weights = np.exp(-(found.costs - found.costs.min()) / unit)
    chosen = _most_telling(found.matches[:, rows], weights / weights.sum(), k)
    return [(int(rows[at]), _candidates(task, found.matches, weights, int(rows[at]))) for at in chosen]


def _most_telling(matches: IntArray, weights: FloatArray, k: int) -> list[int]:
    """The columns that tell most about which match holds, one after the other: their joint entropy grows most."""
    parts = np.zeros(len(matches), dtype=np.intp)
    chosen: list[int] = []
    for _ in range(min(k, matches.shape[1])):
        best, split = (-1.0, -1), parts
        for column in range(matches.shape[1]):
            if column in chosen:
                continue
            finer = np.unique(np.column_stack([parts, matches[:, column]]), axis=0, return_inverse=True)[1].ravel()
            # Where the answers so far have settled everything, what is most doubtful by itself comes first.
            gain = _entropy(finer, weights) + 1e-3 * _entropy(matches[:, column], weights)
            if gain > best[0] + 1e-12:
                best, split = (gain, column), finer
        chosen.append(best[1])
        parts = split
    return chosen


def _entropy(labels: IntArray, weights: FloatArray) -> float:
    shares = np.bincount(labels - labels.min(), weights=weights)
    return float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())


def _candidates(task: Task, matches: IntArray, weights: FloatArray, row: int) -> list[int]:
    """The likeliest targets of a source: two or three, the likeliest first."""
    m = task.sizes[1]
    shares = np.bincount(matches[:, row], weights=weights, minlength=task.problem.n)[:m]
    linear = task.problem.linear[row, :m]
    barred = np.zeros(m, dtype=bool) if task.hints.forbidden is None else task.hints.forbidden[row]
    barred = barred | np.isin(np.arange(m), [j for _, j in task.hints.known])
    order = np.lexsort((linear, -shares))
    return [int(j) for j in order if not barred[j]][:_MOST]


def _of_large(result: Result, match: IntArray, rows: IntArray, k: int) -> list[Question]:
    """Of matches by coordinates: the least sure pairs, with the best partners by their similarity."""
    if result.ranking is None:
        raise ValueError(f"ask needs candidates, and this match of {len(match)} items has none")
    sure = np.zeros(len(match)) if result.confidence is None else np.nan_to_num(result.confidence)
    best = result.candidates(min(_MOST, result.ranking.most))
    doubtful = rows[np.argsort(sure[rows], kind="stable")][:k]
    return [(int(i), list(dict.fromkeys([int(match[i]), *best[i].tolist()]))[:_MOST]) for i in doubtful]
