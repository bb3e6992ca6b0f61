"""Bound and cost against time, as an SVG drawing inside a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from blindmatch.report.verdict import number
from blindmatch.result import Progress

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 240, 90, 30, 12, 12


def bounds_chart(trace: Sequence[Progress]) -> str:
    """The SVG element; a sentence instead where there is nothing to draw."""
    series = {
        "cost": _finite((moment.seconds, moment.cost) for moment in trace),
        "bound": _finite((moment.seconds, moment.lower_bound) for moment in trace),
    }
    points = [point for line in series.values() for point in line]
    if not points:
        return "<p>This solver reported no steps on its way.</p>"
    seconds = max(x for x, _ in points) or 1.0
    low, high = _range([y for _, y in points])

    def place(x: float, y: float) -> str:
        right = LEFT + (WIDTH - LEFT - RIGHT) * x / seconds
        down = TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low)
        return f"{right:.1f},{down:.1f}"

    drawn = []
    for name, line in series.items():
        if line:
            last = (seconds, line[-1][1])
            drawn.append(f'<polyline class="{name}" points="{" ".join(place(*point) for point in (*line, last))}"/>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Lower bound and cost against time">'
        f'<path class="axis" d="M{LEFT},{TOP} V{HEIGHT - BOTTOM} H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 6}" y="{TOP + 10}" text-anchor="end">{number(high)}</text>'
        f'<text x="{LEFT - 6}" y="{HEIGHT - BOTTOM}" text-anchor="end">{number(low)}</text>'
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{seconds:.2f} s</text>'
        f"{''.join(drawn)}</svg>"
    )


def _finite(points: Iterable[tuple[float, float | None]]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if y is not None and math.isfinite(y)]


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Least and greatest, never equal."""
    low, high = min(values), max(values)
    margin = 0.02 * (high - low) or 0.5 * max(abs(high), 1.0)
    return low - margin, high + margin
