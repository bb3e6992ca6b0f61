"""Matrices of relations with missing entries: refused with their count, or filled in on request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.cli.options import TaskOptions
from blindmatch.errors import unknown_name
from blindmatch.geometry.relations import RULES, fill_missing
from blindmatch.io.embeddings import Embeddings, load_embeddings
from blindmatch.validation import FloatArray, as_array


def load_side(path: Path, what: TaskOptions) -> tuple[Embeddings, str]:
    """Read one side, and say what was filled in; empty if nothing was."""
    rule, told = what.missing, ""
    if what.metric != "precomputed":
        if rule is not None:
            raise ValueError(f"--missing {rule}: it fills in matrices of relations, with --metric precomputed")
        return load_embeddings(path), ""
    if rule is not None and rule not in RULES:
        raise unknown_name("missing", rule, RULES)

    def complete(values: ArrayLike) -> ArrayLike:
        nonlocal told
        array = as_array(values, str(path))
        gaps = int(np.isnan(array).sum()) if array.dtype.kind == "f" else 0
        if gaps:
            counted = f"{gaps} of {array.size} entries"
            if rule is None:
                raise ValueError(f"{path}: {counted} are missing; --missing path or --missing mean fills them in")
            told = f"{counted}, filled in by the rule {rule!r}"
            return _filled(path, array, rule)
        return array

    side = load_embeddings(path, complete)
    if side.values.shape[0] != side.values.shape[1]:
        raise ValueError(f"{path}: its shape is {side.values.shape}; --metric precomputed expects a square matrix")
    return side, told


def _filled(path: Path, array: ArrayLike, rule: str) -> FloatArray:
    try:
        return fill_missing(array, rule)
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).removeprefix('dissimilarities').removeprefix(':').strip()}") from None
