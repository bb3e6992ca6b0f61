"""What ``classify`` does."""

from __future__ import annotations

import csv
import io
import shlex
import sys
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from blindmatch.cli.console import INTERRUPTED, complain, echo_json, output, plain
from blindmatch.cli.outputs import Delivery, check_outputs, write_page
from blindmatch.cli.progress import watched
from blindmatch.geometry.kernels import unit_rows
from blindmatch.io.embeddings import Embeddings, load_embeddings
from blindmatch.io.files import write_atomically
from blindmatch.matching.classifier import BlindClassifier
from blindmatch.matching.evaluation import cluster_assignment
from blindmatch.problem.distortion import as_distortion
from blindmatch.report import Clusters, Match, proof_sentence, verdict
from blindmatch.trust import Trust, assess
from blindmatch.validation import FloatArray


@dataclass(frozen=True)
class Answer:
    """Where the answer goes, and whether it is assessed."""

    output: Path | None = None
    report: Path | None = None
    json: bool = False
    assess: bool = False

    def check(self, inputs: tuple[Path, ...]) -> None:
        """Refuse now what would fail only after a long run."""
        check_outputs({"--output": self.output, "--report": self.report}, inputs)


@dataclass(frozen=True, eq=False)
class Classified:
    """A fitted classifier, the embeddings of the classes as it compared them, and what it says about the images."""

    model: BlindClassifier
    texts: FloatArray
    clusters: Clusters
    trust: Trust | None

    @cached_property
    def match(self) -> Match:
        """The match of the clusters with the classes, ready for a report; the true one makes most images right."""
        model, clusters = self.model, self.clusters
        chosen = as_distortion(model.distortion, model.standardize)
        kernels = chosen.kernels(model.centres_, self.texts)
        best = None if clusters.labels is None else cluster_assignment(clusters.labels, clusters.members)
        count = len(model.centres_)
        return Match(
            model.result_,
            kernels,
            [f"cluster {c}" for c in range(count)],
            clusters.names,
            None if best is None else [int(best.get(c, -1)) for c in range(count)],
            problem=chosen.problem_of(*kernels),
            similarity=chosen.similarities,
            trust=self.trust,
            command=shlex.join(["blindmatch", *sys.argv[1:]]),
            clusters=clusters,
        )


def run_classify(images: Path, classes: Path, model: BlindClassifier, answer: Answer) -> None:
    """Cluster, match, and say what each image is."""
    answer.check((images, classes))
    points, texts = load_embeddings(images), load_embeddings(classes)
    names = [str(c) for c in range(len(texts))] if texts.names is None else list(texts.names)
    labels = None if points.labels is None else _class_indices(points, names, images)
    with watched("starting", model.time_limit) as line:
        step, moment = (None, None) if line is None else (line.step, line.moment)
        model.fit(points.values, texts.values, classes=np.arange(len(texts)), callback=step, match_callback=moment)
    found = _classified(model, points, texts, names, labels)
    cut = [f"the best of {model.n_init_} starts of k-means was used"] if model.n_init_ < model.n_init else []
    cut += ["the best match so far was used"] if model.result_.status == "interrupted" else []
    if answer.assess:
        try:
            found = found if model.result_.status == "interrupted" else _assessed(found)
        except KeyboardInterrupt:
            cut.append("the classification is complete")
        cut += ["the match was not assessed"] if found.trust is None and cut else []
    delivery = Delivery()
    delivery.show(lambda: echo_json(_as_json(found)) if answer.json else _print(found))
    predicted = [names[found.clusters.classes[c]] for c in found.clusters.members]
    told = [("Classes", answer.output, lambda path: _write(path, points, predicted))]
    told += [("Report", answer.report, lambda path: _write_report(path, found, images, classes))]
    for what, path, write in told:
        if delivery.write(path, write) and not answer.json:
            delivery.show(partial(output().print, f"{what}: {path}", markup=False, soft_wrap=True))
    if cut:
        complain(f"interrupted; {', and '.join(cut)}")
    delivery.end()
    if cut:
        raise typer.Exit(INTERRUPTED)


def _classified(
    model: BlindClassifier, points: Embeddings, texts: Embeddings, names: list[str], labels: list[int] | None
) -> Classified:
    scores = None if labels is None else model.evaluate(points.values, labels)
    members = [int(c) for c in model.clusters(points.values)]
    clusters = Clusters(members, [int(c) for c in model.cluster_class_], names, labels, scores)
    compared = unit_rows(texts.values) if model.normalize else texts.values
    return Classified(model, compared, clusters, None)


def _assessed(found: Classified) -> Classified:
    model = found.model
    with watched("assessing") as line:
        trust = assess(
            model.result_,
            model.centres_,
            found.texts,
            distortion=model.distortion,
            standardize=model.standardize,
            rng=model.random_state,
            callback=None if line is None else line.share,
            threads=model.threads,
        )
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


def _write(out: Path, points: Embeddings, predicted: list[str]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "class"])
    writer.writerows(zip(points.names or range(len(points)), predicted, strict=True))
    write_atomically(out, lambda file: file.write(text.getvalue().encode()))


def _write_report(path: Path, found: Classified, images: Path, classes: Path) -> None:
    model = found.model
    settings = {
        "images": images.name,
        "classes": classes.name,
        "clusters": str(len(model.centres_)),
        "starts of k-means": str(model.n_init_),
        "unit length": str(model.normalize),
        "distortion": str(model.distortion),
        "standardize": str(model.standardize),
        "solver": str(model.solver),
        "time limit": "none" if model.time_limit is None else f"{model.time_limit:g} s",
        "seed": str(model.random_state),
        "threads": "all cores" if model.threads is None else str(model.threads),
    }
    title = f"{images.name} classified by {classes.name}"
    write_page(replace(found.match, title=title, settings=settings), path)


def _as_json(found: Classified) -> dict[str, Any]:
    model, clusters = found.model, found.clusters
    values: dict[str, Any] = {
        "predicted": [clusters.classes[c] for c in clusters.members],
        "classes": list(clusters.names),
        "clusters": list(clusters.members),
        "cluster_class": list(clusters.classes),
        "match": model.result_.to_dict(),
    }
    if found.trust is not None:
        values["trust"] = found.trust.to_dict()
    return values if clusters.scores is None else {**values, **clusters.scores.to_dict()}


def _print(found: Classified) -> None:
    console, result = output(), found.model.result_
    console.print(_table(found))
    console.print(Text(verdict(result)), Text(proof_sentence(result)), sep="\n")
    told = (None if found.trust is None else found.trust.verdict, found.clusters.sentence())
    for sentence in filter(None, told):
        console.print(Text(sentence))


def _table(found: Classified) -> Table:
    clusters, permutation = found.clusters, found.model.result_.permutation
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("cluster", justify="right")
    table.add_column("images", justify="right")
    table.add_column("class", overflow="fold")
    if found.trust is not None:
        table.add_column("confidence", justify="right")
    for cluster, c in enumerate(clusters.classes):
        matched = permutation[cluster] >= 0
        note = "" if matched else " (by its nearest neighbour)"
        row = [Text(str(cluster)), Text(str(clusters.counts[cluster])), Text(plain(clusters.names[c]) + note)]
        if found.trust is not None:
            sure = found.trust.confidence[cluster]
            row.append(Text("-" if np.isnan(sure) else f"{100 * sure:.0f} %"))
        table.add_row(*row)
    return table
