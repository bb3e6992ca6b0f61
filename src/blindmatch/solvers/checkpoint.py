"""The checkpoints of both trees: files that keep the state of a run for the next one.

That of level 1 is one state, which the core writes and reads, and is replaced as a whole. To that of the semidefinite
bound, finished nodes are appended. This file begins with a line of text and a digest of the problem. One record per
node follows, the root first: its length, a checksum, and an archive of arrays (the node's part of the certificate, the
incumbent, and the relaxation from which its children start). A record that a killed run did not complete has a wrong
length or checksum, and is dropped. While the root is being bounded, the file holds only the root, without a line to
branch on, and is replaced each time.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.io.files import Arrays, undisguised_interrupt, unpacked, write_atomically
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate, Node
from blindmatch.proof.certificate_file import FIELDS, certificate_arrays, certificate_of
from blindmatch.proof.checker import is_symmetry
from blindmatch.solvers.semidefinite_node import Symmetry
from blindmatch.solvers.splitting import SplittingState
from blindmatch.validation import IntArray, as_permutation

_MAGIC = b"blindmatch semidefinite tree 1\n"
_HEAD = struct.Struct("<QI")  # head of a record: length and checksum
_START = ("start_allowed", "start_Y", "start_Z", "start_beta")
_PAUSE = 9.0  # least time between two writes, as a multiple of the duration of the last one
_RATE = 4e6  # upper limit of the bytes written per second, on average
_LARGEST = 1e9  # upper limit of the numbers of a relaxation; costs are scaled to n^2


class Checkpoint:
    """The file of one run. There are at least `interval` seconds between two writes."""

    def __init__(self, path: Path, interval: float) -> None:
        self.path, self.interval = path, interval
        self.error = ""  # why the last write failed; empty if it succeeded
        self._next = time.monotonic() + interval

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() >= self._next

    @property
    def saved(self) -> bytes | None:
        """The state that an earlier run left; None if there is none."""
        return self.path.read_bytes() if self.path.exists() else None

    def replace(self, state: bytes | memoryview) -> float:
        """Replace the file, and return the seconds until the next write. A state is empty if memory was too short."""

        def write() -> int:
            if not state:
                raise OSError("memory is too short")
            write_atomically(self.path, lambda file: file.write(state))
            return len(state)

        self._timed(write)
        return self._next - time.monotonic()

    def _timed(self, write: Callable[[], int]) -> bool:
        """Call a function that writes some bytes; False if it fails. A full disk does not stop the run."""
        begin, count, self.error = time.monotonic(), 0, ""
        try:
            count = write()
        except OSError as error:
            self.error = f"cannot write the checkpoint {self.path}: {error.strerror or error}"
        end = time.monotonic()
        self._next = end + max(self.interval, _PAUSE * (end - begin), count / _RATE)
        return not self.error

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn any error that a damaged or forged file causes into a ValueError."""
        try:
            yield
        except Exception as error:
            if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.filename is not None):
                raise
            raise ValueError(f"{self.path} is damaged; delete it to begin anew") from error


class TreeFile(Checkpoint):
    """That of the semidefinite bound. It may hold the nodes of an earlier run, in the order of the certificate."""

    def __init__(self, path: Path, problem: QAP, interval: float) -> None:
        super().__init__(path, interval)
        self.problem = problem
        self.torn = False  # whether an incomplete record of an earlier run was dropped
        self._start = _MAGIC + _digest(problem)
        self._records: list[tuple[int, int]] = []  # of an earlier run: start and length of each
        self._written = 0  # number of nodes in the file
        self._end = 0  # where their records end
        self._seen = self._state  # when this run last read or wrote it

    @property
    def _state(self) -> tuple[int, int, int] | None:
        """What changes if another process writes the file; None if there is no file."""
        with suppress(OSError):
            found = self.path.stat()
            return found.st_ino, found.st_size, found.st_mtime_ns
        return None

    @property
    def exists(self) -> bool:
        """Whether there is a file of this kind."""
        if not self.path.is_file():
            return False
        with self.path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC

    def __len__(self) -> int:
        """The number of nodes of an earlier run."""
        return len(self._records)

    def load(self) -> None:
        """Find the records of an earlier run."""
        with self.path.open("rb") as file:
            start = file.read(len(self._start))
            if start != self._start[: len(start)]:
                raise ValueError(f"{self.path} belongs to another problem, or to the same one with another seed")
            self._end, size = len(start), os.fstat(file.fileno()).st_size
            while (length := _whole_record(file, size)) is not None:
                self._records.append((self._end + _HEAD.size, length))
                self._end = file.tell()
        if not self._records:
            raise ValueError(f"{self.path} is damaged; delete it to begin anew")
        self._written, self.torn, self._seen = len(self._records), self._end < size, self._state

    def node(self, index: int) -> Node:
        """A node of an earlier run."""
        return self._certificate(index).nodes[0]

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The symmetries that an earlier run used."""
        found = self._certificate(0).symmetries
        with self.refusing():
            if not all(is_symmetry(self.problem, side, image) for side, image in found):
                raise ValueError("a symmetry of another problem")
        return found

    @property
    def incumbent(self) -> IntArray:
        """The best permutation of an earlier run."""
        with self.refusing():
            found = as_permutation(self._arrays(len(self) - 1, ("incumbent",))["incumbent"], self.problem.n)
            if not self.problem.allows(found):
                raise ValueError("a permutation with a forbidden pair")
        return found

    def relaxation(self, index: int, size: int) -> SplittingState | None:
        """The relaxation from which the children of a node with `size` rows start; None if it is not saved."""
        with self.refusing():
            arrays = self._arrays(index, _START)
            if len(arrays) < len(_START):
                return None
            allowed, beta = arrays["start_allowed"], float(arrays["start_beta"])
            if allowed.dtype != bool or allowed.shape != (size, size) or not 1e-2 < beta < _LARGEST:
                raise ValueError("no relaxation")
            Y, Z = (_symmetric(arrays[name], 1 + int(allowed.sum())) for name in ("start_Y", "start_Z"))
        return SplittingState(allowed, Y, Z, beta)

    def write(
        self,
        nodes: Sequence[Node],
        starts: Mapping[int, SplittingState],
        symmetries: tuple[Symmetry, ...],
        incumbent: IntArray,
    ) -> None:
        """Append the nodes that the file does not hold yet; the first write replaces the file."""
        if len(nodes) <= self._written:
            return
        if self._written and self._state != self._seen:  # two trees in one file would be of no use
            self.error = f"the checkpoint {self.path} was changed by another process, so this run stopped writing it"
            return
        records = (
            _record(nodes[index], starts.get(index), symmetries if index == 0 else (), incumbent)
            for index in range(self._written, len(nodes))
        )

        def write() -> int:
            before = self._end if self._written else 0
            if not self._written:
                write_atomically(self.path, lambda file: _put(file, self._start, records))
            else:
                with self.path.open("r+b") as file:
                    file.seek(self._end)
                    file.truncate()
                    _put(file, b"", records)
                    os.fsync(file.fileno())
            self._end = self.path.stat().st_size
            self._written = len(nodes)
            return self._end - before

        try:
            if not self._timed(write) and self._written:
                with suppress(OSError):
                    os.truncate(self.path, self._end)
        finally:
            self._seen = self._state

    def write_root(
        self,
        stages: tuple[Any, ...],
        start: SplittingState,
        symmetries: tuple[Symmetry, ...],
        incumbent: IntArray,
    ) -> None:
        """Write the stages of the root so far; the next write replaces them."""
        self._written = 0
        self.write([Node(stages=stages, spectral=True)], {0: start}, symmetries, incumbent)
        self._written = 0

    def _certificate(self, index: int) -> Certificate:
        with self.refusing():
            found = certificate_of(self._arrays(index, FIELDS))
            if found.size != self.problem.n or len(found.nodes) != 1 or found.forced:
                raise ValueError("not one node of this problem")
        return found

    def _arrays(self, index: int, only: Collection[str]) -> Arrays:
        at, length = self._records[index]
        with self.path.open("rb") as file:
            file.seek(at)
            return unpacked(io.BytesIO(file.read(length)), only)


def _put(file: IO[bytes], start: bytes, records: Iterator[bytes]) -> None:
    file.write(start)
    for record in records:
        file.write(_HEAD.pack(len(record), zlib.crc32(record)))
        file.write(record)
    file.flush()


def _whole_record(file: IO[bytes], size: int) -> int | None:
    """Read the next record and return its length; None if it is missing or incomplete."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, checksum = _HEAD.unpack(head)
    if not 0 < length <= size - file.tell() or zlib.crc32(file.read(length)) != checksum:
        return None
    return int(length)


def _record(node: Node, start: SplittingState | None, symmetries: tuple[Symmetry, ...], incumbent: IntArray) -> bytes:
    arrays = certificate_arrays(Certificate(len(incumbent), (node,), symmetries=symmetries))
    arrays["incumbent"] = incumbent.astype(np.int64)
    if start is not None:
        lower = np.tril_indices(len(start.Y))
        values = (start.allowed, start.Y[lower], start.Z[lower], np.array(start.beta))
        arrays.update(zip(_START, values, strict=True))
    content = io.BytesIO()
    with undisguised_interrupt():
        np.savez(content, **arrays)
    return content.getvalue()


def _symmetric(lower: NDArray[Any], size: int) -> NDArray[np.float32]:
    if lower.dtype != np.float32 or lower.shape != (size * (size + 1) // 2,) or not (np.abs(lower) < _LARGEST).all():
        raise ValueError("no lower triangle")
    matrix = np.zeros((size, size), dtype=np.float32)
    matrix[np.tril_indices(size)] = lower
    return np.asarray(matrix + np.tril(matrix, -1).T, dtype=np.float32)


def _digest(problem: QAP) -> bytes:
    matrices = [matrix for pair in problem.factors for matrix in pair]
    forbidden = [] if problem.forbidden is None else [problem.forbidden]
    digest = hashlib.sha256()
    for array in (*matrices, problem.linear, np.array([problem.n, problem.constant]), *forbidden):
        digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.digest()
