"""The errors that are ours, and the words that help to mend a mistyped name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SolverUnavailable(ImportError):  # noqa: N818 (the public name)
    """A solver needs a package (or a licence) that this machine does not have; the message says how to get it."""


def unknown_name(argument: str, value: object, known: Iterable[str]) -> ValueError:
    """Return the error for a name that is not known, with the nearest known one.

    >>> str(unknown_name("solver", "tubu", ["tabu", "faq"]))
    "solver='tubu' is not known; did you mean 'tabu'? Known: faq, tabu"
    """
    names = sorted(known)
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return ValueError(f"{argument}={value!r} is not known{hint} Known: {', '.join(names)}")
