"""Match the columns of two tables whose headers mean nothing: by relations between columns, and by their shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import mutual_info_score

from blindmatch.io.columns import DataColumn
from blindmatch.io.embeddings import table_columns
from blindmatch.matching.match import SolveOptions, match_task
from blindmatch.problem.task import Task
from blindmatch.solvers.base import Callback, Solver
from blindmatch.solving.limits import TimeLimit
from blindmatch.solving.result import Result
from blindmatch.validation import FloatArray, IntArray

_QUANTILES = np.linspace(0.05, 0.95, 10)
_BINS = (2, 6)  # classes of a column for mutual information: few of few rows
_PER_BIN = 5  # rows that a cell of a table of two columns has, on average
_FARTHEST = 4.0  # squared difference of two shapes beyond which they are just different
_SHAPE, _FEW = 3.0, 60.0  # how much shapes count: relations of few rows are noise (docs/tables.md has the measurements)
_NOISE, _ALIKE = 6.0, 1.0  # a price: what relations of a true pair differ by, and how far its shapes may be apart
_SPLITS, _ENOUGH = 6, 400  # random halves by which the noise of relations is measured, and of how many rows


def match_columns(
    source: Any,
    target: Any,
    *,
    unmatched_cost: float | Literal["auto"] | None = "auto",
    solver: str | Solver = "auto",
    time_limit: TimeLimit = "auto",
    rng: int | np.random.Generator | None = None,
    callback: Callback | None = None,
    threads: int | None = None,
) -> Result:
    """Match the columns of two tables without reading their headers or comparing their values.

    Two columns are alike if they relate alike to the other columns of their tables (rank correlation of numbers,
    mutual information with text), and if they have the same shape (type, share of distinct and of missing cells,
    quantiles of the standardised values). Units, languages and codes may differ, and so may the rows.

    Parameters
    ----------
    source, target
        Tables as ``bm.match`` takes them: paths, data frames, lists of dictionaries, arrays.
    unmatched_cost
        What each column without a partner adds to the cost, so that columns of one table alone can stay unmatched.
        "auto": from the number of rows and columns. None: as many columns as possible are matched.
    solver, time_limit, rng, callback, threads
        As in ``bm.match``.

    Returns
    -------
    Result
        Its items are the columns, called by their headers.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> rng = np.random.default_rng(0)
    >>> people = rng.standard_normal((200, 4)) @ rng.standard_normal((4, 6))
    >>> order = [3, 0, 5, 1, 4, 2]
    >>> bm.match_columns(people[:100], 7 * people[100:, order], rng=0).permutation.tolist()
    [1, 3, 5, 0, 4, 2]
    """
    options = SolveOptions(solver, time_limit, rng, callback, threads)
    return columns_matched(column_task(source, target, unmatched_cost), options)


@dataclass(frozen=True, eq=False)
class ColumnTask:
    """What is matched, and examples of what the columns hold."""

    task: Task
    examples: dict[str, str]


def column_task(source: Any, target: Any, unmatched_cost: float | Literal["auto"] | None = "auto") -> ColumnTask:
    """The columns of two tables as a task: relations between them, and the similarity of their shapes."""
    sides = table_columns(source, "source"), table_columns(target, "target")
    rows = [len(side[0].values) for side in sides]
    noise = 1 / rows[0] + 1 / rows[1]  # variance of the difference of two rank correlations
    bins = int(np.clip(np.sqrt(min(rows) / _PER_BIN), *_BINS))
    shapes = [np.array([_shape(column) for column in side]) for side in sides]
    apart = np.minimum(((shapes[0][:, None] - shapes[1]) ** 2).sum(axis=2), _FARTHEST)
    weight = _SHAPE + _FEW * noise
    if unmatched_cost == "auto":
        unmatched_cost = _NOISE * min(map(len, sides)) * noise + 0.5 * weight * _ALIKE
    task = Task(
        kernels=_shrunk_relations(sides, bins),
        standardize=False,
        similarity=-apart,
        similarity_weight=weight,
        unmatched_cost=unmatched_cost,
        source_names=[column.title for column in sides[0]],
        target_names=[column.title for column in sides[1]],
    )
    examples = {
        f"examples of the {name}": "; ".join(f"{column.title}: {', '.join(column.examples)}" for column in side)
        for name, side in zip(("source", "target"), sides, strict=True)
    }
    return ColumnTask(task, examples)


def columns_matched(given: ColumnTask, options: SolveOptions) -> Result:
    """Match; this is what ``bm.match_columns`` and the command ``match-columns`` share."""
    result = match_task(given.task, options)
    return replace(result, title="Columns of two tables", settings={**result.settings, **given.examples}).sealed()


def _shape(column: DataColumn) -> FloatArray:
    """What a column looks like by itself, in numbers of comparable size; units and codes do not matter."""
    known = column.values[~np.isnan(column.values)]
    distinct, counts = np.unique(known, return_counts=True)
    often = np.zeros(5)
    often[: min(len(counts), 5)] = np.sort(counts)[::-1][:5] / max(len(known), 1)
    quantiles = np.zeros(len(_QUANTILES))
    if not column.text and len(distinct) > 1:
        quantiles = (np.quantile(known, _QUANTILES) - known.mean()) / known.std()
    share = np.log(max(len(distinct), 1)) / np.log(max(len(column.values), 2))
    missing = 1 - len(known) / len(column.values)
    whole = not column.text and bool((known == np.round(known)).all())
    single = [2.0 * (not column.text), share, 2 * missing, float(whole)]
    return np.concatenate([quantiles / np.sqrt(len(quantiles)), 2 * often / np.sqrt(len(often)), single])


def _shrunk_relations(sides: Sequence[Sequence[DataColumn]], bins: int) -> tuple[FloatArray, FloatArray]:
    """The relations inside each table, each shrunk towards 0 by its noise: between halves of the table it differs."""
    noises, rng = [], np.random.default_rng(0)
    for columns in sides:
        total, noise = len(columns[0].values), np.zeros((len(columns), len(columns)))
        half = min(total, _ENOUGH) // 2
        for _ in range(_SPLITS):
            order = rng.permutation(total)
            parts = (
                [replace(each, values=each.values[rows]) for each in columns]
                for rows in (order[:half], order[half : 2 * half])
            )
            one, other = (_relations(part, bins) for part in parts)
            noise += (one - other) ** 2
        noises.append(noise * half / (2 * total * _SPLITS))  # variance of all rows, from differences of two halves
    means = [noise.sum() / max(len(noise) * (len(noise) - 1), 1) for noise in noises]
    found = []
    for columns, own, mean in zip(sides, noises, means[::-1], strict=True):  # half of the noise is that of both tables
        relations = _relations(columns, bins)
        signal = relations**2
        found.append(relations * signal / np.maximum(signal + (own + mean) / 2, 1e-300))
    return found[0], found[1]


def _relations(columns: Sequence[DataColumn], bins: int) -> FloatArray:
    """How each two columns of a table relate: rank correlation of numbers; with text, mutual information like it.

    Text that is nearly always different relates to nothing.
    """
    ranks = np.array([_ranks(column.values) for column in columns])
    found = np.asarray(ranks @ ranks.T)
    classes = [_classes(column, bins) for column in columns]
    for i, one in enumerate(columns):
        for k in range(i):
            if one.text or columns[k].text:
                found[i, k] = found[k, i] = _information(classes[i], classes[k])
    np.fill_diagonal(found, 0.0)
    return found


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks with mean 0 and length 1; 0 where a value is missing."""
    known = ~np.isnan(values)
    ranks = np.zeros(len(values))
    if known.any():
        ranks[known] = rankdata(values[known])
        ranks[known] -= ranks[known].mean()
    length = np.linalg.norm(ranks)
    return ranks / length if length > 0 else ranks


def _classes(column: DataColumn, bins: int) -> IntArray | None:
    """The cells in a few classes, -1 where one is missing; None for text that is nearly always different."""
    known = ~np.isnan(column.values)
    values, codes, counts = np.unique(column.values[known], return_inverse=True, return_counts=True)
    if column.text and len(values) > known.sum() / 2:
        return None
    classes = np.full(len(column.values), -1, dtype=np.intp)
    if len(values) <= bins:
        classes[known] = codes
    elif column.text:
        place = np.empty(len(values), dtype=np.intp)
        place[np.argsort(-counts, kind="stable")] = np.arange(len(values))
        classes[known] = np.minimum(place[codes], bins - 1)  # the rare ones together
    else:
        classes[known] = np.minimum((rankdata(column.values[known]) - 0.5) / known.sum() * bins, bins - 1)
    return classes


def _information(one: IntArray | None, other: IntArray | None) -> float:
    """Mutual information as a correlation from 0 to 1, less what chance gives."""
    if one is None or other is None:
        return 0.0
    both = (one >= 0) & (other >= 0)
    if both.sum() < 2:
        return 0.0
    freedom = (len(np.unique(one[both])) - 1) * (len(np.unique(other[both])) - 1)
    found = mutual_info_score(one[both], other[both]) - freedom / (2 * both.sum())
    return float(np.sqrt(1 - np.exp(-2 * max(found, 0.0))))
