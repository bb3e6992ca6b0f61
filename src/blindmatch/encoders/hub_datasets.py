"""Datasets of the Hugging Face hub, through its ``datasets`` package."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders.devices import advice
from blindmatch.encoders.items import ImageItem, ImageSet, TextSet


def _split(name: str, split: str, download: bool) -> Any:
    try:
        import datasets
    except ImportError:
        raise ImportError(f"hf:{name} needs the package datasets: pip install datasets") from None
    config = datasets.DownloadConfig(local_files_only=not download)
    try:
        return datasets.load_dataset(name, split=split, download_config=config)  # nosec B615 (the user names it)
    except Exception as error:  # its errors for "not cached", "no such name" and "no such split" have no common class
        raise ValueError(f"hf:{name}: {' '.join(str(error).split())[:200]}{advice(download)}") from None


def set_name(name: str) -> str:
    """The name of a repository in a form that is valid in file names.

    >>> set_name("uoft-cs/cifar10")
    'uoft-cs-cifar10'
    """
    return name.strip("/").replace("/", "-")


def load_images(name: str, split: str, download: bool) -> ImageSet:
    """The first column of images, with the first column of class labels."""
    table = _split(name, split, download)
    kinds = {column: type(feature).__name__ for column, feature in table.features.items()}
    images = [column for column, kind in kinds.items() if kind == "Image"]
    labels = [column for column, kind in kinds.items() if kind == "ClassLabel"]
    if not images:
        raise ValueError(f"hf:{name}: it has no column of images; it holds {', '.join(kinds)}")
    names = tuple(table.features[labels[0]].names) if labels else None

    def pixels(place: int) -> NDArray[np.uint8]:
        return np.asarray(table[place][images[0]].convert("RGB"))

    numbers = table[labels[0]] if labels else [-1] * len(table)
    items = tuple(
        ImageItem(f"{split}/{place}", int(label), partial(pixels, place)) for place, label in enumerate(numbers)
    )
    about = {"hub": name, "split": split, "fingerprint": table._fingerprint}
    return ImageSet(set_name(name), items, names, about=about)


def load_texts(name: str, split: str, column: str | None, download: bool) -> TextSet:
    """One column of texts: `column`, or the first that holds strings."""
    table = _split(name, split, download)
    texts = [key for key, feature in table.features.items() if getattr(feature, "dtype", "") == "string"]
    chosen = column or (texts[0] if texts else None)
    if chosen not in texts:
        raise ValueError(f"hf:{name}: it has no column of texts {column or ''}; it holds {', '.join(table.features)}")
    rows = tuple(str(text) for text in table[chosen])
    return TextSet(set_name(name), rows, rows, about={"hub": name, "split": split, "column": chosen})
