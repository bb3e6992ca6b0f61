"""One-to-one partners: dense and sparse assignment, unequal sizes, pairs that must not be used."""

import numpy as np
import pytest

from blindmatch.alignment import assign
from blindmatch.alignment.assign import one_to_one
from blindmatch.alignment.crew import Crew
from blindmatch.alignment.frame import Points


def copies(n: int, noise: float, seed: int = 0) -> tuple[Points, Points]:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, 16))
    b = a + noise * rng.normal(size=a.shape)
    return tuple((side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32) for side in (a, b))


@pytest.fixture(params=["dense", "sparse"])
def crew(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Crew:
    monkeypatch.setattr(assign, "DENSE", 10_000 if request.param == "dense" else 40)
    return Crew()


def test_a_copy_with_noise_is_matched(crew: Crew) -> None:
    a, b = copies(300, 0.2)
    order = np.random.default_rng(1).permutation(300)
    assert (order[one_to_one(a, b[order], crew)] == np.arange(300)).all()


@pytest.mark.parametrize("sizes", [(200, 260), (260, 200)])
def test_of_unequal_sets_the_smaller_is_matched_completely(crew: Crew, sizes: tuple[int, int]) -> None:
    a, b = copies(260, 0.1)
    partners = one_to_one(a[: sizes[0]], b[: sizes[1]], crew)
    used = partners[partners >= 0]
    assert len(used) == len(set(used.tolist())) == 200
    assert (partners[:200] == np.arange(200)).mean() > 0.95


def test_unrelated_sets_still_get_a_permutation(crew: Crew) -> None:
    a, _ = copies(300, 0.0, 1)
    b, _ = copies(300, 0.0, 2)
    assert sorted(one_to_one(a, b, crew).tolist()) == list(range(300))


def test_points_that_are_all_the_same_get_a_permutation(crew: Crew) -> None:
    a = np.ones((120, 3), dtype=np.float32)
    assert sorted(one_to_one(a, a, crew).tolist()) == list(range(120))


def test_barred_pairs_are_not_used(crew: Crew) -> None:
    a, b = copies(200, 0.1)
    right = np.arange(200)
    barred = np.stack([right[:100], right[:100]], axis=1)
    partners = one_to_one(a, b, crew, barred)
    assert sorted(partners.tolist()) == list(range(200))
    assert (partners[:100] != right[:100]).all()
    assert (partners[100:] == right[100:]).mean() > 0.9
