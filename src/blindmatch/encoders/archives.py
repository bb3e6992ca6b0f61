"""Archives from elsewhere: hashes are checked, and nothing leaves the folder it is unpacked into."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

MAX_BYTES = 40 * 2**30
MAX_FILES = 2_000_000


def check_hash(path: Path, expected: str) -> None:
    """Compare a file with ``md5:...`` or ``sha256:...``."""
    kind, _, wanted = expected.partition(":")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    if found != wanted:
        raise ValueError(f"{path}: its {kind} is {found}, expected {wanted}; it is damaged or another file")


def unpack(archive: Path, target: Path, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
    """Unpack a .tar, .tar.gz or .zip into a new folder, whole or not at all.

    Members that are links or devices, that would land outside, or that are too many or too large are a ValueError.
    """
    if target.exists():
        raise ValueError(f"{target}: it exists already")
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        scratch.mkdir(parents=True)
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, scratch, max_bytes, max_files)
        elif tarfile.is_tarfile(archive):
            _unpack_tar(archive, scratch, max_bytes, max_files)
        else:
            raise ValueError(f"{archive}: neither a tar nor a zip archive")
        scratch.rename(target)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{archive}: damaged ({error})") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _unpack_tar(archive: Path, target: Path, max_bytes: int, max_files: int) -> None:
    left, count = max_bytes, 0
    with tarfile.open(archive) as tar:
        for member in tar:
            count += 1
            left -= member.size
            _check_limits(archive, left, max_bytes, count, max_files)
            path = _safe_path(archive, target, member.name)
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif member.isfile():
                content = tar.extractfile(member)
                assert content is not None
                with content:
                    _write_new(archive, path, content, member.size)
            else:
                raise ValueError(
                    f"{archive}: {member.name!r} is a link or a device; only files and folders are unpacked"
                )


def _unpack_zip(archive: Path, target: Path, max_bytes: int, max_files: int) -> None:
    left = max_bytes
    with zipfile.ZipFile(archive) as file:
        for count, member in enumerate(file.infolist(), 1):
            left -= member.file_size
            _check_limits(archive, left, max_bytes, count, max_files)
            path = _safe_path(archive, target, member.filename)
            if stat.S_ISLNK(member.external_attr >> 16):
                raise ValueError(f"{archive}: {member.filename!r} is a link; only files and folders are unpacked")
            if member.is_dir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            with file.open(member) as content:
                _write_new(archive, path, content, member.file_size)


def _check_limits(archive: Path, left: int, max_bytes: int, count: int, max_files: int) -> None:
    if left < 0:
        raise ValueError(f"{archive}: unpacked it would take more than {max_bytes:,} bytes")
    if count > max_files:
        raise ValueError(f"{archive}: it holds more than {max_files:,} files")


def _safe_path(archive: Path, target: Path, name: str) -> Path:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\\" in name or ":" in name or "\0" in name:
        raise ValueError(f"{archive}: {name!r} would be written outside of the folder")
    return target.joinpath(*parts.parts)


def _write_new(archive: Path, path: Path, content: object, size: int) -> None:
    """Copy at most the announced number of bytes: a header that lies must not fill the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as out:
            while size > 0:
                chunk = content.read(min(size, 1 << 20))  # type: ignore[attr-defined]
                if not chunk:
                    raise ValueError(f"{archive}: {path.name} is shorter than announced")
                out.write(chunk)
                size -= len(chunk)
    except FileExistsError:
        raise ValueError(f"{archive}: {path.name!r} is in it twice") from None


@contextmanager
def join_parts(parts: Sequence[Path], folder: Path) -> Iterator[Path]:
    """One file made of several, while it is needed."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        whole = Path(scratch) / "whole"
        with whole.open("wb") as out:
            for part in parts:
                with part.open("rb") as file:
                    shutil.copyfileobj(file, out)
        yield whole
