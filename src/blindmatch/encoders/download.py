"""Download the files of a dataset: only on request, completely or not at all, and with a hash check."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO
from urllib.request import Request, urlopen

from blindmatch.encoders.archives import check_hash, unpack
from blindmatch.io.files import write_atomically

# Published by the authors of the datasets, or reported identically by many users.
FILES = {
    "cifar-10-binary.tar.gz": (
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "md5:c32a1d4ab5d03f1284b67883e8d87530",
    ),
    "cifar-100-binary.tar.gz": (
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "md5:03b5dce01913d631647c71ecec9e9cb8",
    ),
    "CINIC-10.tar.gz": (
        "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz",
        "md5:6ee4d0c996905fe93221de577967a372",
    ),
    "val2017.zip": ("http://images.cocodataset.org/zips/val2017.zip", "md5:442b8da7639aecaf257c1dceb8ba8c80"),
    "annotations_trainval2017.zip": (
        "http://images.cocodataset.org/annotations/annotations_trainval2017.zip",
        "md5:f4bbac642086de4f52a3fdda2de5fa2c",
    ),
}


def archive(name: str, root: Path, download: bool) -> Path:
    """The archive `name` in the folder `root`, downloaded if that is allowed; its hash is always checked."""
    url, expected = FILES[name]
    path = root / name
    if not path.exists():
        if not download:
            raise ValueError(f"{path}: it is missing; allow downloads (download=True, --download) or get it from {url}")
        fetch(url, path, expected)
    else:
        check_hash(path, expected)
    return path


def unpacked_folder(name: str, root: Path, download: bool, folder: str) -> Path:
    """The folder of the unpacked archive; unpack it if needed."""
    target = root / folder
    if not target.is_dir():
        unpack(archive(name, root, download), target)
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
