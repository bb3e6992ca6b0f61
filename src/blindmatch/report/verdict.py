"""A result in plain sentences, the same on the terminal and in the report."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import NamedTuple

from blindmatch.solving.result import Result


class Nouns(NamedTuple):
    """The words for the result, and for any other possible one."""

    match: str = "match"
    pairing: str = "pairing"


MATCH, ASSIGNMENT = Nouns(), Nouns("assignment", "assignment")
ENDED = {
    "time_limit": "the time limit left no room for more",
    "gap_limit": "the gap limit ended the run",
    "cost_limit": "the cost limit ended the run",
    "bound_limit": "the bound limit ended the run",
    "node_limit": "the node limit ended the run",
    "solution_limit": "the limit on solutions ended the run",
    "work_limit": "the work limit ended the run",
    "interrupted": "the run was interrupted",
    "stalled": "the bound rises no further",
    "heuristic": "this solver proves nothing",
}


def number(value: float | None, rounding: str | None = None) -> str:
    """A number for people: integers in full, else seven digits are enough to compare; a missing one is a dash.

    >>> number(1234.56789), number(None), number(578.0), number(21273196.0)
    ('1234.568', '-', '578', '21273196')
    """
    if value is None or not math.isfinite(value):
        return "-"
    if value == round(value):
        return f"{value:.0f}" if abs(value) < 1e15 else f"{value:.7g}"
    if rounding is not None:
        return number(float(Context(prec=7, rounding=rounding).create_decimal(repr(float(value)))))
    return f"{value:.7g}"


def lower_number(value: float | None) -> str:
    """The same for a proved lower bound, rounded down: what is shown must hold too.

    >>> lower_number(26.45319974), lower_number(-0.123456789), lower_number(26.45), lower_number(578.0)
    ('26.45319', '-0.1234568', '26.45', '578')
    """
    return number(value, ROUND_FLOOR)


def upper_number(value: float | None) -> str:
    """The same for a proved upper bound, rounded up.

    >>> upper_number(26.45319974), upper_number(578.0)
    ('26.4532', '578')
    """
    return number(value, ROUND_CEILING)


def percent(gap: float | None) -> str:
    """A gap for people; one that is not zero never shows as zero.

    >>> percent(0.0), percent(0.01699), percent(3e-8), percent(12.3)
    ('0 %', '1.7 %', '< 0.001 %', '1230 %')
    """
    if gap is None:
        return "-"
    if 0 < gap < 1e-5:
        return "< 0.001 %"
    return f"{100 * gap:.2g} %" if gap < 1 else f"{100 * gap:.0f} %"


def at_most(gap: float | None) -> str:
    """The same as a limit, rounded up, for the middle of a sentence.

    >>> at_most(0.017), at_most(0.01701), at_most(3e-8), at_most(12.341)
    ('1.7 %', '1.8 %', '0.001 %', '1235 %')
    """
    if gap is None or not math.isfinite(gap) or 0 < gap < 1e-5:
        return percent(gap).removeprefix("< ")
    digits = 2 if gap < 1 else 2 + len(str(int(gap)))
    # The last digits of a quotient are noise: 0.1 may be a little more.
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(f"{gap:.9g}")
    return percent(float(rounded))


def gap_sentence(result: Result) -> str:
    """The gap as a sentence; empty where nothing is proved."""
    return "" if result.gap is None else f"Gap {percent(result.gap)}."


def counted(count: int, word: str) -> str:
    """A number of things.

    >>> counted(1, "pair"), counted(2, "pair")
    ('1 pair', '2 pairs')
    """
    return f"{count} {word}{'' if count == 1 else 's'}"


def pairs_are(count: int) -> str:
    """A number of pairs, with its verb.

    >>> pairs_are(1), pairs_are(7)
    ('1 pair is', '7 pairs are')
    """
    return f"{counted(count, 'pair')} {'is' if count == 1 else 'are'}"


def verdict(result: Result) -> str:
    """One sentence: how many pairs, and how good the match is known to be."""
    pairs, how = len(result.pairs), quality(result)
    if result.left_out:
        total = pairs + result.left_out
        return f"{pairs} of {counted(total, 'pair')} kept; all {total} were matched, {how}."
    return f"{counted(pairs, 'pair')} matched, {how}."


def assignment_verdict(result: Result) -> str:
    """The same for an assignment problem."""
    n = len(result.pairs)
    return f"{n} {'facility' if n == 1 else 'facilities'} assigned, {quality(result, ASSIGNMENT)}."


def quality(result: Result, nouns: Nouns = MATCH) -> str:
    """The proved quality of the match, as the end of a sentence."""
    if result.status != "optimal" and result.gap is None:
        return f"with no proof of how good the {nouns.match} is"
    if result.status != "optimal" and result.gap is not None and result.gap > 1:
        return f"with a proved bound that is too weak to tell how good the {nouns.match} is"
    claim = f"no other {nouns.pairing} costs {'less' if result.maximum is None else 'more'}"
    if result.status != "optimal":
        claim += f" by more than {at_most(result.gap)}"
    return f"proved optimal: {claim}" if result.status == "optimal" else claim


def proof_sentence(result: Result, nouns: Nouns = MATCH) -> str:
    """The proof in a sentence, with its numbers."""
    match, pairing = nouns
    cost, bound, seconds = number(result.cost), lower_number(result.lower_bound), f"{result.seconds:.2f} s"
    lowest = result.lower_bound
    if result.status == "optimal" and lowest is not None and result.cost - lowest > abs(result.cost) / 2:
        cost = bound = "0"  # the cost is nothing but rounding: as small as its distance from the bound
    less, least = "less", "least"
    if result.maximum is not None:
        less, least, bound = "more", "most", upper_number(result.maximum)
    if result.status == "optimal":
        limit = f"no {pairing} costs {less} than {bound}"
        return f"The {match} costs {cost} and {limit}: proved in {seconds} by {result.solver}."
    ended = ENDED[result.status]
    if result.gap is None:
        return f"The {match} costs {cost}; found in {seconds} by {result.solver} ({ended})."
    which = f" ({result.bound_name})" if result.bound_name else ""
    best = f"the best possible at {least} {bound}{which}"
    return f"The {match} costs {cost}, {best}; {seconds} by {result.solver} ({ended})."
