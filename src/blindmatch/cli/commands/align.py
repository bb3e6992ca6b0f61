"""``align``: a map from one embedding space to another."""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
from rich.text import Text

from blindmatch.alignment.aligner import BlindAligner
from blindmatch.cli.answers import check_certificate
from blindmatch.cli.console import echo_json, output, plain_table
from blindmatch.cli.inputs import metric_names, side_of
from blindmatch.cli.options import Given
from blindmatch.cli.outputs import Delivery, check_outputs
from blindmatch.cli.progress import show_progress
from blindmatch.cli.texts import Tables
from blindmatch.io.embeddings import Embeddings, load_embeddings
from blindmatch.io.files import write_atomically
from blindmatch.report.verdict import number, percent
from blindmatch.solving.run import as_solver

_PARAMETERS = (
    *("n_components", "n_clusters", "n_clusterings", "n_candidates", "n_iterations", "scale", "random_state"),
    *("solver", "time_limit"),
)


def align(given: Given) -> None:
    """Map one embedding space to another without a pair."""
    chosen = {name: getattr(given, name) for name in _PARAMETERS}
    aligner = BlindAligner(metric=metric_names(given.metric), n_jobs=given.threads, **chosen)
    source, target, out, to = given.source, given.target, given.out, given.to
    if (given.transform is None) != (to is None):
        raise ValueError("--transform and --to belong together: what to map, and where to write it")
    check_outputs(given, [source, target, given.transform], out=".npz", to=".npy")
    check_certificate(given.certificate, as_solver(aligner.solver))
    ours, theirs = load_embeddings(source), load_embeddings(target)
    new = None if given.transform is None else load_embeddings(given.transform).values
    if new is not None and new.shape[1] != ours.values.shape[1]:
        features = f"{new.shape[1]} features; the source has {ours.values.shape[1]}"
        raise ValueError(f"{given.transform}: has {features}")
    tables = Tables.scaled(ours, theirs, aligner.scale)
    begin = time.perf_counter()
    with tables.warn_of_units(), show_progress("reducing dimensions", verbose=given.verbose, log=given.log) as line:
        aligner.fit(side_of(ours), side_of(theirs), callback=None if line is None else line.step)
    seconds = time.perf_counter() - begin
    delivery = Delivery(given.json)
    if given.json:
        files = {name: None if path is None else str(path) for name, path in (("out", out), ("to", to))}
        values = {**_json(aligner, (len(ours), len(theirs)), seconds), **files, "columns": tables.to_dict()}
        delivery.show(lambda: echo_json(values))
    else:
        delivery.show(lambda: output().print(*_text(aligner, (ours, theirs), seconds), *tables.texts, sep="\n"))
    if delivery.write(out, aligner.save):
        delivery.announce(f"Map: {out}; in Python: bm.BlindAligner.load({str(out)!r}).transform(X)")
    if new is not None:
        carried = aligner.transform(new)
        write = partial(write_atomically, write=lambda file: np.save(file, carried))
        delivery.write(to, write, "Points of --transform in the target's space")
    delivery.write_certificate(given.certificate, aligner.result_)
    delivery.end("the best candidate so far was kept" if aligner.interrupted_ else "")


def _verdict(aligner: BlindAligner) -> str:
    """The verdict on the map, without knowing a pair."""
    support, others, score, chance = aligner.support_, len(aligner.candidates_) - 1, aligner.score_, aligner.chance_
    if support > 0:
        same = f"{support} of {others} other starts led to the same map"
        doubt = ", but the score cannot confirm it: check a few pairs."
        return same + (doubt if chance >= score else ": it is probably right. Check a few pairs.")
    alone = "There was one candidate only" if others == 0 else f"None of {others} other starts led to the same map"
    more = ", or try more with --candidates" if others == 0 else ""
    if score > max(chance, (1 + chance) / 2):  # False where one of them is nan
        return (
            f"{alone}, but the score is above that of an unrelated cloud: the map may be right. Check a few pairs "
            f"before you use it{more}."
        )
    if others == 0:
        return f"{alone}, so nothing shows whether the map is right: try more with --candidates."
    return f"{alone}: do not trust it without a check."


def _text(aligner: BlindAligner, sides: tuple[Embeddings, Embeddings], seconds: float) -> list[object]:
    table = plain_table("clusterings>", "cost>", "gap>", "status", "overlap>", "likeness>", "")
    for index, candidate in enumerate(aligner.candidates_):
        result = candidate.result
        i, j = candidate.clusterings
        kept = "kept" if index == aligner.best_ else ""
        proof = (number(result.cost), percent(result.gap), result.status)
        table.add_row(f"{i} and {j}", *proof, f"{candidate.overlap:.4f}", percent(candidate.likeness), kept)
    shapes = [f"{len(side)} x {side.values.shape[1]}" for side in sides]
    components = aligner.alignment_.source.components
    return [
        Text(f"{shapes[0]} aligned with {shapes[1]} in {components} dimensions, {seconds:.0f} s.\n"),
        table,
        Text(f"\n{_overlap(aligner)}"),
        *([Text("The time limit cut the search short.")] if aligner.limited_ else []),
        Text(_verdict(aligner), style="bold"),
    ]


def _overlap(aligner: BlindAligner) -> str:
    """The overlap of the two sets, on a scale that needs no knowledge of them."""
    best, floor, ceiling = aligner.overlap_, aligner.floor_, aligner.ceiling_
    parts = f"(Overlap {best:.4f}, after a random rotation {floor:.4f}"
    if math.isnan(ceiling):
        return f"No score: there are too few points to keep some unseen. {parts}.)"
    parts += f", of two halves of one set {ceiling:.4f}.)"
    if math.isnan(aligner.score_):
        return f"No score: two halves of one set overlap hardly better than after a random rotation. {parts}"
    chance = aligner.chance_
    told = (
        f"Score {aligner.score_:.2f}: how well points that the search did not see overlap. 0 is a random rotation, 1 "
        "two halves of one set, higher is better"
    )
    if not math.isnan(chance):
        told += f"; an unrelated cloud reaches {chance:.2f}"
    if chance >= aligner.score_:
        told += ", which is no less, so the score tells nothing here"
    return f"{told}. {parts}"


def _json(aligner: BlindAligner, sizes: tuple[int, int], seconds: float) -> dict[str, object]:
    candidates = [
        {
            "clusterings": list(candidate.clusterings),
            **{key: getattr(candidate.result, key) for key in ("cost", "lower_bound", "gap", "status")},
            "overlap": candidate.overlap,
            "likeness": candidate.likeness,
        }
        for candidate in aligner.candidates_
    ]
    fitted = ("score", "support", "chance", "overlap", "floor", "ceiling", "best", "limited")
    return {
        "source_size": sizes[0],
        "target_size": sizes[1],
        "components": aligner.alignment_.source.components,
        "verdict": _verdict(aligner),
        **{key: getattr(aligner, f"{key}_") for key in fitted},
        "candidates": candidates,
        "seconds": seconds,
    }
