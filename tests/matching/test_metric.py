"""The metric is the same for the match, its proof, its assessment and its report."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import blindmatch as bm
from blindmatch.cli.app import app
from blindmatch.matching import coordinate_matches


def spirals(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of a long sheet: rolled up on one side, flat on the other, in another order."""
    rng = np.random.default_rng(seed)
    t, height = 3 * np.pi * rng.random(n) ** 0.7, 12 * rng.random(n)
    rolled = np.column_stack([(t + 4) * np.cos(t), (t + 4) * np.sin(t), height])
    along = (t * (t + 8) / 2) * (1 + 0.01)  # the length of the spiral up to t, nearly
    order = rng.permutation(n)
    return rolled, np.column_stack([along + height, along - height])[order], np.argsort(order)


def test_geodesics_unroll_what_distances_do_not() -> None:
    rolled, straight, truth = spirals(300)
    flat = bm.GromovWasserstein().kernel(straight[truth])
    off = np.triu_indices(300, 1)
    by_paths, by_distances = (
        np.corrcoef(bm.GromovWasserstein(metric=metric, neighbors=neighbors).kernel(rolled)[off], flat[off])[0, 1]
        for metric, neighbors in (("geodesic", 5), ("euclidean", None))
    )
    assert by_paths > 0.99
    assert by_distances < 0.6


def test_proof_assessment_and_estimator_use_the_metric() -> None:
    rolled, straight, _truth = spirals(16)
    options = {"metric": ("geodesic", "euclidean"), "neighbors": 2}
    result = bm.match(rolled, straight, rng=0, **options)
    problem = bm.Task(rolled, straight, **options).problem
    assert bm.verify(problem, result.certificate) == pytest.approx(result.lower_bound)
    kernels = bm.GromovWasserstein(**options).kernels(rolled, straight)
    assert problem.objective(result.permutation) == pytest.approx(
        bm.GromovWasserstein().evaluate(permutation=result.permutation, kernels=kernels)
    )
    quick = {"rng": 0, "draws": 9, "resamples": 2, "regret": False, "time_limit": None}
    plain = replace(result, task=bm.Task(rolled, straight))
    assert result.assess(**quick).z != plain.assess(**quick).z
    matcher = bm.BlindMatcher(random_state=0, metric=options["metric"], n_neighbors=2).fit(rolled, straight)
    assert matcher.cost_ == pytest.approx(result.cost)


@pytest.mark.parametrize("distortion", ["gw", "gaussian", "cka", "mutual-knn", "kl", "inner-product"])
@pytest.mark.parametrize("metric", ["cosine", "geodesic", "cityblock"])
def test_every_distortion_takes_every_metric(distortion: str, metric: str) -> None:
    X = np.random.default_rng(0).normal(size=(7, 3))
    order = np.array([3, 1, 6, 0, 2, 5, 4])
    result = bm.match(X, X[order], distortion=distortion, metric=metric, rng=0)
    task = bm.Task(X, X[order], distortion=distortion, metric=metric)
    assert result.cost <= task.problem.objective(np.argsort(order)) + 1e-9
    assert (order[result.permutation] == np.arange(7)).all() or metric == "geodesic" or distortion == "mutual-knn"


def test_many_items_by_another_metric_start_from_its_own_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    rolled, straight, _ = spirals(40)
    seen = []

    def starts(sides: tuple[np.ndarray, np.ndarray], distortion: object, precomputed: bool) -> None:
        seen.append((sides, precomputed))
        raise ValueError("no coordinates")  # the match goes on without them

    monkeypatch.setattr(coordinate_matches.Spaces, "of", starts)
    task = bm.Task(rolled, straight, metric="geodesic", neighbors=5)
    bm.match(task, rng=0, time_limit=0.5)
    bm.match(rolled, straight, rng=0, time_limit=0.5)
    (by_paths, given), (by_distances, points) = seen
    assert (given, points) == (True, False)
    assert by_paths[0] is task.relations[0]
    assert (by_distances[0] == rolled).all()


def test_the_commands_use_the_metric(tmp_path: Path) -> None:
    rolled, straight, _ = spirals(10)
    a, b, saved, proof = (str(tmp_path / name) for name in ("a.npy", "b.npy", "match.npz", "proof.npz"))
    np.save(a, rolled)
    np.save(b, straight)
    runner, options = CliRunner(), ["--metric", "geodesic,euclidean", "--neighbors", "2"]
    made = runner.invoke(app, ["match", a, b, "--json", "--save", saved, "--certificate", proof, *options])
    assert made.exit_code == 0, made.output
    values = json.loads(made.stdout)
    assert values["settings"]["metric"] == "geodesic,euclidean"
    assert values["settings"]["neighbors"] == "2"
    for files in ([a, b, proof, *options], [saved]):
        checked = runner.invoke(app, ["verify", *files, "--json"])
        assert json.loads(checked.stdout)["lower_bound"] == pytest.approx(values["lower_bound"])
    unknown = runner.invoke(app, ["match", a, b, "--metric", "geodesik"])
    assert unknown.exit_code == 2
    assert "did you mean 'geodesic'" in unknown.output


def test_the_command_takes_precomputed_matrices(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(6, 3))
    K = bm.GromovWasserstein().kernel(X)
    order = np.array([4, 2, 0, 1, 5, 3])
    np.save(tmp_path / "k.npy", K)
    np.save(tmp_path / "g.npy", K[np.ix_(order, order)])
    made = CliRunner().invoke(
        app, ["match", str(tmp_path / "k.npy"), str(tmp_path / "g.npy"), "--metric", "precomputed", "--json"]
    )
    assert json.loads(made.stdout)["permutation"] == np.argsort(order).tolist()


def test_the_classifier_and_subsets_take_a_metric() -> None:
    rng = np.random.default_rng(0)
    classes = rng.normal(size=(6, 5))
    lengths = rng.uniform(0.5, 4, size=(6, 1))  # which the cosine distance does not see
    images = np.repeat(classes, 10, axis=0) + 0.01 * rng.normal(size=(60, 5))
    model = bm.BlindClassifier(n_init=3, metric="cosine", random_state=0).fit(images, lengths * classes)
    assert model.result_.cost < 1
    assert (model.predict(images) == np.repeat(np.arange(6), 10)).all()
    with pytest.raises(ValueError, match="did you mean 'cosine'"):
        bm.BlindClassifier(metric="cosin").fit(images, classes)
    found = bm.best_subsets(classes, lengths * classes, size=3, k=1, metric="cosine", rng=0)
    assert found.costs[0] == pytest.approx(0, abs=1e-9)
    assert bm.best_subsets(classes, lengths * classes, size=3, k=1, rng=0).costs[0] > 1e-3
