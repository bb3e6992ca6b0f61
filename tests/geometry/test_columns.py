import numpy as np
import pytest

import blindmatch as bm
from blindmatch.geometry.column_scaling import SCALES, ColumnScaling, UnitsWarning, heaviest

RNG = np.random.default_rng(3)
HIDDEN = RNG.normal(size=(12, 3))
# The same three quantities in two sets of units: people and millions, euros and thousands, degrees and radians.
ONE = np.column_stack([1e6 * np.exp(2 * HIDDEN[:, 0]), 2e4 * np.exp(1.5 * HIDDEN[:, 1]), 10 * HIDDEN[:, 2]])
ORDER = RNG.permutation(12)
OTHER = (ONE * [1e-6, 1e-3, np.pi / 180])[ORDER]


@pytest.mark.parametrize("scale", SCALES)
def test_the_input_is_never_modified(scale):
    before = ONE.copy()
    ColumnScaling.of(ONE, scale).transform(ONE)
    assert (before == ONE).all()


def test_columns_have_mean_zero_and_spread_one():
    scaled = ColumnScaling.of(ONE, "columns").transform(ONE)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), 1)


def test_robust_is_not_moved_by_an_outlier():
    wild = ONE.copy()
    wild[0, 2] = 1e9
    a, b = (ColumnScaling.of(table, "robust").transform(table)[1:, 2] for table in (ONE, wild))
    assert np.abs(a - b).max() < 1
    assert ColumnScaling.of(wild, "auto").robust[2]


def test_logarithms_are_taken_of_wide_positive_columns_only():
    scaling = ColumnScaling.of(ONE, "log")
    assert scaling.logs.tolist() == [True, True, False]
    with pytest.raises(ValueError, match="row 1 holds -1 in column 0"):
        scaling.transform(np.array([[1.0, 1, 1], [-1, 1, 1]]))


def test_a_constant_column_stays_constant():
    table = np.column_stack([ONE[:, 0], np.full(12, 0.1)])
    assert (ColumnScaling.of(table, "columns").transform(table)[:, 1] == 0).all()


def test_auto_leaves_embeddings_alone():
    X = RNG.normal(size=(30, 16))
    assert heaviest(X) is None
    left, right = ColumnScaling.pair(X, X, "auto")
    assert left.transform(X) is X
    assert "no column outweighs" in right.described()
    assert all(side.changes for side in ColumnScaling.pair(X[:12], ONE, "auto"))


@pytest.mark.parametrize(
    ("spreads", "heavy"), [((1, 1, 20), 2), ((1, 1, 4), None), ((1, 1, 20, 21), 3), ((0, 9), None)]
)
def test_the_heaviest_column(spreads, heavy):
    found = heaviest(np.array([[-1.0], [1.0]] * 4) * spreads)
    assert (None if found is None else found[0]) == heavy


def test_units_mislead_and_scale_mends():
    with pytest.warns(UserWarning, match=r"column 0 of the source carries 99.* scale='auto'"):
        raw = bm.match(ONE, OTHER, rng=0)
    mended = bm.match(ONE, OTHER, scale="auto", rng=0)
    truth = np.argsort(ORDER)
    assert (mended.permutation == truth).all()
    assert (raw.permutation != truth).any()
    problem = bm.Task(ONE, OTHER, scale="auto").problem
    assert mended.cost == pytest.approx(problem.objective(mended.permutation))
    mended.assess(draws=2, resamples=2, regret=False, rng=0)


def test_estimators_scale_new_points_as_the_fitted_ones():
    matcher = bm.BlindMatcher(scale="auto", random_state=0).fit(ONE, OTHER)
    assert matcher.score(ONE * 1.01, np.argsort(ORDER)) == 1
    images = np.repeat(ONE, 8, axis=0) * (1 + 0.01 * RNG.normal(size=(96, 1)))
    model = bm.BlindClassifier(scale="auto", n_init=5, random_state=0).fit(images, OTHER)
    assert (model.predict(images) == np.repeat(np.argsort(ORDER), 8)).all()


def test_subsets_are_scaled_too():
    found = bm.best_subsets(ONE, OTHER[np.argsort(ORDER)], size=3, k=1, scale="auto", rng=0)
    assert found.costs[0] == pytest.approx(0, abs=1e-9)


def test_bad_scales_are_refused():
    with pytest.raises(ValueError, match=r"scale='lgo' is not known; did you mean 'log'"):
        bm.match(ONE, OTHER, scale="lgo")
    with pytest.raises(ValueError, match="kernels have none"):
        bm.match(kernels=(np.eye(3), np.eye(3)), scale="auto")
    with pytest.raises(ValueError, match="samples cannot be used"):
        bm.match(ONE, OTHER, scale="log", rng=0).assess(source_samples=[ONE] * 12)


@pytest.mark.parametrize(
    ("side", "fit"),
    [
        ("X", lambda scale: bm.BlindAligner(n_clusters=3, n_clusterings=1, scale=scale, random_state=0)),
        ("images", lambda scale: bm.BlindClassifier(n_init=1, scale=scale, random_state=0)),
        ("source", lambda scale: bm.BlindMatcher(scale=scale, random_state=0)),
    ],
)
def test_estimators_warn_of_units_too(side, fit):
    with pytest.warns(UnitsWarning, match=f"column 0 of the {side} carries 99.* scale='auto'") as told:
        fit("none").fit(ONE, OTHER)
    assert [warning.filename for warning in told] == [__file__]  # it points to the caller
    fit("auto").fit(ONE, OTHER)  # warnings are errors in tests


def test_subsets_warn_of_units_too():
    with pytest.warns(UnitsWarning, match="column 0 of the source carries 99") as told:
        bm.best_subsets(ONE, OTHER, size=3, k=1, rng=0)
    assert [warning.filename for warning in told] == [__file__]
    bm.best_subsets(ONE, OTHER, size=3, k=1, scale="auto", rng=0)
