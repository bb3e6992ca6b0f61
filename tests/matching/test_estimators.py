"""BlindMatcher and BlindClassifier: scikit-learn's own checks, the kinds of input, predictions, figures."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator
from strategies import embeddings, rng_of

import blindmatch as bm
from blindmatch.matching.evaluation import cluster_assignment, clustering_accuracy
from blindmatch.problem.distortions import DISTORTIONS

LABELS = "passes labels (one axis) where a second set of embeddings (two axes) is needed"
EXPECTED = {
    "check_transformer_data_not_an_array": LABELS,
    "check_transformer_general": LABELS,
    "check_transformer_preserve_dtypes": LABELS,
}
NOT_LABELS = "takes Y for labels of the rows of X; it holds one embedding a class"
EXPECTED_CLASSIFIER = {
    "check_classifiers_one_label": NOT_LABELS,
    "check_classifiers_classes": NOT_LABELS,
    "check_classifier_multioutput": NOT_LABELS,
    "check_classifiers_train": NOT_LABELS,
    "check_classifiers_regression_target": NOT_LABELS,
}


@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks warn of what they skip
@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (bm.BlindMatcher(solver="random", random_state=0), EXPECTED),
        (bm.BlindClassifier(n_init=1, solver="random", random_state=0), EXPECTED_CLASSIFIER),
    ],
    ids=["matcher", "classifier"],
)
def test_the_checks_of_scikit_learn(estimator, expected):
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) > 35
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)


def test_a_frame_comes_out_with_the_columns_of_the_targets():
    pd = pytest.importorskip("pandas")
    X, Y = embeddings(0, 8)
    theirs = pd.DataFrame(Y).add_prefix("y")
    matcher = bm.BlindMatcher(random_state=0).set_output(transform="pandas").fit(X, theirs)
    out = matcher.transform(pd.DataFrame(X, index=list("abcdefgh")).to_numpy())
    assert out.columns.tolist() == theirs.columns.tolist() == matcher.get_feature_names_out().tolist()
    np.testing.assert_array_equal(out, Y[matcher.permutation_])
    unnamed = clone(matcher).fit(X, Y).get_feature_names_out()
    assert unnamed.tolist() == [f"blindmatcher{at}" for at in range(Y.shape[1])]
    with pytest.raises(NotFittedError):
        bm.BlindMatcher().get_feature_names_out()
    with pytest.warns(UserWarning, match="column 'y0' of the target"):
        bm.BlindMatcher(random_state=0).fit(X, theirs.assign(y0=1e6 * theirs["y0"]))


def test_the_matcher_is_bm_match():
    X, Y = embeddings(0, 8)
    options = {"distortion": "cka", "standardize": False}
    matcher = clone(bm.BlindMatcher(random_state=3, **options)).fit(X, Y)
    result = bm.match(X, Y, rng=3, **options)
    assert matcher.permutation_.tolist() == result.permutation.tolist()
    assert (matcher.cost_, matcher.lower_bound_) == (result.cost, result.lower_bound)
    assert matcher.result_.status == "optimal"


@pytest.mark.parametrize("n_jobs", [1, 2, -1, -2, -9])
def test_the_number_of_jobs_changes_nothing_but_time(n_jobs):
    X, Y = embeddings(0, 8)
    found = bm.BlindMatcher(random_state=3, n_jobs=n_jobs, metric="geodesic", n_neighbors=3).fit(X, Y)
    result = bm.match(X, Y, rng=3, metric="geodesic", neighbors=3)
    assert (found.permutation_.tolist(), found.cost_) == (result.permutation.tolist(), result.cost)
    for wrong in (0, 1.5, "all"):
        with pytest.raises(ValueError, match="n_jobs="):
            clone(found).set_params(n_jobs=wrong).fit(X, Y)


def test_hints_reach_the_match():
    X, Y = embeddings(5, 7, noise=1.0)
    free = bm.BlindMatcher(random_state=0).fit(X, Y).permutation_
    known = [(0, int(free[1]))]
    assert bm.BlindMatcher(random_state=0).fit(X, Y, known_pairs=known).permutation_[0] == free[1]
    forbidden = bm.BlindMatcher(random_state=0).fit(X, Y, forbidden_pairs=[(0, int(free[0]))]).permutation_
    assert forbidden[0] != free[0]
    wish = np.zeros((7, 7))
    wish[2, 5] = 1.0
    assert bm.BlindMatcher(similarity_weight=1e4, random_state=0).fit(X, Y, similarity=wish).permutation_[2] == 5
    alone = bm.BlindMatcher(unmatched_cost=0.1, max_unmatched=3, random_state=0).fit(X, Y)
    assert (alone.permutation_ == -1).sum() == 3


def test_new_points_go_with_their_nearest_matched_source():
    X, Y = embeddings(1, 9, noise=0.05)
    matcher = bm.BlindMatcher(random_state=0).fit(X, Y)
    new = X + 1e-3 * rng_of(0).standard_normal(X.shape)
    assert (matcher.predict(new) == matcher.permutation_).all()
    assert (matcher.transform(new) == Y[matcher.permutation_]).all()
    assert matcher.score(new, matcher.permutation_) == 1.0
    wrong = matcher.permutation_.copy()
    wrong[:3] = (wrong[:3] + 1) % 9
    assert matcher.score(new, wrong) == pytest.approx(6 / 9)


def test_a_source_without_a_partner_is_never_the_nearest():
    X, Y = embeddings(1, 9, noise=0.05)
    matcher = bm.BlindMatcher(random_state=0).fit(X, Y[:6])
    left = np.flatnonzero(matcher.permutation_ < 0)
    assert len(left) == 3
    assert (matcher.predict(X[left]) >= 0).all()
    nothing = bm.BlindMatcher(unmatched_cost=1.0, random_state=0)
    nothing.fit(X, Y, forbidden_pairs=np.ones((9, 9), dtype=bool))
    with pytest.raises(ValueError, match="nothing can be predicted"):
        nothing.predict(X)


@pytest.mark.parametrize("distortion", ["gw", "cka"])
def test_precomputed_kernels(distortion):
    X, Y = embeddings(2, 8, noise=0.05)
    measure = DISTORTIONS[distortion]()
    K, G = measure.kernel(X), measure.kernel(Y)
    plain = bm.BlindMatcher(distortion, random_state=0).fit(X, Y)
    matcher = bm.BlindMatcher(distortion, kernel="precomputed", random_state=0).fit(K, G)
    assert matcher.permutation_.tolist() == plain.permutation_.tolist()
    assert matcher.cost_ == pytest.approx(plain.cost_)
    new = X + 1e-4
    together = measure.kernel(np.vstack([new, X]))[: len(new), len(new) :]
    if distortion == "gw":  # the nearest by inner product is the longest, not the nearest
        assert (matcher.predict(together) == plain.predict(new)).all()
    else:
        assert (matcher.predict(together) == matcher.permutation_[together.argmax(axis=1)]).all()
    assert matcher.transform(together).shape == (8, 8)
    assert matcher.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="square"):
        bm.BlindMatcher(kernel="precomputed").fit(X, Y)
    K[2, 5] = np.nan
    with pytest.raises(ValueError, match=r"holds nan in 1 of 64 entries; bm\.fill_missing"):
        bm.BlindMatcher(kernel="precomputed").fit(K, G)
    with pytest.raises(ValueError, match="kernel='linear'"):
        bm.BlindMatcher(kernel="linear").fit(X, Y)


class Exported:
    """An array of a library that numpy does not know, which exports it by DLPack."""

    def __init__(self, array):
        self.__dlpack__, self._array = array.copy().__dlpack__, array

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def frames(kind, array):
    if kind == "dlpack":
        return Exported(array)
    module = pytest.importorskip(kind)
    if kind == "torch":
        return module.tensor(array, requires_grad=True)
    if kind == "jax.numpy":
        return module.asarray(array)
    return module.DataFrame(
        array, **({"schema": ["a", "b", "c", "d"]} if kind == "polars" else {"columns": list("abcd")})
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "torch", "jax.numpy", "dlpack"])
def test_frames_and_tensors_are_taken(kind):
    X, Y = (side.astype(np.float32) for side in embeddings(3, 8))  # JAX has no other numbers by default
    given = frames(kind, X), frames(kind, Y)
    result = bm.match(X, Y, rng=0)
    assert bm.match(*given, rng=0).permutation.tolist() == result.permutation.tolist()
    matcher = bm.BlindMatcher(random_state=0).fit(*given)
    assert matcher.permutation_.tolist() == result.permutation.tolist()
    assert matcher.predict(given[0]).tolist() == result.permutation.tolist()
    if kind in ("pandas", "polars"):
        assert matcher.feature_names_in_.tolist() == list("abcd")
    model = bm.BlindClassifier(n_init=2, random_state=0).fit(given[0], given[1])
    assert len(model.predict(given[0])) == 8
    pairs = frames(kind, X[4:]), frames(kind, Y[4:])
    known = bm.match(frames(kind, X[:4]), frames(kind, Y[:4]), known=pairs, rng=0)
    assert known.cost == bm.match(X[:4], Y[:4], known=(X[4:], Y[4:]), rng=0).cost


def test_half_precision_tensors_are_taken():
    torch = pytest.importorskip("torch")
    X, Y = embeddings(3, 8)
    low = torch.tensor(X).bfloat16(), torch.tensor(Y).half()
    rounded = [tensor.double().numpy() for tensor in low]
    assert bm.match(*low, rng=0).cost == bm.match(*rounded, rng=0).cost


def test_half_precision_of_jax_is_taken():
    jax = pytest.importorskip("jax.numpy")
    X, Y = embeddings(3, 8)
    low = [jax.asarray(side, dtype=jax.bfloat16) for side in (X, Y)]
    assert bm.match(*low, rng=0).cost == bm.match(*(np.asarray(side, dtype=float) for side in low), rng=0).cost


def test_bad_input():
    X, Y = embeddings(1, 6)
    with pytest.raises(NotFittedError):
        bm.BlindMatcher().predict(X)
    with pytest.raises(ValueError, match="Y"):
        bm.BlindMatcher().fit(X, None)
    with pytest.raises(ValueError, match="Input Y contains NaN"):
        bm.BlindMatcher().fit(X, np.full((6, 2), np.nan))
    matcher = bm.BlindMatcher(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="X has 2 features, but BlindMatcher is expecting 4"):
        matcher.predict(X[:, :2])
    with pytest.raises(ValueError, match=r"^y has shape \(2,\); expected \(6,\)"):
        matcher.score(X, [0, 1])


def clustered(seed, classes=6, each=30, noise=0.1):
    rng = rng_of(seed)
    centres = rng.standard_normal((classes, 5))
    labels = np.repeat(np.arange(classes), each)
    texts = centres @ np.linalg.qr(rng.standard_normal((9, 9)))[0][:5]
    return centres[labels] + noise * rng.standard_normal((classes * each, 5)), labels, texts


@pytest.mark.parametrize("clusters", [None, 9])
def test_the_classifier_names_clusters(clusters):
    images, labels, texts = clustered(0)
    names = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])
    model = bm.BlindClassifier(clusters, n_init=10, random_state=0).fit(images, texts, classes=names)
    assert (model.predict(images) == names[labels]).mean() > 0.95
    assert model.score(images, names[labels]) == (model.predict(images) == names[labels]).mean()
    assert len(model.centres_) == (clusters or 6)
    assert model.classes_.tolist() == names.tolist()
    assert (model.result_.permutation == -1).sum() == (clusters or 6) - 6


def test_clusterings_vote_where_a_single_one_splits_a_class():
    images, labels, texts = clustered(2, noise=0.6)
    single = [bm.BlindClassifier(n_init=1, random_state=seed).fit(images, texts) for seed in range(5)]
    voted = [bm.BlindClassifier(n_init=10, random_state=seed).fit(images, texts) for seed in range(5)]
    right, alone = (np.mean([model.score(images, labels) for model in models]) for models in (voted, single))
    assert right > alone > 0.8
    assert all(model.result_.verify() <= model.result_.cost for model in voted)
    with pytest.raises(ValueError, match="chosen by how well they match, so it cannot be assessed"):
        voted[0].result_.assess()
    alone = bm.BlindClassifier(n_init=10, vote=False, random_state=0).fit(images, texts)
    assert alone.result_.assess(draws=9, resamples=2, regret=False, rng=0).p_value is not None


def test_the_number_of_clusters_is_found():
    images, labels, texts = clustered(0)
    model = bm.BlindClassifier("auto", n_init=5, random_state=0).fit(images, texts)
    assert len(model.centres_) == 6
    assert model.score(images, labels) > 0.95
    fewer = bm.BlindClassifier("auto", n_init=5, random_state=0).fit(images[labels < 4], texts)
    assert len(fewer.centres_) == 4
    with pytest.raises(ValueError, match=r"^n_clusters='many'"):
        bm.BlindClassifier("many").fit(images, texts)


def test_wide_embeddings_are_compared_by_directions_from_their_mean():
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((6, 20))
    labels = np.repeat(np.arange(6), 30)
    images = centres[labels] + 0.2 * rng.standard_normal((180, 20))
    lengths = rng.uniform(0.2, 5, (180, 1))
    texts = centres @ np.linalg.qr(rng.standard_normal((20, 20)))[0] + 3
    model = bm.BlindClassifier(n_init=5, random_state=0).fit(images, texts)
    assert model.score(images, labels) == 1.0
    stretched = bm.BlindClassifier(n_init=5, random_state=0).fit(lengths * (images - centres.mean(axis=0)), texts)
    assert stretched.score(lengths * (images - centres.mean(axis=0)), labels) > 0.95


def test_ctrl_c_in_the_vote_keeps_what_was_voted():
    images, labels, texts = clustered(0)

    def press(step: str, done: int, total: int) -> None:
        if (step, done) == ("voting", 2):
            raise KeyboardInterrupt

    model = bm.BlindClassifier(n_init=5, random_state=0).fit(images, texts, callback=press)
    assert model.n_init_ == 5
    assert model.score(images, labels) > 0.95


def test_the_two_figures_and_the_ceiling():
    images, labels, texts = clustered(1, noise=0.7)
    model = bm.BlindClassifier(n_init=5, solver="random", random_state=4).fit(images, texts)
    scores = model.evaluate(images, labels)
    clusters = model.clusters(images)
    assert scores.accuracy == (model.predict(images) == labels).mean()
    assert scores.ceiling == pytest.approx(clustering_accuracy(labels, clusters))
    best = cluster_assignment(labels, clusters)
    assert scores.matching_accuracy == np.mean([model.cluster_class_[c] == label for c, label in best.items()])
    assert scores.accuracy < scores.ceiling < 1.0
    exact = bm.BlindClassifier(n_init=5, random_state=4).fit(*clustered(1)[::2])
    assert exact.evaluate(*clustered(1)[:2]).to_dict() == {"accuracy": 1.0, "matching_accuracy": 1.0, "ceiling": 1.0}
    with pytest.raises(ValueError, match="y holds 99"):
        model.evaluate(images, [99] * len(images))


def test_the_classifier_refuses_what_does_not_fit():
    images, _, texts = clustered(0)
    with pytest.raises(ValueError, match=r"^X has 3 rows; at least 6 are needed"):
        bm.BlindClassifier().fit(images[:3], texts)
    with pytest.raises(ValueError, match=r"^classes has shape \(2,\)"):
        bm.BlindClassifier().fit(images, texts, classes=["a", "b"])
    with pytest.raises(ValueError, match=r"^n_clusters=0"):
        bm.BlindClassifier(0).fit(images, texts)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["a", "b", "c", "b", "d", "e"], r"^classes holds 'b' at \[1\] and at \[3\]"),
        ([1, 2, 3, 4, 5, "1"], r"^classes holds '1' at \[0\] and at \[5\]"),  # numpy makes strings of all
        (["a", "b", float("nan"), "c", "d", "e"], r"^classes holds nan at \[2\]; a label is missing"),
        (np.array([0, 1, 2, np.nan, 4, 5]), r"^classes holds nan at \[3\]; a label is missing"),
        (["a", "b", None, "c", "d", "e"], r"^classes holds None at \[2\]; a label is missing"),
        ([["a"]] * 6, r"^classes has shape \(6, 1\)"),
    ],
)
def test_the_classifier_refuses_names_that_tell_nothing_apart(classes, message):
    images, _, texts = clustered(0)
    with pytest.raises(ValueError, match=message):
        bm.BlindClassifier(n_init=1).fit(images, texts, classes=classes)


def test_ctrl_c_in_kmeans_keeps_the_best_clustering_so_far():
    images, _, texts = clustered(1)

    def press(step: str, done: int, total: int) -> None:
        if (step, done) == ("clustering", 3):
            raise KeyboardInterrupt

    model = bm.BlindClassifier(n_init=50, random_state=4).fit(images, texts, callback=press)
    alone = bm.BlindClassifier(n_init=3, vote=False, random_state=4).fit(images, texts)
    assert model.n_init_ == alone.n_init_ == 3
    assert model.result_.status in ("optimal", "time_limit")  # it has a second
    assert (model.centres_ == alone.centres_).all()
    with pytest.raises(KeyboardInterrupt):  # before the first one there is nothing to keep
        bm.BlindClassifier().fit(images, texts, callback=lambda step, done, total: press(step, 3, total))
