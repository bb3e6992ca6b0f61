"""The relation is chosen without the truth."""

import numpy as np
import pytest

import blindmatch as bm


def test_the_relation_that_makes_the_match_continuous_is_chosen() -> None:
    """A sheet that is rolled up on one side only: distances mislead, paths do not."""
    rng = np.random.default_rng(0)
    t, height = 3 * np.pi * np.sort(rng.random(120)) ** 0.7, 12 * rng.random(120)
    rolled = np.column_stack([(t + 4) * np.cos(t), (t + 4) * np.sin(t), height])
    along = t * (t + 8) / 2
    flat = np.column_stack([along + height, along - height])
    order = rng.permutation(120)
    by_paths = bm.GromovWasserstein(metric=("geodesic", "euclidean"), neighbors=(4, 4))
    choice = bm.choose_relation(rolled, flat[order], relations=(bm.GromovWasserstein(), by_paths), rng=0)
    assert choice.distortion is by_paths
    worse, better = (
        np.linalg.norm(flat[order][score.permutation] - flat, axis=1).mean() for score in choice.scores[::-1]
    )
    assert better < worse
    assert [row["metric"] for row in choice.table()] == [("geodesic", "euclidean"), "euclidean"]
    assert choice.scores[0].error < choice.scores[1].error


def test_the_same_seed_gives_the_same_table_and_sizes_may_differ() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(14, 4)), rng.normal(size=(11, 3))
    tables = [bm.choose_relation(X, Y, rng=3).table() for _ in range(2)]
    assert tables[0] == tables[1]
    assert len(tables[0]) == 8
    with pytest.raises(ValueError, match="relations is empty"):
        bm.choose_relation(X, Y, relations=())
