"""Starts for FAQ with many items, where there is time for few: matches of samples, and of sorted rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blindmatch.problem.qap import NormalForm
from blindmatch.solvers.base import Budget
from blindmatch.solvers.relaxation import Relaxation, assignment, barycentre, random_start
from blindmatch.validation import FloatArray, IntArray

_ITEMS, _SHARE = 256, 3  # in a sample: that many, but at most a third of all
_SAMPLES = 24  # matching them takes as long as a descent with all of 700 items
_EXTENDED = 8  # of them: the cost of a sample depends on what was drawn, that of its extension does not

_EXTENSION_SECONDS = 2.5e-10  # of an extension, over n^3, on an idle machine

Descend = Callable[[Relaxation, FloatArray, Budget], list[IntArray]]


def extension_seconds(n: int, budget: Budget) -> float:
    """About how long the extension of a sample to n items takes here and now."""
    return _EXTENSION_SECONDS * n**3 * budget.slowness


def by_samples(relaxation: Relaxation, descend: Descend, budget: Budget, rng: np.random.Generator) -> IntArray:
    """A match of random samples, extended to all items.

    A descent ends in one of many local optima. Two samples look like the whole sets and are matched in a tenth of a
    second, so there is time for many of them. The cheapest are extended: each item goes where its relations to the
    sample fit best. The cheapest extension is the result. `descend` runs Frank-Wolfe from a stack of starts.
    """
    n = len(relaxation.linear)
    size = min(_ITEMS, n // _SHARE)
    found: list[tuple[float, IntArray, IntArray]] = []
    longest = extension_seconds(n, budget)
    for number in range(_SAMPLES):
        rows, columns = (rng.choice(n, size, replace=False) for _ in range(2))
        sample = relaxation.sample(rows, columns)
        start = random_start(size, rng) if number % 2 else barycentre(size)
        [match] = descend(sample, start[None], budget)
        found.append((sample.cost(match), rows, columns[match]))
        if budget.stopped or budget.remaining < 2 * longest:
            break
    extended: list[IntArray] = []
    for _, rows, columns in sorted(found, key=lambda one: one[0])[:_EXTENDED]:
        begin = budget.seconds
        extended.append(assignment(relaxation.gradient_of_part(rows, columns)))
        longest = max(longest, budget.seconds - begin)
        if budget.stopped or budget.remaining < longest:
            break
    return min(extended, key=relaxation.cost)


def by_sorted_rows(form: NormalForm) -> IntArray:
    """The assignment of Gilmore and Lawler's bound.

    That bound pairs a row of A with a row of B as if each of its entries could choose its partner. It sees sizes of
    clusters, which the barycentre does not.
    """
    pairs = (np.sort(A, axis=1) @ np.sort(B, axis=1)[:, ::-1].T for A, B in form.factors)
    return assignment(np.asarray(form.linear + sum(pairs)))
