"""Files in: every format, and every way in which a file can be bad."""

import io
import json
import os
import struct
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from blindmatch.cli.inputs import _permutation
from blindmatch.cli.items import _rows
from blindmatch.io import files
from blindmatch.io.embeddings import load_embeddings
from blindmatch.io.files import write_atomically
from blindmatch.io.qaplib import read_dat, read_sln
from blindmatch.io.table_files import read_table
from blindmatch.problem.problem_files import load_problem

VALUES = np.arange(12.0).reshape(4, 3) / 8  # exact in float16 as well
NAMES = ["cat", "dog", "été", "<b>"]


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(path: str, names: list[str] | None = None, labels: list | None = None) -> None:
    loaded = load_embeddings(path)
    np.testing.assert_array_equal(loaded.values, VALUES)
    assert loaded.values.dtype == np.float64
    assert (None if loaded.names is None else list(loaded.names)) == names
    assert (None if loaded.labels is None else loaded.labels.tolist()) == labels
    assert len(loaded) == 4


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f8"])
def test_npy(dtype: str) -> None:
    np.save("e.npy", VALUES.astype(dtype))
    check("e.npy")


def test_npy_in_fortran_order() -> None:
    np.save("e.npy", np.asfortranarray(VALUES))
    check("e.npy")


def test_npz_takes_embeddings_or_the_only_matrix() -> None:
    np.savez("a.npz", embeddings=VALUES, other=np.eye(2), names=NAMES, labels=[0, 0, 1, 1])
    check("a.npz", NAMES, [0, 0, 1, 1])
    np.savez_compressed("b.npz", whatever=VALUES, names=np.array([name.encode() for name in NAMES]))
    check("b.npz", NAMES)


def test_safetensors() -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    save_file({"embeddings": VALUES, "labels": np.arange(4)}, "e.safetensors", metadata={"names": json.dumps(NAMES)})
    check("e.safetensors", NAMES, [0, 1, 2, 3])
    save_file({"embeddings": VALUES}, "e.safetensors", metadata={"labels": "[0, 1, 2, 3]", "format": "pt"})
    check("e.safetensors", None, [0, 1, 2, 3])
    save_file({"embeddings": VALUES}, "e.safetensors", metadata={"names": "not JSON"})
    with pytest.raises(ValueError, match=r"e\.safetensors: not a readable"):
        load_embeddings("e.safetensors")


def test_parquet_with_columns_or_lists() -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {f"d{k}": VALUES[:, k] for k in range(3)}
    parquet.write_table(pa.table({"name": NAMES, **columns, "label": [1, 2, 3, 4]}), "a.parquet")
    check("a.parquet", NAMES, [1, 2, 3, 4])
    parquet.write_table(pa.table({"text": NAMES, "embedding": VALUES.astype("float32").tolist()}), "b.parquet")
    check("b.parquet", NAMES)


ROWS = [",".join(str(value) for value in row) for row in VALUES]


@pytest.mark.parametrize(
    ("lines", "names", "labels"),
    [
        (ROWS, None, None),
        (["x,y,z", *ROWS], None, None),
        ([f"{n},{row}" for n, row in zip(NAMES, ROWS, strict=True)], NAMES, None),
        (["word,x,y,z", *(f"{n},{row}" for n, row in zip(NAMES, ROWS, strict=True))], NAMES, None),
        (["x,y,z,name,label", *(f"{row},{n},7" for n, row in zip(NAMES, ROWS, strict=True))], NAMES, ["7"] * 4),
        ([",0,1,2", *(f"{k},{row}" for k, row in enumerate(ROWS))], None, None),  # as pandas writes
        (["id;x;y;z", *(f"{k};{row.replace(',', ';')}" for k, row in enumerate(ROWS))], ["0", "1", "2", "3"], None),
        (["", *ROWS, "", ""], None, None),
    ],
)
def test_csv(lines: list[str], names: list[str] | None, labels: list[str] | None) -> None:
    Path("e.csv").write_text("\n".join(lines), encoding="utf-8-sig")
    check("e.csv", names, labels)


def test_csv_with_a_quoted_comma_and_windows_lines() -> None:
    Path("e.csv").write_bytes("\r\n".join(f'"{n}, x",{row}' for n, row in zip(NAMES, ROWS, strict=True)).encode())
    check("e.csv", [f"{name}, x" for name in NAMES])


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def announced(shape: str) -> bytes:
    """A .npy file whose header promises more than there is."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)


def bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("embeddings.npy", announced("(1000000, 1000000)"))
    return file.getvalue()


OBJECTS = np.array([["a", None]], dtype=object)
BAD = {
    "text.npy": (b"not an array", "does not start"),
    "empty.npy": (b"", "does not start"),
    "pickled.npy": (npy(OBJECTS), "pickled Python objects"),
    "cut.npy": (npy(VALUES)[:-8], "shorter than its header"),
    "header.npy": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31), "not a readable"),
    "huge.npy": (announced("(10000000000, 1000000)"), "not a readable"),
    "overflow.npy": (announced("(99999999999999999999, 9999999999)"), "not a readable"),
    "negative.npy": (announced("(-1, 3)"), "negative.npy"),
    "code.npy": (announced("__import__('os').abort()"), "not a readable"),
    "line.npy": (npy(VALUES[0]), r"shape \(3,\); expected 2 axes"),
    "cube.npy": (npy(np.zeros((2, 2, 2))), "expected 2 axes"),
    "nothing.npy": (npy(VALUES[:0]), "nothing.npy"),
    "nan.npy": (npy(np.where(VALUES == 0, np.nan, VALUES)), r"1 of 12 cells is missing, the first at \[0, 0\]"),
    "words.npy": (npy(np.array([["a", "b"]])), "expected real numbers"),
    "complex.npy": (npy(VALUES * 1j), "expected real numbers"),
    "text.npz": (b"not an archive", "does not start"),
    "none.npz": (npz(), "it holds nothing"),
    "two.npz": (npz(a=VALUES, b=VALUES), r"it holds a \(4, 3\), b \(4, 3\)"),
    "cut.npz": (npz(embeddings=VALUES)[:100], "not a readable"),
    "damaged.npz": (npz(embeddings=VALUES).replace(VALUES.tobytes()[:40], b"x" * 40), "not a readable"),
    "names.npz": (npz(embeddings=VALUES, names=np.array(NAMES[:3])), r"names has shape \(3,\)"),
    "pickled.npz": (npz(embeddings=VALUES, names=np.array(NAMES, dtype=object)), "'names'.*pickled Python objects"),
    "bomb.npz": (bomb(), "not a readable"),
    "empty.csv": (b"", "empty"),
    "header.csv": (b"x,y,z\n", "empty"),
    "ragged.csv": (b"1,2,3\n4,5\n", "line 2 has 2 cells, the first has 3"),
    "word.csv": (b"a,1,2\nb,1,two\n", "line 2, column 3: 'two' is not a number"),
    "hole.csv": (b"1,2\n3,\n", "1 of 4 cells is missing, the first in line 2, column 2"),
    "nan.csv": (b"1,2\n3,nan\n", "1 of 4 cells is missing, the first in line 2, column 2"),
    "titled.csv": (b"a,b\n1,2\n3,-inf\n", r"line 3, column 2 \(b\): '-inf' is not a finite number; replace it"),
    "page.csv": (b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", "a web page, not a table"),
    "prose.csv": (b"hello\nworld\n", "no numeric column"),
    "binary.csv": (bytes(range(256)), "not a text file in UTF-8"),
    "long.csv": (b'"' + b"x" * 200_000, "not a readable"),
    "text.safetensors": (b"not tensors", "not a readable"),
    "huge.safetensors": (struct.pack("<Q", 2**60) + b"{}", "not a readable"),
    "text.parquet": (b"not a table", "not a readable"),
    "nug.dat": (b"1", "a problem in QAPLIB format, not embeddings; 'blindmatch solve'"),
    "what.xyz": (b"1", r"unknown file type '.xyz'; expected .npy"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_with_what_is_wrong(name: str) -> None:
    content, message = BAD[name]
    if name.endswith((".safetensors", ".parquet")):
        pytest.importorskip({"parquet": "pyarrow"}.get(name.partition(".")[2], "safetensors"))
    Path(name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_embeddings(name)
    assert str(caught.value).startswith(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv", "safetensors", "parquet"])
def test_a_missing_file_and_a_folder(suffix: str) -> None:
    with pytest.raises(FileNotFoundError, match="none"):
        load_embeddings(f"none.{suffix}")
    Path(f"folder.{suffix}").mkdir()
    with pytest.raises(IsADirectoryError):
        load_embeddings(f"folder.{suffix}")
    with pytest.raises(ValueError, match=r"^\.: it is a folder; expected a file"):
        load_embeddings(".")


def test_parquet_without_numbers() -> None:
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pa.table({"name": NAMES}), "e.parquet")
    with pytest.raises(ValueError, match="it has no numeric column; it holds name"):
        load_embeddings("e.parquet")


def test_problem_from_npz() -> None:
    rng = np.random.default_rng(0)
    A, B, L = rng.normal(size=(3, 4, 4))
    forbidden = np.eye(4, dtype=bool)
    np.savez("p.npz", source_cost=A, target_cost=B, linear=L, constant=2.0, forbidden=forbidden)
    problem = load_problem("p.npz")
    p = [1, 0, 3, 2]
    expected = (A * B[np.ix_(p, p)]).sum() + L[range(4), p].sum() + 2.0
    assert problem.objective(p) == pytest.approx(expected, rel=1e-12)
    assert problem.allows(p)
    assert not problem.allows([0, 1, 2, 3])
    np.savez("q.npz", source_cost=A, target_cost=B)
    assert load_problem("q.npz").objective(p) == pytest.approx((A * B[np.ix_(p, p)]).sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npz", npz(source_cost=np.eye(3)), "no array target_cost in it; it holds source_cost"),
        ("b.npz", npz(source_cost=np.eye(4), target_cost=np.eye(3)), r"target_cost has shape \(3, 3\)"),
        ("c.npz", npz(source_cost=np.eye(3), target_cost=np.eye(3), constant=np.zeros(2)), "constant has shape"),
        (
            "liner.npz",
            npz(source_cost=np.eye(3), target_cost=np.eye(3), liner=np.eye(3)),
            "array='liner' is not known; did you mean 'linear'?",
        ),
        ("d.dat", b"3 1 2", "d.dat: n=3 needs 18 numbers"),
        ("x.npz", npz(embeddings=np.eye(3)), "it holds embeddings; 'blindmatch match' and bm.match take embeddings"),
        ("e.xyz", b"3 1 2", "unknown kind of problem file '.xyz'"),
    ],
)
def test_bad_problems(name: str, content: bytes, message: str) -> None:
    Path(name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_problem(name)
    assert str(caught.value).startswith(name)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else() -> None:
    Path("out").write_text("old")

    def fail(file: io.BytesIO) -> None:
        file.write(b"half")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_atomically("out", fail)
    assert [path.name for path in Path().iterdir()] == ["out"]
    assert Path("out").read_text() == "old"
    write_atomically("out", lambda file: file.write(b"new"))
    assert Path("out").read_text() == "new"


def test_a_pipe_is_written_to_and_stays() -> None:
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    for name in ("pipe", "link"):
        read: list[bytes] = []
        reader = threading.Thread(target=lambda read=read: read.append(Path("pipe").read_bytes()), daemon=True)
        reader.start()
        write_atomically(name, lambda file: np.savez(file, a=np.eye(200)))
        reader.join(20)
        np.testing.assert_array_equal(np.load(io.BytesIO(read[0]))["a"], np.eye(200))
    assert Path("pipe").is_fifo()
    assert Path("link").is_symlink()
    assert sorted(path.name for path in Path().iterdir()) == ["link", "pipe"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no descriptors as files here")
def test_a_descriptor_is_written_to_and_the_link_to_it_stays() -> None:
    """What /dev/stdout is, when the shell sends it to a file."""
    with Path("sent").open("wb") as sent:
        Path("stdout").symlink_to(f"/proc/self/fd/{sent.fileno()}")
        write_atomically("stdout", lambda file: file.write(b"report"))
        assert Path("stdout").is_symlink()
    assert Path("sent").read_bytes() == b"report"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
@pytest.mark.parametrize("read", [read_table, read_dat, read_sln, _permutation, _rows])
def test_a_device_without_an_end_is_refused(read: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "UNPACKED", 1000)
    Path("zero.csv").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"^zero.csv is a pipe or a device without an end"):
        read(Path("zero.csv"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_text_from_a_pipe_is_read() -> None:
    os.mkfifo("pipe")
    threading.Thread(target=lambda: Path("pipe").write_text("cat\r\ndog"), daemon=True).start()
    assert files.text_of("pipe") == "cat\ndog"


def test_a_link_to_a_file_is_replaced() -> None:
    Path("kept").write_text("old")
    Path("out").symlink_to("kept")
    write_atomically("out", lambda file: file.write(b"new"))
    assert not Path("out").is_symlink()
    assert (Path("kept").read_text(), Path("out").read_text()) == ("old", "new")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
def test_a_spreadsheet_that_never_ends_is_refused(tmp_path: Path) -> None:
    """Looking for the end of an archive would read all of it into memory."""
    pytest.importorskip("openpyxl")
    (tmp_path / "zero.xlsx").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"zero.xlsx is a pipe or a device"):
        load_embeddings(tmp_path / "zero.xlsx")
