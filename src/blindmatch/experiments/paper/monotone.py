"""Whether a curve gets worse at every step, and whether the steps are significant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

SIGNIFICANT = 0.05


def steps(levels: Sequence[Sequence[float]], *, rising: bool) -> tuple[int, int, int]:
    """Test every step of a curve from one level to the next, given the values at each level.

    Returns the number of steps whose mean does not go in the expected direction (0 means strictly monotone), and of
    those that go in the expected and in the opposite direction with p < 0.05 in Welch's one-sided test.

    >>> steps([[0.0, 0.1, 0.2], [1.0, 1.1, 1.2], [1.0, 1.1, 1.2]], rising=True)
    (1, 1, 0)
    """
    differences = np.diff([float(np.mean(values)) for values in levels])
    wrong = int(((differences if rising else -differences) <= 0).sum())
    expected, opposite = (
        sum(_p_value(before, after, up) < SIGNIFICANT for before, after in pairwise(levels))
        for up in (rising, not rising)
    )
    return wrong, expected, opposite


def _p_value(before: Sequence[float], after: Sequence[float], rising: bool) -> float:
    from scipy.stats import ttest_ind_from_stats

    first, second = ((np.mean(v), np.std(v, ddof=1) if len(v) > 1 else 0.0, len(v)) for v in (before, after))
    if first[1] == second[1] == 0:  # level 0 has a single pairing, and a single seed has no deviation
        return 0.0 if (second[0] > first[0] if rising else second[0] < first[0]) else 1.0
    test = ttest_ind_from_stats(*second, *first, equal_var=False, alternative="greater" if rising else "less")
    return float(test.pvalue)
