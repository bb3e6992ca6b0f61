"""CIFAR, CINIC-10 and COCO as their authors publish them: downloaded on request, hash-checked, safely unpacked."""

from __future__ import annotations

import json
import secrets
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.request import Request, urlopen

import numpy as np

from blindmatch.encoders.item_sets import ImageItem, ImageSet, TextSet
from blindmatch.encoders.prompts import class_names
from blindmatch.errors import unknown_name
from blindmatch.io.files import file_digest, write_atomically

# Published by the authors of the datasets, or reported identically by many users.
FILES = {  # the folder of each archive, and its hash
    "cifar-10-binary.tar.gz": ("https://www.cs.toronto.edu/~kriz", "md5:c32a1d4ab5d03f1284b67883e8d87530"),
    "cifar-100-binary.tar.gz": ("https://www.cs.toronto.edu/~kriz", "md5:03b5dce01913d631647c71ecec9e9cb8"),
    "CINIC-10.tar.gz": (
        "https://datashare.ed.ac.uk/bitstream/handle/10283/3192",
        "md5:6ee4d0c996905fe93221de577967a372",
    ),
    "val2017.zip": ("http://images.cocodataset.org/zips", "md5:442b8da7639aecaf257c1dceb8ba8c80"),
    "annotations_trainval2017.zip": (
        "http://images.cocodataset.org/annotations",
        "md5:f4bbac642086de4f52a3fdda2de5fa2c",
    ),
}


def fetch_archive(name: str, root: Path, download: bool) -> Path:
    """Return the archive `name` in the folder `root`; download it if that is allowed. Its hash is always checked."""
    folder, expected = FILES[name]
    url, path = f"{folder}/{name}", root / name
    if path.exists():
        check_hash(path, expected)
    elif download:
        fetch(url, path, expected)
    else:
        raise ValueError(f"{path}: it is missing; allow downloads (download=True, --download) or get it from {url}")
    return path


def unpacked_folder(name: str, root: Path, download: bool, folder: str) -> Path:
    """The folder of the unpacked archive; unpack it if needed."""
    target = root / folder
    if not target.is_dir():
        unpack(fetch_archive(name, root, download), target)
    return target


def fetch(url: str, path: Path, expected: str) -> None:
    """Download a file, check its hash, and only then rename it to its final name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    request = Request(url, headers={"User-Agent": "blindmatch"})  # some servers refuse Python's user agent

    def write(file: IO[bytes]) -> None:
        with urlopen(request, timeout=60) as answer:  # nosec B310 (our own list of https)
            shutil.copyfileobj(answer, file)
        file.flush()
        try:
            check_hash(Path(file.name), expected)
        except ValueError as error:
            raise ValueError(f"{url}: {error}") from None

    write_atomically(path, write)


MAX_BYTES = 40 * 2**30
MAX_FILES = 2_000_000


def check_hash(path: Path, expected: str) -> None:
    """Compare the hash of a file with ``md5:...`` or ``sha256:...``."""
    kind, _, wanted = expected.partition(":")
    found = file_digest(path, kind)
    if found != wanted:
        raise ValueError(f"{path}: its {kind} is {found}, expected {wanted}; it is damaged or a different file")


def unpack(archive: Path, target: Path, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
    """Unpack a .tar, .tar.gz or .zip into a new folder, completely or not at all.

    Members that are links or devices, that would be written outside of the folder, or that are too many or too large
    raise a ValueError.
    """
    if target.exists():
        raise ValueError(f"{target}: it already exists")
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    left = max_bytes
    try:
        scratch.mkdir(parents=True)
        for count, member in enumerate(_members(archive), 1):
            left -= member[1]
            if left < 0:
                raise ValueError(f"{archive}: it would unpack to more than {max_bytes:,} bytes")
            if count > max_files:
                raise ValueError(f"{archive}: it holds more than {max_files:,} files")
            _write(archive, member, scratch)
        scratch.rename(target)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, RuntimeError) as error:
        raise ValueError(f"{archive}: damaged ({error})") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


# Its name, its size, "file", "folder" or "other" (a link, a device), and what opens a stream that ends after that size.
_Member = tuple[str, int, str, Callable[[], IO[bytes] | None]]


def _members(archive: Path) -> Iterator[_Member]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            for item in file.infolist():
                kind = "folder" if item.is_dir() else "file"
                kind = "other" if stat.S_ISLNK(item.external_attr >> 16) else kind
                yield item.filename, item.file_size, kind, partial(file.open, item)
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            for entry in tar:
                kind = "file" if entry.isfile() else "folder" if entry.isdir() else "other"
                yield entry.name, entry.size, kind, partial(tar.extractfile, entry)
    else:
        raise ValueError(f"{archive}: neither a tar nor a zip archive")


def _write(archive: Path, member: _Member, folder: Path) -> None:
    """Write one member. This refuses more than tarfile's own filter, and earlier: names, links, duplicates."""
    full_name, _, kind, open_it = member
    name = PurePosixPath(full_name)
    if name.is_absolute() or ".." in name.parts or any(letter in full_name for letter in "\\:\0"):
        raise ValueError(f"{archive}: {full_name!r} would be written outside of the folder")
    path = folder.joinpath(*name.parts)
    if kind == "folder":
        path.mkdir(parents=True, exist_ok=True)
        return
    content = open_it() if kind == "file" else None
    if content is None:
        raise ValueError(f"{archive}: {full_name!r} is a link or a device; only files and folders are unpacked")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with content, path.open("xb") as out:
            shutil.copyfileobj(content, out)
    except FileExistsError:
        raise ValueError(f"{archive}: {full_name!r} occurs twice") from None


ARCHIVES = {"cifar10": "cifar-10-binary.tar.gz", "cifar100": "cifar-100-binary.tar.gz"}
MEMBERS = {
    ("cifar10", "test"): ["cifar-10-batches-bin/test_batch.bin"],
    ("cifar10", "train"): [f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)],
    ("cifar100", "test"): ["cifar-100-binary/test.bin"],
    ("cifar100", "train"): ["cifar-100-binary/train.bin"],
}
PIXELS = 32 * 32 * 3


def load_cifar(dataset: str, split: str, root: Path, download: bool) -> ImageSet:
    """Read a split of CIFAR-10 or CIFAR-100 from the archive in the folder `root`, without unpacking it."""
    if (dataset, split) not in MEMBERS:
        raise unknown_name("split", split, [known for name, known in MEMBERS if name == dataset])
    return read_cifar(fetch_archive(ARCHIVES[dataset], root, download), dataset, split)


def read_cifar(path: Path, dataset: str, split: str) -> ImageSet:
    """Read a split from the binary version of an archive.

    The "python version" is a pickle, which could run any code; the binary version has the same images as plain bytes.
    """
    names = class_names(dataset)
    bytes_before = 1 if dataset == "cifar10" else 2  # CIFAR-100 has a coarse label first
    items: list[ImageItem] = []
    size = bytes_before + PIXELS
    for member in MEMBERS[dataset, split]:
        records = np.frombuffer(_read_member(path, member), dtype=np.uint8)
        if records.size == 0 or records.size % size:
            raise ValueError(f"{path}: {member} has {records.size} bytes; expected a multiple of {size}")
        rows = records.reshape(-1, size)
        labels = rows[:, bytes_before - 1]
        if labels.max() >= len(names):
            raise ValueError(f"{path}: {member} has the label {labels.max()}; expected less than {len(names)}")
        images = np.ascontiguousarray(rows[:, bytes_before:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        for label, image in zip(labels, images, strict=True):
            items.append(ImageItem(f"{split}/{len(items)}", int(label), image))
    return ImageSet(dataset, tuple(items), names, about={"archive": path.name, "split": split})


def _read_member(path: Path, name: str) -> bytes:
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


# The file and the captions of each image, by its number.
Captions = dict[int, tuple[str, list[str]]]


def load_coco_images(split: str, root: Path, download: bool) -> ImageSet:
    """The images that have captions, by number; ``root/coco/val2017/*.jpg``."""
    captions, folder = _find_captions(split, root, download), root / "coco" / f"{split}2017"
    if not folder.is_dir():
        if split != "val":
            raise ValueError(f"{folder}: no such folder; only the split 'val' can be downloaded")
        folder = unpacked_folder("val2017.zip", root, download, "coco/val2017.unpacked") / "val2017"
    items = tuple(ImageItem(str(n), -1, folder / captions[n][0]) for n in sorted(captions))
    missing = [item.name for item in items if not Path(str(item.source)).is_file()]
    if missing:
        raise ValueError(f"{folder}: {len(missing)} images with captions are missing, such as number {missing[0]}")
    return ImageSet("coco", items, about={"split": split, "captions": f"captions_{split}2017.json"})


def load_coco_captions(split: str, root: Path, download: bool) -> TextSet:
    """All captions in the order of the images, each labelled with the position of its image."""
    captions = _find_captions(split, root, download)
    numbers = sorted(captions)
    rows = [(text, str(n), place) for place, n in enumerate(numbers) for text in captions[n][1]]
    texts, names, labels = zip(*rows, strict=True)
    return TextSet("coco", texts, names, labels, tuple(str(n) for n in numbers), about={"split": split})


def _find_captions(split: str, root: Path, download: bool) -> Captions:
    folder, name = root / "coco" / "annotations", f"captions_{split}2017.json"
    if not (folder / name).is_file():
        outer = unpacked_folder("annotations_trainval2017.zip", root, download, "coco/annotations.unpacked")
        folder = outer / "annotations"
    return read_captions(folder / name)


def read_captions(path: Path) -> Captions:
    """Read ``captions_*.json``: file and captions of each image, captions in the order of their own numbers."""
    try:
        content = json.loads(path.read_text("utf-8"))
        found: Captions = {int(image["id"]): (str(image["file_name"]), []) for image in content["images"]}
        for row in sorted(content["annotations"], key=lambda row: row["id"]):
            found[int(row["image_id"])][1].append(" ".join(str(row["caption"]).split()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a file of COCO captions ({type(error).__name__}: {error})") from None
    for number, (file, texts) in found.items():
        if Path(file).name != file:
            raise ValueError(f"{path}: image {number} has the file {file!r}; expected a plain name")
        if any(not text for text in texts):
            raise ValueError(f"{path}: image {number} has an empty caption")
    captioned = {number: entry for number, entry in found.items() if entry[1]}
    if not captioned:
        raise ValueError(f"{path}: it has no image with a caption")
    return captioned
