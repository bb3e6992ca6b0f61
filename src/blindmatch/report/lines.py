"""The match at a glance: two columns of names with a line between partners. Straight lines are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from blindmatch.report.match import Match
from blindmatch.report.pairs import Column

MOST = 30  # pairs; of more, the lines would be a tangle
WIDTH, ROW, TOP = 420, 26, 16  # units of the drawing
_LONGEST = 178  # units of a name: more would leave the drawing
_IMAGE, _SPACE = 22, 6  # units of a picture, and between the parts
_LETTER, _WIDE_LETTER = 8.0, 13.0  # units: Latin letters of a wide typeface, and the letters of East Asia


@dataclass(frozen=True)
class Name:
    """A name at its height, with the data address of its picture."""

    text: str
    y: int
    image: str | None = None


@dataclass(frozen=True)
class PairLine:
    """The line of a pair: the heights of its ends, and its CSS class."""

    pair: int
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Lines:
    """The whole picture: `left` and `right` are the ends of the lines, `inset` the room for pictures on each side."""

    height: int
    left: int
    right: int
    inset: tuple[int, int]
    sources: Sequence[Name]
    targets: Sequence[Name]
    lines: Sequence[PairLine]
    straight: str


def lines_of(match: Match, columns: Sequence[Column]) -> Lines | None:
    """The picture; None for a problem without names on two sides, and for many pairs.

    Where the truth is known, each target stands beside its true source, so that right pairs have straight lines.
    """
    pairs = match.result.pairs
    if match.kernels is None or not 1 < len(pairs) <= MOST:
        return None
    height = {i: TOP + ROW * at for at, (i, _) in enumerate(pairs)}
    free = sorted(set(height.values()))
    truth = match.truth
    place: dict[int, int] = {}
    for i, j in pairs:
        beside = [k for k in height if truth is not None and truth[k] == j]
        if truth is None or beside:
            place[j] = height[beside[0] if beside else i]
            free.remove(place[j])
    for _, j in pairs:
        if j not in place:
            place[j] = free.pop(0)
    right = [truth is not None and truth[i] == j for i, j in pairs]
    kinds = ["plain" if truth is None else "good" if good else "bad" for good in right]
    images = [[cell.image for cell in column.cells] for column in columns[:2]]
    inset = [_SPACE + (_IMAGE + _SPACE if any(side) else 0) for side in images]
    rooms = [_LONGEST + _SPACE - room for room in inset]
    sources = [
        Name(_short(match.source_name(i), rooms[0]), height[i], image)
        for (i, _), image in zip(pairs, images[0], strict=True)
    ]
    targets = [
        Name(_short(match.target_name(j), rooms[1]), place[j], image)
        for (_, j), image in zip(pairs, images[1], strict=True)
    ]
    start, end = _ends(sources, targets, inset)
    return Lines(
        TOP + ROW * len(pairs),
        start,
        end,
        (inset[0], inset[1]),
        sources,
        targets,
        [PairLine(at, height[i], place[j], kinds[at]) for at, (i, j) in enumerate(pairs)],
        "" if truth is None else "Solid lines are right, dashed ones are wrong.",
    )


def _ends(sources: Sequence[Name], targets: Sequence[Name], inset: Sequence[int]) -> tuple[int, int]:
    """Where the lines begin and end: as long as the names allow, but not flat; the picture is in the middle."""
    names = [max(_width(name.text) for name in side) for side in (sources, targets)]
    taken = sum(names) + sum(inset)
    long = min(WIDTH - taken, max(56, ROW * len(sources) / 2.5))
    left = (WIDTH - taken - long) / 2 + names[0] + inset[0]
    return round(left), round(left + long)


def _width(text: str) -> float:
    """About how wide a text is, in units of the drawing."""
    return sum(_WIDE_LETTER if east_asian_width(letter) in "WF" else _LETTER for letter in text)


def _short(name: str, room: float) -> str:
    """A name that fits."""
    if _width(name) <= room:
        return name
    while _width(name) > room - _WIDE_LETTER:
        name = name[:-1]
    return f"{name.rstrip()}…"
