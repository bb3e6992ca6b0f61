"""Convert the core's proof to a certificate: in the certificate's order, on the problem's own scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from blindmatch import _core
from blindmatch.proof.certificate import Certificate, Node, Stage
from blindmatch.proof.duration import stage_work
from blindmatch.solvers.base import Proof

CoreStage = _core.Stage | _core.HahnGrantStage  # of the fast sweeps, or of the paper's


def tree_proof(size: int, exponent: int, tree: _core.TreeResult) -> Proof:
    """The proof of the tree that the core left for the problem times 2^exponent."""
    nodes = tree.proof
    symmetries = tuple((0 if s.of_rows else 1, s.image.astype(np.intp)) for s in tree.symmetries)

    def make(count: int | None) -> Certificate:
        made = tuple(_node(node, exponent) for node in nodes[:count])
        return Certificate(size, made, symmetries=symmetries)

    return _proof(make, [stage for node in nodes for stage in node.stages])


def root_proof(size: int, exponent: int, stages: Sequence[CoreStage]) -> Proof:
    """The proof of stages for the whole problem, without branching."""

    def make(count: int | None) -> Certificate:
        root = Node(stages=tuple(stage_of(stage, -exponent) for stage in stages), spectral=True)
        return Certificate(size, (root,))

    return _proof(make, stages)


def stage_of(stage: CoreStage, exponent: int = 0) -> Stage:
    """The stage in the certificate's order, times a power of two."""
    # float32 keeps its digits only in the middle of its range.
    dtype = stage.u.dtype if abs(exponent) <= 40 else np.dtype(np.float64)
    U, V = (np.ldexp(duals.transpose(1, 2, 0), exponent, dtype=dtype) for duals in (stage.u, stage.v))
    # The core's dual of a column without partners may be infinite; any finite number is valid.
    finite = np.where(np.isfinite(stage.column_duals), stage.column_duals, 0.0)
    return Stage(U, V, np.ldexp(finite, exponent), stage.forbidden.astype(bool))


def _node(node: _core.ProofNode, exponent: int) -> Node:
    stages = tuple(stage_of(stage, -exponent) for stage in node.stages)
    skipped = tuple((child.skipped, child.sibling, child.symmetry) for child in node.skipped)
    parent = -1 if node.parent is None else node.parent
    return Node(parent, node.pair, stages, node.line, node.parent is None, skipped)


def _proof(make: Callable[[int | None], Certificate], stages: Sequence[CoreStage]) -> Proof:
    masks = [stage.forbidden for stage in stages]
    work = sum(stage_work(int(np.count_nonzero(mask == 0)), len(mask)) for mask in masks)
    return Proof(make, work, sum(stage.u.nbytes + stage.v.nbytes for stage in stages))
