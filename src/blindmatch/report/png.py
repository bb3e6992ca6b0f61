"""A matrix as a small PNG image inside a page: needs no script, no library and no network."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from blindmatch.validation import FloatArray

LOW, MIDDLE, HIGH = (33, 102, 172), (247, 247, 247), (178, 24, 43)


def heatmap(matrix: FloatArray, limit: float) -> str:
    """A data address of the matrix: blue at -limit, white at 0, red at +limit."""
    scaled = np.clip(matrix / limit if limit > 0 else np.zeros_like(matrix), -1.0, 1.0)
    encoded = base64.b64encode(_png(np.rint(127.5 + 127.5 * scaled).astype(np.uint8)))
    return f"data:image/png;base64,{encoded.decode()}"


def _png(indices: NDArray[np.uint8]) -> bytes:
    """An image of palette colours (PNG specification, colour type 3)."""
    height, width = indices.shape
    lines = np.hstack([np.zeros((height, 1), dtype=np.uint8), indices])  # filter 0 before each line
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, data)
        for kind, data in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            (b"PLTE", _palette().tobytes()),
            (b"IDAT", zlib.compress(lines.tobytes(), 9)),
            (b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _palette() -> NDArray[np.uint8]:
    """256 colours from LOW over MIDDLE to HIGH."""
    at = np.linspace(-1.0, 1.0, 256)
    stops = np.array([LOW, MIDDLE, HIGH], dtype=float)
    colours = [np.interp(at, [-1.0, 0.0, 1.0], stops[:, channel]) for channel in range(3)]
    return np.asarray(np.rint(np.stack(colours, axis=1)), dtype=np.uint8)
