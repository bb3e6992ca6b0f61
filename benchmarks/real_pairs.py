"""Real vision and language models, matched blind: accuracy, cost and proof for every pair of models.

python benchmarks/real_pairs.py FOLDER [classes subsets classifier texts definitions] [--seconds 60] [--seeds 5]

FOLDER holds ``vision__DATASET__MODEL.npz`` (embeddings (images, d), labels, class_names) and
``language__DATASET__MODEL.npz`` (embeddings (classes, prompts, d), class_names, templates). "classes" matches all
classes of the first dataset, from a random half of the images for each seed. "subsets" matches the best subsets of the
second, size after size as long as the optimum is proved. "classifier" clusters the images of the first. "texts" matches
the class names of the second between two language models; "definitions" does so from prompts that define the names, by
distances and by neighbourhoods.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np

import blindmatch as bm
from blindmatch.geometry.kernels import unit_rows

ARRAYS = ("embeddings", "labels", "templates")
SIZES = (20, 30, 40, 50, 60, 80, 100)
SOME = 100
BANDWIDTHS = (0.48, 0.47, 0.45)


def models(folder, kind, dataset):
    for path in sorted(folder.glob(f"{kind}__{dataset}__*.npz")):
        with np.load(path, allow_pickle=False) as file:
            yield (
                path.stem.split("__")[2],
                {name: file[name] for name in ("embeddings", "labels", "templates") if name in file},
            )


def image_means(data, **options):
    return bm.class_means(data["embeddings"].astype(float), data["labels"].tolist(), **options)[1]


def text_means(data):
    return bm.prompt_means(data["embeddings"].astype(float))


def pairs(folder, dataset):
    for (vision, images), (language, texts) in itertools.product(
        models(folder, "vision", dataset), models(folder, "language", dataset)
    ):
        yield vision, language, images, text_means(texts)


def solved(X, Y, seconds, seed=0, distortion=bm.GromovWasserstein()):  # noqa: B008 (frozen)
    """Result, CPU seconds, cost of the truth (row i belongs to row i), accuracy."""
    start = time.process_time()
    result = bm.match(X, Y, distortion=distortion, time_limit=seconds, rng=seed)
    spent = time.process_time() - start
    truth = distortion.evaluate(X, Y)
    return result, spent, truth, bm.metrics.matching_accuracy(result.permutation, np.arange(len(X)))


def classes(folder, dataset, options):
    print(f"\n### All classes of {dataset}: {options.seeds} random halves of the images\n")
    print("| vision | language | right | cost / n^2 | of the truth | proved | CPU s |\n" + "| --- " * 7 + "|")
    for vision, language, images, Y in pairs(folder, dataset):
        runs = [
            solved(image_means(images, fraction=0.5, rng=seed), Y, options.seconds, seed)
            for seed in range(options.seeds)
        ]
        right = [accuracy for *_, accuracy in runs]
        size = len(Y) ** 2
        proved = sum(result.status == "optimal" for result, *_ in runs)
        print(
            f"| {vision} | {language} | {100 * np.mean(right):.0f} ± {100 * np.std(right):.0f} % "
            f"| {np.mean([r.cost for r, *_ in runs]) / size:.3f} | {np.mean([t for *_, t, _ in runs]) / size:.3f} "
            f"| {proved} of {len(runs)} | {np.mean([s for _, s, *_ in runs]):.2f} |",
            flush=True,
        )


def subsets(folder, dataset, options):
    print(f"\n### Best subsets of {dataset}: the cheapest subset of each size, until a proof fails\n")
    print("| vision | language | n | right | cost / n^2 | of the truth | gap | CPU s |\n" + "| --- " * 8 + "|")
    for vision, language, images, Y in pairs(folder, dataset):
        X = image_means(images)
        for size in SIZES:
            best = bm.best_subsets(X, Y, size=size, k=1, rng=0).subsets[0]
            result, spent, truth, right = solved(X[best], Y[best], options.seconds)
            gap = "proved" if result.status == "optimal" else f"{100 * result.gap:.2g} %"
            print(
                f"| {vision} | {language} | {size} | {100 * right:.0f} % | {result.cost / size**2:.3f} "
                f"| {truth / size**2:.3f} | {gap} | {spent:.1f} |",
                flush=True,
            )
            if result.status != "optimal":
                break


def classifier(folder, dataset, options):
    """BlindClassifier with its defaults, and as the paper does it; at last with all models of a side as views."""
    seeds = options.seeds
    print(f"\n### Unsupervised classifier on {dataset}, mean of {seeds} seeds\n")
    print(
        "| vision | language | accuracy | matching accuracy | ceiling (GT) | by seed | CPU s |\n" + "| --- " * 7 + "|"
    )
    texts = {name: text_means(data) for name, data in models(folder, "language", dataset)}
    images, labels, means = {}, None, []
    for name, data in models(folder, "vision", dataset):
        images[name], labels = unit_rows(data["embeddings"].astype(np.float32)), data["labels"].astype(int)
    plain = list(itertools.product(images, texts))
    images["all"], texts["all"] = bm.Views(*images.values()), bm.Views(*texts.values())
    for vision, language in [*plain, ("all", "all")]:
        begin, runs = time.process_time(), []
        for seed in range(seeds):
            model = bm.BlindClassifier(
                n_init=options.starts, vote=options.vote, normalize=None if options.vote else True, random_state=seed
            )
            model.fit(images[vision], texts[language])
            runs.append(list(model.evaluate(images[vision], labels).to_dict().values()))
        spent = (time.process_time() - begin) / seeds
        figures = " | ".join(f"{100 * value:.1f} %" for value in np.mean(runs, axis=0))
        each = ", ".join(f"{100 * run[0]:.0f}" for run in runs)
        print(f"| {vision} | {language} | {figures} | {each} | {spent:.1f} |", flush=True)
        means += [np.mean(runs, axis=0)[0]] if language != "all" else []
    print(f"Mean accuracy over pairs: {100 * np.mean(means):.1f} %, best {100 * np.max(means):.1f} %")


def texts(folder, dataset, options):
    print(f"\n### Two language models, the same names of {dataset}, not one pair known\n")
    print("| one | other | n | right | cost / n^2 | of the truth | gap | CPU s |\n" + "| --- " * 8 + "|")
    encoders = [(name, text_means(data)) for name, data in models(folder, "language", dataset)]
    for (one, X), (other, Y) in itertools.combinations(encoders, 2):
        order = np.random.default_rng(0).permutation(len(X))
        for size in (SOME, len(X)):
            chosen = np.sort(order[:size])
            result, spent, truth, right = solved(X[chosen], Y[chosen], options.seconds)
            gap = "proved" if result.status == "optimal" else f"{100 * result.gap:.2g} %"
            print(
                f"| {one} | {other} | {size} | {100 * right:.0f} % | {result.cost / size**2:.3f} "
                f"| {truth / size**2:.3f} | {gap} | {spent:.1f} |",
                flush=True,
            )


def definitions(folder, dataset, options):
    print(f"\n### Two language models, {SOME} names of {dataset} with their definitions, centred\n")
    print("| one | other | distortion | right | cost / n^2 | of the truth | gap | CPU s |\n" + "| --- " * 8 + "|")
    encoders = [(name, data) for name, data in models(folder, "language", dataset) if name in options.sentences]
    for (one, first), (other, second) in itertools.combinations(encoders, 2):
        X, Y = defined(first), defined(second)
        gaussian = [(str(width), bm.Gaussian(bandwidth=width, normalize=True)) for width in BANDWIDTHS]
        for name, distortion in [("gw", bm.GromovWasserstein(normalize=True)), *gaussian]:
            result, spent, truth, right = solved(X, Y, options.seconds, distortion=distortion)
            gap = "proved" if result.status == "optimal" else f"{100 * result.gap:.2g} %"
            print(
                f"| {one} | {other} | {name} | {100 * right:.0f} % | {result.cost / SOME**2:.3f} "
                f"| {truth / SOME**2:.3f} | {gap} | {spent:.1f} |",
                flush=True,
            )


def defined(data):
    """Some names, from the prompts that define them, centred."""
    chosen = np.sort(np.random.default_rng(0).permutation(len(data["embeddings"]))[:SOME])
    with_definition = ["{d}" in template for template in data["templates"]]
    means = bm.prompt_means(data["embeddings"][chosen][:, with_definition].astype(float))
    return means - means.mean(axis=0)


TABLES = {
    "classes": (classes, 0),
    "subsets": (subsets, 1),
    "classifier": (classifier, 0),
    "texts": (texts, 1),
    "definitions": (definitions, 1),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("tables", nargs="*", default=[], help=f"which of {', '.join(TABLES)}; all by default")
    parser.add_argument("--datasets", nargs=2, default=["cifar10", "tinyimagenet200"])
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of each match")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sentences", nargs=2, default=["all_minilm_l6_v2", "all_mpnet_base_v2"], help="two models")
    parser.add_argument("--starts", type=int, default=60, help="of k-means; the paper takes 100")
    parser.add_argument("--vote", action=argparse.BooleanOptionalAction, default=True, help="--no-vote: as the paper")
    options = parser.parse_args()
    for name in options.tables or TABLES:
        table, dataset = TABLES[name]
        table(options.folder, options.datasets[dataset], options)


if __name__ == "__main__":
    main()
