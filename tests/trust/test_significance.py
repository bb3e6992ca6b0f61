"""The test for structure in common: right on unrelated spaces, and able to see what is there."""

import time

import numpy as np
import pytest
from sampled import sampled
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from scipy.spatial.distance import pdist, squareform
from strategies import embeddings, rng_of

import blindmatch as bm
from blindmatch.trust.null import (
    _rewired,
    _with_outliers,
    from_background,
    has_outliers,
    has_values,
    on_sphere,
    rotated,
)
from blindmatch.trust.rotation import Null, _members, clusters, copies
from blindmatch.trust.search import Part, search
from blindmatch.trust.significance import ENOUGH, Measured, Significance, _Test, own_likeness, significance
from blindmatch.trust.stability import redraw_dimensions, stability


def random_tree(n: int, rng: np.random.Generator) -> np.ndarray:
    """Squared distances are the lengths of paths in a random tree whose edges are 1 or 4 long."""
    points = np.zeros((n, n))
    for i in range(1, n):
        points[i] = points[rng.integers(i)]
        points[i, i] = rng.integers(1, 3)
    return points


def task_of(X: np.ndarray, Y: np.ndarray) -> bm.Task:
    return bm.Task(X, Y)


def mixture(rng: np.random.Generator, labels: np.ndarray, d: int = 16) -> np.ndarray:
    centres = 2 * rng.standard_normal((int(labels.max()) + 1, d))
    return centres[labels] + 0.5 * rng.standard_normal((len(labels), d))


class Counted:
    """A generator that counts how often members are chosen."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.choices = rng, 0

    def choice(self, *args: object, **options: object) -> object:
        self.choices += 1
        if self.choices > 1000:
            raise AssertionError("it does not end")
        return self.rng.choice(*args, **options)

    def __getattr__(self, name: str) -> object:
        return getattr(self.rng, name)


def spectrum(points: np.ndarray) -> np.ndarray:
    return np.linalg.svd(points - points.mean(axis=0), compute_uv=False)


def test_rotated_copies_keep_the_spectrum_and_nothing_else() -> None:
    points = rng_of(2).standard_normal((9, 30)) / np.arange(1, 31)
    rng = rng_of(1)
    assert clusters(points, rng).max() == 0
    copy = rotated(points, rng)[0](rng)
    assert spectrum(copy)[:8] == pytest.approx(spectrum(points)[:8])
    assert copy.mean(axis=0) @ copy.mean(axis=0) == pytest.approx(points.mean(axis=0) @ points.mean(axis=0))
    distances = [bm.GromovWasserstein().kernel(side)[np.triu_indices(9, 1)] for side in (points, copy)]
    assert abs(np.corrcoef(*distances)[0, 1]) < 0.6


def test_clusters_are_seen_and_kept() -> None:
    rng = rng_of(0)
    points = mixture(rng, np.arange(12) % 3)
    labels = clusters(points, rng)
    assert len({tuple(np.flatnonzero(labels == c)) for c in range(3)}) == 3
    assert all(len(set(labels[c::3])) == 1 for c in range(3))
    copy = rotated(points, rng)[0](rng)
    assert clusters(copy, rng).max() == 2


def test_many_small_clusters_are_drawn_in_no_time() -> None:
    rng = rng_of(0)
    points = np.repeat(rng.standard_normal((60, 50)), 2, axis=0) + 0.01 * rng.standard_normal((120, 50))  # two views
    assert clusters(points, rng).max() + 1 == 60
    draws = Counted(rng)
    copy = rotated(points, rng)[0](draws)
    assert draws.choices <= 200
    assert clusters(copy, rng).max() + 1 > 40
    assert spectrum(copy).sum() == pytest.approx(spectrum(points).sum(), rel=0.1)


def test_no_cluster_is_lost_and_their_sizes_follow_the_chances() -> None:
    chances = np.array([0.5, *[0.5 / 39] * 39])
    sizes = np.mean([np.bincount(_members(80, chances, rng_of(seed)), minlength=40) for seed in range(200)], axis=0)
    assert sizes.min() >= 1
    assert sizes[0] == pytest.approx(1 + 40 * 0.5, abs=1)
    assert sizes[1:] == pytest.approx(1 + 40 * 0.5 / 39, abs=0.3)


def test_normal_points_have_mostly_one_cluster() -> None:
    counts = [clusters(rng_of(seed).standard_normal((10, 8)), rng_of(seed)).max() + 1 for seed in range(20)]
    assert np.mean(np.array(counts) == 1) >= 0.7


@pytest.mark.parametrize("points", [np.zeros((5, 2)), np.ones((1, 3)), np.arange(3.0)[:, None]])
def test_points_without_shape_have_one_cluster(points: np.ndarray) -> None:
    assert clusters(points, rng_of(0)).max() == 0
    assert rotated(points, rng_of(0))[0](rng_of(1)).shape[0] == len(points)


@pytest.mark.slow
@sampled("generator", ["normal", "mixture"], quick=1)
def test_on_unrelated_spaces_the_test_fires_as_often_as_it_says(generator: str) -> None:
    p = []
    for seed in range(60):
        rng = rng_of(seed)
        X, Y = (
            rng.standard_normal((8, 12)) if generator == "normal" else mixture(rng, rng.integers(3, size=8))
            for _ in range(2)
        )
        spaces = task_of(X, Y)
        p.append(significance(spaces, rotated(Y, rng), 39, Part(rng)).p_value)
    # Of 60 fair tests, more than 10 fire once in 10,000 times; the mean of p has a standard error of 0.04.
    assert np.sum(np.array(p) <= 0.05) <= 10
    assert 0.33 < np.mean(p) < 0.75


def test_what_is_in_common_is_seen() -> None:
    X, Y = embeddings(0, 10, noise=0.1)
    found = significance(task_of(X, Y), rotated(Y, rng_of(1)), 99, Part(rng_of(2)))
    assert found.p_value == 0.01
    assert found.draws == 99
    assert found.z > 3
    assert found.p_value_error == pytest.approx(np.sqrt(0.01 * 0.99 / 99))


def test_clusters_alone_are_nothing_in_common() -> None:
    rng = rng_of(5)
    X, Y = (mixture(rng, np.arange(12) % 3) for _ in range(2))
    nulls = rotated(Y, rng)[:2]
    clustered, plain = (significance(task_of(X, Y), [null], 99, Part(rng_of(0))).p_value for null in nulls)
    assert plain < clustered
    assert significance(task_of(X, Y), nulls, 99, Part(rng_of(0))).p_value > plain


def test_it_stops_early_where_nothing_is_in_common() -> None:
    rng = rng_of(4)
    X, Y = rng.standard_normal((8, 5)), rng.standard_normal((8, 5))
    found = significance(task_of(X, Y), rotated(Y, rng), 999, Part(rng))
    assert found.draws < 500
    assert found.p_value == ENOUGH / found.draws


def test_constant_kernels_have_nothing_in_common() -> None:
    X = np.eye(6)  # all distances are equal
    found = significance(task_of(X, X), rotated(X, rng_of(0)), 99, Part(rng_of(0)))
    assert found.p_value == 1.0


def test_a_draw_that_the_deadline_cuts_does_not_count(monkeypatch) -> None:
    X, Y = embeddings(0, 10, noise=0.1)
    spaces, nulls = task_of(X, Y), rotated(Y, rng_of(1))
    assert rotated(Y, rng_of(1), deadline=time.perf_counter() - 1) == []
    assert significance(spaces, nulls, 9, Part(rng_of(2), deadline=time.perf_counter() - 1)) is None
    assert search(spaces.problem, Part(rng_of(0), deadline=time.perf_counter() - 1)) is None
    limit = time.perf_counter() + 600
    unhurried = significance(spaces, nulls, 9, Part(rng_of(2)))
    assert significance(spaces, nulls, 9, Part(rng_of(2), deadline=limit)) == unhurried
    monkeypatch.setattr("blindmatch.trust.search._SWAPS", 10**9)  # minutes for one search
    start = time.process_time()
    assert search(spaces.problem, Part(rng_of(0), deadline=time.perf_counter() + 0.1)) is None
    assert significance(spaces, nulls, 9, Part(rng_of(2), deadline=time.perf_counter() + 0.1)) is None
    assert time.process_time() - start < 2


def test_without_all_kinds_of_unrelated_spaces_nothing_is_claimed() -> None:
    X, Y = embeddings(0, 10, noise=0.1)
    spaces, null = task_of(X, Y), rotated(Y, rng_of(1))[0]
    assert significance(spaces, [null], 19, Part(rng_of(2))).p_value == 0.05
    deadline = time.perf_counter() + 1

    def slow(rng: np.random.Generator) -> np.ndarray:
        time.sleep(max(0.0, deadline - time.perf_counter()) + 0.01)
        return null(rng)

    assert significance(spaces, [null, slow], 19, Part(rng_of(2), deadline=deadline)) is None


def test_a_background_gives_its_rows() -> None:
    words = np.arange(20.0)[:, None]
    drawn = from_background(words, 6)(rng_of(0))
    assert len(set(drawn.ravel())) == 6
    assert set(drawn.ravel()) <= set(words.ravel())


def test_outliers_are_seen_and_kept() -> None:
    rng = rng_of(3)
    points = rng.standard_normal((12, 20)) * np.array([1.0] * 10 + [2.0, 6.0])[:, None]
    points = points[:, :10]
    plain = copies(points, np.zeros(12, dtype=np.intp))
    assert has_outliers(points, plain, rng)
    copy, regular = _with_outliers(points, plain)(rng), rotated(points[:10], rng)[0](rng)
    lengths = [np.sort(np.linalg.norm(side - side.mean(axis=0), axis=1)) for side in (points, copy, regular)]
    assert np.abs(lengths[1] - lengths[0]).max() < 0.15 * lengths[0].max()
    assert lengths[2].max() < lengths[1].max() / 2
    assert spectrum(copy)[:5] == pytest.approx(spectrum(points)[:5], rel=0.25)


@pytest.mark.parametrize("draws", [2, 3, 5])
def test_few_draws_do_not_exaggerate_the_signal(draws: int) -> None:
    rng = rng_of(4)
    tests = [outcome_of(float(rng.standard_normal()), rng.standard_normal(draws)) for _ in range(4000)]
    assert np.mean([test.signal > 1.645 for test in tests]) == pytest.approx(0.05, abs=0.015)
    assert np.mean([test.z > 1.645 for test in tests]) > 0.08


def test_signal_without_a_deviation_and_with_many_draws() -> None:
    assert outcome_of(1.0, np.array([5.0])).signal == 0.0
    many = outcome_of(-3.0, rng_of(5).standard_normal(50))
    assert many.signal == many.z > 2


def outcome_of(observed: float, costs: np.ndarray, likeness: tuple[float, float] = (0.0, np.nan)) -> Significance:
    """The test of a cost against those of draws, by how much the real spaces and the copies are like themselves."""
    own, copies = likeness
    measured = [Measured(float(cost), float(cost), np.nan, copies, None, 0.0, 10.0) for cost in (observed, *costs)]
    return _Test(measured[:1], own, both=False).of([measured[1:]])[0]


def test_what_a_common_design_may_save_does_not_count() -> None:
    costs = rng_of(0).normal(10, 1, 39)
    assert outcome_of(4.0, costs, (0.5, 0.5)).p_value == 1 / 40
    assert outcome_of(4.0, costs, (0.4, 0.5)).p_value == 1 / 40  # as like themselves as copies are, or less
    assert outcome_of(4.0, costs, (1.0, 0.1)).p_value > 0.05  # nine tenths of the unit, 10
    assert outcome_of(-4.0, costs, (1.0, 0.1)).p_value == 1 / 40


def test_sets_that_are_like_themselves() -> None:
    pairs = np.repeat(rng_of(0).standard_normal((6, 4)), 2, axis=0)
    angle = 2 * np.pi * np.arange(12) / 12
    polygon, cloud = np.c_[np.cos(angle), np.sin(angle)], rng_of(1).standard_normal((12, 4))
    own = [own_likeness(task_of(points, points).kernels[0], Part(rng_of(0))) for points in (pairs, polygon, cloud)]
    assert own[:2] == pytest.approx([1.0, 1.0])
    assert own[2] < 0.9
    assert own_likeness(np.zeros((5, 5)), Part(rng_of(0))) == 1.0


@pytest.mark.parametrize("design", ["pairs", "waves"])
def test_sets_of_one_design_are_not_taken_for_related(design: str) -> None:
    fires = 0
    for seed in range(10):
        rng, sides = rng_of(seed), []
        for _ in range(2):
            if design == "pairs":
                points = np.repeat(rng.standard_normal((6, 4)), 2, axis=0) + 0.05 * rng.standard_normal((12, 4))
            else:
                time, wave = np.linspace(0, 2 * np.pi, 40), rng.integers(1, 4, (12, 1))
                points = np.sin(wave * time + 2 * np.pi * rng.random((12, 1))) + 0.1 * rng.standard_normal((12, 40))
            sides.append(points)
        found = significance(task_of(*sides), rotated(sides[1], rng), 19, Part(rng))
        fires += found.p_value <= 0.05
    assert fires <= 2


@pytest.mark.parametrize("kind", ["circle", "sphere", "unit vectors"])
def test_copies_of_points_on_a_sphere_stay_on_it(kind: str) -> None:
    rng = rng_of(2)
    points = rng.standard_normal((9, {"circle": 2, "sphere": 3, "unit vectors": 30}[kind]))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    shift = 0.0 if kind == "unit vectors" else 5.0  # of many dimensions, only the origin can be the centre
    assert on_sphere(points + shift) is not None
    assert on_sphere(points + 0.1 * rng.standard_normal(points.shape)) is None
    copy = rotated(points + shift, rng)[0](rng)
    apart = np.linalg.norm(copy - on_sphere(copy)[0], axis=1)
    assert apart == pytest.approx(np.ones(9))
    assert np.abs(pdist(copy) - pdist(points)).max() > 0.1


def test_copies_of_categories_have_the_same_values() -> None:
    rng = rng_of(3)
    points = rng.integers(0, 3, (12, 5)).astype(float)
    assert has_values(points, rng)
    copy = rotated(points, rng)[-1](rng)
    assert np.array_equal(np.sort(copy, axis=0), np.sort(points, axis=0))
    assert not np.array_equal(copy, points)
    assert not has_values(np.arange(12.0)[:, None] ** 2, rng)  # another order of one column is no other space
    assert sum(has_values(rng_of(seed).standard_normal((12, 8)), rng) for seed in range(20)) <= 8


def test_every_kind_gets_its_draws_before_the_deadline() -> None:
    """A second kind of unrelated spaces is not left without a draw because the first one took all the time."""
    X, Y = embeddings(0, 10, noise=0.1)
    drawn = []

    def counted(name: str) -> Null:
        null = rotated(Y, rng_of(1))[0]
        return lambda rng: drawn.append(name) or null(rng)

    significance(task_of(X, Y), [counted("a"), counted("b")], 9, Part(rng_of(2)))
    assert drawn == ["a", "b"] * 9


def test_of_many_items_it_counts_what_is_left_of_a_match() -> None:
    X, Y = embeddings(0, 40, noise=0.3)
    found = significance(task_of(X, Y), rotated(Y, rng_of(1)), 9, Part(rng_of(2)))
    assert found.p_value == 0.1
    match, _ = search(task_of(X, Y).problem, Part(rng_of(3)))
    own = stability(task_of(X, Y), match, (redraw_dimensions(X), redraw_dimensions(Y)), 6, Part(rng_of(0)))
    assert own.mean() > found.steadiness + 0.1


def test_copies_of_a_tree_are_trees_with_the_same_degrees_and_edges() -> None:
    rng = np.random.default_rng(0)

    def edges(points: np.ndarray) -> tuple[list[int], list[float]]:
        squares = squareform(pdist(points, "sqeuclidean"))
        found = minimum_spanning_tree(squares)
        np.testing.assert_allclose(shortest_path(found, directed=False), squares, atol=1e-9)
        found = found.tocoo()
        return sorted(np.bincount(np.concatenate([found.row, found.col]))), sorted(found.data.round(9))

    for n in (4, 5, 12, 30):
        tree = random_tree(n, rng)
        draw = _rewired(tree @ np.linalg.qr(rng.standard_normal((n, n)))[0])
        assert draw is not None
        assert edges(draw(rng)) == edges(tree)
        assert _rewired(rng.standard_normal((n, n))) is None


def test_two_trees_that_have_nothing_in_common_do_not_fool_the_test() -> None:
    fires = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        task = task_of(random_tree(20, rng), random_tree(20, rng))
        found = significance(task, rotated(task.points[1], rng), 39, Part(rng))
        fires += found is not None and found.p_value <= 0.05
    assert fires <= 1  # without copies that are trees about half of such tests
