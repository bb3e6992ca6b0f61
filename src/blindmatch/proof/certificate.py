"""Proofs of lower bounds: what they hold, how they are kept in a file. `checker.py` says whether they are true."""

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
_LARGEST_STAGE = 2**16


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
    matrix
        (p + 1, p + 1), or None: a symmetric matrix W over 1 and the p pairs that are not forbidden, row by row. The
        duals then are those of the costs less W, and y'Wy is bounded by itself, for y = (1, x): `semidefinite.py`.
    """

    U: DualArray
    V: DualArray
    column_duals: FloatArray
    forbidden: BoolArray
    matrix: DualArray | None = None

    def __post_init__(self) -> None:
        m = self.size
        expected = {"U": (m, m, m), "V": (m, m, m), "column_duals": (m,), "forbidden": (m, m)}
        if self.matrix is not None:
            expected["matrix"] = (self.pair_count + 1,) * 2
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

    def permuted(self, rows: IntArray, columns: IntArray) -> Stage:
        """The stage of ``problem.permuted(rows, columns)``."""
        return Stage(
            _taken(self.U, rows, columns, rows),
            _taken(self.V, rows, columns, columns),
            self.column_duals[columns],
            self.forbidden[np.ix_(rows, columns)],
            self._permuted_matrix(rows, columns),
        )

    def _permuted_matrix(self, rows: IntArray, columns: IntArray) -> DualArray | None:
        if self.matrix is None:
            return None
        position = np.where(self.forbidden, 0, np.cumsum(~self.forbidden).reshape(self.forbidden.shape))
        order = position[np.ix_(rows, columns)].ravel()
        index = np.concatenate(([0], order[order > 0]))
        return np.asarray(self.matrix[np.ix_(index, index)])


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
    """

    size: int
    nodes: tuple[Node, ...] = field(default_factory=lambda: (Node(),))
    forced: tuple[Pair, ...] = ()
    symmetries: tuple[tuple[int, IntArray], ...] = ()

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
            pair = node.pair
            if pair is not None:
                left = ([i for i in left[0] if i != pair[0]], [j for j in left[1] if j != pair[1]])
                pair = (int(rows[pair[0]]), int(columns[pair[1]]))
            free.append(left)
            # Free items stay in ascending order of their own index, so their order changes with the numbering.
            order = [
                np.argsort(index[np.array(side, dtype=np.intp)])
                for index, side in zip((rows, columns), left, strict=True)
            ]
            line = node.line
            if line is not None:
                line = (line[0], int((rows if line[0] == ROW else columns)[line[1]]))
            stages = tuple(stage.permuted(*order) for stage in node.stages)
            nodes.append(Node(node.parent, pair, stages, line, node.spectral, _skipped(node, rows, columns)))
        known = tuple((int(rows[i]), int(columns[j])) for i, j in self.forced)
        symmetries = tuple((side, _renumbered(image, (rows, columns)[side])) for side, image in self.symmetries)
        return Certificate(self.size, tuple(nodes), known, symmetries)

    def lifted(self, size: int, forced: tuple[Pair, ...], rows: IntArray, columns: IntArray) -> Certificate:
        """The certificate of a problem, from that of ``problem.reduced(forced)``; rows and columns map its indices."""
        nodes = []
        for node in self.nodes:
            pair = None if node.pair is None else (int(rows[node.pair[0]]), int(columns[node.pair[1]]))
            line = None if node.line is None else (node.line[0], int((rows, columns)[node.line[0]][node.line[1]]))
            nodes.append(replace(node, pair=pair, line=line, skipped=_skipped(node, rows, columns)))
        symmetries = []
        for side, image in self.symmetries:  # forced items stay where they are
            whole, index = np.arange(size), (rows, columns)[side]
            whole[index] = index[image]
            symmetries.append((side, whole))
        return Certificate(size, tuple(nodes), forced, tuple(symmetries))

    @property
    def nbytes(self) -> int:
        """Memory that the duals and matrices take."""
        stages = [stage for node in self.nodes for stage in node.stages]
        matrices = sum(stage.matrix.nbytes for stage in stages if stage.matrix is not None)
        return matrices + sum(stage.U.nbytes + stage.V.nbytes for stage in stages)

    def save(self, path: str | Path) -> None:
        """Write the certificate to an ``.npz`` file, whole or not at all."""
        from blindmatch.io.files import write_atomically

        stages = [(index, stage) for index, node in enumerate(self.nodes) for stage in node.stages]

        def flat(values: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
            return np.concatenate([np.empty(0, dtype), *(value.ravel() for value in values)]).astype(dtype, copy=False)

        dual_type = np.result_type(*(array.dtype for _, s in stages for array in (s.U, s.V)), np.float16)
        none = (-1, -1)
        matrices = {index: stage.matrix for index, (_, stage) in enumerate(stages) if stage.matrix is not None}
        matrix_type = np.result_type(*(matrix.dtype for matrix in matrices.values()), np.float16)
        write_atomically(
            path,
            lambda file: np.savez_compressed(
                file,
                format=np.array("blindmatch certificate 1"),
                size=np.array(self.size),
                forced=np.array(self.forced, dtype=np.int64).reshape(-1, 2),
                parent=np.array([node.parent for node in self.nodes], dtype=np.int64),
                pair=np.array([node.pair or none for node in self.nodes], dtype=np.int64).reshape(-1, 2),
                line=np.array([node.line or none for node in self.nodes], dtype=np.int64).reshape(-1, 2),
                spectral=np.array([node.spectral for node in self.nodes], dtype=bool),
                symmetry_side=np.array([side for side, _ in self.symmetries], dtype=np.int64),
                symmetry_image=np.array([image for _, image in self.symmetries], dtype=np.int64).reshape(-1, self.size),
                skipped=np.array(
                    [(index, *child) for index, node in enumerate(self.nodes) for child in node.skipped], dtype=np.int64
                ).reshape(-1, 4),
                stage_node=np.array([index for index, _ in stages], dtype=np.int64),
                stage_size=np.array([stage.size for _, stage in stages], dtype=np.int64),
                U=flat([stage.U for _, stage in stages], dual_type),
                V=flat([stage.V for _, stage in stages], dual_type),
                column_duals=flat([stage.column_duals for _, stage in stages], np.float64),
                forbidden=np.packbits(flat([stage.forbidden for _, stage in stages], bool)),
                matrix_stage=np.array(list(matrices), dtype=np.int64),
                matrix=flat([matrix[np.tril_indices(len(matrix))] for matrix in matrices.values()], matrix_type),
            ),
        )

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate; a file that is not one gets a ValueError."""
        from blindmatch.io.files import read_npz

        try:
            arrays = read_npz(path, (*_FIELDS, *_OPTIONAL))
            missing = [name for name in _FIELDS if name not in arrays]
            if missing:
                raise ValueError(f"no array {missing[0]!r} in it")
            return cls._from_arrays(arrays)
        except Exception as error:  # forged arrays raise anything: OverflowError, TypeError, ...
            if isinstance(error, OSError) and error.filename is not None:
                raise
            what = str(error).removeprefix(f"{path}: ")
            raise ValueError(f"{path}: not a blindmatch certificate ({what})") from None

    @classmethod
    def _from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Certificate:
        if str(arrays["format"]) != "blindmatch certificate 1":
            raise ValueError(f"format {str(arrays['format'])!r}")
        sizes = arrays["stage_size"].astype(np.int64)
        if ((sizes < 1) | (sizes > _LARGEST_STAGE)).any():  # larger cubes would wrap around
            raise ValueError(f"stages of sizes {sizes.min()} to {sizes.max()}; expected 1 to {_LARGEST_STAGE}")
        squares, cubes = sizes**2, sizes**3
        if len(arrays["forbidden"]) != -(-int(squares.sum()) // 8):
            raise ValueError(f"{len(arrays['forbidden'])} bytes of forbidden pairs")
        bits = np.unpackbits(arrays["forbidden"], count=int(squares.sum())).astype(bool)
        parts = {
            "U": _cut(arrays["U"], cubes),
            "V": _cut(arrays["V"], cubes),
            "column_duals": _cut(arrays["column_duals"].astype(np.float64), sizes),
            "forbidden": _cut(bits, squares),
        }
        matrices = _matrices(arrays, parts["forbidden"])
        stages: dict[int, list[Stage]] = {}
        for index, (node, m) in enumerate(zip(arrays["stage_node"].tolist(), sizes.tolist(), strict=True)):
            stage = Stage(
                parts["U"][index].reshape(m, m, m),
                parts["V"][index].reshape(m, m, m),
                parts["column_duals"][index],
                parts["forbidden"][index].reshape(m, m),
                matrices.get(index),
            )
            stages.setdefault(node, []).append(stage)
        skipped: dict[int, list[tuple[int, int, int]]] = {}
        for index, child, sibling, symmetry in arrays["skipped"].astype(np.int64).tolist():
            skipped.setdefault(index, []).append((child, sibling, symmetry))
        nodes = []
        rows = zip(*(arrays[name].tolist() for name in ("parent", "pair", "line", "spectral")), strict=True)
        for index, (parent, pair, line, spectral) in enumerate(rows):
            left_out = tuple(skipped.get(index, ()))
            nodes.append(Node(parent, _pair(pair), tuple(stages.get(index, ())), _pair(line), bool(spectral), left_out))
        if not nodes or any(isinstance(value, float) for node in nodes for value in (node.parent, *(node.pair or ()))):
            raise ValueError("no nodes, or nodes that are not numbered by integers")
        images = arrays["symmetry_image"].astype(np.intp)
        symmetries = tuple(zip(arrays["symmetry_side"].astype(int).tolist(), images, strict=True))
        forced = tuple((int(i), int(j)) for i, j in arrays["forced"].tolist())
        return cls(int(arrays["size"]), tuple(nodes), forced, symmetries)


_FIELDS = (
    *("format", "size", "forced", "parent", "pair", "line", "spectral", "stage_node", "stage_size"),
    *("symmetry_side", "symmetry_image", "skipped", "U", "V", "column_duals", "forbidden"),
)
_OPTIONAL = ("matrix_stage", "matrix")  # files of earlier versions have none


def _matrices(arrays: dict[str, NDArray[Any]], forbidden: list[NDArray[Any]]) -> dict[int, NDArray[Any]]:
    """The matrices of the stages that have one, from their lower triangles."""
    if any(name not in arrays for name in _OPTIONAL):
        return {}
    numbers = arrays["matrix_stage"].astype(np.int64).tolist()
    if len(set(numbers)) < len(numbers) or not all(0 <= number < len(forbidden) for number in numbers):
        raise ValueError(f"matrices of the stages {numbers}")
    sizes = np.array([1 + np.count_nonzero(~forbidden[number]) for number in numbers], dtype=np.int64)
    result = {}
    for number, size, values in zip(numbers, sizes, _cut(arrays["matrix"], sizes * (sizes + 1) // 2), strict=True):
        matrix = np.zeros((size, size), dtype=values.dtype)
        matrix[np.tril_indices(size)] = values
        result[number] = matrix + np.tril(matrix, -1).T
    return result


def _skipped(node: Node, rows: IntArray, columns: IntArray) -> tuple[tuple[int, int, int], ...]:
    """The skipped children of a node, renumbered."""
    if node.line is None:
        return ()
    partner = columns if node.line[0] == ROW else rows
    return tuple((int(partner[child]), int(partner[sibling]), symmetry) for child, sibling, symmetry in node.skipped)


def _renumbered(image: IntArray, index: IntArray) -> IntArray:
    """The symmetry of a problem, from that of its renumbered copy, whose item a is our index[a]."""
    result = np.empty_like(image)
    result[index] = index[image]
    return result


def _taken(duals: DualArray, *indices: IntArray) -> DualArray:
    """``duals[np.ix_(*indices)]``, axis by axis: several times as fast."""
    for axis, index in enumerate(indices):
        duals = duals.take(index, axis=axis)
    return duals


def _pair(values: list[int]) -> Pair | None:
    return None if values[0] < 0 else (int(values[0]), int(values[1]))


def _cut(values: NDArray[Any], lengths: NDArray[np.int64]) -> list[NDArray[Any]]:
    if (lengths < 0).any() or values.ndim != 1 or len(values) != lengths.sum():
        raise ValueError(f"{len(values)} numbers where {lengths.sum()} are announced")
    return np.split(values, np.cumsum(lengths)[:-1]) if len(lengths) else []
