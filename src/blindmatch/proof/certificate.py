"""Proofs of lower bounds: what they hold. `checker.py` says whether they are true."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.validation import BoolArray, FloatArray, IntArray

DualArray = NDArray[np.floating[Any]]
Pair = tuple[int, int]
ROW, COLUMN = 0, 1


@dataclass(frozen=True, eq=False)
class Stage:
    """One set of duals: any numbers (up to `rounding.LARGEST_DUAL`) prove some bound, good ones a tight bound.

    Attributes
    ----------
    U, V
        (m, m, m): U[i, j, k] moves cost from the pairs {(i, j), (k, l)}, for all l, to the pair (i, j) itself, and
        V[i, j, l] from {(i, j), (k, l)}, for all k. Entries with k == i or l == j are ignored.
    column_duals
        (m,): duals of the columns in the assignment problem of the leaders.
    forbidden
        (m, m): pairs that these duals need not care for, each ruled out by an earlier stage or by the problem.
    factor
        (p + 1, r) with r <= p + 1, or None: a matrix F with a row for 1 and for each of the p pairs that are not
        forbidden, row by row. The duals then are those of the costs less FF': `semidefinite.py`.
    """

    U: DualArray
    V: DualArray
    column_duals: FloatArray
    forbidden: BoolArray
    factor: DualArray | None = None

    def __post_init__(self) -> None:
        m = self.size
        expected = {"U": (m, m, m), "V": (m, m, m), "column_duals": (m,), "forbidden": (m, m)}
        if self.factor is not None:
            rows = self.pair_count + 1
            columns = self.factor.shape[1] if self.factor.ndim == 2 else 0
            expected["factor"] = (rows, min(columns, rows))
        for name, shape in expected.items():
            array = getattr(self, name)
            kind = "b" if name == "forbidden" else "f"
            # A number that float64 cannot hold would be rounded once here and otherwise there.
            if np.shape(array) != shape or array.dtype.kind != kind or array.dtype.itemsize > 8:
                what = "booleans" if kind == "b" else "floats of at most 64 bits"
                raise ValueError(f"{name} has dtype {array.dtype} and shape {array.shape}; expected {what}, {shape}")

    @property
    def size(self) -> int:
        """Side of the (reduced) problem that the duals belong to."""
        return len(self.column_duals)

    @property
    def pair_count(self) -> int:
        """How many pairs are not forbidden."""
        return int(np.count_nonzero(~self.forbidden))

    @property
    def rank(self) -> int:
        """How many columns the factor has."""
        return 0 if self.factor is None else self.factor.shape[1]

    def permuted(self, rows: IntArray, columns: IntArray) -> Stage:
        """The stage of ``problem.permuted(rows, columns)``."""
        return Stage(
            _taken(self.U, rows, columns, rows),
            _taken(self.V, rows, columns, columns),
            self.column_duals[columns],
            self.forbidden[np.ix_(rows, columns)],
            self._permuted_factor(rows, columns),
        )

    def _permuted_factor(self, rows: IntArray, columns: IntArray) -> DualArray | None:
        if self.factor is None:
            return None
        position = np.where(self.forbidden, 0, np.cumsum(~self.forbidden).reshape(self.forbidden.shape))
        order = position[np.ix_(rows, columns)].ravel()
        index = np.concatenate(([0], order[order > 0]))
        return np.asarray(self.factor[index])


@dataclass(frozen=True)
class Node:
    """A node of the proof tree: the problem with some pairs fixed.

    Attributes
    ----------
    parent
        Index of the parent node, -1 for the root.
    pair
        The pair that is fixed on the way from the parent; None for the root.
    stages
        Duals of the problem that is left, over its free sources and targets in ascending order.
    line
        None for a leaf; otherwise (ROW, i) or (COLUMN, j): the children try every partner of this line but those that
        the stages rule out.
    spectral
        Whether the projection bound counts as well; it needs no data, only the checker's time.
    point
        (m, m), or None: with the projection bound, the matrix X at which the convex quadratic bound is taken.
    skipped
        Children left out because a symmetry of the problem maps a sibling to them: (child, sibling, symmetry), where
        child and sibling are partners of the line.
    """

    parent: int = -1
    pair: Pair | None = None
    stages: tuple[Stage, ...] = ()
    line: Pair | None = None
    spectral: bool = False
    skipped: tuple[tuple[int, int, int], ...] = ()
    point: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof that no permutation costs less than some bound; ``bm.verify`` recomputes that bound from scratch.

    Attributes
    ----------
    size
        n, the side of the problem.
    nodes
        The proof tree, parents before children; a plain dual bound is a tree of one node.
    forced
        Pairs that the problem's forbidden pairs leave no choice about, in an order in which each is forced.
    symmetries
        (ROW or COLUMN, image): renumbering the sources (targets) by image[i] changes nothing in the problem.
    fingerprint
        Sums over the problem that this was made for, to notice if it is used with another. The checker ignores them.
    """

    size: int
    nodes: tuple[Node, ...] = field(default_factory=lambda: (Node(),))
    forced: tuple[Pair, ...] = ()
    symmetries: tuple[tuple[int, IntArray], ...] = ()
    fingerprint: tuple[float, ...] = ()

    @classmethod
    def from_duals(cls, U: DualArray, V: DualArray, column_duals: FloatArray) -> Certificate:
        """The certificate of a plain dual bound."""
        n = len(column_duals)
        stage = Stage(U, V, np.asarray(column_duals, dtype=np.float64), np.zeros((n, n), dtype=bool))
        return cls(n, (Node(stages=(stage,)),))

    def unshuffled(self, rows: IntArray, columns: IntArray) -> Certificate:
        """The certificate of a problem, from the certificate of ``problem.permuted(rows, columns)``."""
        forced = {i for i, _ in self.forced}, {j for _, j in self.forced}
        start = tuple([index for index in range(self.size) if index not in side] for side in forced)
        free: list[tuple[list[int], ...]] = []
        nodes = []
        for node in self.nodes:
            left = free[node.parent] if node.parent >= 0 else start
            if node.pair is not None:
                left = tuple([i for i in side if i != fixed] for side, fixed in zip(left, node.pair, strict=True))
            free.append(left)
            # Free items stay in ascending order of their own index, so their order changes with the numbering.
            order = [
                np.argsort(index[np.array(side, dtype=np.intp)])
                for index, side in zip((rows, columns), left, strict=True)
            ]
            stages = tuple(stage.permuted(*order) for stage in node.stages)
            point = None if node.point is None else node.point[np.ix_(*order)]
            nodes.append(replace(_renumbered(node, rows, columns), stages=stages, point=point))
        known = tuple((int(rows[i]), int(columns[j])) for i, j in self.forced)
        return Certificate(self.size, tuple(nodes), known, self._moved(self.size, rows, columns))

    def lifted(self, size: int, forced: tuple[Pair, ...], rows: IntArray, columns: IntArray) -> Certificate:
        """The certificate of a problem, from that of ``problem.reduced(forced)``; rows and columns map its indices."""
        nodes = tuple(_renumbered(node, rows, columns) for node in self.nodes)
        return Certificate(size, nodes, forced, self._moved(size, rows, columns))

    def _moved(self, size: int, rows: IntArray, columns: IntArray) -> tuple[tuple[int, IntArray], ...]:
        """The symmetries of a problem of this size, whose items rows[a] and columns[b] are ours; others stay put."""
        symmetries = []
        for side, image in self.symmetries:
            whole, index = np.arange(size), (rows, columns)[side]
            whole[index] = index[image]
            symmetries.append((side, whole))
        return tuple(symmetries)

    def with_point(self, point: FloatArray) -> Certificate:
        """The same certificate with the convex quadratic bound at the root."""
        return replace(self, nodes=(replace(self.nodes[0], spectral=True, point=point), *self.nodes[1:]))

    def marked(self, fingerprint: tuple[float, ...]) -> Certificate:
        """The same certificate with the fingerprint of its problem."""
        return replace(self, fingerprint=fingerprint)

    @property
    def nbytes(self) -> int:
        """Memory that the duals and factors take."""
        stages = [stage for node in self.nodes for stage in node.stages]
        factors = sum(stage.factor.nbytes for stage in stages if stage.factor is not None)
        return factors + sum(stage.U.nbytes + stage.V.nbytes for stage in stages)

    def save(self, path: str | Path) -> None:
        """Write the certificate to an ``.npz`` file, whole or not at all."""
        from blindmatch.proof.certificate_file import write_certificate

        write_certificate(path, self)

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate; a file that is not one gets a ValueError."""
        from blindmatch.proof.certificate_file import read_certificate

        return read_certificate(path)


def _renumbered(node: Node, rows: IntArray, columns: IntArray) -> Node:
    """The node with its pair, its line and its skipped children renumbered."""
    pair = None if node.pair is None else (int(rows[node.pair[0]]), int(columns[node.pair[1]]))
    if node.line is None:
        return replace(node, pair=pair, skipped=())
    side, index = node.line
    own, partner = (rows, columns) if side == ROW else (columns, rows)
    skipped = tuple((int(partner[child]), int(partner[sibling]), symmetry) for child, sibling, symmetry in node.skipped)
    return replace(node, pair=pair, line=(side, int(own[index])), skipped=skipped)


def _taken(duals: DualArray, *indices: IntArray) -> DualArray:
    """``duals[np.ix_(*indices)]``, axis by axis: several times as fast."""
    for axis, index in enumerate(indices):
        duals = duals.take(index, axis=axis)
    return duals
