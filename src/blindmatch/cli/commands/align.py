"""``align``: a map from one embedding space to another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blindmatch.cli import options as opt
from blindmatch.cli.app import command

if TYPE_CHECKING:
    from blindmatch.alignment.aligner import BlindAligner
    from blindmatch.io.embeddings import Embeddings
    from blindmatch.validation import FloatArray


@dataclass(frozen=True)
class AlignerOptions:
    """The parameters of ``BlindAligner``."""

    n_components: int | None = None
    n_clusters: int = 20
    n_clusterings: int = 8
    n_candidates: int = 5
    n_iterations: int = 20
    scale: str = "none"
    metric: str = "euclidean"
    random_state: Any = 0
    solver: str = "auto"
    time_limit: float | None = None
    threads: int | None = None


@command(
    "blindmatch align a.npy b.npy --out map.npz",
    "blindmatch align a.npy b.npy --transform new.npy --to mapped.npy",
    "blindmatch align a.parquet b.npz --seed 3 --candidates 10 --json",
)
def align(
    source: Path,
    target: Path,
    how: AlignerOptions,
    out: opt.File = None,
    transform: opt.File = None,
    to: opt.File = None,
    certificate: opt.File = None,
    json: bool = False,
    verbose: bool = False,
    log: opt.File = None,
) -> None:
    """Map one embedding space to another without a pair: different items on each side, tens of thousands of them."""
    import time

    from blindmatch.alignment.aligner import BlindAligner
    from blindmatch.cli.answers import check_certificate
    from blindmatch.cli.console import echo_json, output
    from blindmatch.cli.inputs import side_of
    from blindmatch.cli.outputs import Delivery, check_outputs
    from blindmatch.cli.pairs import metric_names
    from blindmatch.cli.progress import watched
    from blindmatch.cli.tables import Tables
    from blindmatch.io.embeddings import load_embeddings
    from blindmatch.solving.run import as_solver

    aligner = BlindAligner(**{**vars(how), "metric": metric_names(how.metric)})
    written = {"--out": out, "--to": to, "--certificate": certificate}
    if (transform is None) != (to is None):
        raise ValueError("--transform and --to belong together: what to map, and where to write it")
    suffixes = {"--out": (".npz",), "--to": (".npy",), "--certificate": (".npz",)}
    check_outputs({**written, "--log": log}, [source, target, transform], suffixes)
    check_certificate(certificate, as_solver(aligner.solver))
    ours, theirs = load_embeddings(source), load_embeddings(target)
    new = None if transform is None else _new_points(transform, ours)
    tables = Tables.scaled(ours, theirs, aligner.scale)
    begin = time.perf_counter()
    with tables.warned(), watched("reducing dimensions", verbose=verbose, log=log) as line:
        aligner.fit(side_of(ours), side_of(theirs), callback=None if line is None else line.step)
    seconds = time.perf_counter() - begin
    delivery = Delivery(json)
    if json:
        files = {"out": None if out is None else str(out), "to": None if to is None else str(to)}
        values = {**_json(aligner, (len(ours), len(theirs)), seconds), **files, "columns": tables.to_dict()}
        delivery.show(lambda: echo_json(values))
    else:
        delivery.show(lambda: output().print(*_text(aligner, (ours, theirs), seconds), *tables.texts, sep="\n"))
    if delivery.write(out, aligner.save):
        delivery.announce(f"Map: {out}; in Python: bm.BlindAligner.load({str(out)!r}).transform(X)")
    if new is not None:
        delivery.write(to, partial(_write, aligner, new), "Points of --transform in the target's space")
    delivery.write_certificate(certificate, aligner.result_)
    delivery.end("the best candidate so far was kept" if aligner.interrupted_ else "")


def _new_points(path: Path, source: Embeddings) -> FloatArray:
    from blindmatch.io.embeddings import load_embeddings

    values = load_embeddings(path).values
    if values.shape[1] != source.values.shape[1]:
        raise ValueError(f"{path}: has {values.shape[1]} features; the source has {source.values.shape[1]}")
    return values


def _write(aligner: BlindAligner, points: FloatArray, path: Path) -> None:
    import numpy as np

    from blindmatch.io.files import write_atomically

    carried = aligner.transform(points)
    write_atomically(path, lambda file: np.save(file, carried))


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
    """A table of the candidates, how well the sets overlap, and the verdict."""
    from rich.table import Table
    from rich.text import Text

    from blindmatch.report.verdict import number, percent

    table = Table(show_edge=False, pad_edge=False)
    for title in ("clusterings", "cost", "gap", "status", "overlap", "likeness", ""):
        table.add_column(title, justify="left" if title in ("status", "") else "right")
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
    """The same, ready for JSON."""
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
