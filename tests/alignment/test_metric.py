"""A map by cosine or correlation is a map of unit rows, for the points of the fit and for new ones."""

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.alignment.map import embedded
from blindmatch.geometry.column_scaling import ColumnScaling

QUICK = {"n_clusters": 12, "n_clusterings": 5, "n_candidates": 3, "n_iterations": 8, "random_state": 0, "n_jobs": 1}
FAST = {**QUICK, "n_clusters": 5, "n_clusterings": 1, "n_candidates": 1, "n_iterations": 2}  # a map, if a poor one


def unit(points):
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def centred(points):
    return unit(points - points.mean(axis=1, keepdims=True))


@pytest.fixture(scope="module")
def sides():
    """Directions of different items on both sides, and of the same new items."""
    rng = np.random.default_rng(1)
    scale = 1 / np.sqrt(1 + np.arange(8))
    kinds = 2 * scale * rng.normal(size=(60, 8))
    axes = [rng.normal(size=(width, 8)) for width in (9, 12)]
    axes[1] -= axes[1].mean(axis=0)  # rows of the target have mean 0, so their correlation is a cosine
    turns = [np.linalg.qr(side)[0].T for side in axes]

    def draw(count):
        items = unit(kinds[rng.integers(60, size=count)] + 0.3 * scale * rng.normal(size=(count, 8)))
        return items @ turns[0], items @ turns[1]

    return draw(700)[0], draw(600)[1], *draw(150)


@pytest.fixture(scope="module")
def lengths():
    """A length for each row of `sides`, which tells nothing."""
    rng = np.random.default_rng(2)
    return [np.exp(2 * rng.normal(size=(count, 1))) for count in (700, 600, 150, 150)]


def test_lengths_and_means_of_rows_do_not_matter(sides, lengths, tmp_path):
    x, y, new_x, new_y = (length * side for length, side in zip(lengths, sides, strict=True))
    y, new_y = y + lengths[1][::-1], new_y + lengths[3][::-1]
    model = bm.BlindAligner(**QUICK, metric=("cosine", "correlation")).fit(x, y)
    plain = bm.BlindAligner(**QUICK).fit(unit(x), centred(y))
    np.testing.assert_allclose(model.transform(new_x), plain.transform(unit(new_x)), atol=1e-6)
    np.testing.assert_allclose(model.inverse_transform(new_y), plain.inverse_transform(centred(new_y)), atol=1e-6)
    found = model.kneighbors(new_x, 1, candidates=new_y)[1]
    np.testing.assert_array_equal(found, plain.kneighbors(unit(new_x), 1, candidates=centred(new_y))[1])
    assert (found[:, 0] == np.arange(150)).mean() > 0.9
    assert (bm.BlindAligner(**QUICK).fit(x, y).kneighbors(new_x, 1, candidates=new_y)[1] == found).mean() < 0.5
    model.save(tmp_path / "map.npz")
    loaded = bm.BlindAligner.load(tmp_path / "map.npz")
    assert loaded.metric == ("cosine", "correlation")
    np.testing.assert_array_equal(loaded.transform(new_x), model.transform(new_x))
    np.testing.assert_array_equal(loaded.kneighbors(new_x, 1, candidates=new_y)[1], found)


def test_columns_are_scaled_before_rows(sides):
    x, y, new, _ = sides
    units = 10.0 ** np.arange(-4, 5)
    scaling = ColumnScaling.of(x * units, "columns")
    model = bm.BlindAligner(**FAST, scale="columns", metric=("cosine", "euclidean")).fit(x * units, y)
    rows = (new * units - scaling.centre) / scaling.spread
    plain = bm.BlindAligner(**FAST, scale="columns").fit(x * units, y)
    np.testing.assert_allclose(model.alignment_.prepared(new * units, 0), unit(rows), atol=1e-6)
    np.testing.assert_allclose(plain.alignment_.prepared(new * units, 0), rows, atol=1e-6)


def test_a_file_of_an_older_version_has_no_metric(sides, tmp_path):
    model = bm.BlindAligner(**FAST).fit(*sides[:2])
    model.save(tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz") as file:
        arrays = dict(file)
    assert not [name for name in arrays if "metric" in name]
    loaded = bm.BlindAligner.load(tmp_path / "map.npz")
    np.testing.assert_array_equal(loaded.transform(sides[2]), model.transform(sides[2]))
    for bad in ("hops", "cosin"):
        np.savez(tmp_path / "bad.npz", **arrays, target_metric=np.array(bad))
        with pytest.raises(ValueError, match=rf"bad\.npz: metric='{bad}'"):
            bm.BlindAligner.load(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("geodesic", "metric='geodesic'; an aligner rotates coordinates, so it takes euclidean, cosine, correlation"),
        ("hops:cosine", "metric='hops:cosine'.*bm.match, and bm.project"),
        (("cosine", "cityblock"), "metric='cityblock'.*bm.match"),
        ("precomputed", "metric='precomputed'.*bm.match"),
        ("auto", "metric='auto'"),
        (3, "metric=3;"),
        ("cosin", "metric='cosin' is not known; did you mean 'cosine'"),
        (("cosine",), "metric has 1 items; expected one, or a pair"),
    ],
)
def test_other_metrics_are_refused_with_what_to_use_instead(sides, metric, message):
    with pytest.raises(ValueError, match=message):
        bm.BlindAligner(**FAST, metric=metric).fit(*sides[:2])


def test_rows_without_a_direction_are_refused_by_number(sides):
    x, y, new_x, new_y = (side.copy() for side in sides)
    model = bm.BlindAligner(**FAST, metric=("cosine", "correlation")).fit(x, y)
    new_x[7], new_y[3] = 0.0, 0.1
    with pytest.raises(ValueError, match="X holds only zeros in row 7, which has no cosine to other rows"):
        model.transform(new_x)
    with pytest.raises(ValueError, match="Y holds only equal numbers in row 3, which has no correlation"):
        model.inverse_transform(new_y)
    with pytest.raises(ValueError, match="candidates holds only equal numbers in row 3"):
        model.kneighbors(x[:2], 1, candidates=new_y)
    x[5] = 0.0
    with pytest.raises(ValueError, match="X holds only zeros in row 5"):
        bm.BlindAligner(**FAST, metric="cosine").fit(x, y)


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_rows_of_every_size_and_type_have_unit_length(metric):
    rows = np.random.default_rng(0).integers(-100, 100, size=(9000, 4))
    want = unit(rows) if metric == "cosine" else centred(rows)
    for points in (rows, rows.astype(np.int8), rows.astype(np.float16), rows * 1e300, rows * 1e-310, rows * 1e306):
        np.testing.assert_allclose(embedded(points, metric, "X"), want, atol=1e-6)
    assert embedded(rows.astype(np.float16), metric, "X").dtype == np.float32
