"""Read JSON, and make values that every JSON parser accepts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """A JSON file, or a ValueError with its name."""
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError:
        raise ValueError(f"{path}: not a JSON file") from None


def json_finite(value: Any) -> Any:
    """Copy a value for JSON: numpy values become Python's, and numbers that are not finite become None.

    >>> json_finite({"cost": float("inf"), "pairs": [(0, 1.5)]})
    {'cost': None, 'pairs': [[0, 1.5]]}
    """
    if isinstance(value, Mapping):
        return {str(key): json_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_finite(item) for item in value]
    if hasattr(value, "tolist"):
        return json_finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
