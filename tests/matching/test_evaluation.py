"""The measures against their definitions."""

import json
from itertools import permutations

import numpy as np
import pytest

from blindmatch.matching.evaluation import (
    cluster_assignment,
    clustering_accuracy,
    evaluate,
    foscttm,
    matching_accuracy,
    top_k_of,
)
from blindmatch.problem.distortions import CKA, GromovWasserstein, MutualKNN


@pytest.fixture
def spaces():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8))
    truth = rng.permutation(30)
    Y = np.empty((30, 8))
    Y[truth] = X @ np.linalg.qr(rng.normal(size=(8, 8)))[0] + 0.1 * rng.normal(size=(30, 8))
    return X, Y, truth


def test_matching_accuracy_ignores_sources_without_a_partner():
    assert matching_accuracy([3, -1, 1, 0], [3, 2, -1, 1]) == pytest.approx(1 / 3)


def test_evaluate_gives_the_distortions(spaces):
    X, Y, truth = spaces
    wrong = np.roll(truth, 1)
    report = evaluate(X, Y, wrong, truth, rng=0, neighbors=4)
    assert report.accuracy == 0.0
    assert report.pairs == 30
    for alignment, pairing in ((report.found, wrong), (report.true, truth)):
        assert alignment.gw == pytest.approx(GromovWasserstein().evaluate(X, Y, pairing) / 900)
        assert alignment.cka == pytest.approx(-CKA().evaluate(X, Y, pairing))
        assert alignment.mutual_knn == pytest.approx(-MutualKNN(k=4).evaluate(X, Y, pairing))
    assert report.true.mutual_knn > 0.7 > report.random.mutual_knn


def test_random_pairings_are_at_chance(spaces):
    X, Y, truth = spaces
    report = evaluate(X, Y, truth, rng=0, random_pairings=200)
    assert (report.accuracy, report.true) == (None, None)
    assert report.random.gw == pytest.approx(
        2 * 29 / 30, abs=0.02
    )  # two standardised kernels that have nothing in common
    assert report.random.mutual_knn == pytest.approx(5 / 29, abs=0.02)  # k of the n - 1 others
    assert report.random_deviation.gw > 0
    assert report == evaluate(X, Y, truth, rng=0, random_pairings=200)
    assert json.loads(json.dumps(report.to_dict()))["found"]["gw"] == report.found.gw


def test_left_over_items_do_not_count(spaces):
    X, Y, truth = spaces
    part = truth.copy()
    part[20:] = -1
    report = evaluate(X, Y, part, truth, rng=0)
    alone = evaluate(X[:20], Y[truth[:20]], np.arange(20), rng=0)
    assert report.pairs == 20
    assert report.accuracy == pytest.approx(2 / 3)
    assert report.found.gw == pytest.approx(alone.found.gw)


def test_a_partner_for_an_outlier_costs_precision(spaces):
    X, Y, truth = spaces
    known = truth.copy()
    known[25:] = -1  # five outliers, which the match gives partners
    report = evaluate(X, Y, truth, known, rng=0)
    assert (report.accuracy, report.precision) == (1.0, pytest.approx(25 / 30))
    assert evaluate(X, Y, known, known, rng=0).precision == 1.0


def test_more_targets_than_sources(spaces):
    X, Y, truth = spaces
    assert evaluate(X[:10], Y, truth[:10], truth[:10], rng=0).accuracy == 1.0


def test_top_k_equals_sorting():
    rng = np.random.default_rng(2)
    placed, target, truth = rng.normal(size=(20, 3)), rng.normal(size=(25, 3)), rng.permutation(25)[:20]
    nearest = np.argsort(np.linalg.norm(placed[:, None] - target, axis=2), axis=1)
    for k in (1, 3, 30):
        assert top_k_of(placed, target, truth, k) == np.mean((nearest == truth[:, None])[:, :k].any(axis=1))


def test_equal_distances_are_at_chance():
    assert top_k_of(np.zeros((10, 2)), np.ones((10, 2)), np.arange(10), 3) == pytest.approx(0.3)


def test_cluster_assignment_equals_enumeration():
    rng = np.random.default_rng(5)
    labels, clusters = rng.integers(4, size=40), rng.integers(6, size=40)
    best = max(
        sum(bool(order[c] == label) for c, label in zip(clusters, labels, strict=True))
        for order in permutations([0, 1, 2, 3, -1, -2])
    )
    assert clustering_accuracy(labels, clusters) == best / 40
    assignment = cluster_assignment(labels, clusters)
    assert sorted(assignment.values()) == [0, 1, 2, 3]
    assert np.mean([assignment.get(c) == label for c, label in zip(clusters, labels, strict=True)]) == best / 40


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: matching_accuracy([0, 1], [0]), "permutation has 2 items and truth has 1"),
        (lambda: matching_accuracy([0.0], [0]), "permutation has dtype"),
        (lambda: matching_accuracy([0], [-1]), "no partner for any source"),
        (lambda: evaluate(np.eye(3), np.eye(3), [0, 0, 1]), "permutation=.*different"),
        (lambda: evaluate(np.eye(3), np.eye(3), [0, 1, 3]), "below 3"),
        (lambda: evaluate(np.eye(3), np.eye(3), [0, -1, -1]), "at least 2"),
        (lambda: evaluate(np.eye(3), np.eye(3), [0, 1, 2], random_pairings=0), "random_pairings=0"),
        (lambda: foscttm(np.eye(3), np.eye(3), [0, 1, -2]), "truth must hold a target below 3 or -1"),
        (lambda: foscttm([["a"]] * 3, np.eye(3), [0, 1, 2]), "projected has dtype"),
        (lambda: clustering_accuracy([], []), "not 0"),
        (lambda: cluster_assignment([1, 2], [1]), "labels has 2 items and clusters has 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
