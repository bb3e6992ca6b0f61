"""Convert the core's proof to a certificate: in the certificate's order, on the problem's own scale."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.proof.certificate import Certificate, DualArray, Node, Pair, Stage
from blindmatch.solvers.base import Proof
from blindmatch.validation import FloatArray, IntArray

CoreStage = tuple[DualArray, DualArray, FloatArray, NDArray[np.uint8]]  # u, v, column duals, mask
CoreNode = tuple[int, Pair, Sequence[CoreStage], Pair, Sequence[tuple[int, int, int]]]
_NONE = (-1, -1)


def core_proof(size: int, exponent: int, nodes: Sequence[CoreNode], symmetries: Sequence[tuple[int, Any]]) -> Proof:
    """The proof from the core's tree for the problem times 2^exponent."""
    stages = [stage for node in nodes for stage in node[2]]
    images = tuple((side, np.asarray(image, dtype=np.intp)) for side, image in symmetries)
    return Proof(
        partial(_certificate, size, exponent, nodes, images),
        float(sum(np.count_nonzero(mask == 0) * len(mask) ** 2 for _, _, _, mask in stages)),
        sum(u.nbytes + v.nbytes for u, v, _, _ in stages),
    )


def root_proof(size: int, exponent: int, stages: Sequence[CoreStage]) -> Proof:
    """The proof of stages for the whole problem, without branching."""
    return core_proof(size, exponent, [(-1, _NONE, stages, _NONE, [])], [])


def stage_of(u: DualArray, v: DualArray, column_duals: FloatArray, mask: NDArray[np.uint8], exponent: int = 0) -> Stage:
    """The stage of the core's u[k][i][j] and v[l][i][j], times a power of two."""
    # float32 keeps its digits only in the middle of its range.
    dtype = u.dtype if abs(exponent) <= 40 else np.dtype(np.float64)
    U, V = (np.ldexp(duals.transpose(1, 2, 0), exponent, dtype=dtype) for duals in (u, v))
    # The core's dual of a column without partners may be infinite; any finite number is valid.
    finite = np.where(np.isfinite(column_duals), column_duals, 0.0)
    return Stage(U, V, np.ldexp(finite, exponent), mask.astype(bool))


def _certificate(
    size: int,
    exponent: int,
    nodes: Sequence[CoreNode],
    symmetries: tuple[tuple[int, IntArray], ...],
    count: int | None,
) -> Certificate:
    """The certificate of the first `count` nodes."""
    tree = tuple(
        Node(
            parent,
            _pair(pair),
            tuple(stage_of(*stage, -exponent) for stage in stages),
            _pair(line),
            parent < 0,
            tuple(skipped),
        )
        for parent, pair, stages, line, skipped in nodes[:count]
    )
    return Certificate(size, tree, symmetries=symmetries)


def _pair(values: tuple[int, int]) -> Pair | None:
    return None if values[0] < 0 else values
