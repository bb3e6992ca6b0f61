"""A matrix of numbers between named things as a picture: how far models agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blindmatch.problem.task import Task
from blindmatch.validation import FloatArray

_SIDE, _LETTER, _LONGEST = 46, 7, 24  # of a cell and of a letter, in units of the drawing; letters of a name


def heat_map(names: Sequence[str], values: FloatArray, label: str) -> dict[str, Any]:
    """What the template draws for an (n, n) matrix of numbers up to 1; nan leaves a cell out."""
    shown = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in names]
    room = 12 + _LETTER * max(map(len, shown))
    cells = []
    for (i, k), value in np.ndenumerate(values):
        if np.isfinite(value):
            shade = float(np.clip(value, 0.0, 1.0))
            cells.append(
                {
                    "x": room + _SIDE * k,
                    "y": room + _SIDE * i,
                    "shade": f"{0.08 + 0.92 * shade:.3f}",
                    "over": shade > 0.55,
                    "text": f"{value:.2f}",
                    "title": f"{names[i]}, {names[k]}: {value:.3f}",
                }
            )
    count = len(shown)
    return {
        "label": label,
        "width": 2 * room + _SIDE * count,  # names above lean to the right
        "height": room + _SIDE * count,
        "side": _SIDE,
        "names": [(name, room - 8, room + _SIDE * at + _SIDE // 2 + 4) for at, name in enumerate(shown)],
        "heads": [(name, room + _SIDE * at + _SIDE // 2, room - 8) for at, name in enumerate(shown)],
        "cells": cells,
    }


def view_heats(task: Task | None) -> list[tuple[str, dict[str, Any]]]:
    """The agreement of the views of each side that has several, with a title."""
    if task is None or task.too_large:
        return []
    heats = []
    for at, (side, views) in enumerate(zip(("source", "target"), task.views, strict=True)):
        if views is not None and len(views.widths) > 1:
            title = f"The {len(views.widths)} models of the {side}"
            heats.append((title, heat_map(views.labels, task.view_agreement(at), title)))
    return heats
