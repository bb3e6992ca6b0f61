"""One-to-one partners: dense and sparse assignment, unequal sizes, pairs that must not be used."""

import numpy as np
import pytest

from blindmatch.alignment import assign
from blindmatch.alignment.assign import Candidates, in_haste, mutual_partners, one_to_one
from blindmatch.alignment.crew import Crew, Stopped
from blindmatch.alignment.frame import Points
from blindmatch.alignment.neighbours import adjusted_similarity, mutual


def copies(n: int, noise: float, seed: int = 0) -> tuple[Points, Points]:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, 16))
    b = a + noise * rng.normal(size=a.shape)
    return tuple((side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32) for side in (a, b))


@pytest.fixture(params=["dense", "sparse"])
def crew(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Crew:
    monkeypatch.setattr(assign, "DENSE", 10_000 if request.param == "dense" else 40)
    return Crew()


def test_an_assignment_that_takes_longer_than_what_is_left_does_not_begin() -> None:
    a, b = copies(1100, 0.2)  # one that cannot be cut short: about 0.04 s
    with pytest.raises(Stopped):
        one_to_one(a, b, Crew(1, lambda: 0.01))
    assert (one_to_one(a, b, Crew(1, lambda: 10.0)) == np.arange(1100)).mean() > 0.9


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


def test_items_without_a_partner_do_not_take_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assign, "DENSE", 40)
    a, b = copies(400, 0.2)
    other, _ = copies(100, 0.0, 9)
    a[:100] = other
    assert (one_to_one(a, b, Crew())[100:] == np.arange(100, 400)).mean() > 0.97


def test_after_a_small_turn_the_candidates_are_scored_again_and_after_a_large_one_searched_again() -> None:
    a, b = copies(200, 0.2)
    candidates, crew = Candidates(near=12), Crew()
    first = candidates.links(a, b, crew)
    angle = 0.02
    turn = np.eye(16, dtype=np.float32)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    again, fresh = candidates.links(a @ turn, b, crew), Candidates(near=12).links(a @ turn, b, crew)
    np.testing.assert_array_equal(again.rows, first.rows)
    np.testing.assert_array_equal(again.columns, first.columns)
    cosines = np.einsum("ij,ij->i", (a @ turn)[again.rows], b[again.columns])
    scores = 2 * cosines - again.of_a[again.rows] - again.of_b[again.columns]
    np.testing.assert_allclose(again.scores, scores, atol=1e-5)
    np.testing.assert_allclose(again.of_a, fresh.of_a, atol=0.01)
    turned = np.ascontiguousarray(a[:, ::-1])
    np.testing.assert_array_equal(
        candidates.links(turned, b, crew).columns, Candidates(near=12).links(turned, b, crew).columns
    )


@pytest.mark.parametrize("sizes", [(200, 260), (260, 200)])
def test_a_match_in_haste_uses_everything_once(sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = copies(260, 0.1)
    barred = np.array([[3, 3], [5, 5]])
    partners = in_haste(a[: sizes[0]], b[: sizes[1]], Crew(), barred)
    assert partners[3] != 3
    assert partners[5] != 5
    assert len(set(partners[partners >= 0].tolist())) == (partners >= 0).sum() == 200
    assert (partners[:200] == np.arange(200)).mean() > 0.93
    monkeypatch.setattr(assign, "_HASTE", 50 * 260)  # time for 50 items
    partners = in_haste(a, b, Crew(), barred)
    assert sorted(partners.tolist()) == list(range(260))
    assert (partners[:50] == np.arange(50)).mean() > 0.9


def test_mutual_partners_are_each_others_best() -> None:
    a, b = copies(200, 0.3)
    b = b[:150]  # the last 50 rows have no partner
    found = mutual_partners(Candidates(10).links(a, b, Crew()))
    similarity = adjusted_similarity(a, b)
    rows, columns = mutual(similarity)
    np.testing.assert_array_equal(np.flatnonzero(found >= 0), rows)
    np.testing.assert_array_equal(found[rows], columns)
    assert (found[:150] == np.arange(150)).mean() > 0.9
