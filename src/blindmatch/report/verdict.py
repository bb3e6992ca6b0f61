"""What a result says, in plain sentences: the same ones on the terminal and in the report."""

from __future__ import annotations

import math

from blindmatch.result import Result


def number(value: float | None) -> str:
    """A number for people: seven digits are enough to compare, and a missing one is a dash.

    >>> number(1234.56789), number(None), number(578.0)
    ('1234.568', '-', '578')
    """
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:.7g}"


def percent(gap: float | None) -> str:
    """A gap for people; one that is not zero never shows as zero.

    >>> percent(0.0), percent(0.01699), percent(3e-8), percent(12.3)
    ('0 %', '1.7 %', '3e-06 %', '1230 %')
    """
    if gap is None:
        return "-"
    return f"{100 * gap:.2g} %" if gap < 1 else f"{100 * gap:.0f} %"


def verdict(result: Result) -> str:
    """One sentence: how many pairs, and how good the match is known to be."""
    return f"{len(result.pairs)} pairs matched, {quality(result)}."


def quality(result: Result) -> str:
    """How good the match is known to be, as the end of a sentence."""
    if result.status == "optimal":
        return "proved optimal: no other pairing costs less"
    if result.gap is not None:
        return f"no other pairing costs less by more than {percent(result.gap)}"
    return "with no proof of how good the match is"


def proof_sentence(result: Result) -> str:
    """What is proved, with the numbers."""
    cost, bound, seconds = number(result.cost), number(result.lower_bound), f"{result.seconds:.2f} s"
    if result.status == "optimal":
        return f"The match costs {cost} and no pairing costs less than {bound}: proved in {seconds} by {result.solver}."
    ended = {
        "time_limit": "the time limit ended the run",
        "interrupted": "the run was interrupted",
        "stalled": "the bound rises no further",
        "heuristic": "this solver proves nothing",
    }[result.status]
    if result.gap is None:
        return f"The match costs {cost}; found in {seconds} by {result.solver} ({ended})."
    return f"The match costs {cost}, the best possible at least {bound}; {seconds} by {result.solver} ({ended})."
