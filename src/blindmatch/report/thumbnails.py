"""Small pictures of large ones, by Pillow."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

from blindmatch.errors import pip_install

if TYPE_CHECKING:
    from PIL.Image import Image

_SIDES = (64, 48, 32, 24, 16)  # pixels; shown at 48
_QUALITY = 80


def thumbnails(files: Mapping[int, tuple[str, bytes]], room: int) -> dict[int, bytes]:
    """JPEG files, as large as the room for all of them (bytes of a page) allows.

    Parameters
    ----------
    files
        For each item the name and the content of a file.

    Raises
    ------
    ValueError
        If one of them is no picture, or they take too much room even at 16 x 16 pixels.
    ImportError
        If Pillow is missing.
    """
    from blindmatch.encoders.item_sets import decode  # a tenth of a second, for those who show pictures

    images = {}
    for item, (name, content) in files.items():
        try:
            images[item] = _shrunk(decode(content), _SIDES[0])
        except ValueError as error:
            raise ValueError(f"{name}: {error}; expected a picture") from None
        except ImportError:
            raise ImportError(f"pictures in a report need Pillow: {pip_install('plot')}") from None
    for side in _SIDES:
        small = {item: _jpeg(_shrunk(image, side)) for item, image in images.items()}
        if 4 / 3 * sum(map(len, small.values())) + 30 * len(small) <= room:  # as data addresses in base64
            return small
    raise ValueError(f"{len(files)} pictures do not fit into a report, however small; give fewer")


def _shrunk(image: Image, side: int) -> Image:
    small = image.copy()
    small.thumbnail((side, side))
    return small


def _jpeg(image: Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=_QUALITY, optimize=True)
    return file.getvalue()
