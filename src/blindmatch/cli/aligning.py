"""What ``align`` does and prints."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from blindmatch.alignment.aligner import BlindAligner
from blindmatch.cli.console import FAILED, INTERRUPTED, complain, echo_json, output
from blindmatch.cli.outputs import Delivery, check_outputs
from blindmatch.cli.progress import watched
from blindmatch.io.embeddings import Embeddings, load_embeddings
from blindmatch.io.files import write_atomically
from blindmatch.report.verdict import number, percent
from blindmatch.solving.run import as_solver
from blindmatch.validation import FloatArray


@dataclass(frozen=True)
class Files:
    """What is read and what is written."""

    source: Path
    target: Path
    out: Path | None = None
    transform: Path | None = None
    to: Path | None = None
    certificate: Path | None = None

    def check(self) -> None:
        """Refuse now what would fail only after a long run."""
        if (self.transform is None) != (self.to is None):
            raise ValueError("--transform and --to belong together: what to carry over, and where to write it")
        inputs = [path for path in (self.source, self.target, self.transform) if path is not None]
        written = {"--out": self.out, "--to": self.to, "--certificate": self.certificate}
        for option, path in written.items():
            suffix = ".npy" if option == "--to" else ".npz"
            if path is not None and path.suffix.lower() != suffix:
                raise ValueError(f"{option} {path}: expected a file name that ends with {suffix}")
        check_outputs(written, inputs)


def run_align(files: Files, aligner: BlindAligner, json: bool) -> None:
    """Align two files of embeddings, write what was asked for, and say how good it is."""
    files.check()
    if files.certificate is not None and not as_solver(aligner.solver).capabilities.bound:
        raise ValueError(f"--certificate: solver={aligner.solver!r} proves no bound; see 'blindmatch solvers'")
    source, target = load_embeddings(files.source), load_embeddings(files.target)
    new = None if files.transform is None else _new_points(files.transform, source)
    begin = time.perf_counter()
    with watched("reducing dimensions") as line:
        aligner.fit(source.values, target.values, callback=None if line is None else line.step)
    seconds = time.perf_counter() - begin
    delivery = Delivery()
    sizes, proof = (len(source), len(target)), aligner.result_.certificate
    if json:
        delivery.show(lambda: echo_json(_as_json(aligner, files, sizes, seconds)))
    else:
        delivery.show(lambda: output().print(*_text(aligner, source, target, seconds), sep="\n"))
    told = [("Map", files.out, aligner.save)]
    if new is not None:
        told.append(("Points of --transform in the target's space", files.to, partial(_write_points, aligner, new)))
    for what, path, write in told:
        if delivery.write(path, write) and not json:
            delivery.show(partial(output().print, Text(f"{what}: {path}"), soft_wrap=True))
    if proof is not None:
        delivery.write(files.certificate, proof.save)
    delivery.end()
    if files.certificate is not None and proof is None:
        complain(f"{files.certificate}: not written, for solver={aligner.result_.solver!r} left no certificate")
        raise typer.Exit(FAILED)
    if aligner.interrupted_:
        complain("interrupted; the best candidate so far was kept")
        raise typer.Exit(INTERRUPTED)


def _write_points(aligner: BlindAligner, points: FloatArray, path: Path) -> None:
    carried = aligner.transform(points)
    write_atomically(path, lambda file: np.save(file, carried))


def _new_points(path: Path, source: Embeddings) -> FloatArray:
    values = load_embeddings(path).values
    if values.shape[1] != source.values.shape[1]:
        raise ValueError(f"{path}: has {values.shape[1]} features; the source has {source.values.shape[1]}")
    return values


def verdict(support: int, others: int) -> str:
    """What can be said about the map without knowing a pair."""
    if others == 0:
        return "There was one candidate only, so nothing shows whether the map is right: try more with --candidates."
    if support == 0:
        return f"None of {others} other starts led to the same map: do not trust it without a check."
    return f"{support} of {others} other starts led to the same map."


def _text(aligner: BlindAligner, source: Embeddings, target: Embeddings, seconds: float) -> list[object]:
    table = Table(show_edge=False, pad_edge=False)
    for title in ("clusterings", "cost", "gap", "status", "agreement", "likeness", ""):
        table.add_column(title, justify="left" if title in ("status", "") else "right")
    for index, candidate in enumerate(aligner.candidates_):
        result = candidate.result
        i, j = candidate.clusterings
        kept = "kept" if index == aligner.best_ else ""
        proof = (number(result.cost), percent(result.gap), result.status)
        table.add_row(f"{i} and {j}", *proof, f"{candidate.agreement:.4f}", percent(candidate.likeness), kept)
    shapes = [f"{len(side)} x {side.values.shape[1]}" for side in (source, target)]
    components = aligner.alignment_.source.components
    return [
        Text(f"{shapes[0]} aligned with {shapes[1]} in {components} dimensions, {seconds:.0f} s.\n"),
        table,
        Text(f"\n{_agreement(aligner)}"),
        Text(verdict(aligner.support_, len(aligner.candidates_) - 1), style="bold"),
    ]


def _agreement(aligner: BlindAligner) -> str:
    best, floor, ceiling = aligner.agreement_, aligner.floor_, aligner.ceiling_
    if math.isnan(ceiling):
        return (
            f"Agreement after the last refinement: {best:.4f}; of a random rotation {floor:.4f}. Too few points for a "
            "score."
        )
    score = "too near to each other for a score" if math.isnan(aligner.score_) else f"score {aligner.score_:.2f}"
    return (
        f"Agreement of unseen points after the last refinement: {best:.4f}; of a random rotation {floor:.4f}, of two "
        f"halves of one set {ceiling:.4f}: {score}."
    )


def _as_json(aligner: BlindAligner, files: Files, sizes: tuple[int, int], seconds: float) -> dict[str, object]:
    candidates = [
        {
            "clusterings": list(candidate.clusterings),
            "cost": candidate.result.cost,
            "lower_bound": candidate.result.lower_bound,
            "gap": candidate.result.gap,
            "status": candidate.result.status,
            "agreement": candidate.agreement,
            "likeness": candidate.likeness,
        }
        for candidate in aligner.candidates_
    ]
    return {
        "source_size": sizes[0],
        "target_size": sizes[1],
        "components": aligner.alignment_.source.components,
        "score": aligner.score_,
        "support": aligner.support_,
        "agreement": aligner.agreement_,
        "floor": aligner.floor_,
        "ceiling": aligner.ceiling_,
        "best": aligner.best_,
        "candidates": candidates,
        "seconds": seconds,
        "out": None if files.out is None else str(files.out),
        "to": None if files.to is None else str(files.to),
    }
