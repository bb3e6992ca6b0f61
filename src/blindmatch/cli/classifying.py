"""What ``classify`` does."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from blindmatch.classifier import BlindClassifier, ClassifierScores
from blindmatch.cli.console import INTERRUPTED, complain, echo_json, output, plain
from blindmatch.cli.progress import busy
from blindmatch.embeddings import Embeddings, load_embeddings
from blindmatch.files import write_atomically
from blindmatch.report import proof_sentence, verdict


def run_classify(images: Path, classes: Path, model: BlindClassifier, out: Path | None, json: bool) -> None:
    """Cluster, match, and say what each image is."""
    if out is not None:
        _check_output(out, (images, classes))
    points, texts = load_embeddings(images), load_embeddings(classes)
    names = [str(c) for c in range(len(texts))] if texts.names is None else list(texts.names)
    with busy("clustering and matching"):
        model.fit(points.values, texts.values, classes=np.arange(len(texts)))
    predicted, clusters = model.predict(points.values), model.clusters(points.values)
    truth = None if points.labels is None else _class_indices(points, names, images)
    scores = None if truth is None else model.evaluate(points.values, truth)
    if out is not None:
        _write(out, points, [names[c] for c in predicted])
    if json:
        echo_json(_as_json(model, predicted.tolist(), clusters.tolist(), names, scores))
        _end(model)
        return
    console = output()
    console.print(_table(model, clusters, names))
    console.print(Text(verdict(model.result_)), Text(proof_sentence(model.result_)), sep="\n")
    if scores is not None:
        console.print(
            f"{_percent(scores.accuracy)} of the images get their class (chance: {_percent(1 / len(names))}); with the "
            f"best assignment of these clusters it would be {_percent(scores.ceiling)}. "
            f"{_percent(scores.matching_accuracy)} of the clusters are matched as in that one."
        )
    if out is not None:
        console.print(f"Classes: {out}", markup=False, soft_wrap=True)
    _end(model)


def _end(model: BlindClassifier) -> None:
    if model.result_.status == "interrupted":
        complain("interrupted; the best match so far was used")
        raise typer.Exit(INTERRUPTED)


def _check_output(out: Path, inputs: tuple[Path, ...]) -> None:
    if not out.parent.is_dir() or out.is_dir():
        raise ValueError(f"--output {out}: expected a file in a folder that exists")
    if any(out.exists() and given.exists() and out.samefile(given) for given in inputs):
        raise ValueError(f"--output {out}: this would overwrite an input")


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


def _as_json(
    model: BlindClassifier, predicted: list[int], clusters: list[int], names: list[str], scores: ClassifierScores | None
) -> dict[str, Any]:
    values: dict[str, Any] = {
        "predicted": predicted,
        "classes": names,
        "clusters": clusters,
        "cluster_class": model.cluster_class_.tolist(),
        "match": model.result_.to_dict(),
    }
    return values if scores is None else {**values, **scores.to_dict()}


def _table(model: BlindClassifier, clusters: Any, names: list[str]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("cluster", justify="right")
    table.add_column("images", justify="right")
    table.add_column("class", overflow="fold")
    sizes = np.bincount(clusters, minlength=len(model.centres_))
    for cluster, c in enumerate(model.cluster_class_):
        note = "" if model.result_.permutation[cluster] >= 0 else " (by its nearest neighbour)"
        table.add_row(str(cluster), str(sizes[cluster]), Text(plain(names[c]) + note))
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
