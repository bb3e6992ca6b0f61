"""When level 1 hands over to the semidefinite bound."""

from __future__ import annotations

import numpy as np
import pytest
from qaplib import needs_qaplib, qaplib

import blindmatch as bm
from blindmatch.solvers.strengthened import Patience


def reports(n: int, gaps: list[float], placed: int | None = None) -> int:
    """After how many reports level 1 is left; as many as there are if it is not."""
    patience = Patience(n, n if placed is None else placed)
    for count, gap in enumerate(gaps, 1):
        if not patience.lasts(gap):
            assert patience.over
            return count
    assert not patience.over
    return len(gaps)


@pytest.mark.parametrize(
    ("n", "gaps", "count"),
    [
        (40, [81, 24, 16.9, 15.5, 8.7, 3.5, 1.0, 0.98, 0.97, 0.96, 0.0], 11),  # fast, then close
        (30, [81, 41, 40, 33, 28], 3),  # far from the optimum when the sweeps end
        (30, [81, 41, 25, 24, 23, 10], 5),  # nearer: two slow reports
        (30, [81, 41, 25, 24, 20, 19, 15], 7),  # one slow report at a time
        (40, [2.6, 2.6, 0.02, 0.0], 4),  # a second report before anything was gained
        (20, [81, 80, 79, 79, 79], 5),  # few items: level 1 ends soon by itself
    ],
)
def test_level_one_is_left_where_it_gets_nowhere(n, gaps, count):
    assert reports(n, gaps) == count


def test_level_one_goes_on_where_few_items_must_be_placed():
    gaps = [81.0, 41, 40, 33, 28]
    assert reports(30, gaps, placed=16) == 3
    assert reports(30, gaps, placed=15) == 5


@needs_qaplib
def test_few_related_items_on_a_hypercube_are_soon_placed():
    """A triangle of items, and points of which no three are neighbours: branching on the items without relations,
    which are as good by their bounds, would show nothing."""
    result = bm.solve(qaplib("esc32e"), "branch-and-bound", rng=0, threads=1, node_limit=100)
    assert (result.status, result.cost, result.lower_bound) == ("optimal", 2, 2)


def test_the_run_goes_on_from_what_level_one_proved(monkeypatch):
    """Random distances: level 1 ends far from the optimum."""
    monkeypatch.setattr("blindmatch.solvers.strengthened._LARGE", 0)
    A, B = (np.triu(np.random.default_rng(seed).integers(1, 9, (12, 12)), 1) for seed in (1, 2))
    problem = bm.QAP(A + A.T, B + B.T)
    result = bm.solve(problem, "branch-and-bound", rng=0)
    assert result.message.startswith("1 node; semidefinite bound")
    assert result.status == "optimal"
    assert bm.verify(problem, result.certificate) > result.cost - 2
    slow = bm.solve(problem, bm.BranchAndBound(semidefinite=False), rng=0)
    assert result.cost == slow.cost
