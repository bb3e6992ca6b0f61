"""Broken and hostile files: every reader reads them or raises a ValueError that names the file. BLINDMATCH_FUZZ=N runs
N examples for each reader; CI runs a sample."""

import io
import json
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from fuzz.mutations import broken, forged, zip_bomb
from fuzz.targets import NAMES_OF_TARGETS, npz, targets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("BLINDMATCH_FUZZ", "40"))
LIMIT = 20  # seconds for one small file
MEMORY = 1 << 30  # bytes of address space beyond what Python and its packages take
many = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES <= 100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@contextmanager
def no_hang() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise AssertionError(f"still reading after {LIMIT} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def feed(name: str, content: bytes, folder: Path) -> bool:
    """Whether a reader takes this content; a ValueError that names the file, in one line, is the only other way out."""
    target = targets()[name]
    path = folder / target.file
    path.write_bytes(content)
    try:
        with no_hang():
            target.read(path)
    except ValueError as error:
        message = str(error)
    else:
        return True
    assert message.startswith(str(path)), f"the message does not name the file: {message}"
    assert len(message) < 20_000
    return False


def test_the_list_of_targets_is_whole() -> None:
    assert set(NAMES_OF_TARGETS) == set(targets())


@pytest.mark.parametrize("name", NAMES_OF_TARGETS)
def test_sound_files_are_read(name: str, tmp_path: Path) -> None:
    assert all(feed(name, content, tmp_path) for content in targets()[name].contents)


@pytest.mark.parametrize("name", NAMES_OF_TARGETS)
def test_broken_files(name: str, tmp_path: Path) -> None:
    @many
    @given(st.sampled_from(targets()[name].contents).flatmap(broken))
    def run(content: bytes) -> None:
        feed(name, content, tmp_path)

    run()


@pytest.mark.parametrize("name", [name for name in NAMES_OF_TARGETS if targets()[name].file.endswith(".npz")])
def test_forged_archives(name: str, tmp_path: Path) -> None:
    """Archives that are sound as such, with arrays in them that nobody wrote."""
    with np.load(io.BytesIO(targets()[name].contents[0])) as file:
        arrays = dict(file)

    @many
    @given(forged(arrays))
    def run(content: bytes) -> None:
        feed(name, content, tmp_path)

    run()


@pytest.mark.parametrize("name", NAMES_OF_TARGETS)
def test_what_is_no_such_file_at_all(name: str, tmp_path: Path) -> None:
    for content in (b"\0" * 100, b"\xff" * 1000, bytes(range(256)), b"{" * 10_000, b"[" * 100_000):
        assert not feed(name, content, tmp_path)
    assert not feed(name, b"", tmp_path) or name == "settings"  # no settings are settings


def nested_names(depth: int) -> bytes:
    """Tensors whose metadata hold lists in lists in lists."""
    header = {"embeddings": {"dtype": "F64", "shape": [1, 1], "data_offsets": [0, 8]}}
    text = json.dumps(header | {"__metadata__": {"names": "[" * depth}}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(8)


def tensors(shape: list[int], end: int) -> bytes:
    """One tensor of that shape, said to end there."""
    text = json.dumps({"embeddings": {"dtype": "F64", "shape": shape, "data_offsets": [0, end]}}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(64)


def announcing(shape: tuple[int, ...], pack: bool = True) -> bytes:
    """A small file whose header promises a large array."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    if not pack:
        return header.getvalue() + bytes(64)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("embeddings.npy", header.getvalue() + bytes(64))
    return file.getvalue()


def run_lengths(rows: int) -> bytes:
    """A parquet file of a few bytes for any number of equal rows."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"x": pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array([1.5]))})
    file = io.BytesIO()
    parquet.write_table(table, file, compression="zstd")
    return file.getvalue()


def copies_of_a_text(rows: int) -> bytes:
    """A parquet file in which a dictionary holds one long text."""
    import pyarrow as pa
    from pyarrow import parquet

    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 1_000_000]))
    file = io.BytesIO()
    parquet.write_table(pa.table({"name": names, "x": np.arange(rows) / 7}), file, compression="zstd")
    return file.getvalue()


def computed_cells() -> bytes:
    """A database with a column that it computes: 50 MB in each row."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t(a, b GENERATED ALWAYS AS (hex(zeroblob(25000000))) VIRTUAL)")
    base.executemany("INSERT INTO t(a) VALUES(?)", [(row,) for row in range(100)])
    return base.serialize()


def distant_row() -> bytes:
    """A spreadsheet with a cell in row 2,000,000,000."""
    from openpyxl import Workbook

    book, sound, file = Workbook(), io.BytesIO(), io.BytesIO()
    book.active.append([1, 2])
    book.save(sound)
    with zipfile.ZipFile(sound) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            far = b'<row r="2000000000"><c r="A2000000000"><v>1</v></c></row></sheetData>'
            new.writestr(name, old.read(name).replace(b"</sheetData>", far))
    return file.getvalue()


def many_members(count: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for index in range(count):
            archive.writestr(f"{index}.npy", b"")
    return file.getvalue()


def odd_packing(method: int) -> bytes:
    file = io.BytesIO()
    np.savez(packed := io.BytesIO(), embeddings=np.eye(3))
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(file, "w", method) as new:
        new.writestr("embeddings.npy", old.read("embeddings.npy"))
    return file.getvalue()


HOSTILE = {
    "a bomb": ("npz", lambda: zip_bomb(400 << 20), "would unpack to"),
    "a bomb as a certificate": ("certificate", lambda: zip_bomb(400 << 20), "would unpack to"),
    "too many members": ("npz", lambda: many_members(20_000), "holds 20000 arrays"),
    "packed by lzma": ("npz", lambda: odd_packing(zipfile.ZIP_LZMA), "compression that numpy never uses"),
    "packed by bzip2": ("npz", lambda: odd_packing(zipfile.ZIP_BZIP2), "compression that numpy never uses"),
    "3 GB announced in an archive": ("npz", lambda: announcing((20_000, 20_000)), "shorter than its header"),
    "8 TB announced in an archive": ("npz", lambda: announcing((10**6, 10**6)), "shorter than its header"),
    "3 GB announced": ("npy", lambda: announcing((20_000, 20_000), pack=False), "shorter than its header"),
    "negative shape": ("npz", lambda: announcing((-5, 3)), "e.npz"),
    "parquet of equal rows": ("parquet", lambda: run_lengths(60_000_000), "would unpack to"),
    "copies of a text": ("parquet", lambda: copies_of_a_text(200_000), "would unpack to"),
    "a key for each row": ("jsonl", lambda: b"".join(b'{"k%d": 1}\n' % row for row in range(30_000)), "different keys"),
    "computed cells": ("db", computed_cells, "too big"),
    "a distant row": ("xlsx", distant_row, "1,048,576 lines"),
    "nested metadata": ("safetensors", lambda: nested_names(200_000), "not a readable"),
    "overlapping tensors": ("safetensors", lambda: tensors([4, 4], 2**40), "not a"),
    "tensor too large": ("safetensors", lambda: tensors([2**31, 2**31], 64), "not a"),
    "a long number": ("dat", lambda: b"2 " + b"9" * 1_000_000, "inf"),
    "a large size": ("dat", lambda: b"1000000000 1 2 3", "starts with 1000000000"),
    "nested settings": ("settings", lambda: b"a = " + b"[" * 100_000, "not a readable"),
    "nested words": (
        "saved match",
        lambda: npz(format=np.array("blindmatch match 1"), words=np.array('{"a":' + "[" * 100_000)),
        "not a readable",
    ),
}  # fmt: skip

LIMITED = """
import json, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from fuzz.targets import targets
readers = targets()
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[2]),) * 2)
for name, file in json.load(sys.stdin):
    try:
        readers[name].read(Path(file))
        print("read")
    except ValueError as error:
        print(str(error)[:300], flush=True)
"""


@pytest.mark.slow
def test_hostile_files_in_little_memory(tmp_path: Path) -> None:
    """In a process of its own that gets `MEMORY` bytes and no more: each is refused, with the reason."""
    files = []
    for number, (name, make, _) in enumerate(HOSTILE.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / targets()[name].file
        path.write_bytes(make())
        files.append((name, str(path)))
    command = [sys.executable, "-c", LIMITED, str(Path(__file__).parent.parent), str(MEMORY)]
    done = subprocess.run(command, input=json.dumps(files), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answers = done.stdout.splitlines()
    for case, (_, path), answer in zip(HOSTILE, files, answers, strict=True):
        assert answer.startswith(path), f"{case}: {answer}"
        assert HOSTILE[case][2] in answer, f"{case}: {answer}"
