"""Errors about the arguments of functions, rephrased as errors about the options of a command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Arguments of functions, and the parameters of commands that set them: the first that was given, or the last.
SET_BY = {
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

    `flags` has the option of each parameter of the command, `given` its values.

    >>> in_shell_words("X has 8 rows; n_clusters=20 needs 40", {"n_clusters": "--clusters", "source": "SOURCE"})
    'SOURCE has 8 rows; --clusters 20 needs 40'
    """
    values = given or {}
    options = dict(flags)
    for argument, parameters in SET_BY.items():
        known = [name for name in parameters if name in flags]
        if known:
            options[argument] = flags[next((name for name in known if values.get(name) is not None), known[-1])]
    message = _about_distortion(message, flags, values)

    def as_option(found: re.Match[str]) -> str:
        return f"{options[found[1]]} " if found[1] in options else found[0]

    def as_name(found: re.Match[str]) -> str:
        return options.get(found[0], found[0])

    message = re.sub(r"(?<![\w./'\"-])(\w+)=(?!=)", as_option, message)
    message = re.sub(r"(--[a-z][a-z-]*)=", r"\1 ", message)
    message = re.sub(r"^\w+(?= (?:has|holds|is|needs|must|contradicts)\b)", as_name, message)
    return re.sub(r"(?<![\w./'\"-])[a-z]+(?:_[a-z]+)+(?![\w./'\"(=-])", as_name, message)  # words with an underscore


def _about_distortion(message: str, flags: Mapping[str, str], values: Mapping[str, Any]) -> str:
    """Name the option of an error about an option of the distortion, such as k of mutual-knn."""
    found = re.match(r"(\w+)=", message)
    if found and found[1] not in flags and isinstance(values.get("distortion"), str):
        from dataclasses import fields

        from blindmatch.problem.distortions import DISTORTIONS

        chosen = DISTORTIONS.get(values["distortion"].partition(":")[0])
        if chosen is not None and found[1] in {field.name for field in fields(chosen)}:
            return f"{flags['distortion']} {values['distortion']}: {message}"
    return message
