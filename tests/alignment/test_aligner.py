"""Aligning two sets of different items: the map is right, it says when it is not, and it survives a file."""

import inspect

import numpy as np
import pytest
from sampled import sampled
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import blindmatch as bm
from blindmatch.alignment.frame import fit_frames
from blindmatch.alignment.neighbours import adjusted_similarity, nearest
from blindmatch.alignment.rotation import procrustes, refine
from blindmatch.alignment.search import _growing
from blindmatch.geometry.column_scaling import ColumnScaling

QUICK = {"n_clusters": 8, "n_clusterings": 4, "n_candidates": 3, "n_iterations": 8, "random_state": 0}


class World:
    """Items of one mixture, seen by two encoders: a rotation each into a space of its own, with noise."""

    def __init__(self, seed=0, latent=10, kinds=80):
        self.rng = np.random.default_rng(seed)
        self.scale = 1 / np.sqrt(1 + np.arange(latent))
        self.kinds = 2 * self.scale * self.rng.normal(size=(kinds, latent))
        self.turns = [np.linalg.qr(self.rng.normal(size=(width, latent)))[0].T for width in (14, 20)]

    def items(self, count):
        chosen = self.kinds[self.rng.integers(len(self.kinds), size=count)]
        return chosen + 0.4 * self.scale * self.rng.normal(size=chosen.shape)

    def seen(self, items, side, noise=0.01):
        points = (3.0 if side else 1.0) * items @ self.turns[side] + side
        return points + noise * self.rng.normal(size=points.shape)


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.fixture(scope="module")
def data(world):
    return world.seen(world.items(1500), 0), world.seen(world.items(1300), 1)


@pytest.fixture(scope="module")
def aligner(data):
    return bm.BlindAligner(**QUICK).fit(*data)


@pytest.fixture(scope="module")
def new(world):
    items = world.items(300)
    return world.seen(items, 0), world.seen(items, 1)


def test_new_items_find_themselves(aligner, new):
    distances, indices = aligner.kneighbors(new[0], 5, candidates=new[1])
    assert distances.shape == indices.shape == (300, 5)
    assert (indices[:, 0] == np.arange(300)).mean() > 0.95
    assert (np.diff(distances, axis=1) >= 0).all()
    assert 0.7 < aligner.score_ < 1.3
    assert aligner.support_ >= 1


def test_points_are_carried_to_where_they_belong_and_back(aligner, new):
    size = np.linalg.norm(new[1] - new[1].mean(axis=0), axis=1).mean()
    assert np.linalg.norm(aligner.transform(new[0]) - new[1], axis=1).mean() < 0.2 * size
    back = aligner.inverse_transform(aligner.transform(new[0]))
    frame = aligner.alignment_.source
    inside = (new[0] - frame.mean) @ frame.axes @ frame.axes.T + frame.mean  # what the common space can hold
    np.testing.assert_allclose(back, inside, atol=1e-4)


def test_the_neighbours_are_those_of_the_fitted_targets(aligner, data, new):
    indices = aligner.kneighbors(new[0], 3)[1]
    np.testing.assert_array_equal(indices, aligner.kneighbors(new[0], 3, candidates=data[1])[1])


def test_the_match_of_centres_is_proved(aligner):
    chosen = aligner.candidates_[aligner.best_]
    assert aligner.result_ is chosen.result
    assert aligner.result_.status == "optimal"
    problem = bm.GromovWasserstein().problem(aligner.source_centres_, aligner.target_centres_)
    assert problem.objective(aligner.result_.permutation) == pytest.approx(aligner.result_.cost)
    assert bm.verify(problem, aligner.result_.certificate) >= aligner.result_.lower_bound - 1e-9
    assert chosen.overlap == max(candidate.overlap for candidate in aligner.candidates_)
    costs = [candidate.result.cost for candidate in aligner.candidates_]
    assert costs == sorted(costs)


def test_maps_between_sets_without_a_common_shape_have_no_support(data):
    other = World(seed=100)
    unrelated = bm.BlindAligner(**QUICK).fit(data[0], other.seen(other.items(1300), 1))
    assert unrelated.support_ == 0
    assert unrelated.score_ < 0.6


def test_the_same_seed_gives_the_same_map_and_inputs_stay(data, aligner):
    copies = [side.copy() for side in data]
    again = clone(aligner).set_params(n_jobs=1).fit(*data)
    np.testing.assert_allclose(again.alignment_.rotation, aligner.alignment_.rotation, atol=1e-5)
    assert again.best_ == aligner.best_
    for side, copy in zip(data, copies, strict=True):
        np.testing.assert_array_equal(side, copy)


def test_units_do_not_matter(data, new):
    scaled = bm.BlindAligner(**QUICK).fit(1e-20 * data[0], 1e20 * data[1] + 1e19)
    indices = scaled.kneighbors(1e-20 * new[0], 1, candidates=1e20 * new[1] + 1e19)[1]
    assert (indices[:, 0] == np.arange(300)).mean() > 0.95


def test_a_file_keeps_the_map(aligner, new, tmp_path):
    aligner.save(tmp_path / "map.npz")
    loaded = bm.BlindAligner.load(tmp_path / "map.npz")
    np.testing.assert_array_equal(loaded.transform(new[0]), aligner.transform(new[0]))
    np.testing.assert_array_equal(
        loaded.kneighbors(new[0], 2, candidates=new[1])[1], aligner.kneighbors(new[0], 2, candidates=new[1])[1]
    )
    assert (loaded.score_, loaded.support_) == (aligner.score_, aligner.support_)
    assert loaded.get_feature_names_out().tolist() == aligner.get_feature_names_out().tolist()
    assert loaded.get_feature_names_out()[-1] == f"blindaligner{new[1].shape[1] - 1}"
    with pytest.raises(ValueError, match="a loaded map has no targets"):
        loaded.kneighbors(new[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": np.array("other")}, "not an alignment"),
        ({"rotation": None}, "no array 'rotation'"),
        ({"rotation": np.ones((10, 10))}, "expected an orthogonal matrix"),
        ({"rotation": np.eye(3)}, "axes, rotation of 3"),
        ({"source_axes": np.ones((3, 10))}, "source_axes has shape"),
        ({"target_spread": np.array(-1.0)}, "target_spread=-1.0"),
        ({"target_mean": np.full(20, np.nan)}, "target_mean holds nan"),
        ({"score": None}, "expected the numbers score and support"),
    ],
)
def test_damaged_files_are_refused_by_name(aligner, tmp_path, change, message):
    path = tmp_path / "map.npz"
    aligner.save(path)
    with np.load(path) as file:
        arrays = {**file, **change}
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
    with pytest.raises(ValueError, match=message) as error:
        bm.BlindAligner.load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 1}, "n_components=1"),
        ({"n_clusters": 2}, "n_clusters=2"),
        ({"n_clusters": 900}, "X has 1500 rows; n_clusters=900"),
        ({"n_clusterings": 0}, "n_clusterings=0"),
        ({"n_candidates": 0}, "n_candidates=0"),
        ({"n_iterations": 1.5}, "n_iterations=1.5"),
        ({"sample_size": 5}, "sample_size=5"),
        ({"time_limit": -1}, "time_limit=-1"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"solver": "tabou"}, "tabou"),
    ],
)
def test_bad_options(data, options, message):
    with pytest.raises(ValueError, match=message):
        bm.BlindAligner(**{**QUICK, **options}).fit(*data)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((100, 5)), "Y spans 0 dimensions"),
        (np.outer(np.arange(100), np.ones(5)), "Y spans 1 dimensions"),
        (np.ones(100), "Y has shape"),
        (np.ones((0, 5)), "Y is empty"),
        (np.array([["a", "b"]] * 100), "Y has dtype"),
        (np.where(np.arange(500).reshape(100, 5) == 333, np.nan, 1.0), r"Y holds nan at \[66, 3\]"),
        (1e300 * np.random.default_rng(0).normal(size=(100, 5)), "Y holds numbers so large"),
        (np.random.default_rng(0).normal(size=(10, 5)), "Y has 10 rows"),
    ],
)
def test_bad_points(data, bad, message):
    with pytest.raises(ValueError, match=message):
        bm.BlindAligner(**QUICK).fit(data[0], bad)


def test_bad_queries(aligner, new):
    with pytest.raises(ValueError, match="X has 20 features; the aligner was fitted with 14"):
        aligner.transform(new[1])
    with pytest.raises(ValueError, match="candidates has 14 features"):
        aligner.kneighbors(new[0], candidates=new[0])
    with pytest.raises(ValueError, match="n_neighbors=301; there are 300 candidates"):
        aligner.kneighbors(new[0], 301, candidates=new[1])
    with pytest.raises(NotFittedError):
        bm.BlindAligner().transform(new[0])


def test_parameters_are_kept_as_scikit_learn_wants_them():
    names = list(inspect.signature(bm.BlindAligner).parameters)
    assert sorted(bm.BlindAligner().get_params()) == sorted(names)
    assert clone(bm.BlindAligner(7, n_clusters=9)).get_params()["n_clusters"] == 9


def test_duplicates_do_not_hang(data):
    aligner = bm.BlindAligner(**QUICK).fit(np.repeat(data[0][:40], 10, axis=0), np.repeat(data[1][:40], 10, axis=0))
    assert np.isfinite(aligner.score_)


@pytest.mark.parametrize("sizes", [(16, 16), (40, 300), (300, 40)])
def test_small_sets_are_judged_on_all_points_and_have_no_score(world, sizes, tmp_path):
    X, Y = (world.seen(world.items(count), side) for side, count in enumerate(sizes))
    aligner = bm.BlindAligner(**QUICK).fit(X, Y)
    assert np.isnan([aligner.score_, aligner.ceiling_]).all()
    assert np.isfinite([aligner.overlap_, aligner.floor_]).all()
    judged = [count if count < 50 else count // 5 for count in sizes]
    shares = np.array([candidate.likeness for candidate in aligner.candidates_]) * judged[0]
    np.testing.assert_allclose(shares, shares.round(), atol=1e-6)
    aligner.save(tmp_path / "map.npz")
    assert np.isnan(bm.BlindAligner.load(tmp_path / "map.npz").score_)


@pytest.mark.parametrize(("n", "d"), [(50, 2), (100, 3), (400, 10)])
def test_clouds_without_a_shape_have_no_score(n, d):
    rng = np.random.default_rng(0)
    aligner = bm.BlindAligner(**QUICK).fit(rng.normal(size=(n, d)), rng.normal(size=(n, d)))
    assert np.isnan(aligner.score_)
    assert np.isfinite([aligner.overlap_, aligner.floor_, aligner.ceiling_]).all()


def test_nearest_agrees_with_sorting():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(n, 4)).astype(np.float32) for n in (7, 30))
    cosines, indices = nearest(a, b, 5)
    np.testing.assert_array_equal(indices, np.argsort(-(a @ b.T), axis=1)[:, :5])
    np.testing.assert_allclose(cosines, np.take_along_axis(a @ b.T, indices, axis=1), rtol=1e-6)
    np.testing.assert_array_equal(nearest(a, np.ones((6, 4), np.float32), 3)[1], np.tile([0, 1, 2], (7, 1)))


def test_adjusted_similarity_is_its_formula():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(n, 4)).astype(np.float32) for n in (6, 9))
    cosines = (a @ b.T).astype(float)
    of_a, of_b = (np.sort(side, axis=1)[:, -3:].mean(axis=1) for side in (cosines, cosines.T))
    np.testing.assert_allclose(adjusted_similarity(a, b, 3), 2 * cosines - of_a[:, None] - of_b, rtol=1e-5, atol=1e-5)


def test_refinement_brings_a_rough_rotation_home(data):
    frames = fit_frames(data[0], data[0][::-1], 10)
    a = frames[0].directions(data[0])
    rng = np.random.default_rng(0)
    rough = procrustes(np.eye(10) + 0.15 * rng.normal(size=(10, 10)), np.eye(10))
    fine = refine((a[:700], a[700:]), rough, schedule=[10] * 10, size=600, rng=rng)
    assert np.abs(rough - np.eye(10)).max() > 0.15
    assert np.abs(fine - np.eye(10)).max() < 0.1


def test_the_number_of_axes_grows_to_the_last():
    assert _growing(32, 256, 8) == [32, 32, 64, 64, 128, 128, 256, 256]
    assert _growing(32, 100, 1) == [32, 64, 100]
    assert _growing(10, 10, 3) == [10, 10, 10]


@sampled(("pressed", "left"), [("refining candidates", 1), ("refining the best", 3)], quick=1)
def test_ctrl_c_keeps_the_best_candidate_so_far(data, pressed, left):
    def press(step: str, done: int, total: int) -> None:
        if step == pressed and (done >= total / 3 + 1 or step == "refining the best"):
            raise KeyboardInterrupt

    model = bm.BlindAligner(n_clusters=8, n_clusterings=2, n_candidates=3, n_iterations=9, random_state=0)
    model.fit(*data, callback=press)
    assert model.interrupted_
    assert len(model.candidates_) == left
    assert model.transform(data[0][:3]).shape == (3, data[1].shape[1])
    assert not model.fit(*data).interrupted_
    assert len(model.candidates_) == 3


def test_a_time_limit_is_for_the_whole_fit(data, aligner):
    """However short, there is one candidate; what was left out is not claimed."""
    model = bm.BlindAligner(**{**QUICK, "time_limit": 1e-3}).fit(*data)
    assert model.limited_
    assert len(model.candidates_) == 1
    assert model.transform(data[0][:3]).shape == (3, data[1].shape[1])
    assert np.isnan(model.chance_)
    assert not aligner.limited_
    generous = bm.BlindAligner(**{**QUICK, "time_limit": 1e6}).fit(*data)
    assert not generous.limited_
    assert np.array_equal(generous.alignment_.rotation, aligner.alignment_.rotation)


def test_ctrl_c_before_the_first_candidate_keeps_nothing(data):
    def press(step: str, done: int, total: int) -> None:
        if step == "clustering":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bm.BlindAligner(n_clusters=8, random_state=0).fit(*data, callback=press)


def in_units(items):
    """A table with units of its own for each column, two of them wide."""
    wide = np.exp(2 * items[:, 1]), 1e3 * np.exp(3 * items[:, 4])
    return np.column_stack([1e6 * items[:, 0] + 3e6, wide[0], 0.01 * items[:, 2], items[:, 3], wide[1], items[:, 5]])


def test_tables_with_units_are_mapped_to_the_units_of_the_other_side(tmp_path):
    rng = np.random.default_rng(3)
    kinds = rng.normal(size=(60, 6))
    here, there, new = (kinds[rng.integers(60, size=n)] + 0.15 * rng.normal(size=(n, 6)) for n in (700, 600, 100))
    units = np.array([1000, 1, 5, 100, 1, 1e-6])
    sides = in_units(here), in_units(there)[:, ::-1] * units
    ours, theirs = ColumnScaling.pair(*sides, "log")
    aligner = bm.BlindAligner(**QUICK, scale="log").fit(*sides)
    plain = bm.BlindAligner(**QUICK).fit(ours.transform(sides[0]), theirs.transform(sides[1]))
    found = aligner.transform(in_units(new))
    assert np.allclose(found, theirs.inverse(plain.transform(ours.transform(in_units(new)))))
    assert np.allclose(aligner.inverse_transform(found), in_units(new), rtol=1e-3, atol=1e-3)
    assert (aligner.score_, aligner.support_) == (plain.score_, plain.support_)
    aligner.save(tmp_path / "map.npz")
    loaded = bm.BlindAligner.load(tmp_path / "map.npz")
    assert np.array_equal(loaded.transform(in_units(new)), found)
    near = [one.kneighbors(in_units(new), 1, candidates=sides[1])[1] for one in (aligner, loaded)]
    scaled = plain.kneighbors(ours.transform(in_units(new)), 1, candidates=theirs.transform(sides[1]))[1]
    assert np.array_equal(near[0], near[1])
    assert np.array_equal(near[0], scaled)
    with np.load(tmp_path / "map.npz") as file:
        arrays = dict(file)
    for name, value in (("spread", -units), ("logs", units), ("scale", np.array("x")), ("centre", units[:5])):
        np.savez(tmp_path / "bad.npz", **{**arrays, f"target_columns_{name}": value})
        with pytest.raises(ValueError, match=r"bad\.npz: target_columns: expected"):
            bm.BlindAligner.load(tmp_path / "bad.npz")
    with pytest.raises(ValueError, match="scale='lg' is not known; did you mean 'log'"):
        bm.BlindAligner(**QUICK, scale="lg").fit(here, there)


def test_similarity_and_score_of_new_pairs(world, aligner):
    items = world.items(60)
    X, Y = world.seen(items, 0), world.seen(items, 1)
    scores = aligner.score(X, Y)
    best = aligner.similarity(X, Y).argmax(axis=1)
    assert scores["top1"] == pytest.approx(float(np.mean(best == np.arange(60))))
    assert scores["top1"] <= scores["top5"] <= scores["top10"]
    assert scores["foscttm"] < 0.1
    assert aligner.score(X, Y[::-1])["foscttm"] > 0.3
    with pytest.raises(ValueError, match="X has 60 rows and Y has 5"):
        aligner.score(X, Y[:5])


def test_known_pairs_find_the_map_where_the_sets_alone_do_not():
    # A round cloud: every rotation brings the sets together equally well.
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(8, 6)))[0].T
    X, Y, new, some = (rng.normal(size=(count, 6)) for count in (300, 300, 100, 30))
    blind = bm.BlindAligner(**QUICK).fit(X, Y @ turn)
    known = bm.BlindAligner(**QUICK).fit(X, Y @ turn, known=(some, some @ turn))
    assert blind.score(new, new @ turn)["top1"] < 0.3
    assert known.score(new, new @ turn)["top1"] > 0.9
    assert known.result_.verify() <= known.result_.cost


def test_known_pairs_alone_are_no_support():
    # Two clouds without a shape: all that candidates could agree on is the known pairs, which each has its share of.
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 24)), rng.normal(size=(400, 24))
    known = rng.normal(size=(12, 24)), rng.normal(size=(12, 24))
    assert bm.BlindAligner(**QUICK).fit(X, Y, known=known).support_ == 0


def test_one_known_pair_is_enough_to_fit(data, new):
    mine, theirs = new
    fitted = bm.BlindAligner(**QUICK).fit(*data, known=(mine[:1], theirs[:1]))
    assert fitted.score(mine, theirs)["foscttm"] < 0.1
    assert 0 <= fitted.support_ <= len(fitted.candidates_)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (lambda X, Y: (X[:5], Y[:4]), "known has 5 sources and 4 targets"),
        (lambda X, Y: (Y[:5], Y[:5]), r"known\[0\] has 20 columns; the sources have 14"),
        (lambda X, Y: (X[[0, 0]], Y[[0, 0]]), "known repeats pair 0 at 1"),
        (lambda X, Y: X[:5], "expected a pair of arrays"),
    ],
)
def test_bad_known_pairs(data, known, message):
    with pytest.raises(ValueError, match=message):
        bm.BlindAligner(**QUICK).fit(*data, known=known(*data))


def test_views_of_a_side_are_brought_to_one_scale(world, data, new):
    X, Y = data
    # Columns that dwarf the others and say nothing, were it not for the scales.
    other = 1e4 * world.seen(world.items(len(X)), 0, noise=0.0)[:, :6]
    both, (mine, theirs) = bm.Views(X, 3.0 * X[:, ::-1]), new
    fitted = bm.BlindAligner(**QUICK).fit(both, Y)
    found = bm.Views(mine, 3.0 * mine[:, ::-1])
    assert fitted.support_ > 0
    assert fitted.score(found, theirs)["top1"] > 0.5
    assert (fitted.transform(found) == fitted.transform(found.columns)).all()
    back = fitted.inverse_transform(theirs)
    assert back.shape == (len(theirs), 28)
    assert np.abs(back[:, 14:] - 3.0 * back[:, 13::-1]).max() < 0.5
    light = bm.BlindAligner(**QUICK).fit(bm.Views(X, other, weights=[1, 1e-9]), Y)
    assert light.score(bm.Views(mine, 0 * mine[:, :6]), theirs)["top1"] > 0.5
    with pytest.raises(ValueError, match=r"X has views of \(6, 14\) columns; the aligner was fitted with \(14, 6\)"):
        light.transform(bm.Views(mine[:, :6], mine))
    with pytest.raises(ValueError, match="X has a view of weight 0, into which no point can be mapped; leave it out"):
        bm.BlindAligner(**QUICK).fit(bm.Views(X, other, weights=[1, 0]), Y)


def test_known_pairs_and_maps_in_files_may_be_of_views(data, new, tmp_path):
    (X, Y), (mine, theirs) = data, new
    twice = lambda points: bm.Views(points, 5.0 * points, labels=["one", "five"])  # noqa: E731
    fitted = bm.BlindAligner(**QUICK).fit(Y, twice(X), known=(theirs[:5], twice(mine[:5])))
    fitted.save(tmp_path / "map.npz")
    loaded = bm.BlindAligner.load(tmp_path / "map.npz")
    assert (loaded.transform(theirs) == fitted.transform(theirs)).all()
    assert (loaded.inverse_transform(twice(mine)) == fitted.inverse_transform(twice(mine))).all()
