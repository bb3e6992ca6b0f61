"""Options that several commands share, alone and in groups."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from blindmatch.cli import completion
from blindmatch.cli.console import one_line_errors
from blindmatch.cli.shell_words import in_shell_words

ITEMS = "Options for what is known about the items; the matching never sees it"
_TRUTH = (
    "True pairs to compare with, one 'source,target' per line; or 'rows' or 'names' if partners have the same row or "
    "name. A source that is not listed has no partner."
)
_IMAGES = (
    "Pictures of the sources for the report: a folder (files named like the items, or numbered, or a subfolder of "
    "pictures for each item), or a file that lists them, one per line."
)
PAIRS = "Options for what is known about the pairs"
RUN = "Options for the run"
# Options of other groups that 'match --help' shows only with --help-all.
RARE = (
    *("known_pairs", "forbid", "forbidden_pairs", "similarity", "similarity_weight", "max_unmatched", "prior"),
    *("prior_from", "candidates", "certificate", "source_names", "target_names", "source_images", "target_images"),
)
FILES = ".npy, .npz, .safetensors, .parquet, .csv, .tsv, .jsonl, .xlsx, .db (SQLite), .h5ad"


def time_limit(text: Any) -> Any:
    """Seconds, None for the word none, or "auto", from the command line or from a default."""
    if text in (None, "none", "auto"):
        return None if text == "none" else text
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise typer.BadParameter(f"{text!r}; expected a number of seconds above 0, or none")
    return seconds


def price(text: Any) -> Any:
    """The price of unmatched items: a number, or "auto"."""
    if text in (None, "auto"):
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r}; expected a number of at least 0, or auto") from None


def seed(text: Any) -> Any:
    """The seed of a run."""
    if not (str(text).isdecimal() and int(text) < 2**32):
        raise typer.BadParameter(f"{text!r}; expected an integer from 0 to 4294967295")
    return int(text)


def as_typer_function(function: Callable[..., None]) -> Callable[..., None]:
    """The function of a command as typer wants it.

    A parameter whose type is one of the groups below becomes the options of that group; its default value, if there
    is one, has the defaults of the options. Errors that a user can fix are shown in one line.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {}
    parameters = []
    for given in inspect.signature(function).parameters.values():
        kind = hints[given.name]
        if not is_dataclass(kind):
            parameters.append(given.replace(annotation=kind, kind=given.KEYWORD_ONLY))
            continue
        groups[given.name] = kind
        types = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = field.default if given.default is given.empty else getattr(given.default, field.name)
            missing = given.empty if default is MISSING else default
            parameters.append(
                inspect.Parameter(field.name, given.KEYWORD_ONLY, default=missing, annotation=types[field.name])
            )

    flags = {parameter.name: _flag(parameter) for parameter in parameters}

    @wraps(function)
    def run(**values: Any) -> None:
        given = dict(values)
        with one_line_errors(lambda message: in_shell_words(message, flags, given)):
            for name, kind in groups.items():
                values[name] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            function(**values)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _flag(parameter: inspect.Parameter) -> str:
    """What the parameter of a command is called in a shell: its long option, or its metavar."""
    [info] = [note for note in parameter.annotation.__metadata__ if hasattr(note, "param_decls")]
    if isinstance(info, typer.models.ArgumentInfo):
        return str(info.metavar or parameter.name)
    # In an annotation, typer takes the first name for the default value.
    names = (info.default, *(info.param_decls or ()))
    flags = [name for name in names if isinstance(name, str) and name.startswith("-")]
    return str(max(flags, key=len, default=f"--{parameter.name.replace('_', '-')}"))


def _option(metavar: str, text: str, panel: str | None = None) -> Any:
    """An option that takes a value and has only a long name."""
    return typer.Option(metavar=metavar, help=text, rich_help_panel=panel)


def _time_limit(text: str) -> Any:
    """The option for the time limit of a run."""
    return typer.Option("-t", "--time-limit", metavar="SECONDS", parser=time_limit, help=text)


File = Path | None
Words = list[str] | None
Source = Annotated[
    Path,
    typer.Argument(metavar="SOURCE", help=f"Embeddings: {FILES}; of several models: a.npy+b.npy.", show_default=False),
]
Distortion = Annotated[
    str,
    typer.Option(
        "-d",
        "--distortion",
        help="What to compare: gw, gaussian, cka, mutual-knn, kl or inner-product; with options after a colon: "
        "gaussian:bandwidth=0.48, mutual-knn:k=8, cka:normalize=true.",
        autocompletion=completion.distortions,
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        help="Scale the columns of tables with units: none, columns (z-scores), robust (quartiles), log (z-scores "
        "after the logarithm of wide positive columns), or auto, which chooses and says what it chose.",
        autocompletion=completion.scales,
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        "-m",
        "--metric",
        metavar="NAME",
        help="How dissimilar two items of one set are: euclidean, cosine, correlation, any other of scipy's cdist, "
        "geodesic or hops (shortest paths among nearest neighbours; geodesic:cosine finds them by "
        "cosine distance), gower (tables with text columns). A different one for each side: source,target. "
        "precomputed: the files hold square matrices.",
        autocompletion=completion.metrics,
    ),
]
Neighbors = Annotated[
    str | None,
    _option("K", "Nearest neighbours in the graph of geodesic and hops; a different number for each side: K,L.", RUN),
]
Standardize = Annotated[bool, typer.Option(help="Bring both kernels to a common scale first.", rich_help_panel=RUN)]
Solver = Annotated[
    str, typer.Option("-s", "--solver", help="A name from 'blindmatch solvers'.", autocompletion=completion.solvers)
]
TimeLimit = Annotated[Any, _time_limit("Return the best match found within this time (auto: 60); 'none' for no limit.")]
MatchTimeLimit = Annotated[
    Any,
    _time_limit(
        "Use the best match found within this time (auto: 60); 'none' for no limit. The clustering comes before it and "
        "takes its own time."
    ),
]
SubsetsTimeLimit = Annotated[Any, _time_limit("Return the best subsets found within this time; no limit by default.")]
Seed = Annotated[
    Any,
    typer.Option("--seed", metavar="N", parser=seed, help="The same seed gives the same result.", rich_help_panel=RUN),
]
Threads = Annotated[int | None, typer.Option(help="Number of threads; all cores by default.", rich_help_panel=RUN)]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Print the progress on stderr every second.", rich_help_panel=RUN)
]
Log = Annotated[
    File, _option("FILE", "Append the progress to this file, every second; without a file, print it on stderr.", RUN)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
Certificate = Annotated[
    File, typer.Option("-c", "--certificate", metavar="FILE", help="Write the proof of the bound (.npz).")
]
Report = Annotated[File, typer.Option("-r", "--report", metavar="FILE", help="Write a report (.html).")]
Save = Annotated[
    File,
    _option("FILE", "Write task, match, proof and assessment to one file (.npz) for 'report', 'verify' and 'assess'."),
]
Saved = Annotated[Path, typer.Argument(metavar="MATCH", help="What --save wrote (.npz).", show_default=False)]
Checkpoint = Annotated[File, _option("FILE", "Keep the state of branch-and-bound here, and resume from it.", RUN)]
Start = Annotated[
    File,
    _option("FILE", "A solution to begin with: a QAPLIB .sln file, or what --save (.npz) or --json (.json) gave.", RUN),
]
Assess = Annotated[
    bool,
    typer.Option(
        "--assess",
        help="Test whether to believe the match, like the command 'assess'; takes up to another --time-limit.",
    ),
]
MinConfidence = Annotated[float | None, _option("P", "Keep only pairs that are right with at least this probability.")]
Prior = Annotated[
    float | None,
    _option(
        "P", "The share of right pairs that you expect in such matches, between 0 and 1; the confidence is for it."
    ),
]
PriorFrom = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        metavar="SOURCES TARGETS",
        help="Count that share: embeddings of other items, at least as many, whose partners are in the same row.",
    ),
]


@dataclass(frozen=True)
class TaskOptions:
    """How two sets are compared, and what is known about the pairs."""

    distortion: Distortion = "gw"
    metric: Metric = "euclidean"
    neighbors: Neighbors = None
    missing: Annotated[
        str | None,
        _option(
            "RULE",
            "What to do about missing cells, which are refused otherwise: drop (their rows), median (of the column), "
            "distance (over the cells that both rows have). With --metric precomputed: path (the shortest path over "
            "other items) or mean (of what is known of both items).",
        ),
    ] = None
    weights: Annotated[
        str | None,
        _option("W,W", "With --metric precomputed and several files a side: how much each layer counts.", RUN),
    ] = None
    graph: Annotated[
        bool,
        typer.Option(
            "--graph",
            help="The files are lists of edges: from,to or from,to,weight on each line. Several layers: a.csv+b.csv.",
            rich_help_panel=RUN,
        ),
    ] = False
    edge_weights: Annotated[
        str, typer.Option(metavar="HOW", help="Weights of edges: none, log, binary or ranks.", rich_help_panel=RUN)
    ] = "none"
    crossed: Annotated[File, _option("FILE", "With --graph: the edges between the two sides, in a list.", RUN)] = None
    scale: Scale = "none"
    standardize: Standardize = True
    known: Annotated[Words, _option("S:T", "A known pair, by name or index; repeatable.", PAIRS)] = None
    known_pairs: Annotated[File, _option("FILE", "Known pairs, one 'source,target' per line.", PAIRS)] = None
    known_from: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="SOURCES TARGETS",
            help="Other items whose partners are known, row by row: two files of embeddings.",
            rich_help_panel=PAIRS,
        ),
    ] = None
    forbid: Annotated[Words, _option("S:T", "A pair that must not be used; repeatable.", PAIRS)] = None
    forbidden_pairs: Annotated[File, _option("FILE", "Forbidden pairs, one per line.", PAIRS)] = None
    similarity: Annotated[
        File, _option("FILE", "A matrix, sources by targets: larger for pairs that seem more alike.", PAIRS)
    ] = None
    similarity_weight: Annotated[
        float, typer.Option(help="How much a unit of similarity lowers the cost.", rich_help_panel=PAIRS)
    ] = 1.0
    unmatched_cost: Annotated[
        Any,
        typer.Option(
            metavar="PRICE",
            parser=price,
            help="What each unmatched item adds to the cost, on either side; without it, as many items as possible are "
            "matched. 'auto' suggests a price, and shows the number of pairs at others.",
            rich_help_panel=PAIRS,
        ),
    ] = None
    max_unmatched: Annotated[
        int | None, _option("N", "The largest number of items of the smaller set to leave unmatched.", PAIRS)
    ] = None


@dataclass(frozen=True)
class ItemOptions:
    """What is known about the items: only people see it, in tables and reports."""

    truth: Annotated[str | None, _option("FILE", _TRUTH, ITEMS)] = None
    source_names: Annotated[File, _option("FILE", "Names of the sources, one per line.", ITEMS)] = None
    target_names: Annotated[File, _option("FILE", "Names of the targets, one per line.", ITEMS)] = None
    source_images: Annotated[File, _option("PATH", _IMAGES, ITEMS)] = None
    target_images: Annotated[File, _option("PATH", "The same for the targets.", ITEMS)] = None


@dataclass(frozen=True)
class RunOptions:
    """How a run is repeated, sped up and watched."""

    seed: Seed = 0
    threads: Threads = None
    verbose: Verbose = False
    log: Log = None


@dataclass(frozen=True)
class SolverOptions(RunOptions):
    """How to solve."""

    solver: Solver = "auto"
    time_limit: TimeLimit = "auto"

    @property
    def seconds(self) -> float | None:
        """The time limit; None for no limit."""
        from blindmatch.solving.limits import as_seconds

        return as_seconds(self.time_limit)

    @property
    def assess_seconds(self) -> float:
        """The time limit of an assessment after the match: as much again, and 60 s if there is none."""
        return 60.0 if self.seconds is None else self.seconds

    @property
    def settings(self) -> dict[str, str]:
        """What was asked for, for the report."""
        seconds = self.seconds
        return {
            "solver": self.solver,
            "time limit": "none" if seconds is None else f"{seconds:g} s",
            "seed": str(self.seed),
            "threads": "all cores" if self.threads is None else str(self.threads),
        }


@dataclass(frozen=True)
class ClusterSolverOptions(SolverOptions):
    """How to solve the match that follows a clustering."""

    time_limit: MatchTimeLimit = "auto"


@dataclass(frozen=True)
class TrustOptions:
    """Which pairs to believe, and how many to expect."""

    min_confidence: MinConfidence = None
    prior: Prior = None
    prior_from: PriorFrom = None


@dataclass(frozen=True)
class OutputOptions:
    """Where the answer goes."""

    json: Json = False
    certificate: Certificate = None
    report: Report = None
    save: Save = None
