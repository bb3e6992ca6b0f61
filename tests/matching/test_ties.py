"""A proof of optimality says nothing about pairings that cost the same: the message does."""

import numpy as np
import pytest

import blindmatch as bm


@pytest.fixture
def points():
    return np.random.default_rng(0).standard_normal((7, 3))


def test_points_of_general_position_have_no_ties(points):
    assert "costs" not in bm.match(points, points[::-1], rng=0).message


@pytest.mark.parametrize("alike", [np.ones((7, 2)), np.eye(7)], ids=["one point", "simplex"])
def test_equal_relations_are_told(points, alike):
    found = bm.match(alike, points, rng=0)
    assert found.status == "optimal"
    assert "the sources are all equally far apart: every pairing costs the same" in found.message
    assert "the targets are all equally far apart" in bm.match(points, alike, rng=0).message
    hinted = bm.match(alike, points, rng=0, similarity=np.eye(7))  # the hint decides
    assert "every pairing" not in hinted.message


def test_twins_are_counted(points):
    points[[1, 4]] = points[0]
    points[6] = points[5]
    found = bm.match(points, np.random.default_rng(1).standard_normal((7, 3)), rng=0)
    assert "5 of the 7 sources have the same relations as another one" in found.message
    problem = bm.Task(points, points).problem
    p = np.array([0, 1, 2, 3, 4, 6, 5])
    assert problem.objective(p) == pytest.approx(problem.objective(np.arange(7)), abs=1e-9)


def test_a_cost_that_is_rounding_is_told_as_zero(points):
    from blindmatch.report.verdict import proof_sentence

    found = bm.match(points, points[::-1], rng=0)
    assert found.lower_bound < 0  # the checker rounds down
    assert "costs 0 and no pairing costs less than 0:" in proof_sentence(found)
