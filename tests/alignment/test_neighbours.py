"""Nearest neighbours by blocks, and the adjusted similarity."""

import numpy as np
import pytest

from blindmatch.alignment.crew import Crew, Stopped
from blindmatch.alignment.neighbours import adjusted_similarity, column_closeness, largest, mutual, nearest


@pytest.mark.parametrize(("width", "count"), [(7, 3), (50, 1), (400, 5), (2000, 10), (2003, 30)])
def test_the_largest_entries_of_each_row_in_order(width: int, count: int) -> None:
    block = np.random.default_rng(width).normal(size=(13, width)).astype(np.float32)
    values, columns = largest(block, count)
    expected = np.argsort(-block, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(block, expected, axis=1))


@pytest.mark.parametrize("width", [40, 3000])
def test_of_equal_entries_the_first_columns_are_taken(width: int) -> None:
    block = np.zeros((4, width), dtype=np.float32)
    np.testing.assert_array_equal(largest(block, 5)[1], np.tile(np.arange(5), (4, 1)))


def test_threads_do_not_change_the_neighbours() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5000, 8)).astype(np.float32)
    one, two = nearest(a, b, 4, Crew(1)), nearest(a, b, 4, Crew(3))
    np.testing.assert_array_equal(one[1], two[1])
    np.testing.assert_array_equal(one[0], two[0])


def test_a_pass_ends_between_two_blocks() -> None:
    left = iter([2.0, 1.0, 0.0])
    done: list[slice] = []
    with pytest.raises(Stopped):
        list(Crew(1, lambda: next(left)).blocks(10, 2, done.append))
    assert done == [slice(0, 2), slice(2, 4)]


def test_a_step_that_takes_longer_than_what_is_left_does_not_begin() -> None:
    crew = Crew(1, lambda: 2.0)
    crew.check()
    crew.check(1.5)
    with pytest.raises(Stopped):
        crew.check(2.5)


def test_the_closeness_of_columns_is_nearly_that_of_their_largest_entries() -> None:
    similarity = np.random.default_rng(1).random((1500, 40)).astype(np.float32)
    exact = np.sort(similarity, axis=0)[-10:].mean(axis=0)
    about = column_closeness(similarity, 10)
    assert (about <= exact + 1e-6).all()
    assert np.abs(about - exact).max() < 0.01


def test_a_hub_does_not_take_every_match() -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=(60, 20)).astype(np.float32)
    b = a + 0.8 * rng.normal(size=a.shape).astype(np.float32)
    a, b = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (a, b))
    rows, columns = mutual(adjusted_similarity(a, b))
    assert len(rows) > 40
    assert (rows == columns).mean() > 0.95
