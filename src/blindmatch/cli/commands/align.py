"""``align``: a map from one embedding space to another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blindmatch.cli import completion
from blindmatch.cli import options as opt
from blindmatch.cli.app import command

if TYPE_CHECKING:
    from blindmatch.alignment.aligner import BlindAligner
    from blindmatch.io.embeddings import Embeddings
    from blindmatch.validation import FloatArray


@dataclass(frozen=True)
class AlignerOptions:
    """The parameters of ``BlindAligner``."""

    n_components: Annotated[
        int | None,
        typer.Option(
            "--components", help="Dimension of the common space; 32 to 256 by default, by the number of points."
        ),
    ] = None
    n_clusters: Annotated[int, typer.Option("--clusters", help="Centres on each side.")] = 20
    n_clusterings: Annotated[int, typer.Option("--clusterings", help="Runs of k-means on each side.")] = 8
    n_candidates: Annotated[
        int, typer.Option("--candidates", help="How many of the best matches of centres to prove and refine.")
    ] = 5
    n_iterations: Annotated[int, typer.Option("--iterations", help="Rounds of refinement.")] = 20
    scale: opt.Scale = "none"
    metric: Annotated[
        str,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME",
            help="How dissimilar two points of one set are: euclidean, cosine or correlation. A different one for each "
            "side: source,target.",
            autocompletion=completion.coordinates,
        ),
    ] = "euclidean"
    random_state: opt.Seed = 0
    solver: opt.Solver = "auto"
    time_limit: Annotated[
        float | None,
        typer.Option("-t", "--time-limit", metavar="SECONDS", help="For the whole search; no limit by default."),
    ] = None
    threads: opt.Threads = None


@command(
    "blindmatch align a.npy b.npy --out map.npz",
    "blindmatch align a.npy b.npy --transform new.npy --to mapped.npy",
    "blindmatch align a.parquet b.npz --seed 3 --candidates 10 --json",
)
def align(
    source: opt.Source,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Embeddings of other items, in any number, of any other dimension.")
    ],
    how: AlignerOptions,
    out: Annotated[opt.File, typer.Option("-o", "--out", metavar="FILE", help="Write the map (.npz).")] = None,
    transform: Annotated[
        opt.File, typer.Option(metavar="FILE", help="Embeddings to map from source to target.")
    ] = None,
    to: Annotated[opt.File, typer.Option(metavar="FILE", help="Write the mapped embeddings (.npy).")] = None,
    certificate: opt.Certificate = None,
    json: opt.Json = False,
    verbose: opt.Verbose = False,
    log: opt.Log = None,
) -> None:
    """Map one embedding space to another without a pair: different items on each side, tens of thousands of them."""
    from blindmatch.alignment.aligner import BlindAligner
    from blindmatch.cli.gaps import metric_names
    from blindmatch.cli.outputs import check_outputs

    aligner = BlindAligner(**{**vars(how), "metric": metric_names(how.metric)})
    written = {"--out": out, "--to": to, "--certificate": certificate}
    _check(written, transform)
    check_outputs({**written, "--log": log}, [source, target, transform])
    _run(aligner, (source, target), transform, written, json, verbose, log)


def _check(written: dict[str, Path | None], transform: Path | None) -> None:
    """Refuse now what would fail only after a long run."""
    if (transform is None) != (written["--to"] is None):
        raise ValueError("--transform and --to belong together: what to map, and where to write it")
    for option, path in written.items():
        suffix = ".npy" if option == "--to" else ".npz"
        if path is not None and path.suffix.lower() != suffix:
            raise ValueError(f"{option} {path}: expected a file name that ends with {suffix}")


def _run(
    aligner: BlindAligner,
    sides: tuple[Path, Path],
    transform: Path | None,
    written: dict[str, Path | None],
    json: bool,
    verbose: bool,
    log: Path | None,
) -> None:
    """Align two files of embeddings, write what was asked for, and say how good it is."""
    import time

    from blindmatch.cli.alignments import alignment_json, alignment_text
    from blindmatch.cli.answers import check_certificate
    from blindmatch.cli.console import FAILED, complain, echo_json, output
    from blindmatch.cli.gaps import side_of
    from blindmatch.cli.outputs import Delivery
    from blindmatch.cli.progress import watched
    from blindmatch.cli.tables import Tables
    from blindmatch.io.embeddings import load_embeddings
    from blindmatch.solving.run import as_solver

    check_certificate(written["--certificate"], as_solver(aligner.solver))
    ours, theirs = map(load_embeddings, sides)
    new = None if transform is None else _new_points(transform, ours)
    tables = Tables.scaled(ours, theirs, aligner.scale)
    begin = time.perf_counter()
    with tables.warned(), watched("reducing dimensions", verbose=verbose, log=log) as line:
        aligner.fit(side_of(ours), side_of(theirs), callback=None if line is None else line.step)
    seconds = time.perf_counter() - begin
    delivery, proof = Delivery(json), aligner.result_.certificate
    if json:
        paths = {key: None if (path := written[f"--{key}"]) is None else str(path) for key in ("out", "to")}
        values = {**alignment_json(aligner, (len(ours), len(theirs)), seconds), **paths, "columns": tables.to_dict()}
        delivery.show(lambda: echo_json(values))
    else:
        delivery.show(
            lambda: output().print(*alignment_text(aligner, (ours, theirs), seconds), *tables.texts, sep="\n")
        )
    if delivery.write(written["--out"], aligner.save):
        name = str(written["--out"])
        delivery.announce(f"Map: {name}; in Python: bm.BlindAligner.load({name!r}).transform(X)")
    if new is not None:
        delivery.write(written["--to"], partial(_write, aligner, new), "Points of --transform in the target's space")
    if proof is not None:
        delivery.write(written["--certificate"], proof.save)
    delivery.end()
    if written["--certificate"] is not None and proof is None:
        complain(
            f"{written['--certificate']}: not written, because solver={aligner.result_.solver!r} left no certificate"
        )
        raise typer.Exit(FAILED)
    delivery.end("the best candidate so far was kept" if aligner.interrupted_ else "")


def _write(aligner: BlindAligner, points: FloatArray, path: Path) -> None:
    import numpy as np

    from blindmatch.io.files import write_atomically

    carried = aligner.transform(points)
    write_atomically(path, lambda file: np.save(file, carried))


def _new_points(path: Path, source: Embeddings) -> FloatArray:
    from blindmatch.io.embeddings import load_embeddings

    values = load_embeddings(path).values
    if values.shape[1] != source.values.shape[1]:
        raise ValueError(f"{path}: has {values.shape[1]} features; the source has {source.values.shape[1]}")
    return values
