"""The commands and options that `commands.toml` declares, as typer takes them, and as errors name them."""

from __future__ import annotations

import inspect
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blindmatch.cli.console import one_line_errors

if TYPE_CHECKING:
    from blindmatch.experiments.executors import Engine

_DECLARED: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("commands.toml").read_text(encoding="utf-8")
)
COMMANDS: dict[str, dict[str, Any]] = _DECLARED["commands"]
EPILOG: str = _DECLARED["help"]["epilog"]
EXIT_CODES = {int(code): meaning for code, meaning in _DECLARED["help"]["exit_codes"].items()}
_PANELS: dict[str, str] = _DECLARED["help"]["panels"]
_SECTIONS = {name: entries for name, entries in _DECLARED.items() if name not in ("help", "commands", "groups")}
# Options that the help of a command with many options shows only with --help-all.
RARE = {
    name
    for entries in _SECTIONS.values()
    for name, entry in entries.items()
    if isinstance(entry, dict) and (entry.get("rare") or entry.get("panel") == "run")
}
_TYPES: dict[str, Any] = {
    **{"text": str, "int": int, "float": float, "flag": bool, "path": Path},
    **{"texts": list[str], "paths": list[Path], "pair": tuple[Path, Path]},
}


class Given(SimpleNamespace):
    """The options of a command as attributes."""

    def changed(self, group: str) -> bool:
        """Return True if an option of a group has another value than its default."""
        names = _expand([f"@{group}"])
        return any(getattr(self, name) != _entry("shared", name).get("default") for name in names)

    @property
    def seconds(self) -> float | None:
        """The time limit of a match; None for no limit."""
        from blindmatch.solving.limits import as_seconds

        return as_seconds(self.time_limit)

    @property
    def settings(self) -> dict[str, str]:
        """The options of the solver, for the report."""
        return {
            "solver": self.solver,
            "time limit": "none" if self.seconds is None else f"{self.seconds:g} s",
            "seed": str(self.seed),
            "threads": "all cores" if self.threads is None else str(self.threads),
        }


def make_engine(given: Given) -> Engine | None:
    """The place of the computation; None for this process."""
    if given.engine is None:
        if given.workers is not None or given.address is not None or given.job:
            raise ValueError("--workers, --address and --job need --engine")
        return None
    from blindmatch.experiments import executors
    from blindmatch.experiments.protocol import parse_assignments

    job = {key: int(text) if text.isdigit() else text for key, text in parse_assignments(given.job).items()}
    return executors.make_engine(given.engine, workers=given.workers, address=given.address, options=job)


@contextmanager
def open_engine(given: Given, folder: Path) -> Iterator[tuple[Engine | None, Executor | None]]:
    """The engine and its executor."""
    engine = make_engine(given)
    with nullcontext() if engine is None else engine.open(folder) as executor:
        yield engine, executor


def _parser(words: Mapping[str, Any], kind: Callable[[str], Any], least: float, expected: str) -> Callable[[Any], Any]:
    """A function that turns text into a number above `least`, or a word into what stands for it."""

    def parse(text: Any) -> Any:
        if text is None or text in words:
            return words.get(text)
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not least < value:
            raise typer.BadParameter(f"{text!r}; expected {expected}")
        return value

    return parse


def _seed(text: Any) -> int:
    if not (str(text).isdecimal() and int(text) < 2**32):
        raise ValueError(text)
    return int(text)


_PRICE = "a number of at least 0, or auto"
_PARSERS = {
    "time_limit": _parser({"none": None, "auto": "auto"}, float, 0.0, "a number of seconds above 0, or none"),
    "price": _parser({"auto": "auto"}, float, -math.inf, _PRICE),
    "price_or_none": _parser({"none": None, "auto": "auto"}, float, -math.inf, _PRICE),
    "seed": _parser({}, _seed, -1, "an integer from 0 to 4294967295"),
}


def as_typer_function(command: str) -> Callable[..., None]:
    """The function of a command as typer takes it: its file is loaded when it runs."""
    function, flags, parameters = command.replace("-", "_"), {}, []
    for name in _expand(COMMANDS[command]["options"]):
        flags[name], parameter = _declaration(name, _entry(function, name))
        parameters.append(parameter)

    def run(**values: Any) -> None:
        module = import_module(f"blindmatch.cli.commands.{COMMANDS[command]['module']}")
        with one_line_errors(lambda message: in_shell_words(message, flags, values)):
            getattr(module, function)(Given(**values))

    run.__doc__ = COMMANDS[command]["help"]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _expand(names: Iterable[str]) -> list[str]:
    groups = _DECLARED["groups"]
    return [one for name in names for one in (_expand(groups[name[1:]]) if name[0] == "@" else [name])]


def _entry(command: str, name: str) -> dict[str, Any]:
    entry = _SECTIONS.get(command, {}).get(name) or _SECTIONS["shared"][name]
    return {"help": entry} if isinstance(entry, str) else entry


def _declaration(name: str, entry: dict[str, Any]) -> tuple[str, inspect.Parameter]:
    """The name of an option in a shell, and its parameter for typer."""
    default = entry.get("default")
    kind: Any = _TYPES[entry["type"]] if "type" in entry else str if default is None else type(default)
    if "parser" in entry:
        kind = Any
    elif default is None and not entry.get("required"):
        kind = kind | None
    common = {
        "help": entry["help"],
        "parser": _PARSERS.get(entry.get("parser", "")),
        "autocompletion": _completion(entry["complete"]) if "complete" in entry else None,
        "show_default": entry.get("show_default", True),
    }
    flag = f"--{name.replace('_', '-')}"
    names = entry.get("flags", flag if default is False else "").split()  # typer adds --no-... to a name of its own
    if "argument" in entry:
        flag, option = entry["argument"], typer.Argument(metavar=entry["argument"], **common)
    else:
        panel = _PANELS.get(entry.get("panel", ""))
        option = typer.Option(*names, metavar=entry.get("metavar"), rich_help_panel=panel, **common)
    if entry.get("required"):
        default = inspect.Parameter.empty
    elif default is not None and kind is Path:
        default = Path(default)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return max(names, key=len, default=flag), inspect.Parameter(
        name, keyword, default=default, annotation=Annotated[kind, option]
    )


def _completion(words: str) -> Callable[[str], list[str]]:
    """Complete to known names; what knows them is imported when the shell asks."""

    def complete(incomplete: str) -> list[str]:
        place, *further = words.split()
        module, _, name = place.partition(":")
        known = getattr(import_module(f"blindmatch.{module}"), name)
        return [word for word in (*(known() if callable(known) else known), *further) if word.startswith(incomplete)]

    return complete


# Arguments of functions, and the options that set them: the first that was given, or the last.
_SET_BY = {
    "rng": ("seed", "random_state"),
    "known_pairs": ("known", "known_pairs"),
    "known": ("known_from",),
    "forbidden_pairs": ("forbid", "forbidden_pairs"),
    "X": ("images", "source"),
    "Y": ("classes", "target"),
    "experiment": ("name",),
}


def in_shell_words(message: str, flags: Mapping[str, str], given: Mapping[str, Any] | None = None) -> str:
    """Replace the arguments in a message by the options of a command.

    `flags` has the name of each option in a shell, `given` the values.
    """
    values, words = given or {}, dict(flags)
    for argument, options in _SET_BY.items():
        known = [name for name in options if name in flags]
        if known:
            words[argument] = flags[next((name for name in known if values.get(name) is not None), known[-1])]
    found, chosen = re.match(r"(\w+)=", message), values.get("distortion")
    if found and found[1] not in flags and isinstance(chosen, str):
        from blindmatch.problem.distortions import DISTORTIONS

        if found[1] in inspect.signature(DISTORTIONS.get(chosen.partition(":")[0], dict)).parameters:
            message = f"{flags['distortion']} {chosen}: {message}"  # about an option of the distortion
    message = re.sub(r"(?<![\w./'\"-])(\w+)=(?!=)", lambda m: f"{words[m[1]]} " if m[1] in words else m[0], message)
    message = re.sub(r"(--[a-z][a-z-]*)=", r"\1 ", message)
    word = r"^\w+(?= (?:has|holds|is|needs|must|contradicts)\b)|(?<![\w./'\"-])[a-z]+(?:_[a-z]+)+(?![\w./'\"(=-])"
    return re.sub(word, lambda m: words.get(m[0], m[0]), message)
