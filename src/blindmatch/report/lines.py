"""The match at a glance: two columns of names with a line between partners. Straight lines are right."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import ceil
from typing import Any
from unicodedata import east_asian_width

from blindmatch.report.match import Match
from blindmatch.report.pairs import Column

MOST = 30  # pairs; of more, the lines would be a tangle
WIDTH, ROW, TOP = 420, 26, 16  # units of the drawing
_LONGEST = 178  # units of a name: more would leave the drawing
_IMAGE, _SPACE = 22, 6  # units of a picture, and between the parts
_LETTER, _WIDE_LETTER = 8.0, 13.0  # units: Latin letters of a wide typeface, and the letters of East Asia


def lines_of(match: Match, columns: Sequence[Column]) -> dict[str, Any] | None:
    """What the template draws; None for a problem without names on two sides, and for many pairs.

    Where the truth is known, each target stands beside its true source, so that right pairs have straight lines.
    """
    pairs, truth = match.result.pairs, match.truth
    if match.kernels is None or not 1 < len(pairs) <= MOST:
        return None
    height = {i: TOP + ROW * at for at, (i, _) in enumerate(pairs)}
    if truth is None:
        place = {j: height[i] for i, j in pairs}
    else:
        beside = {truth[i]: y for i, y in height.items()}
        place = {j: beside[j] for _, j in pairs if j in beside}
        free = iter(sorted({*height.values()} - {*place.values()}))
        place |= {j: next(free) for _, j in pairs if j not in place}
    named = [(match.source_name(i), height[i]) for i, _ in pairs], [(match.target_name(j), place[j]) for _, j in pairs]
    sides, widths, insets = [], [], []
    for names, column in zip(named, columns[:2], strict=True):
        images = [cell.image for cell in column.cells]
        inset = _SPACE + (_IMAGE + _SPACE if any(images) else 0)
        texts = [_short(name, _LONGEST + _SPACE - inset) for name, _ in names]
        parts = zip(texts, names, images, strict=True)
        sides.append([{"text": text, "y": y, "image": image} for text, (_, y), image in parts])
        widths.append(max(map(_width, texts)))
        insets.append(inset)
    # The lines are as long as the names allow, but not flat; the picture is in the middle.
    room = WIDTH - sum(widths) - sum(insets)
    long = min(room, max(56, ROW * len(pairs) / 2.5))
    left = (room - long) / 2 + widths[0] + insets[0]
    return {
        "height": TOP + ROW * len(pairs),
        "left": round(left),
        "right": round(left + long),
        "insets": insets,
        "sources": sides[0],
        "targets": sides[1],
        "lines": [{"start": height[i], "end": place[j], "kind": _kind(truth, i, j)} for i, j in pairs],
        "caption": "" if truth is None else "Solid lines are right, dashed ones are wrong.",
    }


def _kind(truth: Sequence[int] | None, i: int, j: int) -> str:
    """The CSS class of a line."""
    return "plain" if truth is None else "good" if truth[i] == j else "bad"


def _width(text: str) -> float:
    """About how wide a text is, in units of the drawing."""
    return sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    return _WIDE_LETTER if east_asian_width(letter) in "WF" else _LETTER


def _short(name: str, room: float) -> str:
    """A name that fits."""
    ends = list(accumulate(map(_letter_width, name[: ceil(room / _LETTER) + 1])))  # where the letters that may fit end
    if not ends or ends[-1] <= room:
        return name
    return f"{name[: bisect_right(ends, room - _WIDE_LETTER)].rstrip()}…"
