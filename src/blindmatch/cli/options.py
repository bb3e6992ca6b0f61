"""The options of the commands: groups of them, and what `options.toml` says about each."""

from __future__ import annotations

import inspect
import math
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from blindmatch.cli.console import one_line_errors
from blindmatch.cli.shell_words import in_shell_words

File = Path | None
Files = tuple[Path, Path] | None
Words = list[str] | None

_DECLARED: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PANELS = {
    "pairs": "Options for what is known about the pairs",
    "items": "Options for what is known about the items; the matching never sees it",
    "limits": "Options that end a run, or ask for more",
    "run": "Options for the run",
}
# Options that the help of a command with many options shows only with --help-all.
RARE = {
    name
    for section in _DECLARED.values()
    for name, entry in section.items()
    if isinstance(entry, dict) and (entry.get("rare") or entry.get("panel") == "run")
}


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


def price_or_none(text: Any) -> Any:
    """The same; the word none leaves nothing unmatched."""
    return None if text in (None, "none") else price(text)


def seed(text: Any) -> Any:
    """The seed of a run."""
    if not (str(text).isdecimal() and int(text) < 2**32):
        raise typer.BadParameter(f"{text!r}; expected an integer from 0 to 4294967295")
    return int(text)


_KEYWORD, _NONE = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
_PARSERS = {"time_limit": time_limit, "price": price, "price_or_none": price_or_none, "seed": seed}
# Names that a shell completes: the module that knows them, and what it knows.
_COMPLETED: dict[str, tuple[str, Callable[[Any], Iterable[str]]]] = {
    "solvers": ("solvers", lambda module: module.SOLVERS),
    "distortions": ("problem.distortions", lambda module: module.DISTORTIONS),
    "scales": ("geometry.columns", lambda module: module.SCALES),
    "metrics": ("geometry.metrics", lambda module: (*module.METRICS, "precomputed")),
    "coordinates": ("alignment.metric", lambda module: module.COORDINATES),
    "demo_data": ("demo", lambda module: module.DATASETS),
    "experiments": ("experiments", lambda module: module.NAMES),
    "models": ("encoders.registry", lambda module: (model.name for model in module.list_models())),
}


def _completion(kind: str | None) -> Callable[[str], list[str]] | None:
    """Complete to known names; what knows them is imported when the shell asks."""
    if kind is None:
        return None
    module, names = _COMPLETED[kind]

    def complete(incomplete: str) -> list[str]:
        return [name for name in names(import_module(f"blindmatch.{module}")) if name.startswith(incomplete)]

    return complete


def as_typer_function(function: Callable[..., None]) -> Callable[..., None]:
    """The function of a command as typer wants it.

    A parameter whose type is one of the groups below becomes the options of that group. Errors that a user can fix are
    shown in one line, in the words of a shell.
    """
    groups: dict[str, Any] = {}
    parameters, flags = [], {}

    def declare(name: str, kind: Any, default: Any) -> None:
        flags[name], annotation = _declaration(function.__name__, name, kind, default)
        parameters.append(inspect.Parameter(name, _KEYWORD, default=default, annotation=annotation))

    hints = get_type_hints(function)
    for given in inspect.signature(function).parameters.values():
        kind = hints[given.name]
        if is_dataclass(kind):
            groups[given.name] = kind
            types = get_type_hints(kind)
            for field in fields(kind):
                declare(field.name, types[field.name], _NONE if field.default is MISSING else field.default)
        else:
            declare(given.name, kind, given.default)

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


def _declaration(command: str, name: str, kind: Any, default: Any) -> tuple[str, Any]:
    """The name of a parameter in a shell, and its type for typer."""
    entry = _DECLARED.get(command, {}).get(name) or _DECLARED["shared"][name]
    entry = {"help": entry} if isinstance(entry, str) else entry
    common = {
        "help": entry["help"],
        "parser": _PARSERS.get(entry.get("parser", "")),
        "autocompletion": _completion(entry.get("complete")),
        "show_default": entry.get("show_default", True),
    }
    if "argument" in entry:
        return entry["argument"], Annotated[kind, typer.Argument(metavar=entry["argument"], **common)]
    flag = f"--{name.replace('_', '-')}"
    names = entry.get(
        "flags", flag if default is False else ""
    ).split()  # typer adds --no-... where it chooses the name
    option = typer.Option(
        *names, metavar=entry.get("metavar"), rich_help_panel=PANELS.get(entry.get("panel", "")), **common
    )
    return max(names, key=len, default=flag), Annotated[kind, option]


@dataclass(frozen=True)
class TaskOptions:
    """Options of the task: how two sets are compared, and what is known about the pairs."""

    distortion: str = "gw"
    metric: str = "euclidean"
    neighbors: str | None = None
    missing: str | None = None
    weights: str | None = None
    graph: bool = False
    edge_weights: str = "none"
    crossed: File = None
    scale: str = "none"
    standardize: bool = True
    known: Words = None
    known_pairs: File = None
    known_from: Files = None
    forbid: Words = None
    forbidden_pairs: File = None
    similarity: File = None
    similarity_weight: float = 1.0
    unmatched_cost: Any = None
    max_unmatched: int | None = None


@dataclass(frozen=True)
class ItemOptions:
    """Facts about the items that only people see, in tables and reports."""

    truth: str | None = None
    source_names: File = None
    target_names: File = None
    source_images: File = None
    target_images: File = None


@dataclass(frozen=True)
class RunOptions:
    """Options to repeat a run, to speed it up and to watch it."""

    seed: Any = 0
    threads: int | None = None
    verbose: bool = False
    log: File = None


@dataclass(frozen=True)
class SolverOptions(RunOptions):
    """Options of the solver."""

    solver: str = "auto"
    time_limit: Any = "auto"

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
        """The options of the solver, for the report."""
        seconds = self.seconds
        return {
            "solver": self.solver,
            "time limit": "none" if seconds is None else f"{seconds:g} s",
            "seed": str(self.seed),
            "threads": "all cores" if self.threads is None else str(self.threads),
        }


@dataclass(frozen=True)
class TrustOptions:
    """Options of an assessment: which pairs to keep, and how many right ones to expect."""

    min_confidence: float | None = None
    prior: float | None = None
    prior_from: Files = None


@dataclass(frozen=True)
class OutputOptions:
    """Options of the output."""

    json: bool = False
    certificate: File = None
    report: File = None
    save: File = None
