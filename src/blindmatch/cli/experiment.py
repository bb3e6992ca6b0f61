"""``experiment``: the paper's experiments. The work is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from blindmatch.cli import completion
from blindmatch.cli import options as opt
from blindmatch.cli.app import app
from blindmatch.cli.console import INTERRUPTED, complain, one_line_errors

NAMES = "shuffling, small-scale, larger-scale, solvers-small, solvers-large, classification, ablation"


@app.command(
    epilog=opt.examples(
        "blindmatch experiment ablation --quick",
        "blindmatch experiment small-scale --embeddings embeddings --out results",
        "blindmatch experiment solvers-small --embeddings embeddings --seeds 5 --solver faq --solver branch-and-bound",
        "blindmatch experiment ablation --only size=40 --status",
        "blindmatch experiment larger-scale --embeddings embeddings --engine dask --address tcp://host:8786",
    )
    + "\n\nWhat has ended is kept whatever happens; the same command goes on where it stopped.",
)
def experiment(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help=f"One of {NAMES}.", show_default=False, autocompletion=completion.experiments
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A small version: about a minute on bundled data; of a folder, one pair of models."
        ),
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where results are kept.")] = Path(
        "blindmatch-results"
    ),
    embeddings: Annotated[
        Path | None,
        typer.Option("--embeddings", "-e", metavar="FOLDER", help="vision__DATASET__MODEL and language__... files."),
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings, as TOML.")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="How many random seeds.")] = None,
    sizes: Annotated[str | None, typer.Option("--sizes", metavar="N,N...", help="Problem sizes.")] = None,
    dataset: Annotated[list[str] | None, typer.Option("--dataset", help="May be repeated, like the next ones.")] = None,
    vision: Annotated[list[str] | None, typer.Option("--vision", help="A vision model.")] = None,
    language: Annotated[list[str] | None, typer.Option("--language", help="A language model.")] = None,
    solver: Annotated[
        list[str] | None, typer.Option("--solver", "-s", help="A solver.", autocompletion=completion.solvers)
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", "-t", metavar="SECONDS", help="For each run.")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; may be repeated.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME=PATTERN", help="Only runs with such parameters.")
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help="Where to compute: local, dask or slurm.")] = "local",
    workers: Annotated[int | None, typer.Option("--workers", help="Local processes, or array tasks at a time.")] = None,
    address: Annotated[str | None, typer.Option("--address", help="Of the Dask scheduler.")] = None,
    job: Annotated[
        list[str] | None, typer.Option("--job", metavar="NAME=VALUE", help="A job parameter of submitit, for slurm.")
    ] = None,
    chunk: Annotated[int | None, typer.Option("--chunk", help="Runs that are sent together.")] = None,
    status: Annotated[bool, typer.Option("--status", help="Count what is done, and compute nothing.")] = False,
    report: Annotated[
        bool,
        typer.Option("--report", help="Write tables and figures of what is there; compute nothing."),
    ] = False,
    json: opt.Json = False,
) -> None:
    """Run an experiment of the paper: what is missing of it, in parallel, with the paper's numbers beside yours."""
    with one_line_errors():
        from blindmatch.cli.experiments import named, run_experiment, show_status
        from blindmatch.experiments.engine.engines import make_engine
        from blindmatch.experiments.run import plan

        values = named(
            seeds=seeds, sizes=sizes, datasets=dataset, vision=vision, language=language, solvers=solver,
            time_limit=time_limit,
        )  # fmt: skip
        layers = _layers(name, config, values, setting)
        sweep = plan(name, *layers, quick=quick, embeddings=embeddings, out=out, only=only or ())
        if status:
            show_status(sweep, out, json)
            return
        chosen = None if report else make_engine(engine, workers=workers, address=address, options=_jobs(job))
        if run_experiment(sweep, out, chosen, chunk, json):
            complain("interrupted; what had ended is kept, and the same command goes on from there")
            raise typer.Exit(INTERRUPTED)


def _layers(name: str, config: Path | None, values: dict[str, Any], setting: list[str] | None) -> list[dict[str, Any]]:
    from blindmatch import experiments
    from blindmatch.experiments.settings import parse_assignments, read_config

    experiments.load(name)
    layers = [read_config(config, name, experiments.NAMES)] if config is not None else []
    return [*layers, _fitting(name, values), parse_assignments(setting)]


def _fitting(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Settings under the names that this experiment has for them: some take one solver, or limits for each size."""
    from dataclasses import fields

    from blindmatch import experiments

    known = {item.name for item in fields(experiments.load(name).settings)}
    others = {"time_limit": ("time_limits",), "solvers": ("solver", "variants")}
    fitting = {}
    for key, value in values.items():
        names = [key] if key in known else [other for other in others.get(key, ()) if other in known]
        single = names == ["solver"] and isinstance(value, list) and len(value) == 1
        fitting[names[0] if names else key] = value[0] if single else value
    return fitting


def _jobs(job: list[str] | None) -> dict[str, Any]:
    from blindmatch.experiments.settings import parse_assignments

    return {key: int(text) if text.isdigit() else text for key, text in parse_assignments(job).items()}
