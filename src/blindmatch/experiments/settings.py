"""Settings of an experiment: the paper's defaults, then --quick, a TOML file, and options, each overriding the last."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from blindmatch.errors import unknown_name
from blindmatch.io.files import reading

S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Settings:
    """Base class of the settings of all experiments.

    Attributes
    ----------
    seeds
        Number of random seeds: 0, 1, 2, ...
    """

    seeds: int = 20
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
    """Build settings from layers of values, later ones overriding earlier ones; unknown names are refused.

    >>> make_settings(Settings, {"seeds": "3"})
    Settings(seeds=3)
    >>> make_settings(Settings, {"sedes": 3})
    Traceback (most recent call last):
    ...
    ValueError: setting='sedes' is not known; did you mean 'seeds'? Known: seeds
    """
    hints = get_type_hints(kind)
    known = [item.name for item in fields(kind)]
    values: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if name not in known:
                raise unknown_name("setting", name, known)
            values[name] = converted(name, value, hints[name])
    return kind(**values)


def converted(name: str, value: Any, hint: Any) -> Any:
    """Convert a value from TOML or text to the type of a setting; a ValueError says what is expected.

    >>> converted("sizes", "10,20", tuple[int, ...]), converted("polish", "no", bool)
    ((10, 20), False)
    """
    options = [option for option in get_args(hint) if option is not type(None)]
    if get_origin(hint) is tuple:
        items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
        items = items if isinstance(items, list | tuple) else [items]
        if not items or "" in items:
            raise ValueError(f"{name}={value!r}; expected values separated by commas")
        return tuple(converted(name, item, options[0]) for item in items)
    if options:  # optional: a type or None
        return None if value is None else converted(name, value, options[0])
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


def read_config(path: Path, experiment: str, known_experiments: tuple[str, ...]) -> dict[str, Any]:
    """Settings from a TOML file: those at the top, overridden by those in the table of this experiment."""
    with reading(path, "TOML"), path.open("rb") as file:
        content = tomllib.load(file)
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    for name in tables:
        if name not in known_experiments:
            raise unknown_name(f"{path}: table", name, known_experiments)
    top = {name: value for name, value in content.items() if name not in tables}
    return {**top, **tables.get(experiment, {})}


def parse_assignments(texts: list[str] | None) -> dict[str, str]:
    """Settings from ``name=value`` texts.

    >>> parse_assignments(["levels=5"])
    {'levels': '5'}
    """
    values = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--set {text!r}; expected NAME=VALUE")
        values[name.strip().replace("-", "_")] = value.strip()
    return values
