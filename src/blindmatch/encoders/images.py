"""One image from bytes that nobody vouches for: right side up, RGB, or a ValueError that says what is wrong."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"))
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
MAX_PIXELS = 89_478_485  # Pillow's own limit, from which on it speaks of decompression bombs


def decode(content: bytes, max_pixels: int = MAX_PIXELS) -> Image:
    """The image in some bytes, as RGB, turned as its camera says; transparency becomes white.

    Of several frames the first is taken. The suffix of the file plays no part: the bytes tell the format.

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
            # Our own limit speaks; Pillow's warning would only repeat it. Its error, from twice that on, stays.
            warnings.simplefilter("ignore", image_module.DecompressionBombWarning)
            opened = image_module.open(io.BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:
        raise ValueError("it is no image that can be read, whatever its name says") from None
    except image_module.DecompressionBombError:
        raise ValueError(f"it has far more than {max_pixels:,} pixels") from None
    except Exception as error:  # parsers of foreign bytes raise anything
        raise ValueError(f"it is damaged ({_first_line(error)})") from None
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
            raise ValueError(f"it is truncated or damaged ({_first_line(error)})") from None


def pillow() -> Any:
    """Pillow's module of images, or an error that says how to get it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("reading images needs Pillow: pip install 'blindmatch[encoders]'") from None
    return Image


def _as_rgb(image: Image, image_module: Any) -> Image:
    if image.mode in ("I;16", "I;16L", "I;16B", "I;16N"):  # convert() would cut all above 255 off
        shrunk: Image = image_module.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
        return shrunk
    if image.mode in ("I", "F"):
        raise ValueError(f"its pixels are of mode {image.mode!r}, whose scale is not known")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        layer = image.convert("RGBA")
        ground = image_module.new("RGBA", layer.size, (255, 255, 255, 255))
        image = image_module.alpha_composite(ground, layer)
    converted: Image = image.convert("RGB")
    return converted


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
