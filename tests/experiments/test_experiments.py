"""Each experiment on tiny settings: numbers that can be checked by another way."""

from dataclasses import replace

import numpy as np
import pytest
from experiments.in_process import InProcess

import blindmatch as bm
from blindmatch import experiments
from blindmatch.experiments import data, sweep_report
from blindmatch.experiments.classification import clustering
from blindmatch.experiments.data import class_texts, half_means, read_catalogue, write_sample
from blindmatch.experiments.shuffling import partial_shuffle
from blindmatch.experiments.sweeps import compute, plan, read_records, report

CLASSES, IMAGES = 12, 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve classes in two spaces that agree well, a random network of the images, and captions for each image."""
    root = tmp_path_factory.mktemp("embeddings")
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLASSES, 16))
    labels = np.repeat(np.arange(CLASSES), IMAGES)
    pixels = centres[labels] + 0.05 * rng.normal(size=(len(labels), 16))
    names = np.array([f"class {c}" for c in range(CLASSES)])
    turn = np.linalg.qr(rng.normal(size=(24, 24)))[0][:16]
    order = rng.permutation(CLASSES)  # texts in another order: classes are found by name
    prompts = (centres @ turn)[order, None] + 0.02 * rng.normal(size=(CLASSES, 3, 24))
    np.savez(root / "language__toy__words.npz", embeddings=prompts, class_names=names[order])
    network = pixels @ np.linalg.qr(rng.normal(size=(16, 16)))[0]
    for model, values in (("pixels", pixels), ("random_net", network)):
        np.savez(root / f"vision__toy__{model}.npz", embeddings=values, labels=labels, class_names=names)
    np.savez(root / "vision__paired__net.npz", embeddings=pixels, parameters=5e6)
    np.savez(root / "language__paired__captions.npz", embeddings=pixels @ turn)
    (root / "notes.txt").write_text("not embeddings")
    return root


def rows_of(name, folder, out, **settings):
    what = plan(name, settings, embeddings=folder, out=out)
    compute(what, out, engine=InProcess())
    records = read_records(what, out)
    assert not [record.error for record in records.values() if record.error]
    return [records[run.key].flat for run in what.runs], report(what, out)


def test_class_means_are_those_of_the_package(folder):
    catalogue = read_catalogue(folder)
    vision, language = catalogue.models("vision", "toy")[0], catalogue.models("language", "toy")[0]
    with np.load(vision.path) as arrays:
        _, means = bm.class_means(arrays["embeddings"], arrays["labels"], fraction=0.5, rng=3)
    assert np.allclose(half_means(vision, 3, 0.5), means, atol=1e-15)
    texts = class_texts(vision, language)
    assert bm.match(means, texts, rng=0).permutation.tolist() == list(range(CLASSES))


def test_images_are_read_ahead_as_far_as_they_are_few_and_bad_files_are_left_to_the_runs(folder, monkeypatch):
    runs = plan("small-scale", {"seeds": 1}, embeddings=folder).runs
    sources = list(dict.fromkeys(run.files["vision"] for run in runs))
    read = []
    monkeypatch.setattr(data, "images", read.append)
    data.read_ahead([replace(runs[0], files={"vision": replace(sources[0], path="nowhere.npz")}), *runs])
    assert read == sources
    read.clear()
    monkeypatch.setattr(data, "_BYTES_AHEAD", 1)
    data.read_ahead(runs)
    assert read == []


def test_small_scale_finds_the_classes_and_proves_it(folder, tmp_path):
    rows, (tables, page) = rows_of("small-scale", folder, tmp_path, seeds=2, datasets=("toy",), vision=("pixels",))
    gw = [row for row in rows if row["measure"] == "gw"]
    assert [row["accuracy"] for row in gw] == [1.0, 1.0]
    assert {row["status"] for row in gw} == {"optimal"}
    assert len(rows) == 6
    assert tables[0].columns[-1] == "paper: one pair"
    assert "data:image/svg+xml" in page.read_text()
    assert (tmp_path / "small-scale" / "figure-12-toy.svg").exists()


def test_small_scale_draws_accuracy_against_size(folder, tmp_path):
    settings = {"seeds": 1, "datasets": ("paired",), "measures": ("gw",), "solver": "random"}
    rows_of("small-scale", folder, tmp_path, **settings)
    assert (tmp_path / "small-scale" / "figure-11-paired.png").exists()


def test_larger_scale_takes_distinct_subsets(folder, tmp_path):
    rows, _ = rows_of(
        "larger-scale", folder, tmp_path, seeds=1, sizes=(5, 12, 20), subsets=3, datasets=("toy",), vision=("pixels",)
    )
    assert [row["size"] for row in rows] == [5, 5, 5, 12]  # one subset of all twelve, none of twenty
    assert len({tuple(row["classes"]) for row in rows}) == 4
    assert rows[-1]["accuracy"] == 1.0
    assert (tmp_path / "larger-scale" / "figure-5.csv").read_text().startswith("dataset,vision,language,size,accuracy")


def test_solvers_small_says_who_finds_the_optimum(folder, tmp_path):
    solvers = ("random", "faq-published", "branch-and-bound")
    rows, (tables, _) = rows_of(
        "solvers-small", folder, tmp_path, seeds=2, solvers=solvers, datasets=("toy",), vision=("pixels",)
    )
    reference = {row["seed"]: row["cost"] for row in rows if row["solver"] == "brute-force"}
    exact = {row["seed"]: row["cost"] for row in rows if row["solver"] == "branch-and-bound"}
    assert exact == pytest.approx(reference)
    lines = {line[0]: dict(zip(tables[0].columns, line, strict=True)) for line in tables[0].rows}
    assert lines["branch-and-bound"]["global"].mean == 100.0
    assert lines["random"]["global"].mean == 0.0
    assert lines["faq-published (paper: FAQ)"]["paper: accuracy"].mean == pytest.approx(38.0)


def test_solvers_large_has_costs_above_bounds(folder, tmp_path):
    rows, (tables, _) = rows_of(
        "solvers-large", folder, tmp_path, sizes=(6, 9), solvers=("two-opt", "factorized-hahn-grant"),
        datasets=("toy",), vision=("pixels",),
    )  # fmt: skip
    bounded = [row for row in rows if row["bound"] is not None]
    assert len(bounded) == 2
    assert all(row["bound"] <= row["cost"] + 1e-12 for row in bounded)
    assert len(tables[0].rows) == 4
    assert (tmp_path / "solvers-large" / "figure-6-toy-pixels-words.png").stat().st_size > 1000


def test_classification_is_the_classifier_of_the_package(folder, tmp_path):
    settings = {"seeds": 1, "starts": 5, "fraction": 1.0, "solvers": ("random", "auto"), "datasets": ("toy",)}
    rows, (tables, _) = rows_of("classification", folder, tmp_path, vision=("pixels",), **settings)
    catalogue = read_catalogue(folder)
    vision, language = catalogue.models("vision", "toy", ["pixels"])[0], catalogue.models("language", "toy")[0]
    with np.load(vision.path) as arrays:
        images, labels = arrays["embeddings"], arrays["labels"]
    texts = class_texts(vision, language)
    model = bm.BlindClassifier(n_init=5, vote=False, normalize=True, random_state=0).fit(images, texts)
    (ours,) = [row for row in rows if row["solver"] == "auto"]
    assert ours["accuracy"] == float((model.predict(images) == labels).mean()) == 1.0
    assert ours["matching_accuracy"] == ours["ceiling"] == 1.0
    centres, clusters, _ = clustering(vision, 0, 1.0, 5)
    assert np.allclose(centres, model.centres_)
    assert len(set(clusters.tolist())) == CLASSES
    assert [line[0] for line in tables[1].rows] == ["random", "auto", "ground truth"]


def test_shuffling_worsens_every_measure_of_pairs_that_belong_together(folder, tmp_path):
    rows, (tables, _) = rows_of("shuffling", folder, tmp_path, seeds=10, levels=5)
    curves = {tuple(line[:4]): dict(zip(tables[0].columns, line, strict=True)) for line in tables[0].rows}
    assert ("paired", "net", "captions", "mutual-knn") in curves
    assert ("toy", "pixels", "words", "mutual-knn") not in curves  # images share the text of their class
    assert {curve["strictly monotone"] for curve in curves.values()} == {"yes"}
    assert {(curve["steps"], curve["significant"], curve["wrong"]) for curve in curves.values()} == {(4, 4, 0)}
    truth = curves["paired", "net", "captions", "mutual-knn"]["truth"]
    assert truth == pytest.approx(1.0)  # the same space, turned
    (density,) = [row for row in rows if row["measure"] == "lipschitz"]
    assert density["vision"] == "random_net"
    assert density["median"] == pytest.approx(1.0)  # a rotation keeps distances
    assert (tmp_path / "shuffling" / "figure-9.png").exists()


def test_a_partial_shuffle_moves_no_more_than_it_may():
    rng = np.random.default_rng(0)
    for level in (0.0, 0.3, 1.0):
        order = partial_shuffle(20, level, rng)
        assert sorted(order.tolist()) == list(range(20))
        assert (order != np.arange(20)).sum() <= round(level * 20)


@pytest.mark.slow
def test_ablation_repeats_the_papers_order(tmp_path):
    paper = ("+ Jonker-Volgenant", "+ LAP solutions", "+ primal heuristic")
    settings = {
        "sizes": (18,),
        "seeds": 2,
        "time_limits": (60.0,),
        "variants": ("+ auction", *paper, "branch-and-bound"),
        "share": 0.05,
    }
    what = plan("ablation", settings)
    compute(what, tmp_path, engine=InProcess())
    (table,), _ = report(what, tmp_path)
    cost = {line[0]: line[1] for line in table.rows}
    bound = {line[0]: line[2] for line in table.rows}
    assert cost[paper[0]] >= cost[paper[1]] >= cost[paper[2]] > bound[paper[2]]
    assert bound[paper[0]] == bound[paper[1]]  # scoring the LAPs' solutions changes no bound
    assert abs(bound["+ auction"] - bound[paper[0]]) < 1e-3  # it goes on until its relaxation is fine enough
    assert bound["branch-and-bound"] > bound[paper[2]]
    assert cost["branch-and-bound"] - bound["branch-and-bound"] < cost[paper[2]] - bound[paper[2]]


@pytest.mark.parametrize("name", experiments.NAMES)
def test_every_experiment_has_a_quick_plan_and_tables_without_results(name, tmp_path):
    what = plan(name, quick=True, out=tmp_path)
    assert what.runs
    assert len({run.key for run in what.runs}) == len(what.runs)
    tables, page = report(what, tmp_path)
    assert tables
    assert f"0 of {len(what.runs)}" in page.read_text()


def test_views_average_the_language_models(tmp_path):
    root, classes = tmp_path / "embeddings", 9
    root.mkdir()
    rng = np.random.default_rng(1)
    seen = rng.normal(size=(classes, 6))
    names = [f"class {c}" for c in range(classes)]
    images = np.repeat(seen, 4, axis=0) + 0.01 * rng.normal(size=(4 * classes, 6))
    np.savez(root / "vision__toy__v.npz", embeddings=images, labels=np.repeat(range(classes), 4), class_names=names)
    for model, noise in (("a", 1.5), ("b", 1.5), ("c", 0.0)):
        texts = seen @ rng.normal(size=(6, 6)) if model == "a" else seen + noise * rng.normal(size=seen.shape)
        np.savez(root / f"language__toy__{model}.npz", embeddings=texts, names=names)
    rows, (tables, _) = rows_of("views", root, tmp_path, seeds=2)
    mixed = [row for row in rows if row["way"] == "mean"]
    assert [row["models"] for row in mixed[:7]] == [1, 1, 1, 2, 2, 2, 3]
    assert {row["status"] for row in rows} == {"optimal"}
    alone = {row["language"]: row["accuracy"] for row in mixed if row["models"] == 1 and row["seed"] == 0}
    assert alone["c"] == 1.0
    cell = dict(zip(tables[0].columns, tables[0].rows[0], strict=True))["1"]
    singles = [np.mean([row["accuracy"] for row in mixed if (row["models"], row["seed"]) == (1, s)]) for s in (0, 1)]
    assert cell.mean == pytest.approx(100 * np.mean(singles))
    assert [line[0] for line in tables[1].rows][:2] == ["one language model", "mean"]
    few, _ = rows_of("views", root, tmp_path, size=5, sets=3, ways=("median",))
    assert {row["seed"] for row in few} == {0, 1, 2}
    assert all(5 * row["accuracy"] == round(5 * row["accuracy"]) for row in few)  # of five classes


def test_quick_takes_one_pair_of_a_folder(tmp_path):
    rng = np.random.default_rng(0)
    for dataset in ("birds", "cars"):
        for model in ("one", "two"):
            classes = [f"{dataset} {c}" for c in range(4)]
            sides = {"vision": np.repeat(np.arange(4), 3), "language": np.arange(4)}
            for side, labels in sides.items():
                values = rng.normal(size=(len(labels), 5))
                np.savez(tmp_path / f"{side}__{dataset}__{model}.npz", embeddings=values, labels=labels,
                         class_names=classes)  # fmt: skip

    def pairs(*layers):
        what = plan("small-scale", *layers, quick=True, embeddings=tmp_path, out=tmp_path)
        return {tuple(run.parameters[key] for key in ("dataset", "vision", "language")) for run in what.runs}

    assert pairs() == {("birds", "one", "one")}
    assert pairs({"datasets": ["cars"], "vision": ["two", "one"]}) == {("cars", "two", "one"), ("cars", "one", "one")}
    assert len(pairs({"datasets": ["cars", "birds"]})) == 8


def test_defaults_are_the_papers_settings():
    kinds = {name: experiments.load(name)() for name in experiments.NAMES}
    assert (kinds["shuffling"].levels, kinds["shuffling"].seeds) == (21, 100)
    assert (kinds["small-scale"].seeds, kinds["small-scale"].neighbors) == (20, 5)
    assert kinds["larger-scale"].sizes == (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    assert (kinds["larger-scale"].subsets, kinds["larger-scale"].seeds, kinds["larger-scale"].time_limit) == (
        10,
        3,
        3600,
    )
    assert (kinds["solvers-small"].seeds, kinds["solvers-large"].time_limit) == (20, 5400)
    assert (kinds["classification"].seeds, kinds["classification"].starts) == (20, 100)
    ablation = kinds["ablation"]
    assert (ablation.sizes, ablation.time_limits, ablation.seeds, ablation.dimension) == (
        (40, 100),
        (3600, 7200),
        5,
        1024,
    )


def test_the_sample_is_real_data_in_the_format_of_a_folder(tmp_path):
    catalogue = write_sample(tmp_path)
    assert catalogue.datasets() == ["cifar10"]
    assert [source.model for source in catalogue.models("language", "cifar10")] == ["all_minilm_l6_v2", "gte_small"]
    assert write_sample(tmp_path) == catalogue  # nothing is written twice: the digests, and so the results, stay


def test_without_matplotlib_there_are_tables_and_a_word_about_figures(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_report, "find_spec", lambda _name: None)
    _, (_, page) = rows_of(
        "larger-scale", folder, tmp_path, seeds=1, sizes=(5,), subsets=1, datasets=("toy",), vision=("pixels",)
    )
    assert "pip install 'blindmatch[experiments]'" in page.read_text()
    assert not list(page.parent.glob("*.png"))
