"""CIFAR-10 and CIFAR-100 from the binary version of the original archives.

The "python version" is a pickle, which could run any code; the binary version has the same images as plain bytes.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np

from blindmatch.encoders import download as downloads
from blindmatch.encoders.items import ImageItem, ImageSet
from blindmatch.encoders.prompts import class_names
from blindmatch.errors import unknown_name

ARCHIVES = {"cifar10": "cifar-10-binary.tar.gz", "cifar100": "cifar-100-binary.tar.gz"}
MEMBERS = {
    ("cifar10", "test"): ["cifar-10-batches-bin/test_batch.bin"],
    ("cifar10", "train"): [f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)],
    ("cifar100", "test"): ["cifar-100-binary/test.bin"],
    ("cifar100", "train"): ["cifar-100-binary/train.bin"],
}
PIXELS = 32 * 32 * 3


def load(dataset: str, split: str, root: Path, download: bool) -> ImageSet:
    """Read a split from the archive in the folder `root`; its hash is checked, and nothing is unpacked."""
    if (dataset, split) not in MEMBERS:
        raise unknown_name("split", split, [known for name, known in MEMBERS if name == dataset])
    path = downloads.archive(ARCHIVES[dataset], root, download)
    return read(path, dataset, split)


def read(path: Path, dataset: str, split: str) -> ImageSet:
    """Read a split from an archive with the original layout."""
    names = class_names(dataset)
    bytes_before = 1 if dataset == "cifar10" else 2  # CIFAR-100 has a coarse label first
    items: list[ImageItem] = []
    for member in MEMBERS[dataset, split]:
        records = np.frombuffer(_member(path, member), dtype=np.uint8)
        size = bytes_before + PIXELS
        if records.size == 0 or records.size % size:
            raise ValueError(f"{path}: {member} has {records.size} bytes; expected a multiple of {size}")
        rows = records.reshape(-1, size)
        labels = rows[:, bytes_before - 1]
        if labels.max() >= len(names):
            raise ValueError(f"{path}: {member} has the label {labels.max()}; expected less than {len(names)}")
        images = np.ascontiguousarray(rows[:, bytes_before:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        start = len(items)
        items += [
            ImageItem(f"{split}/{start + place}", int(label), image)
            for place, (label, image) in enumerate(zip(labels, images, strict=True))
        ]
    return ImageSet(dataset, tuple(items), names, about={"archive": path.name, "split": split})


def _member(path: Path, name: str) -> bytes:
    try:
        with tarfile.open(path) as archive:
            file = archive.extractfile(name)
            if file is None:
                raise ValueError(f"{path}: {name} is not a file")
            with file:
                return file.read(2**30)
    except KeyError:
        raise ValueError(f"{path}: it has no {name}; expected the binary version of the archive") from None
    except (tarfile.TarError, EOFError) as error:
        raise ValueError(f"{path}: damaged ({error})") from None
