"""``classify``: images by class names, without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from blindmatch.cli.answers import assess_with_progress, print_all, with_title
from blindmatch.cli.console import echo_json, plain, plain_table
from blindmatch.cli.inputs import relation, side_of
from blindmatch.cli.options import Given
from blindmatch.cli.outputs import Delivery, check_outputs, write_page, write_table
from blindmatch.cli.progress import show_progress
from blindmatch.cli.texts import Tables, as_percent
from blindmatch.geometry.views import Views
from blindmatch.io.embeddings import load_embeddings
from blindmatch.matching.classifier import BlindClassifier
from blindmatch.matching.evaluation import cluster_assignment
from blindmatch.report import Clusters, Match, proof_sentence, verdict
from blindmatch.solving.run import as_solver
from blindmatch.trust.abstention import assessed_or_kept
from blindmatch.trust.assessment import AssessmentPlan
from blindmatch.trust.prior import as_stated_prior
from blindmatch.validation import FloatArray


def classify(given: Given) -> None:
    """Classify without a label: cluster the images, match the clusters with the classes."""
    images, classes, assess, prior = given.images, given.classes, given.assess, given.prior
    if as_stated_prior(prior, "--prior") is not None and not assess:
        raise ValueError(f"--prior {prior:g} needs --assess")
    vote = not assess if given.vote is None else given.vote
    if vote and assess:
        raise ValueError("--vote and --assess do not go together: the votes choose the clusters by how well they match")
    check_outputs(given, [images, classes])
    as_solver(given.solver)  # an unknown name is refused before the clustering
    model = _classifier(given, vote)
    points, texts = load_embeddings(images), load_embeddings(classes)
    names = [str(c) for c in range(len(texts))] if texts.names is None else list(texts.names)
    labels = None if points.labels is None else _class_indices(points.labels.tolist(), names, images)
    tables = replace(Tables.scaled(points, texts, given.scale), names=("images", "classes"))
    with tables.warn_of_units(), show_progress("starting", given.seconds, verbose=given.verbose, log=given.log) as line:
        step, moment = (None, None) if line is None else (line.step, line.moment)
        sides = side_of(points), side_of(texts)
        model.fit(*sides, classes=np.arange(len(texts)), callback=step, match_callback=moment)
    settings = {
        **{"images": images.name, "classes": classes.name, "clusters": str(len(model.centres_))},
        **{"starts of k-means": str(model.n_init_), "vote": str(model.vote)},
        "unit length": "auto" if model.normalize is None else str(model.normalize),
        **{name: str(getattr(model, name)) for name in ("distortion", "standardize", "metric")},
        **tables.settings,
    }
    match = _match_of(model, sides[0], names, labels)
    result = with_title(match.result, f"{images.name} classified by {classes.name}", {**settings, **given.settings})
    cut = [f"the best of {model.n_init_} starts of k-means was used"] if model.n_init_ < given.n_init else []
    cut += ["the best match so far was used"] if result.status == "interrupted" else []
    trust = None
    if assess:
        plan = AssessmentPlan(prior=prior)
        trust = assessed_or_kept(result, lambda: assess_with_progress(result, plan, given))[1]
        if trust is None:
            cut += [*([] if cut else ["the classification is complete"]), "the match was not assessed"]
    match = replace(match, result=result, trust=trust)
    clusters = match.clusters
    assert clusters is not None
    values: dict[str, Any] = {
        "predicted": [clusters.classes[c] for c in clusters.members],
        **{"classes": names, "clusters": clusters.members, "cluster_class": clusters.classes},
        "match": result.to_dict(),
        **({} if trust is None else {"trust": trust.to_dict()}),
        **({} if clusters.scores is None else clusters.scores.to_dict()),
        "columns": tables.to_dict(),
    }
    delivery = Delivery(given.json)
    delivery.show(lambda: echo_json(values) if given.json else _print(match, tables))
    table = {"name": points.names or range(len(points)), "class": [names[c] for c in values["predicted"]]}
    delivery.write(given.output, partial(write_table, table), "Classes")
    delivery.write(given.report, partial(write_page, match), "Report")
    delivery.end(", and ".join(cut))


def _classifier(given: Given, vote: bool) -> BlindClassifier:
    same = ("n_init", "normalize", "scale", "distortion", "standardize", "solver", "time_limit")
    options, shape, clusters = {name: getattr(given, name) for name in same}, relation(given), given.n_clusters
    if clusters not in (None, "auto") and not clusters.isdecimal():
        raise ValueError(f"--clusters {clusters}: expected a number, or auto")
    options |= {"n_clusters": int(clusters) if clusters not in (None, "auto") else clusters, "n_jobs": given.threads}
    options |= {"metric": shape["metric"], "n_neighbors": shape["neighbors"], "random_state": given.seed}
    return BlindClassifier(vote=vote, **options)


def _class_indices(labels: Sequence[Any], names: list[str], path: Path) -> list[int]:
    place = {name: c for c, name in enumerate(names)}
    found = []
    for label in labels:
        text = label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)
        if text in place:
            found.append(place[text])
        elif text.isdecimal() and int(text) < len(names):
            found.append(int(text))
        else:
            raise ValueError(f"{path}: the label {text!r} is neither a name nor an index of a class")
    return found


def _match_of(model: BlindClassifier, points: FloatArray | Views, names: list[str], labels: list[int] | None) -> Match:
    """The match of the clusters with the classes, and what is in the clusters."""
    scores = None if labels is None else model.evaluate(points, labels)
    members, count = [int(c) for c in model.clusters(points)], len(model.centres_)
    # The true match of the clusters is the one that makes most images right.
    best = None if labels is None else cluster_assignment(labels, members)
    task = model.task_.changed(source_names=tuple(f"cluster {c}" for c in range(count)), target_names=tuple(names))
    return Match(
        replace(model.result_, task=task),
        truth=None if best is None else [int(best.get(c, -1)) for c in range(count)],
        clusters=Clusters(members, [int(c) for c in model.cluster_class_], names, labels, scores),
    )


def _print(match: Match, tables: Tables) -> None:
    clusters, trust = match.clusters, match.trust
    assert clusters is not None
    table = plain_table("cluster>", "images>", "class", *([] if trust is None else ["confidence>"]))
    for cluster, c in enumerate(clusters.classes):
        note = "" if match.result.permutation[cluster] >= 0 else " (by its nearest neighbour)"
        row = [str(cluster), str(clusters.counts[cluster]), plain(clusters.names[c]) + note]
        table.add_row(*map(Text, [*row, *([] if trust is None else [as_percent(trust.confidence[cluster])])]))
    first = [] if trust is None else [Text(trust.verdict, style="bold")]
    sentences = (clusters.sentence(), verdict(match.result), proof_sentence(match.result))
    print_all([*first, table, *(Text(each) for each in sentences if each), *tables.texts])
