"""Measures for the report: bound and cost over time, the costs of random pairings."""

from __future__ import annotations

import numpy as np

from blindmatch.io.json_values import json_finite
from blindmatch.problem.qap import QAP
from blindmatch.report.match import Match
from blindmatch.solving.result import Result
from blindmatch.validation import BoolArray, FloatArray, IntArray

_FEWEST, _MOST = 200, 2000  # random pairings
_WORK = 5e7  # numbers to sum for all of them


def history(result: Result) -> list[tuple[float, float | None, float | None]]:
    """Seconds, bound and cost at the moments where one of the two changed, and at the end.

    The last entry is the result itself: what the checker proved, not what the solver last said. Empty without a trace.
    """
    kept: list[tuple[float, float | None, float | None]] = []
    for moment in result.trace:
        now = (round(moment.seconds, 4), json_finite(moment.lower_bound), json_finite(moment.cost))
        if now[1:] != (None, None) and (not kept or kept[-1][1:] != now[1:]):
            kept.append(now)
    if kept:
        # max returns its first argument where the seconds of the result are nan.
        end = max(kept[-1][0], round(result.seconds, 4)), json_finite(result.lower_bound), json_finite(result.cost)
        kept += [end] if end != kept[-1] else []
    return kept


def matched_kernels(match: Match) -> tuple[FloatArray, FloatArray] | None:
    """Both kernels over the matched items: row a of each is pair a."""
    if match.kernels is None:
        return None
    rows, columns = match.pairs
    return match.kernels[0][np.ix_(rows, rows)], match.kernels[1][np.ix_(columns, columns)]


def pair_costs(match: Match) -> list[float] | None:
    """The share of the cost of each pair: half of each term with another pair. None where kernels were compared."""
    problem = match.problem
    if match.kernels is not None or problem is None or len(match.pairs[0]) != problem.n:
        return None
    p = match.pairs[1]
    total = problem.linear[np.arange(problem.n), p].copy()
    for A, B in problem.factors:
        product = A * B[np.ix_(p, p)]
        total += (product.sum(axis=0) + product.sum(axis=1)) / 2
    return [float(value) for value in total]


def random_costs(match: Match, problem: QAP, rng: np.random.Generator) -> FloatArray:
    """Costs of random pairings with as many pairs as the match has.

    All of them keep the given pairs, and none uses a forbidden pair.
    """
    n, m = match.sizes
    count = int(np.clip(_WORK / (problem.n**2 * len(problem.factors)), _FEWEST, _MOST))
    given = given_pairs(match)
    rows = np.setdiff1d(np.arange(n), [i for i, _ in given])
    columns = np.setdiff1d(np.arange(m), [j for _, j in given])
    forbidden = None if problem.forbidden is None else problem.forbidden[np.ix_(rows, columns)]
    pairs = len(match.pairs[0]) - len(given)
    costs = []
    for _ in range(count):
        partners = np.full(n, -1, dtype=np.intp)
        partners[[i for i, _ in given]] = [j for _, j in given]
        some, theirs = _random_pairs((len(rows), len(columns)), pairs, forbidden, rng)
        partners[rows[some]] = columns[theirs]
        cost = match.cost_of(partners)
        if cost is not None:
            costs.append(cost)
    return np.array(costs)


def _random_pairs(
    sizes: tuple[int, int], count: int, forbidden: BoolArray | None, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Up to `count` random pairs of rows and columns, none of them forbidden."""
    if forbidden is None or not forbidden.any():
        return rng.permutation(sizes[0])[:count], rng.permutation(sizes[1])[:count]
    from scipy.optimize import linear_sum_assignment  # takes a while to import, and only reports need it

    # The best assignment of random costs is a random assignment. A forbidden pair costs more than all others together:
    # it appears only where a row has no other column, and is then left out.
    weights = np.where(forbidden, 1.0 + min(sizes), rng.random(sizes))
    rows, columns = linear_sum_assignment(weights)
    allowed = np.flatnonzero(~forbidden[rows, columns])
    kept = rng.permutation(allowed)[:count]
    return rows[kept], columns[kept]


def given_pairs(match: Match) -> list[tuple[int, int]]:
    """Pairs of the match whose source had no other target."""
    forbidden = None if match.problem is None else match.problem.forbidden
    if forbidden is None:
        return []
    return [(i, j) for i, j in match.result.pairs if forbidden[i].sum() == len(forbidden) - 1]


def hints(match: Match) -> list[str]:
    """Hints about the pairs, which were used besides the relations inside each set, in words."""
    if match.problem is None:
        return []
    (n, m), given = match.sizes, given_pairs(match)
    words = [f"{len(given)} pair{'s' if len(given) > 1 else ''}"] if given else []
    words += ["similarities across the sets"] if match.problem.linear[:n, :m].any() else []
    if match.problem.forbidden is not None:
        rest = np.ix_(
            np.setdiff1d(np.arange(n), [i for i, _ in given]), np.setdiff1d(np.arange(m), [j for _, j in given])
        )
        words += ["forbidden pairs"] if match.problem.forbidden[rest].any() else []
    return words
