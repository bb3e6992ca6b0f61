"""Pictures of items in a report."""

import base64
import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from report.parsing import RNG

from blindmatch.report.pictures import ALL_OF_THEM, addresses, thumbnails


def test_pictures(tmp_path: Path) -> None:
    image = RNG.integers(0, 256, size=(40, 20, 3), dtype=np.uint8)
    address = addresses([image], [0], "x")[0]
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    assert (unpacked(data) == image).all()
    (tmp_path / "a.png").write_bytes(data)
    assert addresses({5: tmp_path / "a.png", 6: data}, [6, 5, 4], "x") == {5: address, 6: address}
    assert unpacked(png_of(np.full((300, 200), 7, dtype=np.uint8))).shape == (60, 40, 3)
    many = addresses([RNG.integers(0, 256, size=(64, 64, 3), dtype=np.uint8)] * 500, range(500), "x")
    assert sum(map(len, many.values())) <= ALL_OF_THEM / 2


def test_pictures_that_never_end_are_refused(tmp_path: Path) -> None:
    """A pipe waits for a writer, and a device gives bytes for ever; a picture of 5 GB is none either."""
    os.mkfifo(tmp_path / "pipe.png")
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(5 * 2**30)
    (tmp_path / "drawn.png").write_bytes(b"<?xml version='1.0'?><svg onload='alert(1)'/>")
    for name, message in (
        (tmp_path / "pipe.png", "is a pipe or a device"),
        (Path("/dev/zero"), "is a pipe or a device"),
        (tmp_path / "huge.png", "has 5,368,709,120 bytes"),
        (tmp_path / "drawn.png", "expected a PNG"),
    ):
        with pytest.raises(ValueError, match=message):
            addresses([name], [0], "x")


def test_large_pictures_are_shrunk(tmp_path: Path) -> None:
    noise = Image.fromarray(RNG.integers(0, 256, size=(700, 500, 3), dtype=np.uint8))
    noise.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > ALL_OF_THEM / 2
    kinds = addresses([tmp_path / "a.png"] * 2, [0, 1], "x")
    small = Image.open(io.BytesIO(base64.b64decode(kinds[1].removeprefix("data:image/jpeg;base64,"))))
    assert (small.format, small.size) == ("JPEG", (46, 64))


def test_thumbnails_are_as_large_as_the_room_allows() -> None:
    file = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, size=(99, 99, 3), dtype=np.uint8)).save(file, "PNG")
    files = {item: ("noise.png", file.getvalue()) for item in range(10)}
    sides = []
    for room in (100_000, 20_000, 8_000):
        small = thumbnails(files, room)
        assert sum(4 * len(data) / 3 for data in small.values()) <= room
        sides.append(Image.open(io.BytesIO(small[0])).width)
    assert sides == sorted(sides, reverse=True)
    assert sides[0] == 64 > sides[2]
    with pytest.raises(ValueError, match="10 pictures do not fit"):
        thumbnails(files, 1000)


@pytest.mark.parametrize("kind", ["PNG", "GIF", "JPEG", "WEBP", "lossless", "animated"])
def test_pictures_with_many_pixels(kind: str) -> None:
    """A browser would take 16 GB for a few bytes that announce 60,000 x 60,000 pixels; up to 90 million are shrunk."""
    file, plain = io.BytesIO(), Image.new("RGB", (3000, 2000), "red")
    options = {
        "lossless": {"lossless": True},
        "animated": {"save_all": True, "append_images": [Image.new("RGB", (3000, 2000))]},
    }
    plain.save(file, "WEBP" if kind in options else kind, **options.get(kind, {}))
    address = addresses([file.getvalue()], [0], "x")[0]
    assert address.startswith("data:image/jpeg")
    shown = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
    assert shown.size == (64, 43)
    assert all(abs(have - want) < 9 for have, want in zip(shown.getpixel((9, 9)), (255, 0, 0), strict=True))


def test_a_picture_that_announces_too_many_pixels_is_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.new("RGB", (2, 2)).save(file, "PNG")
    forged = bytearray(file.getvalue())
    forged[16:24] = struct.pack(">II", 60_000, 60_000)
    forged[29:33] = struct.pack(">I", zlib.crc32(forged[12:29]))
    (tmp_path / "a.png").write_bytes(forged)
    with pytest.raises(ValueError, match=r"^x\[0\]: it has far more than 89,478,485 pixels"):
        addresses([tmp_path / "a.png"], [0], "x")


def png_of(image: np.ndarray) -> bytes:
    return base64.b64decode(addresses([image], [0], "x")[0].partition(",")[2])


def unpacked(data: bytes) -> np.ndarray:
    """Decode our own PNG, independent of the code that wrote it: (height, width, 3)."""
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, 3 * width + 1)
    return lines[:, 1:].reshape(height, width, 3)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (b"<svg onload='alert(1)'/>", r"x\[0\] starts with b'<svg onl'; expected a PNG"),
        (np.zeros((2, 2)), r"x\[0\] has dtype float64"),
        (b"\x89PNG\r\n\x1a\n" + bytes(ALL_OF_THEM), r"x\[0\]: it is not an image that can be read"),
    ],
)
def test_pictures_that_are_none(image: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        addresses([image], [0], "x")  # type: ignore[list-item]
