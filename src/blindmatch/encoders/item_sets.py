"""Items to embed: images, which are decoded when needed from untrusted bytes, and texts."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders.registry import Modality
from blindmatch.errors import first_line, pip_install

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"))
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
MAX_PIXELS = 89_478_485  # Pillow's own limit, above which it warns of decompression bombs


def decode(content: bytes, max_pixels: int = MAX_PIXELS) -> Image:
    """Decode an image as RGB, rotated according to its EXIF orientation; transparency becomes white.

    Of several frames, the first is taken. The format is detected from the bytes, not from the suffix of the file.
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
        raise ImportError(f"reading images needs Pillow: {pip_install('encoders')}") from None
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


@dataclass(frozen=True, eq=False)
class ImageItem:
    """One image."""

    name: str  # in the result
    label: int  # the index of its class, or -1
    # its file, its pixels (height, width, 3) uint8, or a function that returns them
    source: Path | NDArray[np.uint8] | Callable[[], NDArray[np.uint8]]

    def content(self) -> bytes:
        """The bytes of the image; pixels are encoded losslessly as PNG."""
        if isinstance(self.source, Path):
            return self.source.read_bytes()
        buffer = io.BytesIO()
        pixels = self.source if isinstance(self.source, np.ndarray) else self.source()
        pillow().fromarray(pixels).save(buffer, "PNG", compress_level=0)
        return buffer.getvalue()


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images in a fixed order."""

    modality: ClassVar[Modality] = "vision"
    name: str  # of the dataset or the folder
    items: tuple[ImageItem, ...]
    class_names: tuple[str, ...] | None = None  # of the labels; None if there are no classes
    definitions: tuple[str, ...] | None = None  # WordNet's, of each class, if known
    about: Mapping[str, Any] = field(default_factory=dict)  # its origin, for the manifest
    ignored: tuple[str, ...] = ()  # files that were skipped because their suffix is not that of an image

    def __len__(self) -> int:
        return len(self.items)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the images."""
        return tuple(item.name for item in self.items)

    @property
    def labels(self) -> tuple[int, ...]:
        """The index of each image's class, or -1."""
        return tuple(item.label for item in self.items)

    def first_of_each_class(self, limit: int) -> ImageSet:
        """Keep at most the first `limit` images of each class."""
        counts: dict[int, int] = {}
        kept = []
        for item in self.items:
            counts[item.label] = counts.get(item.label, 0) + 1
            if counts[item.label] <= limit:
                kept.append(item)
        return replace(self, items=tuple(kept), about={**self.about, "limit": limit})

    def fingerprint(self) -> str:
        """A hash that changes when the set changes, without reading the files."""
        total = hashlib.sha256(repr((dict(self.about), self.class_names)).encode())
        for item in self.items:
            stamp = hashlib.sha256(item.source.tobytes()).hexdigest() if isinstance(item.source, np.ndarray) else ""
            if isinstance(item.source, Path):
                status = item.source.stat()
                stamp = f"{status.st_size}\0{status.st_mtime_ns}"
            total.update(f"{item.name}\0{item.label}\0{stamp}\n".encode())
        return total.hexdigest()


@dataclass(frozen=True, eq=False)
class TextSet:
    """Texts in a fixed order, each with its name and the index of the item that it belongs to."""

    modality: ClassVar[Modality] = "language"
    name: str
    texts: tuple[str, ...]
    names: tuple[str, ...]  # one for each text
    # for each text, its item: several texts may belong to one (prompts to a class, captions to an image)
    labels: tuple[int, ...] | None = None
    class_names: tuple[str, ...] | None = None  # the names of the items; None if each text is its own item
    templates: tuple[str, ...] | None = None  # that the texts were made from
    about: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def fingerprint(self) -> str:
        """A hash that changes when the set changes."""
        return hashlib.sha256(repr((self.texts, self.names, self.labels, self.class_names)).encode()).hexdigest()
