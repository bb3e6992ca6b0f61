"""Several models of a side, and several relations that correspond."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blindmatch as bm
from blindmatch.geometry.kernels import distances, standardized

DISTORTIONS = ["gw", "gaussian", "cka", "mutual-knn:k=2", "kl", "inner-product"]


def models(seed, n=6, count=3):
    """Noisy linear images of the same points."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return [X @ rng.normal(size=(4, d)) + 0.3 * rng.normal(size=(n, d)) for d in range(2, 2 + count)], rng.permutation(
        n
    )


def test_the_kernel_of_views_is_the_weighted_mean_of_their_standardised_kernels():
    (A, B, C), p = models(0)
    task = bm.Task(A, bm.Views(B[p], C[p], weights=[3, 1]))
    mean = 0.75 * standardized(distances(B[p])) + 0.25 * standardized(distances(C[p]))
    assert task.kernels[1] == pytest.approx(standardized(mean), abs=1e-12)
    assert task.kernels[0] == pytest.approx(standardized(distances(A)), abs=1e-12)
    plain = bm.Task(A, bm.Views(B[p], C[p], weights=[3, 1]), standardize=False)
    assert plain.kernels[1] == pytest.approx(0.75 * distances(B[p]) + 0.25 * distances(C[p]), abs=1e-12)


@pytest.mark.parametrize("distortion", DISTORTIONS)
def test_one_view_is_the_array_and_a_view_twice_is_the_view(distortion):
    (A, B, _), _ = models(1)
    once = bm.match(A, B, distortion=distortion, rng=0)
    for target in (bm.Views(B), bm.Views(B, B), bm.Views(B, B, weights=[1, 0])):
        found = bm.match(A, target, distortion=distortion, rng=0)
        assert (found.permutation == once.permutation).all()
        assert found.cost == pytest.approx(once.cost, rel=1e-9)
        assert found.status == "optimal"


@pytest.mark.parametrize("distortion", DISTORTIONS)
def test_views_are_saved_and_proved(distortion, tmp_path):
    (A, B, C), p = models(2)
    views = bm.Views(A[p], B[p], weights=[1, 2], labels=["one", "two"])
    result = bm.match(views, C, distortion=distortion, scale="columns", rng=0)
    again = bm.load(result.save(tmp_path / "match.npz"))
    assert again.cost == result.cost
    assert again.verify() == result.verify() == result.lower_bound
    assert again.task.views[0].labels == ("one", "two")
    assert again.task.digest == result.task.digest
    kernels = result.task.kernels
    loss = result.task.distortion.loss
    costs = [loss(kernels[0], kernels[1][np.ix_(q, q)]).sum() for q in itertools.permutations(range(6))]
    assert result.cost == pytest.approx(min(costs), abs=1e-9)


def test_estimators_and_subsets_take_views():
    (A, B, C), p = models(3, n=8)
    source, target = bm.Views(A, B), bm.Views(C[p], A[p])
    matcher = bm.BlindMatcher(random_state=0).fit(source, target)
    assert (matcher.predict(source) == matcher.permutation_).all()
    assert matcher.transform(source).shape == (8, sum(target.widths))
    assert (bm.BlindMatcher(random_state=0).fit(A, target).predict(A) >= 0).all()
    found = bm.best_subsets(source, bm.Views(C, A), size=3, k=2, rng=0)
    assert len(found.subsets) == 2
    rng = np.random.default_rng(0)
    images = [np.repeat(view, 12, axis=0) + 0.05 * rng.normal(size=(96, view.shape[1])) for view in (A, B)]
    model = bm.BlindClassifier(n_init=10, random_state=0).fit(bm.Views(*images), bm.Views(A[p], B[p]), classes=p)
    assert np.mean(model.predict(bm.Views(*images)) == np.repeat(np.arange(8), 12)) == 1.0
    with pytest.raises(ValueError, match="precomputed"):
        bm.BlindMatcher(kernel="precomputed").fit(source, A)


def test_views_are_assessed():
    (A, B, C), p = models(4, n=9)
    trust = bm.match(A, bm.Views(B[p], C[p]), rng=0).assess(draws=9, resamples=5, rng=0)
    assert trust.p_value is not None
    assert np.isfinite(trust.confidence).all()


def test_many_items_see_the_concatenated_views():
    task = bm.Task(np.zeros((3001, 1)), bm.Views(np.ones((3001, 2)), np.eye(3001, 3)))
    assert not task.precomputed
    assert task.sides[1].shape == (3001, 5)
    assert "concatenated" in task.notes[0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda A, B: bm.Views(), "no view"),
        (lambda A, B: bm.Views(A, B[:5]), r"views\[1\] has 5 items and views\[0\] has 6"),
        (lambda A, B: bm.Views(A, B[:, :0]), r"views\[1\] is empty"),
        (lambda A, B: bm.Views(A, B, weights=[1, -1]), "weights"),
        (lambda A, B: bm.Views(A, B, weights=[0, 0]), "not all of them 0"),
        (lambda A, B: bm.Views(A, B, weights=[1]), "one for each of the views"),
        (lambda A, B: bm.Views(A, B, labels=["a"]), "labels"),
        (lambda A, B: bm.match(A, bm.Views(B, np.ones((6, 2)))), "target: all items of 'view 2' are equally far apart"),
        (lambda A, B: bm.match(A, B, weights=[1]), "weights"),
        (lambda A, B: bm.match(kernels=[(A, A)]), "square"),
        (lambda A, B: bm.match(kernels=[(np.eye(3), np.eye(3)), (np.eye(4), np.eye(3))]), r"kernels\[1\] relates"),
        (lambda A, B: bm.match(kernels=[(np.eye(3), np.eye(3))], distortion=["gw", "kl"]), "one for each layer"),
        (lambda A, B: bm.match(kernels=[(np.eye(3), np.eye(3))] * 2, weights=[0, 0]), "weights"),
    ],
)
def test_bad_views_and_layers_are_named(make, words):
    (A, B, _), _ = models(5)
    with pytest.raises(ValueError, match=words):
        make(A, B)


def layers(seed, n, m, count):
    rng = np.random.default_rng(seed)
    return [(np.abs(rng.normal(size=(n, n))), np.abs(rng.normal(size=(m, m)))) for _ in range(count)]


@pytest.mark.parametrize(("n", "m"), [(5, 5), (4, 6), (6, 4)])
@pytest.mark.parametrize("distortion", ["gw", ["gw", "kl"], ["cka", "inner-product"]])
def test_layers_are_the_weighted_sum_of_their_losses(n, m, distortion, tmp_path):
    pairs, weights = layers(n, n, m, 2), [1.0, 0.3]
    task = bm.Task(kernels=pairs, weights=weights, distortion=distortion)
    result = bm.match(task, rng=0)

    def cost(p):
        rows = [i for i in range(n) if p[i] >= 0]
        columns = [p[i] for i in rows]
        parts = ((one.distortion.loss, one.K, one.G, one.weight) for one in task.layers)
        return sum(w * loss(K[np.ix_(rows, rows)], G[np.ix_(columns, columns)]).sum() for loss, K, G, w in parts)

    least = min(
        cost(p) for p in itertools.permutations([*range(m), *[-1] * (n - m)], n) if sum(j >= 0 for j in p) == min(n, m)
    )
    assert result.status == "optimal"
    assert result.cost == pytest.approx(cost(result.permutation), abs=1e-9)
    assert result.cost == pytest.approx(least, abs=1e-6)
    assert result.verify() <= least + 1e-9
    again = bm.load(result.save(tmp_path / "match.npz"))
    assert (again.cost, again.verify(), again.task.digest) == (result.cost, result.verify(), task.digest)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_the_cost_of_weighted_layers_is_never_below_the_exact_one_nor_the_bound_part_above_it(seed, one, other):
    pairs, weights = layers(seed, 3, 4, 2), [one, other]
    task = bm.Task(kernels=pairs, weights=weights, standardize=False)
    problem, p = task.problem, [2, 0, 3, 1]
    rounded_down = bm.QAP.from_factors(problem.factors, constant=problem.constant)
    exact = sum(
        Fraction(w) * (Fraction(float(K[i, k])) - Fraction(float(G[p[i], p[k]]))) ** 2
        for w, (K, G) in zip(weights, pairs, strict=True)
        for i in range(3)
        for k in range(3)
    )
    assert Fraction(problem.objective(p)) >= exact
    products = [(A, B) for A, B in rounded_down.factors]
    below = Fraction(rounded_down.constant) + sum(
        Fraction(float(A[i, k])) * Fraction(float(B[p[i], p[k]]))
        for A, B in products
        for i in range(4)
        for k in range(4)
    )
    assert below <= exact
    assert Fraction(problem.objective(p)) - below <= exact * Fraction(1, 10**12)


def test_layers_with_hints_prices_and_an_assessment():
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(8, 3)), rng.permutation(8)
    noisy = [distances(X + 0.05 * rng.normal(size=X.shape)) for _ in range(4)]
    pairs = [(noisy[0], noisy[1][np.ix_(p, p)]), (noisy[2], noisy[3][np.ix_(p, p)])]
    truth = np.argsort(p)
    result = bm.match(kernels=pairs, weights=[1, 2], known_pairs=[(0, truth[0])], unmatched_cost=20.0, rng=0)
    assert (result.permutation == truth).all()
    trust = result.assess(draws=9, resamples=5, rng=0)
    assert np.isfinite(trust.confidence[1:]).all()
    assert bm.match(kernels=pairs, unmatched_cost="auto", rng=0).task.price is not None
    assert len(result.task.problem.factors) == 4  # two products, and the own costs of each side


def test_views_of_files_and_tables_have_names(tmp_path):
    (A, B, C), _ = models(6)
    np.savez(tmp_path / "a.npz", embeddings=A, names=list("uvwxyz"))
    np.save(tmp_path / "b.npy", B)
    found = bm.match(f"{tmp_path}/a.npz+{tmp_path}/b.npy", C, rng=0)
    assert found.task.source_names == tuple("uvwxyz")
    assert found.task.views[0].labels == ("a", "b")
    assert found.cost == bm.match(bm.Views(A, tmp_path / "b.npy"), C, rng=0).cost
    np.savez(tmp_path / "c.npz", embeddings=A, names=list("uvwxyq"))
    with pytest.raises(ValueError, match="'q' where another view has 'z'"):
        bm.Views(tmp_path / "a.npz", tmp_path / "c.npz")
