"""The paper's numbers, to compare with ours."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from blindmatch.experiments.tables import Spread


@cache
def paper_tables() -> dict[str, Any]:
    """All tables of the paper by number, from ``paper_values.json``."""
    content: dict[str, Any] = json.loads(
        files("blindmatch.experiments.paper").joinpath("paper_values.json").read_text(encoding="utf-8")
    )
    return content


def paper_value(table: str, column: str, **where: str) -> float | Spread | None:
    """The paper's value in one column of the only matching row; None if there is no such row.

    >>> paper_value("table-5", "bound", solver="+ auction")
    -1.949529
    >>> paper_value("table-2", "accuracy", vision="DINOv2", language="all-mpnet-base-v2").mean
    37.27499991655349
    """
    fits = [row for row in paper_tables()[table]["rows"] if all(row.get(key) == value for key, value in where.items())]
    if len(fits) != 1 or fits[0].get(column) is None:
        return None
    value: float = fits[0][column]
    deviation: float | None = fits[0].get(f"{column}_deviation")
    return value if deviation is None else Spread(value, deviation)
