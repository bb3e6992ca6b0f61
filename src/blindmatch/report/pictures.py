"""Pictures for the template: the match at a glance, prices of unmatched items, the agreement of models."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import ceil
from typing import Any
from unicodedata import east_asian_width

from blindmatch.problem.task import Price, Task
from blindmatch.report.match import Match
from blindmatch.report.pairs import Column

MOST = 30  # pairs; of more, the lines would be a tangle
WIDTH, ROW, TOP = 420, 26, 16  # units of the drawing
_LONGEST = 178  # units of a name: more would leave the drawing
_IMAGE, _SPACE = 22, 6  # units of a picture, and between the parts
_LETTER, _WIDE_LETTER = 8.0, 13.0  # units: Latin letters of a wide typeface, and the letters of East Asia


def lines_of(match: Match, columns: Sequence[Column]) -> dict[str, Any] | None:
    """The match at a glance; None for a problem without names on two sides, and for many pairs.

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
        inset = _SPACE + (_IMAGE + _SPACE if any(cell.image for cell in column.cells) else 0)
        texts = [_short(name, _LONGEST + _SPACE - inset) for name, _ in names]
        parts = zip(texts, names, column.cells, strict=True)
        sides.append([{"text": text, "y": y, "image": cell.image} for text, (_, y), cell in parts])
        widths.append(max(sum(map(_letter_width, text)) for text in texts))
        insets.append(inset)
    if truth is not None:
        kinds = {i: "good" if truth[i] == j else "bad" for i, j in pairs}  # CSS classes
        caption = "Solid lines are right, dashed ones are wrong."
    else:
        kinds = {i: "doubtful" if match.trust is not None and match.trust.doubtful[i] else "plain" for i, _ in pairs}
        caption = "Dashed lines are doubtful pairs." if "doubtful" in kinds.values() else ""
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
        "lines": [{"start": height[i], "end": place[j], "kind": kinds[i]} for i, j in pairs],
        "caption": caption,
    }


def _letter_width(letter: str) -> float:
    return _WIDE_LETTER if east_asian_width(letter) in "WF" else _LETTER


def _short(name: str, room: float) -> str:
    """A name that fits."""
    ends = list(accumulate(map(_letter_width, name[: ceil(room / _LETTER) + 1])))  # where the letters that may fit end
    if not ends or ends[-1] <= room:
        return name
    return f"{name[: bisect_right(ends, room - _WIDE_LETTER)].rstrip()}…"


_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 620, 26, 160  # units of the drawing


def price_curve(price: Price | None) -> dict[str, Any] | None:
    """The curve of a suggested price; prices are on a logarithmic axis.

    None if the price was given, if no prices were tried, or if all are zero because every pairing costs nothing.
    """
    if price is None or not price.curve or not price.curve[0][0] > 0:
        return None
    least, most = (math.log(price.curve[at][0]) for at in (0, -1))
    greatest = max(pairs for _, pairs in price.curve) or 1

    def place(value: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (math.log(value) - least) / (most - least), 1)

    points, before = [], -1
    for value, pairs in price.curve:
        y = round(_BOTTOM - (_BOTTOM - _TOP) * pairs / greatest, 1)
        shown = "" if pairs == before else str(pairs)
        points.append({"x": place(value), "y": y, "price": f"{value:.2g}", "pairs": shown})
        before = pairs
    path = "M" + "L".join(f"{point['x']} {point['y']}" for point in points)
    return {"points": points, "path": path, "taken": place(price.price), "price": f"{price.price:.3g}"}


Heat = tuple[str, Sequence[str], list[list[float]]]  # a title, names, and an (n, n) matrix of numbers up to 1


def view_heats(task: Task | None) -> list[Heat]:
    """The agreement of the views of each side that has several."""
    if task is None or task.too_large:
        return []
    heats: list[Heat] = []
    for at, (side, views) in enumerate(zip(("source", "target"), task.views, strict=True)):
        if views is not None and len(views.widths) > 1:
            values = task.view_agreement(at).tolist()
            heats.append((f"The {len(views.widths)} models of the {side}", views.labels, values))
    return heats
