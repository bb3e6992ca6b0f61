"""Several relations that correspond, and graphs in place of relations: the argument `kernels` as it is given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from blindmatch.errors import unknown_name
from blindmatch.geometry.graphs import EDGE_WEIGHTS, Names, graph_layers, weighed
from blindmatch.problem.distortion import Distortion, as_sides
from blindmatch.validation import FloatArray


def with_nodes(kernels: Any, edge_weights: str) -> tuple[Any, tuple[Names | None, Names | None]]:
    """Kernels in which graphs are matrices, and the names of the nodes of both sides."""
    if edge_weights not in EDGE_WEIGHTS:
        raise unknown_name("edge_weights", edge_weights, EDGE_WEIGHTS)
    layered = layer_pairs(kernels)
    pairs = [kernels] if layered is None else layered
    if kernels is None or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        return kernels, (None, None)  # what is wrong with them is said later
    (ours, one), (theirs, other) = (
        graph_layers([pair[at] for pair in pairs], name) for at, name in enumerate(("source", "target"))
    )
    if edge_weights != "none":
        for side, name in ((ours, "source"), (theirs, "target")):
            side[:] = [weighed(matrix, edge_weights, f"{name}, layer {at + 1}") for at, matrix in enumerate(side)]
    found = list(zip(ours, theirs, strict=True))
    return (found[0] if layered is None else found), (one, other)


def layer_pairs(kernels: Any) -> list[Any] | None:
    """The pairs of kernels of layers; None if there is one pair of kernels, or none."""
    first = kernels[0] if isinstance(kernels, list | tuple) and kernels else None
    if not isinstance(first, list | tuple) or not first:
        return None
    one = first[0]
    if not (isinstance(one, str | Path) or hasattr(one, "edges") or issparse(one) or np.ndim(one) >= 2):
        return None
    return list(kernels)


def as_layers(pairs: list[Any] | None, distortions: Sequence[Distortion]) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """The relations of each layer, checked: all of the same sizes."""
    layers: list[tuple[FloatArray, FloatArray]] = []
    for at, (pair, distortion) in enumerate(zip(pairs or (), distortions, strict=False)):
        layers.append(as_sides(None, None, pair, distortion.metrics, f"kernels[{at}]"))
        sizes, first = (tuple(map(len, each)) for each in (layers[at], layers[0]))
        if sizes != first:
            raise ValueError(f"kernels[{at}] relates {sizes} items and kernels[0] {first}; expected the same items")
    return tuple(layers)


def one_each(distortion: Any, count: int) -> list[Any]:
    """A distortion for each layer."""
    if not isinstance(distortion, list | tuple):
        return [distortion] * count
    if len(distortion) != count:
        raise ValueError(f"distortion has {len(distortion)} items; expected one, or {count}: one for each layer")
    return list(distortion)
