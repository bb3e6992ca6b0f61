"""An experiment: its settings, its plan of runs, the work and the record of one run, its tables and figures."""

from __future__ import annotations

import hashlib
import json
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from blindmatch.errors import unknown_name
from blindmatch.experiments import STUDIES
from blindmatch.io.files import reading

if TYPE_CHECKING:
    from blindmatch.experiments.data import Catalogue, Source
    from blindmatch.experiments.result_tables import Table
    from blindmatch.experiments.sweep_report import Figure

S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Settings:
    """Base class of the settings of all experiments."""

    seeds: int = 20  # number of random seeds: 0, 1, 2, ..
    choices: ClassVar[Mapping[str, Collection[str]]] = {}  # the known values of settings that are names

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, int | float) and not isinstance(value, bool) and not value > 0:
                raise ValueError(f"{item.name}={value!r}; expected a number above 0")
        for name, known in self.choices.items():
            value = getattr(self, name)
            for word in (value,) if isinstance(value, str) else value:
                if word not in known:
                    raise unknown_name(name.removesuffix("s"), word, known)


def make_settings(kind: type[S], *layers: Mapping[str, Any]) -> S:
    """Build settings from layers of values, later ones overriding earlier ones; unknown names are refused."""
    hints = get_type_hints(kind)
    known = [item.name for item in fields(kind)]
    values: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if name not in known:
                raise unknown_name("setting", name, known)
            values[name] = convert(name, value, hints[name])
    return kind(**values)


def convert(name: str, value: Any, hint: Any) -> Any:
    """Convert a value from TOML or text to the type of a setting; a ValueError says what is expected."""
    options = [option for option in get_args(hint) if option is not type(None)]
    if get_origin(hint) is tuple:
        items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
        items = items if isinstance(items, list | tuple) else [items]
        if not items or "" in items:
            raise ValueError(f"{name}={value!r}; expected values separated by commas")
        return tuple(convert(name, item, options[0]) for item in items)
    if options:  # optional: a type or None
        return None if value is None else convert(name, value, options[0])
    if hint is bool:
        words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        word = str(value).lower()
        if word not in words:
            raise ValueError(f"{name}={value!r}; expected true or false")
        return words[word]
    kinds = {int: (int, str), float: (int, float, str), str: (str,)}
    try:
        if isinstance(value, bool) or not isinstance(value, kinds[hint]):
            raise ValueError(value)
        return hint(value)
    except ValueError:
        expected = {int: "an integer", float: "a number", str: "text"}[hint]
        raise ValueError(f"{name}={value!r}; expected {expected}") from None


def read_config(path: Path, experiment: str) -> dict[str, Any]:
    """Settings from a TOML file: those at the top, overridden by those in the table of this experiment."""
    with reading(path, "TOML"), path.open("rb") as file:
        content = tomllib.load(file)
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    for name in tables:
        if name not in STUDIES:
            raise unknown_name(f"{path}: table", name, STUDIES)
    top = {name: value for name, value in content.items() if name not in tables}
    return {**top, **tables.get(experiment, {})}


def parse_assignments(texts: list[str] | None) -> dict[str, str]:
    """Settings from ``name=value`` texts."""
    values = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--set {text!r}; expected NAME=VALUE")
        values[name.strip().replace("-", "_")] = value.strip()
    return values


VERSION = version("blindmatch")


@dataclass(frozen=True)
class Trial:
    """One planned run: everything that determines its result."""

    experiment: str
    parameters: Mapping[str, Any]  # settings of this run, plain JSON values
    files: Mapping[str, Source] = field(default_factory=dict)  # inputs by role: workers get paths, never arrays
    revision: int = 1  # of the experiment, raised whenever its computation changes
    version: str = VERSION

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each input."""
        return {role: file.digest for role, file in self.files.items()}

    @cached_property
    def key(self) -> str:
        """Hash of settings, version and contents of the inputs (not their paths): identifies this run in the store."""
        decides = {
            "experiment": self.experiment,
            "revision": self.revision,
            "parameters": dict(self.parameters),
            "inputs": self.digests,
            "version": self.version,
        }
        text = json.dumps(decides, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def kind(self) -> str:
        """The kind of the run; runs of one kind differ only in models and seeds and take about the same time."""
        names = ("dataset", "variant", "solver", "measure", "size")
        return ", ".join(f"{name}={self.parameters[name]}" for name in names if name in self.parameters) or "all"


@dataclass(frozen=True)
class Record:
    """A finished run: its result in plain JSON values, or the reason for its failure."""

    key: str
    experiment: str
    version: str
    parameters: dict[str, Any]
    inputs: dict[str, str]  # digests by role
    result: dict[str, Any] | None
    error: str | None
    seconds: float
    cpu_seconds: float
    worker: str
    finished: str  # UTC

    @property
    def flat(self) -> dict[str, Any]:
        """Parameters and results in one mapping."""
        taken = {"run_seconds": self.seconds, "cpu_seconds": self.cpu_seconds}
        return {**self.parameters, **(self.result or {}), **taken}


Row = Mapping[str, Any]
"""Parameters and results of one run in a flat mapping, for tables and figures."""


@dataclass(frozen=True)
class Experiment(Settings, ABC):
    """One experiment of the paper: a dataclass of its settings, with a `name` in `studies.toml`."""

    name: ClassVar[str] = ""
    about: ClassVar[str]
    shows: ClassVar[str]
    quick: ClassVar[Mapping[str, Any]]
    revision: ClassVar[int] = 1

    def __init_subclass__(cls) -> None:
        if cls.name:
            cls.about, cls.shows, cls.quick = (STUDIES[cls.name][key] for key in ("about", "shows", "quick"))

    @abstractmethod
    def plan(self, catalogue: Catalogue) -> list[Trial]:
        """All runs of these settings; runs that share inputs are adjacent."""

    @abstractmethod
    def compute(self, run: Trial) -> dict[str, Any]:
        """Do the work of one run in a worker; return plain JSON values."""

    @abstractmethod
    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """The paper's tables, from the available rows."""

    def figures(self, rows: Sequence[Row]) -> list[Figure]:
        """The paper's figures."""
        return []

    def run(self, parameters: Mapping[str, Any], **files: Source) -> Trial:
        """A run of this experiment."""
        return Trial(self.name, parameters, files, self.revision)
