"""How many pairs are matched at each price of an unmatched item, as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from blindmatch.matching.price import Price

WIDTH, HEIGHT = 640, 210  # units of the drawing
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 620, 26, 160


@dataclass(frozen=True)
class Point:
    """A price that was tried: its place, the price, and the number of pairs where that changes."""

    x: float
    y: float
    price: str
    pairs: str


@dataclass(frozen=True)
class Curve:
    """The picture: the points, the line through them, and the place of the price that was taken."""

    points: Sequence[Point]
    path: str
    taken: float
    price: str


def price_curve(price: Price | None) -> Curve | None:
    """The picture of a suggested price; prices are on a logarithmic axis.

    None if the price was given, or if all prices are zero because every pairing costs nothing.
    """
    if price is None or not price.curve[0][0] > 0:
        return None
    least, most = (math.log(price.curve[at][0]) for at in (0, -1))
    greatest = max(pairs for _, pairs in price.curve) or 1

    def place(value: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (math.log(value) - least) / (most - least), 1)

    points, before = [], -1
    for value, pairs in price.curve:
        y = round(_BOTTOM - (_BOTTOM - _TOP) * pairs / greatest, 1)
        points.append(Point(place(value), y, f"{value:.2g}", "" if pairs == before else str(pairs)))
        before = pairs
    path = "M" + "L".join(f"{point.x} {point.y}" for point in points)
    return Curve(points, path, place(price.price), f"{price.price:.3g}")
