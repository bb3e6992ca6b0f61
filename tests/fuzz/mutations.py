"""Hypothesis strategies that break files: cut, flip, splice, announce too much, nest too deep, pack too tight."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
from hypothesis import strategies as st

HUGE = [struct.pack("<Q", value) for value in (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**64 - 1)]
WORDS = [
    b"nan",
    b"-inf",
    b"1e999",
    b"-1",
    b"9" * 5000,
    b"0x10",
    b"1e-320",
    b"\xff",
    b"",
    b"99999999999999999999",
    b"\0",
]


@st.composite
def broken(draw: st.DrawFn, content: bytes) -> bytes:
    """A file with one to four faults; small ones, so that most of it is still what a reader expects."""
    for _ in range(draw(st.integers(1, 4))):
        content = draw(st.sampled_from(FAULTS))(draw, content)
    return content


def _place(draw: st.DrawFn, content: bytes) -> int:
    """Anywhere, but the beginning and the end, where headers and directories are, as often as all the rest."""
    last = max(len(content) - 1, 0)
    return draw(st.one_of(st.integers(0, min(200, last)), st.integers(max(0, last - 200), last), st.integers(0, last)))


def _cut(draw: st.DrawFn, content: bytes) -> bytes:
    return content[: _place(draw, content)]


def _flip(draw: st.DrawFn, content: bytes) -> bytes:
    if not content:
        return content
    at = _place(draw, content)
    return content[:at] + bytes([content[at] ^ (1 << draw(st.integers(0, 7)))]) + content[at + 1 :]


def _overwrite(draw: st.DrawFn, content: bytes) -> bytes:
    at, piece = _place(draw, content), draw(st.one_of(st.sampled_from(HUGE), st.binary(max_size=12)))
    return content[:at] + piece + content[at + len(piece) :]


def _insert(draw: st.DrawFn, content: bytes) -> bytes:
    at = _place(draw, content)
    return content[:at] + draw(st.one_of(st.binary(max_size=40), st.sampled_from(WORDS))) + content[at:]


def _splice(draw: st.DrawFn, content: bytes) -> bytes:
    first, last, to = (_place(draw, content) for _ in range(3))
    return content[:to] + content[min(first, last) : max(first, last)] + content[to:]


def _word(draw: st.DrawFn, content: bytes) -> bytes:
    """One word of a text in another one's place."""
    words = content.split(b" ")
    words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(WORDS))
    return b" ".join(words)


FAULTS = [_cut, _flip, _overwrite, _insert, _splice, _word]

dtypes = st.sampled_from(["<f8", ">f4", "<f2", "<i8", "<i4", "|u1", "|b1", "<U3", "|S2", "<c16", "<M8[s]", "<f8,<i4"])


@st.composite
def odd_arrays(draw: st.DrawFn) -> np.ndarray:
    """Arrays of any kind and shape, with numbers that nobody expects."""
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    dtype = np.dtype(draw(dtypes))
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype=dtype).reshape(shape)


@st.composite
def forged(draw: st.DrawFn, arrays: dict[str, np.ndarray]) -> bytes:
    """A sound archive with some of the arrays replaced: what a checksum does not find."""
    forgery = dict(arrays)
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(arrays)))
        old, how = np.asarray(arrays[name]), draw(st.integers(0, 3))
        if how == 0:
            forgery[name] = draw(odd_arrays())
        elif how == 1:
            forgery[name] = old.ravel()[: draw(st.integers(0, old.size))]
        elif how == 2 and old.size and old.dtype.kind in "iuf":
            changed = old.copy()
            value = draw(st.sampled_from([-1, 0, 1, 2, 7, 2**15, 2**62, -(2**62)]))
            changed.ravel()[draw(st.integers(0, old.size - 1))] = np.array(value).astype(old.dtype)
            forgery[name] = changed
        else:
            forgery.pop(name, None)
    return npz(forgery)


def npz(arrays: dict[str, np.ndarray], compress: bool = False) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(file, **arrays)
    return file.getvalue()


def zip_bomb(size: int) -> bytes:
    """A small archive of one array of zeros: `size` bytes when it is unpacked."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
        archive.open("embeddings.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_1_0(
            member, {"descr": "<f8", "fortran_order": False, "shape": (size // 800, 100)}
        )
        for _ in range(size >> 20):
            member.write(bytes(1 << 20))
    return file.getvalue()
