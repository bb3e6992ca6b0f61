"""``classify``: images by class names, without labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command

if TYPE_CHECKING:
    from rich.table import Table

    from blindmatch.cli.tables import Tables
    from blindmatch.io.embeddings import Embeddings
    from blindmatch.matching.classifier import BlindClassifier
    from blindmatch.report import Clusters
    from blindmatch.trust import Assessment


@dataclass(frozen=True)
class ClassifierOptions:
    """Parameters of ``BlindClassifier``."""

    n_clusters: Annotated[int | None, typer.Option("--clusters", help="As many as there are classes by default.")] = (
        None
    )
    n_init: Annotated[int, typer.Option("--starts", help="Number of starts of k-means.")] = 100
    normalize: Annotated[bool, typer.Option(help="Scale embeddings to unit length, as the paper does.")] = False
    scale: opt.Scale = "none"
    distortion: opt.Distortion = "gw"
    standardize: opt.Standardize = True
    metric: opt.Metric = "euclidean"
    neighbors: opt.Neighbors = None


@command(
    "blindmatch classify images.npz classes.npz",
    "blindmatch classify images.npz classes.csv --normalize --clusters 20 --output predicted.csv",
    "blindmatch classify images.npz classes.csv --assess --report report.html",
    "blindmatch classify images.parquet classes.csv --json",
)
def classify(
    images: Annotated[
        Path,
        typer.Argument(
            metavar="IMAGES",
            help=f"Embeddings of images, or of anything else to classify: {opt.FILES}. If it has labels, the answer "
            "is compared with them.",
            show_default=False,
        ),
    ],
    classes: Annotated[
        Path, typer.Argument(metavar="CLASSES", help="One embedding per class, of any other dimension.")
    ],
    how: ClassifierOptions,
    solving: opt.ClusterSolverOptions,
    output: Annotated[
        opt.File, typer.Option("-o", "--output", metavar="FILE", help="Write the class of each image (.csv).")
    ] = None,
    report: opt.Report = None,
    assess: opt.Assess = False,
    prior: opt.Prior = None,
    json: opt.Json = False,
) -> None:
    """Classify without a label: cluster the images, match the clusters with the classes."""
    from blindmatch.cli.console import echo_json
    from blindmatch.cli.outputs import Delivery, check_outputs, write_table
    from blindmatch.cli.pairs import relation
    from blindmatch.matching.classifier import BlindClassifier
    from blindmatch.solving.run import as_solver
    from blindmatch.trust.prior import as_stated_prior

    if as_stated_prior(prior, "--prior") is not None and not assess:
        raise ValueError(f"--prior {prior:g} needs --assess")
    check_outputs({"--output": output, "--report": report, "--log": solving.log}, [images, classes])
    as_solver(solving.solver)  # an unknown name is refused before the clustering
    model = BlindClassifier(
        **{**vars(how), **relation(how.metric, how.neighbors)},
        solver=solving.solver,
        time_limit=solving.time_limit,
        random_state=solving.seed,
        threads=solving.threads,
    )
    found, points = _fitted(model, images, classes, solving)
    cut = [f"the best of {model.n_init_} starts of k-means was used"] if model.n_init_ < how.n_init else []
    cut += ["the best match so far was used"] if model.result_.status == "interrupted" else []
    if assess:
        found = _assessed(found, solving, prior)
        if found.trust is None:
            cut += [*([] if cut else ["the classification is complete"]), "the match was not assessed"]
    files = {"images": images.name, "classes": classes.name}
    settings = {**files, **_settings(model), **found.tables.settings, **solving.settings}
    title = f"{images.name} classified by {classes.name}"
    predicted = [found.clusters.names[found.clusters.classes[c]] for c in found.clusters.members]
    table = {"name": points.names or range(len(points)), "class": predicted}
    delivery = Delivery(json)
    delivery.show(lambda: echo_json(_as_json(found)) if json else _print(found))
    delivery.write(output, partial(write_table, table), "Classes")
    delivery.write(report, partial(_write_report, found, settings, title), "Report")
    delivery.end(", and ".join(cut))


@dataclass(frozen=True, eq=False)
class Classified:
    """A fitted classifier, what it says about the images, and whether to believe it."""

    model: BlindClassifier
    clusters: Clusters
    tables: Tables
    trust: Assessment | None = None


def _fitted(
    model: BlindClassifier, images: Path, classes: Path, solving: opt.SolverOptions
) -> tuple[Classified, Embeddings]:
    """Cluster, match, and say what each image is."""
    import numpy as np

    from blindmatch.cli.gaps import side_of
    from blindmatch.cli.progress import watched
    from blindmatch.cli.tables import Tables
    from blindmatch.io.embeddings import load_embeddings
    from blindmatch.report import Clusters

    points, texts = load_embeddings(images), load_embeddings(classes)
    names = [str(c) for c in range(len(texts))] if texts.names is None else list(texts.names)
    labels = None if points.labels is None else _class_indices(points, names, images)
    tables = replace(Tables.scaled(points, texts, model.scale), names=("images", "classes"))
    with tables.warned(), watched("starting", solving.seconds, verbose=solving.verbose, log=solving.log) as line:
        step, moment = (None, None) if line is None else (line.step, line.moment)
        sides = side_of(points), side_of(texts)
        model.fit(*sides, classes=np.arange(len(texts)), callback=step, match_callback=moment)
    scores = None if labels is None else model.evaluate(sides[0], labels)
    members = [int(c) for c in model.clusters(sides[0])]
    clusters = Clusters(members, [int(c) for c in model.cluster_class_], names, labels, scores)
    return Classified(model, clusters, tables), points


def _assessed(found: Classified, solving: opt.SolverOptions, prior: float | None) -> Classified:
    """The classification with the trust in its match; without, if Ctrl-C cut one or the other short."""
    from blindmatch.cli.answers import assess_with_progress
    from blindmatch.trust.abstention import assessed_or_kept
    from blindmatch.trust.assessment import AssessmentPlan

    result, plan = found.model.result_, AssessmentPlan(prior=prior)
    trust = assessed_or_kept(result, lambda: assess_with_progress(result, plan, solving, solving.assess_seconds))[1]
    return replace(found, trust=trust)


def _class_indices(points: Embeddings, names: list[str], path: Path) -> list[int]:
    """The labels of the file as classes: their names, or their indices."""
    assert points.labels is not None
    place = {name: c for c, name in enumerate(names)}
    found = []
    for label in points.labels.tolist():
        text = label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)
        if text in place:
            found.append(place[text])
        elif text.isdecimal() and int(text) < len(names):
            found.append(int(text))
        else:
            raise ValueError(f"{path}: the label {text!r} is neither a name nor an index of a class")
    return found


def _settings(model: BlindClassifier) -> dict[str, str]:
    return {
        "clusters": str(len(model.centres_)),
        "starts of k-means": str(model.n_init_),
        "unit length": str(model.normalize),
        "distortion": str(model.distortion),
        "standardize": str(model.standardize),
        "metric": str(model.metric),
    }


def _write_report(found: Classified, settings: dict[str, str], title: str, path: Path) -> None:
    from blindmatch.cli.inputs import command_line
    from blindmatch.cli.outputs import write_page
    from blindmatch.matching.evaluation import cluster_assignment
    from blindmatch.report import Match

    model, clusters, count = found.model, found.clusters, len(found.model.centres_)
    # The true match of the clusters is the one that makes most images right.
    best = None if clusters.labels is None else cluster_assignment(clusters.labels, clusters.members)
    task = model.task_.changed(
        source_names=tuple(f"cluster {c}" for c in range(count)), target_names=tuple(clusters.names)
    )
    match = Match(
        replace(model.result_, task=task, title=title, settings={**settings, "command": command_line()}),
        trust=found.trust,
        truth=None if best is None else [int(best.get(c, -1)) for c in range(count)],
        clusters=clusters,
    )
    write_page(match, path)


def _as_json(found: Classified) -> dict[str, Any]:
    model, clusters = found.model, found.clusters
    values: dict[str, Any] = {
        "predicted": [clusters.classes[c] for c in clusters.members],
        "classes": list(clusters.names),
        "clusters": list(clusters.members),
        "cluster_class": list(clusters.classes),
        "match": model.result_.to_dict(),
        "columns": found.tables.to_dict(),
    }
    if found.trust is not None:
        values["trust"] = found.trust.to_dict()
    return values if clusters.scores is None else {**values, **clusters.scores.to_dict()}


def _print(found: Classified) -> None:
    from rich.text import Text

    from blindmatch.cli.answers import print_all
    from blindmatch.report import proof_sentence, verdict

    result, trust = found.model.result_, found.trust
    first = [] if trust is None else [Text(trust.verdict, style="bold")]
    sentences = (found.clusters.sentence(), verdict(result), proof_sentence(result))
    print_all([*first, _table(found), *(Text(sentence) for sentence in sentences if sentence), *found.tables.texts])


def _table(found: Classified) -> Table:
    from rich.table import Table
    from rich.text import Text

    from blindmatch.cli.console import plain
    from blindmatch.cli.texts import as_percent

    clusters, permutation = found.clusters, found.model.result_.permutation
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("cluster", justify="right")
    table.add_column("images", justify="right")
    table.add_column("class", overflow="fold")
    if found.trust is not None:
        table.add_column("confidence", justify="right")
    for cluster, c in enumerate(clusters.classes):
        note = "" if permutation[cluster] >= 0 else " (by its nearest neighbour)"
        row = [Text(str(cluster)), Text(str(clusters.counts[cluster])), Text(plain(clusters.names[c]) + note)]
        if found.trust is not None:
            row.append(Text(as_percent(found.trust.confidence[cluster])))
        table.add_row(*row)
    return table
