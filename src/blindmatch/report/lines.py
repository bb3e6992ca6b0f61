"""The match at a glance: two columns of names with a line between partners. Straight lines are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blindmatch.report.match import Match
from blindmatch.report.pairs import Column

MOST = 30  # pairs; of more, the lines would be a tangle
ROW, TOP = 26, 16  # units of the drawing
_LONG = 22  # characters of a name: more would leave the drawing


@dataclass(frozen=True)
class Name:
    """A name at its height, with the data address of its picture."""

    text: str
    y: int
    image: str | None = None


@dataclass(frozen=True)
class Line:
    """The line of a pair: the heights of its ends, and its CSS class."""

    pair: int
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Lines:
    """The whole picture."""

    height: int
    sources: Sequence[Name]
    targets: Sequence[Name]
    lines: Sequence[Line]
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
    return Lines(
        TOP + ROW * len(pairs),
        [Name(_short(match.source_name(i)), height[i], image) for (i, _), image in zip(pairs, images[0], strict=True)],
        [Name(_short(match.target_name(j)), place[j], image) for (_, j), image in zip(pairs, images[1], strict=True)],
        [Line(at, height[i], place[j], kinds[at]) for at, (i, j) in enumerate(pairs)],
        "" if truth is None else "Solid lines are right, dashed ones are wrong.",
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONG else f"{name[: _LONG - 1]}…"
