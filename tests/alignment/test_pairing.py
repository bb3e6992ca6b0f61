"""Matches by rotation: several starts, support, what is known, time limits, Ctrl-C."""

import numpy as np
import pytest

from blindmatch.alignment.coarse import by_axes, by_signs
from blindmatch.alignment.coordinates import coordinates, kernel_coordinates
from blindmatch.alignment.crew import Crew
from blindmatch.alignment.margins import SimilarityRanking, confidence, held_out_margins
from blindmatch.alignment.neighbours import adjusted_similarity
from blindmatch.alignment.pairing import Given, Pairings, pairings
from blindmatch.alignment.rotation import Pairs
from blindmatch.geometry.kernels import distances
from blindmatch.validation import FloatArray, IntArray


def mixture(n: int, noise: float, seed: int = 0) -> tuple[FloatArray, FloatArray, IntArray]:
    """A mixture in 20 dimensions, its turned copy in 30 with noise, and the hidden match."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20)) * np.geomspace(2, 0.3, 20) + 2 * rng.normal(size=(12, 20))[rng.integers(12, size=n)]
    Y = X @ np.linalg.qr(rng.normal(size=(30, 20)))[0].T
    Y += noise * Y.std() * rng.normal(size=Y.shape)
    order = rng.permutation(n)
    return X, Y[order], np.argsort(order)


def matched(X: FloatArray, Y: FloatArray, given: Given | None = None, **options: object) -> Pairings:
    return pairings(*coordinates(X, Y, cosine=True), rng=np.random.default_rng(0), given=given, **options)


@pytest.mark.parametrize(("n", "noise"), [(60, 0.1), (400, 0.3), (1200, 0.3)])
def test_a_hidden_match_is_found_and_supported(n: int, noise: float) -> None:
    X, Y, truth = mixture(n, noise)
    found = matched(X, Y)
    assert (found.found[0].partners == truth).mean() >= 0.98
    assert found.found[0].support >= 1
    assert found.ended == ""


def test_the_same_seed_gives_the_same_match_whatever_the_threads() -> None:
    X, Y, _ = mixture(300, 0.8)
    one, two = matched(X, Y, threads=1), matched(X, Y, threads=3)
    assert len(one.found) == len(two.found)
    for a, b in zip(one.found, two.found, strict=True):
        np.testing.assert_array_equal(a.partners, b.partners)


def test_unrelated_sets_have_no_support() -> None:
    rng = np.random.default_rng(3)
    found = matched(rng.normal(size=(250, 24)), rng.normal(size=(250, 30)))
    assert found.found[0].support == 0
    assert len(found.found) > 1  # more than one to choose from, as none is believed


def test_where_half_of_the_items_have_no_partner_every_choice_of_signs_is_tried() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(900, 12)) * np.geomspace(2, 0.5, 12)
    X, Y = points[:600], points[300:] @ np.linalg.qr(rng.normal(size=(12, 12)))[0]
    sides = coordinates(X, Y, cosine=True)
    right = []
    for way in (by_axes, by_signs):
        pairs = way(*sides, 4, np.random.default_rng(0), Crew())
        right.append(((pairs.source - 300) == pairs.target).mean())  # of the sources, half have a partner
    assert right[0] < 0.1
    assert right[1] > 0.4


def test_known_pairs_are_kept_and_forbidden_ones_not_used() -> None:
    X, Y, truth = mixture(200, 0.3)
    wrong = np.stack([np.arange(10), truth[:10]], axis=1)
    known = Pairs(np.arange(20, 30), truth[20:30])
    partners = matched(X, Y, Given(known, wrong)).found[0].partners
    assert (partners[:10] != truth[:10]).all()
    assert (partners[20:30] == truth[20:30]).all()
    assert (partners[30:] == truth[30:]).mean() > 0.9


def test_a_few_known_pairs_help_where_nothing_else_does() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 12))  # a ball: no axis stands out, no centre, no density
    Y = X @ np.linalg.qr(rng.normal(size=(12, 12)))[0] + 0.25 * rng.normal(size=X.shape)
    known = Pairs(np.arange(20), np.arange(20))
    assert (matched(X, Y, Given(known)).found[0].partners == np.arange(400)).mean() > 0.95


@pytest.mark.parametrize("sizes", [(300, 400), (400, 300)])
def test_sets_of_unequal_sizes(sizes: tuple[int, int]) -> None:
    X, Y, truth = mixture(400, 0.2)
    X, Y = X[: sizes[0]], Y[: sizes[1]]
    partners = matched(X, Y).found[0].partners
    there = truth[: sizes[0]] < sizes[1]
    assert (partners >= 0).sum() == 300
    assert (partners[there] == truth[: sizes[0]][there]).mean() > 0.9


def test_without_time_there_is_still_a_match() -> None:
    X, Y, truth = mixture(300, 0.1)
    found = matched(X, Y, Given(Pairs(np.array([7]), truth[[7]])), remaining=lambda: -1.0)
    assert found.ended == "time_limit"
    assert sorted(found.found[0].partners.tolist()) == list(range(300))
    assert found.found[0].partners[7] == truth[7]
    assert found.found[0].support == 0


@pytest.mark.parametrize("sizes", [(60, 60), (60, 45), (45, 60)])
def test_without_time_known_pairs_are_kept_and_forbidden_ones_not_used(sizes: tuple[int, int]) -> None:
    X, Y, _ = mixture(60, 0.1)
    X, Y = X[: sizes[0]], Y[: sizes[1]]
    anchors = Pairs(np.array([3, 40]), np.array([7, 2]))
    free = matched(X, Y, Given(anchors), remaining=lambda: 0.0).found[0].partners
    rows = np.setdiff1d(np.flatnonzero(free >= 0), anchors.source)
    barred = np.stack([rows, free[rows]], axis=1)
    partners = matched(X, Y, Given(anchors, barred), remaining=lambda: 0.0).found[0].partners
    assert list(partners[anchors.source]) == [7, 2]
    assert not (partners[barred[:, 0]] == barred[:, 1]).any()
    used = partners[partners >= 0]
    assert len(set(used)) == len(used) == min(sizes)


def test_ctrl_c_keeps_what_was_learned() -> None:
    X, Y, truth = mixture(300, 0.2)

    def step(name: str, share: float) -> None:
        if name == "starts" and share > 0:
            raise KeyboardInterrupt

    found = matched(X, Y, step=step)
    assert found.ended == "interrupted"
    assert (found.found[0].partners == truth).mean() > 0.9


@pytest.mark.parametrize("n", [150, pytest.param(700, marks=pytest.mark.slow)])
def test_distances_alone_are_enough(n: int) -> None:
    X, Y, truth = mixture(n, 0.2)
    sides = kernel_coordinates(distances(X), distances(Y), similarities=False)
    found = pairings(*sides, rng=np.random.default_rng(0))
    assert (found.found[0].partners == truth).mean() > 0.95


def test_confidence_is_high_for_right_pairs_and_low_for_wrong_ones() -> None:
    X, Y, truth = mixture(500, 0.3)
    a, b = (side.directions for side in coordinates(X, Y, cosine=True))
    partners = truth.copy()
    partners[:40] = np.roll(truth[:40], 1)
    margins = held_out_margins(a, b, partners, rng=np.random.default_rng(0), crew=Crew())
    sure = confidence(margins, support=1)
    assert np.median(sure[40:]) > 0.99
    assert sure[:40].mean() < sure[40:].mean() - 0.05
    unsupported = confidence(margins, support=0)
    assert (unsupported <= sure).all()
    partners[:5] = -1
    margins = held_out_margins(a, b, partners, rng=np.random.default_rng(0), crew=Crew())
    assert np.isnan(margins.above[:5]).all()
    assert not np.isnan(margins.above[5:]).any()
    assert np.isnan(confidence(margins, support=1)[:5]).all()


def test_the_best_candidate_is_the_nearest_by_csls() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(80, 10)).astype(np.float32)
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    indices = SimilarityRanking(a, a).best(3)
    expected = np.argsort(-adjusted_similarity(a, a), axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(indices, expected)
