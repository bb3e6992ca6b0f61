"""How many pairs are matched at each price of an unmatched item, as a picture."""

from __future__ import annotations

import math
from typing import Any

from blindmatch.problem.task import Price

_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 620, 26, 160  # units of the drawing


def price_curve(price: Price | None) -> dict[str, Any] | None:
    """What the template draws for a suggested price; prices are on a logarithmic axis.

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
