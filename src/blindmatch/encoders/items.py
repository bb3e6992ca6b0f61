"""The items to embed: images, which are opened when needed, and texts."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders.images import pillow


@dataclass(frozen=True, eq=False)
class ImageItem:
    """One image.

    Attributes
    ----------
    name
        Its name in the result.
    label
        The index of its class, or -1.
    source
        Its file, its pixels (height, width, 3) uint8, or a function that returns them.
    """

    name: str
    label: int
    source: Path | NDArray[np.uint8] | Callable[[], NDArray[np.uint8]]

    def content(self) -> bytes:
        """The bytes of the image; pixels are encoded losslessly as PNG."""
        if isinstance(self.source, Path):
            return self.source.read_bytes()
        buffer = io.BytesIO()
        pixels = self.source if isinstance(self.source, np.ndarray) else self.source()
        pillow().fromarray(pixels).save(buffer, "PNG", compress_level=0)
        return buffer.getvalue()

    def stamp(self) -> str:
        """A value that changes when the image changes, without reading the image."""
        if isinstance(self.source, Path):
            status = self.source.stat()
            return f"{self.name}\0{self.label}\0{status.st_size}\0{status.st_mtime_ns}"
        pixels = hashlib.sha256(self.source.tobytes()).hexdigest() if isinstance(self.source, np.ndarray) else ""
        return f"{self.name}\0{self.label}\0{pixels}"


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images in a fixed order.

    Attributes
    ----------
    name
        The name of the dataset or the folder.
    items
        The images.
    class_names
        The names of the labels; None if there are no classes.
    definitions
        The WordNet definition of each class, if known.
    about
        Its origin, for the manifest.
    ignored
        Files that were skipped because their suffix is not that of an image.
    """

    name: str
    items: tuple[ImageItem, ...]
    class_names: tuple[str, ...] | None = None
    definitions: tuple[str, ...] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

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

    def limited(self, limit: int) -> ImageSet:
        """Keep at most the first `limit` images of each class."""
        counts: dict[int, int] = {}
        kept = []
        for item in self.items:
            counts[item.label] = counts.get(item.label, 0) + 1
            if counts[item.label] <= limit:
                kept.append(item)
        return replace(self, items=tuple(kept), about={**self.about, "limit": limit})

    def fingerprint(self) -> str:
        """A hash that changes when the set changes."""
        total = hashlib.sha256(repr((dict(self.about), self.class_names)).encode())
        for item in self.items:
            total.update(f"{item.stamp()}\n".encode())
        return total.hexdigest()


@dataclass(frozen=True, eq=False)
class TextSet:
    """Texts in a fixed order, each with its name and the index of the item that it belongs to.

    Attributes
    ----------
    texts, names, labels
        One for each text; several texts may belong to one item (prompts to a class, captions to an image).
    class_names
        The names of the items, or None if each text is its own item.
    templates
        The templates that the texts were made from.
    """

    name: str
    texts: tuple[str, ...]
    names: tuple[str, ...]
    labels: tuple[int, ...] | None = None
    class_names: tuple[str, ...] | None = None
    templates: tuple[str, ...] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def fingerprint(self) -> str:
        """A hash that changes when the set changes."""
        return hashlib.sha256(repr((self.texts, self.names, self.labels, self.class_names)).encode()).hexdigest()
