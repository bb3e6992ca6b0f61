"""Our own errors, and the suggestion for a mistyped name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache


class SolverUnavailable(ImportError):  # noqa: N818 (the public name)
    """A solver needs a package (or a licence) that this machine does not have; the message says how to get it."""


def shown(value: object, longest: int = 100) -> str:
    """`repr(value)` on one line, truncated if it is long (for example an array in place of a number).

    >>> shown("ab"), shown(list(range(1000)), longest=12)
    ("'ab'", '[0, 1, 2, 3,...')
    """
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()  # a number of numpy, whose repr names its type
    text = " ".join(repr(value).split())
    return text if len(text) <= longest else f"{text[:longest]}..."


@cache
def pip_install(extra: str) -> str:
    """The command that adds an extra, for how blindmatch was installed: a release, a folder, a file or a repository."""
    from importlib.metadata import PackageNotFoundError, distribution
    from json import loads
    from urllib.parse import unquote, urlparse

    try:
        origin = loads(distribution("blindmatch").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        origin = {}
    url = str(origin.get("url", ""))
    if url.startswith("file://"):
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}'{unquote(urlparse(url).path)}[{extra}]'"
    if "vcs_info" in origin:
        return f"pip install 'blindmatch[{extra}] @ {origin['vcs_info'].get('vcs', 'git')}+{url}'"
    return f"pip install 'blindmatch[{extra}]'"


def unknown_name(argument: str, value: object, known: Iterable[str]) -> ValueError:
    """Return the error for an unknown name, with the nearest known one.

    >>> str(unknown_name("solver", "tubu", ["tabu", "faq"]))
    "solver='tubu' is not known; did you mean 'tabu'? Known: faq, tabu"
    """
    names = sorted(known)
    spelled = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(value).lower(), spelled, n=1)
    hint = f"; did you mean {spelled[near[0]]!r}?" if near else "."
    return ValueError(f"{argument}={shown(value)} is not known{hint} Known: {', '.join(names)}")


def first_line(error: BaseException) -> str:
    """The first line of the message of a parser, which may be long; the kind of the error if it has no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
