"""The files of both sides: embeddings and tables, or matrices of relations, with what was done about gaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.cli.options import TaskOptions
from blindmatch.errors import unknown_name
from blindmatch.geometry.relations import RULES, fill_missing, graph_layers
from blindmatch.geometry.views import Views
from blindmatch.io.embeddings import MISSING, Embeddings, load_embeddings, split_parts
from blindmatch.validation import FloatArray, as_array


def load_side(path: Path, what: TaskOptions, at: int) -> Embeddings:
    """Read the source (0) or the target (1)."""
    rule, told = what.missing, ""
    if what.graph:
        files = split_parts(path)
        matrices, nodes = graph_layers(files, str(path))
        parts = tuple(zip([file.stem for file in files], matrices, strict=True))
        return Embeddings(matrices[0], nodes, parts=parts if len(parts) > 1 else ())
    if what.metric != "precomputed":
        if rule in RULES:
            raise ValueError(f"--missing {rule} is for --metric precomputed; expected {', '.join(MISSING)} for tables")
        if rule is not None and rule not in MISSING:
            raise unknown_name("missing", rule, MISSING)
        names = metric_names(what.metric)
        gower = (names if isinstance(names, str) else names[at]) == "gower"
        return load_embeddings(path, missing="distance" if gower and rule is None else rule, categories=gower)
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
    for values in [part for _, part in side.parts] or [side.values]:
        if values.shape[0] != values.shape[1]:
            raise ValueError(f"{path}: its shape is {values.shape}; --metric precomputed expects a square matrix")
    return replace(side, gaps=told)


def metric_names(word: str) -> str | tuple[str, str]:
    """A metric for both sides, or 'source,target'."""
    source, comma, target = word.partition(",")
    if "," in target:
        raise ValueError(f"--metric {word}: expected one name, or two as in geodesic,cosine")
    return (source.strip(), target.strip()) if comma else word


def side_of(read: Embeddings) -> FloatArray | Views:
    """What Python takes as a side: an array, or several views."""
    return Views.of(read) or read.values


def kernels_of(source: Embeddings, target: Embeddings) -> Any:
    """What Python takes as kernels: a pair, or a pair for each layer."""
    ours, theirs = source.parts, target.parts
    if len(ours) != len(theirs):
        sides = [max(len(parts), 1) for parts in (ours, theirs)]
        raise ValueError(
            f"source has {sides[0]} relations and target has {sides[1]}; expected as many: one for each layer"
        )
    return [(K, G) for (_, K), (_, G) in zip(ours, theirs, strict=True)] or (source.values, target.values)


def _filled(path: Path, array: ArrayLike, rule: str) -> FloatArray:
    try:
        return fill_missing(array, rule)
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).removeprefix('dissimilarities').removeprefix(':').strip()}") from None
