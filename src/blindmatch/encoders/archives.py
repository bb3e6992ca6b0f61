"""Unpack downloaded archives safely: hashes are checked, and nothing is written outside the target folder."""

from __future__ import annotations

import secrets
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from blindmatch.io.files import file_digest

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
            left -= member.size
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


class _Member(NamedTuple):
    """A member of an archive. The stream that `open` returns ends after `size` bytes, whatever the archive holds."""

    name: str
    size: int
    kind: str  # "file", "folder" or "other": a link, a device
    open: Callable[[], IO[bytes] | None]


def _members(archive: Path) -> Iterator[_Member]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            for item in file.infolist():
                link = stat.S_ISLNK(item.external_attr >> 16)
                kind = "other" if link else "folder" if item.is_dir() else "file"
                yield _Member(item.filename, item.file_size, kind, partial(file.open, item))
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            for entry in tar:
                kind = "file" if entry.isfile() else "folder" if entry.isdir() else "other"
                yield _Member(entry.name, entry.size, kind, partial(tar.extractfile, entry))
    else:
        raise ValueError(f"{archive}: neither a tar nor a zip archive")


def _write(archive: Path, member: _Member, folder: Path) -> None:
    """Write one member. This refuses more than tarfile's own filter, and earlier: names, links, duplicates."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or any(letter in member.name for letter in "\\:\0"):
        raise ValueError(f"{archive}: {member.name!r} would be written outside of the folder")
    path = folder.joinpath(*name.parts)
    if member.kind == "folder":
        path.mkdir(parents=True, exist_ok=True)
        return
    content = member.open() if member.kind == "file" else None
    if content is None:
        raise ValueError(f"{archive}: {member.name!r} is a link or a device; only files and folders are unpacked")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with content, path.open("xb") as out:
            shutil.copyfileobj(content, out)
    except FileExistsError:
        raise ValueError(f"{archive}: {member.name!r} occurs twice") from None


@contextmanager
def join_parts(parts: Sequence[Path], folder: Path) -> Iterator[Path]:
    """Several files joined into one temporary file."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        whole = Path(scratch) / "whole"
        with whole.open("wb") as out:
            for part in parts:
                with part.open("rb") as file:
                    shutil.copyfileobj(file, out)
        yield whole
