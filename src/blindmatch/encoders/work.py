"""A set and the model that embeds it: reading the items, and their names and labels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blindmatch.encoders.images import decode
from blindmatch.encoders.items import ImageSet, TextSet
from blindmatch.encoders.language import TextEncoder
from blindmatch.encoders.vision import ImageEncoder
from blindmatch.io.files import Arrays

if TYPE_CHECKING:
    from blindmatch.encoders.remote import Remote


@dataclass(frozen=True, eq=False)
class Work:
    """Images or texts and the model that embeds them, here or on the workers of `remote`.

    If `strict`, an image that cannot be read is an error.
    """

    items: ImageSet | TextSet
    encoder: ImageEncoder | TextEncoder
    strict: bool = False
    remote: Remote | None = None

    def read(self, row: int) -> tuple[str, Any] | str:
        """The hash and the text or the prepared image, or the reason why it cannot be read."""
        if isinstance(self.items, TextSet):
            text = self.items.texts[row]
            return hashlib.sha256(text.encode()).hexdigest(), text
        assert isinstance(self.encoder, ImageEncoder)
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
        """Names and labels of the remaining items."""
        names, labels, classes = self.items.names, self.items.labels, self.items.class_names
        arrays: Arrays = {"names": np.array([names[row] for row in rows], dtype=str)}
        if labels is not None and classes is not None:
            arrays["labels"] = np.array([labels[row] for row in rows], dtype=np.int64)
            arrays["class_names"] = np.array(classes, dtype=str)
        if isinstance(self.items, TextSet) and self.items.templates is not None:
            arrays["templates"] = np.array(self.items.templates, dtype=str)
        return arrays
