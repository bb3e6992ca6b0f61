"""Decode one image from untrusted bytes: upright, RGB, or a ValueError that says what is wrong."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from blindmatch.errors import first_line

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"))
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
MAX_PIXELS = 89_478_485  # Pillow's own limit, above which it warns of decompression bombs


def decode(content: bytes, max_pixels: int = MAX_PIXELS) -> Image:
    """Decode an image as RGB, rotated according to its EXIF orientation; transparency becomes white.

    Of several frames, the first is taken. The format is detected from the bytes, not from the suffix of the file.

    >>> decode(b"")
    Traceback (most recent call last):
    ValueError: it is empty (0 bytes)
    """
    image_module = pillow()
    from PIL import ImageOps, UnidentifiedImageError

    if not content:
        raise ValueError("it is empty (0 bytes)")
    try:
        with warnings.catch_warnings():
            # We report our own limit, so Pillow's warning is redundant. Its error, above twice that limit, stays.
            warnings.simplefilter("ignore", image_module.DecompressionBombWarning)
            opened = image_module.open(io.BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:
        raise ValueError("it is not an image that can be read, despite its name") from None
    except image_module.DecompressionBombError:
        raise ValueError(f"it has far more than {max_pixels:,} pixels") from None
    except Exception as error:  # parsers of untrusted bytes raise anything
        raise ValueError(f"it is damaged ({first_line(error)})") from None
    with opened as image:
        width, height = image.size
        if width * height > max_pixels:
            raise ValueError(f"it has {width} x {height} pixels, more than {max_pixels:,}")
        try:
            image.load()
            turned: Image = ImageOps.exif_transpose(image)
            return _as_rgb(turned, image_module)
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"it is truncated or damaged ({first_line(error)})") from None


def pillow() -> Any:
    """Pillow's image module, or an error that says how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("reading images needs Pillow: pip install 'blindmatch[encoders]'") from None
    return Image


def _as_rgb(image: Image, image_module: Any) -> Image:
    if image.mode in ("I;16", "I;16L", "I;16B", "I;16N"):  # convert() would clip values above 255
        shrunk: Image = image_module.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
        return shrunk
    if image.mode in ("I", "F"):
        raise ValueError(f"its pixels have mode {image.mode!r}, whose scale is not known")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        layer = image.convert("RGBA")
        ground = image_module.new("RGBA", layer.size, (255, 255, 255, 255))
        image = image_module.alpha_composite(ground, layer)
    converted: Image = image.convert("RGB")
    return converted
