"""Soft answers and the measures that judge them."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import blindmatch as bm
from blindmatch.matching.projection import similar_matches


@pytest.fixture(scope="module")
def crowd() -> tuple[bm.Task, bm.Result, np.ndarray]:
    """Items along a curve, with noise on both sides, and a match that gets the place right but not the item."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.random(80))
    curve = np.column_stack([t, t**2, np.sin(4 * t)])
    X, Y = curve + 0.01 * rng.normal(size=curve.shape), curve + 0.01 * rng.normal(size=curve.shape)
    order = rng.permutation(80)
    near = np.argsort(np.arange(80) + rng.uniform(0, 12, 80))  # shuffled among neighbours
    truth = np.argsort(order)
    task = bm.Task(X, Y[order])
    found = truth[near]
    return task, bm.Result(found, task.problem.objective(found), None, "heuristic", "test", 0.0, task), truth


def test_a_soft_answer_is_nearer_to_the_truth(crowd) -> None:
    task, result, truth = crowd
    target = task.sides[1]
    soft = bm.project(result)
    assert 2 < soft.partners < 40
    assert min(soft.errors, key=soft.errors.get) == soft.partners - 1
    hard = target[result.permutation]
    assert (
        np.linalg.norm(soft.points - target[truth], axis=1).mean()
        < 0.7 * np.linalg.norm(hard - target[truth], axis=1).mean()
    )
    assert sum(bm.metrics.foscttm(soft.points, target, truth)) < sum(bm.metrics.foscttm(hard, target, truth))
    assert (bm.project(result, partners=1).points == hard).all()


def test_where_neighbours_tell_nothing_partners_are_not_averaged(crowd) -> None:
    task, result, _ = crowd
    random = np.random.default_rng(1).permutation(80)
    soft = bm.project(bm.Result(random, 0.0, None, "heuristic", "test", 0.0, task))
    assert soft.partners == 1 or soft.errors[soft.partners - 1] > 0.9
    with pytest.raises(ValueError, match="partners='many'"):
        bm.project(result, partners="many")
    with pytest.raises(ValueError, match="partners=0"):
        bm.project(result, partners=0)


def test_the_projection_is_the_mean_of_the_partners_of_the_nearest() -> None:
    X, Y = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([[0.0], [10.0], [50.0], [90.0]])
    task = bm.Task(X, Y)
    result = bm.Result(np.array([0, 1, -1, 3]), 0.0, None, "heuristic", "test", 0.0, task)
    assert bm.project(result, partners=2).points.tolist() == [[5.0], [5.0], [50.0], [50.0]]


def test_alternatives_are_averaged() -> None:
    X, Y = np.array([[0.0], [1.0], [5.0]]), np.array([[0.0], [10.0], [50.0]])
    task = bm.Task(X, Y)
    first, second, none = (
        bm.Result(np.array(found), 0.0, None, "heuristic", "test", 0.0, task)
        for found in ([0, 1, -1], [1, 0, 2], [-1, -1, -1])
    )
    found = bm.project(first, partners=1, alternatives=[second])
    assert found.points.tolist() == [[5.0], [5.0], [50.0]]
    with pytest.raises(ValueError, match="nothing to project"):
        bm.project(none)
    with pytest.raises(ValueError, match="a result matches 2 sources; the task has 3"):
        bm.project(first, alternatives=[bm.match(X[:2], Y, rng=0)])


def mirrored() -> bm.Task:
    """Points on a line, the same in a mirror, and noisy ones: a match costs as much as its mirror image."""
    line = np.linspace(-1, 1, 24)[:, None] ** 3
    return bm.Task(line, line + 0.05 * np.random.default_rng(3).normal(size=line.shape))


def test_a_number_asks_for_alternatives() -> None:
    task = mirrored()
    result = bm.match(task, rng=0)
    matches = similar_matches(result, task, 20, rng=0)
    assert 2 <= len(matches) <= 21
    assert min(one.cost for one in matches) == matches[0].cost
    assert matches[-1].cost <= 1.05 * matches[0].cost
    assert len({tuple(one.permutation) for one in matches}) > 1
    soft = bm.project(result, partners=1, alternatives=20, rng=0)
    assert soft.matches == len(matches) == len({tuple(one.permutation) for one in matches})
    assert np.allclose(soft.points, np.mean([task.points[1][one.permutation] for one in matches], axis=0))
    matcher = bm.BlindMatcher(random_state=0, alternatives=20).fit(*task.sides)
    assert np.allclose(matcher.transform(task.sides[0]), soft.points)


def test_alternatives_heed_forbidden_pairs() -> None:
    task = mirrored()
    forbidden = [(i, i) for i in range(0, 24, 2)]
    matcher = bm.BlindMatcher(random_state=0, alternatives=5).fit(*task.sides, forbidden_pairs=forbidden)
    matches = similar_matches(matcher.result_, matcher.task_, 5, rng=0)
    assert all(one.permutation[i] != i for one in matches for i, _ in forbidden)


def test_a_result_that_costs_more_than_its_alternatives_is_left_out() -> None:
    task = mirrored()
    bad = np.random.default_rng(0).permutation(24)
    result = bm.Result(bad, task.problem.objective(bad), None, "heuristic", "test", 0.0, task)
    assert result not in similar_matches(result, task, 3, rng=0)
    for alternatives in (-1, True):
        with pytest.raises(ValueError, match=f"alternatives={alternatives}; expected an integer of at least 0"):
            bm.project(result, alternatives=alternatives)
        with pytest.raises(ValueError, match=f"alternatives={alternatives}; expected an integer of at least 0"):
            bm.BlindMatcher(alternatives=alternatives).fit(*task.sides)


def test_transform_averages_partners() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    Y = X[rng.permutation(20)]
    plain = bm.BlindMatcher(random_state=0).fit(X, Y)
    soft = bm.BlindMatcher(random_state=0, partners=2).fit(X, Y)
    assert (plain.transform(X) == Y[plain.permutation_]).all()
    near = np.argsort(cdist(X, X), axis=1)[:, :2]
    assert np.allclose(soft.transform(X), Y[soft.permutation_[near]].mean(axis=1))
    auto = bm.BlindMatcher(random_state=0, partners="auto").fit(X, Y)
    assert np.allclose(auto.transform(X), bm.project(auto.result_).points)


def test_foscttm_is_its_definition() -> None:
    rng = np.random.default_rng(0)
    placed, target, truth = rng.normal(size=(30, 2)), rng.normal(size=(40, 2)), rng.permutation(40)[:30]
    apart = cdist(placed, target)
    first = np.mean([(apart[i] < apart[i, truth[i]]).sum() / 39 for i in range(30)])
    second = np.mean([(apart[:, truth[i]] < apart[i, truth[i]]).sum() / 29 for i in range(30)])
    assert bm.metrics.foscttm(placed, target, truth) == pytest.approx((first, second))
    assert bm.metrics.foscttm(target[truth], target, truth) == (0.0, 0.0)
    placed[3] = np.nan
    assert np.isfinite(bm.metrics.foscttm(placed, target, truth)).all()
    assert bm.metrics.foscttm(np.zeros((30, 2)), target, truth)[1] == 0.5  # all in one place


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (([[0.0]], [[0.0, 1.0]], [0]), "projected has shape"),
        (([[0.0]], [[0.0]], [1]), "truth must hold a target below 1"),
        (([[0.0]], [[0.0]], [-1]), "nothing to compare"),
    ],
)
def test_bad_input_of_foscttm_is_named(arguments, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        bm.metrics.foscttm(*arguments)


def test_evaluate_gives_the_measures_of_other_fields() -> None:
    rng = np.random.default_rng(0)
    Y = np.concatenate([rng.normal(size=(10, 2)), 20 + rng.normal(size=(10, 2))])
    kinds = ["a"] * 10 + ["b"] * 10
    found = np.concatenate([rng.permutation(10), 10 + rng.permutation(10)])
    report = bm.metrics.evaluate(Y, Y, found, np.arange(20), rng=0, neighbors=10, labels=(kinds, kinds))
    assert report.label_transfer == 1.0
    assert report.top_k == 1.0
    assert max(report.foscttm) < 0.5
    swapped = np.roll(found, 10)
    worse = bm.metrics.evaluate(Y, Y, swapped, np.arange(20), rng=0, neighbors=10, labels=(kinds, kinds))
    assert (worse.label_transfer, worse.top_k) == (0.0, 0.0)
    exact = bm.metrics.evaluate(Y, Y, swapped, np.arange(20), rng=0, neighbors=1, projected=Y)
    assert (exact.top_k, exact.foscttm) == (1.0, (0.0, 0.0))
    assert exact.accuracy == 0.0


@pytest.mark.parametrize("alternatives", [2.5, None, "3", [1, 2], [np.arange(12)]])
def test_alternatives_that_are_no_results_are_refused(alternatives):
    points = np.linspace(0, 1, 12)[:, None] ** 2
    task = bm.Task(points, points)
    result = bm.match(task, rng=0)
    with pytest.raises(ValueError, match=r"expected (a list of results|what bm\.match returns)"):
        bm.project(result, alternatives=alternatives)
