"""A set and the model that embeds it: reading the items, and their names and labels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blindmatch.encoders.images import decode
from blindmatch.encoders.items import ImageSet, TextSet
from blindmatch.encoders.language import TextEncoder
from blindmatch.encoders.vision import ImageEncoder
from blindmatch.io.files import Arrays


@dataclass(frozen=True, eq=False)
class ImageWork:
    """Images and the model that embeds them."""

    items: ImageSet
    encoder: ImageEncoder
    strict: bool = False

    @property
    def names(self) -> Sequence[str]:
        """The names of the images."""
        return [item.name for item in self.items.items]

    def read(self, row: int) -> tuple[str, Any] | str:
        """The hash and the prepared image, or the reason why it cannot be read."""
        item = self.items.items[row]
        try:
            content = item.content()
            return hashlib.sha256(content).hexdigest(), self.encoder.prepare(decode(content))
        except (ValueError, OSError) as error:
            reason = str(error) if isinstance(error, ValueError) else f"it cannot be opened ({error.strerror})"
            if self.strict:
                raise ValueError(f"{item.name}: {reason}") from None
            return reason

    def about_rows(self, rows: Sequence[int]) -> Arrays:
        """Names and labels of the remaining images."""
        kept = [self.items.items[row] for row in rows]
        arrays: Arrays = {"names": np.array([item.name for item in kept], dtype=str)}
        if self.items.class_names is not None:
            arrays["labels"] = np.array([item.label for item in kept], dtype=np.int64)
            arrays["class_names"] = np.array(self.items.class_names, dtype=str)
        return arrays


@dataclass(frozen=True, eq=False)
class TextWork:
    """Texts and the model that embeds them."""

    items: TextSet
    encoder: TextEncoder

    @property
    def names(self) -> Sequence[str]:
        """The names of the texts."""
        return self.items.names

    def read(self, row: int) -> tuple[str, Any] | str:
        """The hash and the text."""
        text = self.items.texts[row]
        return hashlib.sha256(text.encode()).hexdigest(), text

    def about_rows(self, rows: Sequence[int]) -> Arrays:
        """Names and labels of the texts."""
        arrays: Arrays = {"names": np.array(self.items.names, dtype=str)}
        if self.items.labels is not None and self.items.class_names is not None:
            arrays["labels"] = np.array(self.items.labels, dtype=np.int64)
            arrays["class_names"] = np.array(self.items.class_names, dtype=str)
        if self.items.templates is not None:
            arrays["templates"] = np.array(self.items.templates, dtype=str)
        return arrays


Work = ImageWork | TextWork
