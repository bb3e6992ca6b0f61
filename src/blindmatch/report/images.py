"""Small pictures inside the page, as data addresses: small files as they are, large ones as JPEG, arrays as PNG."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blindmatch.errors import pip_install
from blindmatch.io.files import bytes_of
from blindmatch.report.match import Images

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


_SIDES = (64, 48, 32, 24, 16)  # pixels; shown at 48
_QUALITY = 80


def thumbnails(files: Mapping[int, tuple[str, bytes]], room: int) -> dict[int, bytes]:
    """JPEG files, as large as the room for all of them (bytes of a page) allows, from names and contents of files.

    A ValueError says which one is no picture, or that they take too much room even at 16 x 16 pixels; an ImportError,
    that Pillow is missing.
    """
    images = {item: _reduce(_decoded(content, name), _SIDES[0]) for item, (name, content) in files.items()}
    for side in _SIDES:
        small = {}
        for item, image in images.items():
            _reduce(image, side).save(file := io.BytesIO(), "JPEG", quality=_QUALITY, optimize=True)
            small[item] = file.getvalue()
        if 4 / 3 * sum(map(len, small.values())) + 30 * len(small) <= room:  # as data addresses in base64
            return small
    raise ValueError(f"{len(files)} pictures do not fit into a report, however small; give fewer")


def _decoded(content: bytes, name: str) -> Picture:
    from blindmatch.encoders.item_sets import decode  # a tenth of a second, for those who show pictures

    try:
        return decode(content)
    except ValueError as error:
        raise ValueError(f"{name}: {error}; expected a picture") from None
    except ImportError:
        raise ImportError(f"pictures in a report need Pillow: {pip_install('plot')}") from None


def _reduce(image: Picture, side: int) -> Picture:
    small = image.copy()
    small.thumbnail((side, side))
    return small


ALL_OF_THEM = 1_200_000  # bytes in the page: with the matrices, a report of 100 pairs stays below 2 MB
_MOST_PIXELS = 4_000_000  # of a picture that is embedded as it is: a browser unpacks each to four bytes a pixel
_SIDE = 64  # pixels; shown at about this size
_KINDS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


def addresses(images: Images | None, items: Iterable[int], name_of_all: str, sides: int = 2) -> dict[int, str]:
    """A data address for each item that has a picture. `sides` share the bytes that pictures may take.

    A ValueError, which begins with the name of all, says which item is no picture; an ImportError, that Pillow lacks.
    """
    if images is None:
        return {}
    if not isinstance(images, Mapping):
        images = dict(enumerate(images))
    wanted = [item for item in items if item in images]
    room = ALL_OF_THEM // sides
    # A pixel takes three bytes, and base64 four thirds of that. Noise hardly compresses.
    side = int(np.clip(np.sqrt(room / (4 * max(len(wanted), 1))), 8, _SIDE))
    files, written, large = {}, {}, False
    for item in wanted:
        name, image = f"{name_of_all}[{item}]", images[item]
        if isinstance(image, np.ndarray):
            data, kind = _png(_shrunk(image, side, name)), "png"
        else:
            data = bytes_of(image) if isinstance(image, str | Path) else image
            found = next((kind for start, kind in _KINDS.items() if data.startswith(start)), None)
            if found is None or (found == "webp" and data[8:12] != b"WEBP"):
                raise ValueError(f"{name} starts with {data[:8]!r}; expected a PNG, JPEG, GIF or WebP picture")
            kind, (width, height) = found, _decoded(data, name).size
            large = large or width * height > _MOST_PIXELS
        files[item], written[item] = (name, data), _data_address(data, kind)
    if not large and sum(map(len, written.values())) <= room:
        return written
    return {item: _data_address(small, "jpeg") for item, small in thumbnails(files, room).items()}


def _data_address(data: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _shrunk(image: NDArray[np.uint8], side: int, name: str) -> NDArray[np.uint8]:
    """At most `side` pixels high and wide: means over blocks of pixels."""
    if image.dtype != np.uint8 or image.ndim < 2 or image.shape[2:] not in ((), (3,)) or not image.size:
        raise ValueError(f"{name} has dtype {image.dtype} and shape {image.shape}; expected uint8, (h, w, 3) or (h, w)")
    colours = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    block = -(-max(colours.shape[:2]) // side)
    high, wide = (min(block, length) for length in colours.shape[:2])
    height, width = len(colours) // high, colours.shape[1] // wide
    blocks = colours[: height * high, : width * wide].reshape(height, high, width, wide, 3)
    return np.asarray(np.rint(blocks.mean(axis=(1, 3))), dtype=np.uint8)


def _png(colours: NDArray[np.uint8]) -> bytes:
    """A picture of 8-bit colours (PNG specification, colour type 2)."""
    height, width, _ = colours.shape
    lines = np.hstack([np.zeros((height, 1), dtype=np.uint8), colours.reshape(height, -1)])  # filter 0 before each line
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    chunks = ((len(data), kind + data) for kind, data in parts)
    framed = (struct.pack(">I", length) + chunk + struct.pack(">I", zlib.crc32(chunk)) for length, chunk in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)
