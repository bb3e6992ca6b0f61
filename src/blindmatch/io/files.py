"""Read arrays from untrusted files (.npy, .npz, .safetensors); write files completely or not at all."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import secrets
import stat
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.errors import first_line, pip_install

Arrays = dict[str, NDArray[Any]]
UNPACKED = 1 << 28  # bytes that any file may unpack to
RATIO = 100  # a file may also unpack to this many times its size; arrays of floats hardly compress
_MEMBERS = 10_000  # arrays in an archive


def write_atomically(path: str | Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Let `write` fill a temporary file next to `path`, then rename it, so that a reader never sees a partial file.

    A pipe or a device such as ``/dev/stdout`` is written to, not replaced.
    """
    target = Path(path)
    if is_stream(target):
        content = io.BytesIO()  # an archive seeks while it is written
        with undisguised_interrupt():
            write(content)
        with _naming(target), target.open("ab") as stream:
            stream.write(content.getbuffer())
        return
    refuse_missing_folder(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with _naming(target), undisguised_interrupt(), temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write a text, completely or not at all."""
    write_atomically(path, lambda file: file.write(text.encode()))


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in an error that names none, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def undisguised_interrupt() -> Iterator[None]:
    """Raise the KeyboardInterrupt that led to another exception: a zip file cannot be closed amid a member."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__context__
        if cause is not None:
            raise KeyboardInterrupt from error
        raise


def refuse_missing_folder(path: str | Path) -> None:
    """Raise the usual error if the folder of a file to write does not exist, with the name of the file."""
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def is_stream(path: Path) -> bool:
    """True if the path is a pipe, a device or a file descriptor of a process, directly or through links."""
    try:
        mode = path.stat().st_mode
    except OSError:  # it does not exist
        return False
    if stat.S_ISBLK(mode):
        raise ValueError(f"{path} is a block device; expected a file")
    # /dev/stdout links to /proc/self/fd/1, which links to a file if the shell redirects stdout; to /dev/fd/1 on macOS.
    while not any(path.parent.resolve().is_relative_to(folder) for folder in ("/proc", "/dev/fd")):
        if not path.is_symlink():
            return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
        path = path.parent / path.readlink()
    return True


def text_of(path: str | Path, encoding: str = "utf-8-sig") -> str:
    """Return the text of a file. Of a pipe or a device, which may never end, no more than `UNPACKED` characters."""
    with Path(path).open(encoding=encoding) as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read()
        text = file.read(UNPACKED)
    if len(text) == UNPACKED:
        raise ValueError(f"{path} is a pipe or a device without an end; expected a file")
    return text


def refuse_endless(path: str | Path) -> None:
    """Raise a ValueError for a pipe or a device, which may never end; the usual errors if there is no file."""
    mode = Path(path).stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ValueError(f"{path} is a pipe or a device; expected a file")


def bytes_of(path: str | Path) -> bytes:
    """Return the bytes of a file, `UNPACKED` at most."""
    refuse_endless(path)
    size = Path(path).stat().st_size
    if size > UNPACKED:
        raise ValueError(f"{path} has {size:,} bytes; expected up to {UNPACKED:,}")
    return Path(path).read_bytes()


@contextmanager
def reading(path: str | Path, kind: str) -> Iterator[None]:
    """Turn any exception that a parser raises on a broken file into one ValueError that names the file.

    Errors that already name the file (a missing file, a folder) and missing packages pass through.
    """
    try:
        yield
    except ImportError:
        raise
    except Exception as error:  # parsers of untrusted bytes raise anything: zlib.error, ArrowInvalid, struct.error, ...
        if isinstance(error, OSError) and error.filename is not None:
            raise
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path}: not a readable {kind} file ({first_line(error)})") from None


def read_npy(path: str | Path) -> NDArray[Any]:
    """Return the array of a ``.npy`` file; pickled objects are refused."""
    with reading(path, ".npy"):
        with Path(path).open("rb") as file:
            if file.read(6) != b"\x93NUMPY":
                raise ValueError("it does not start like a numpy array")
        # Memory mapping compares the announced shape with the file size before memory is allocated.
        try:
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except ValueError as error:
            raise ValueError(_explain(error)) from None


def read_npz(path: str | Path, only: Collection[str] | None = None) -> Arrays:
    """Return the arrays of a ``.npz`` file, all or `only` some; pickled objects and zip bombs are refused."""
    with reading(path, ".npz"), Path(path).open("rb") as file:
        return unpacked(file, only)


def unpacked(file: IO[bytes], only: Collection[str] | None = None) -> Arrays:
    """Like `read_npz`, from an open file; a file that is not an archive may raise any exception."""
    arrays: Arrays = {}
    if file.read(2) != b"PK":
        raise ValueError("it does not start like a zip archive")
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len(members) > _MEMBERS:
            raise ValueError(f"it holds {len(members)} arrays; expected up to {_MEMBERS}")
        refuse_bomb(sum(member.file_size for member in members), file.seek(0, os.SEEK_END))
        for member in members:
            name = member.filename.removesuffix(".npy")
            if only is None or name in only:
                try:
                    arrays[name] = _member(archive, member)
                except ValueError as error:
                    raise ValueError(f"array {name!r}: {_explain(error)}") from None
    return arrays


def refuse_bomb(unpacked: int, packed: int) -> None:
    """Raise a ValueError if a file of `packed` bytes would take an absurd amount of memory."""
    limit = max(UNPACKED, RATIO * packed)
    if unpacked > limit:
        raise ValueError(f"its {packed:,} bytes would unpack to {unpacked:,}; expected up to {limit:,}")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array; its header is compared with its size in the archive before memory is allocated."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("it uses a compression that numpy never uses")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"it has version {version} of the format; expected (1, 0) or (2, 0)")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > member.file_size:
        raise ValueError("it is shorter than its header announces")
    with archive.open(member) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _explain(error: ValueError) -> str:
    """Explain numpy's messages for the two common faults."""
    text = str(error)
    if "pickle" in text or "Python objects" in text:
        return "it holds pickled Python objects, which are never loaded; save numbers, and text with dtype=str"
    if "mmap length" in text:
        return "it is shorter than its header announces"
    return first_line(error)


def file_digest(path: str | Path, kind: str = "sha256") -> str:
    """The hash of the content of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def missing_package(path: str | Path, package: str, extra: str = "files") -> ImportError:
    """The error for a file type that needs a package."""
    return ImportError(f"{path}: this file type needs the package {package}: {pip_install(extra)}")


# Tensors cannot hold text or scalars: a .safetensors file stores these as JSON in its metadata.
_IN_METADATA = ("names", "labels", "class_names", "templates", "parameters", "views")
_KINDS = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.int64): "I64"}


def read_arrays(path: str | Path, only: Collection[str] | None = None) -> Arrays:
    """Return the arrays of a ``.npz`` or ``.safetensors`` file by name, all or `only` some."""
    return (read_npz if Path(path).suffix.lower() == ".npz" else _read_safetensors)(path, only)


def _read_safetensors(path: str | Path, only: Collection[str] | None) -> Arrays:
    try:
        from safetensors import safe_open
    except ImportError:
        raise missing_package(path, "safetensors") from None
    with reading(path, ".safetensors"):
        Path(path).open("rb").close()  # raises the usual error if the file is missing
        with safe_open(str(path), framework="numpy") as file:
            names = [name for name in file.keys() if only is None or name in only]  # noqa: SIM118 (not a mapping)
            arrays: Arrays = {name: file.get_tensor(name) for name in names}
            texts = file.metadata() or {}
        for name in _IN_METADATA:
            if name in texts and name not in arrays and (only is None or name in only):
                arrays[name] = np.array(json.loads(texts[name]))
    return arrays


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Write ``.npz`` or ``.safetensors``; the same arrays give the same bytes."""
    if path.suffix == ".npz":
        write_atomically(path, lambda file: np.savez(file, **arrays))
    else:
        write_atomically(path, lambda file: _write_safetensors(file, arrays))


def _write_safetensors(file: IO[bytes], arrays: Arrays) -> None:
    """Write ``.safetensors`` with a fixed order of metadata, which the format's own writer does not guarantee.

    The file has eight bytes with the length of the header, the header as JSON, then the arrays. Texts are metadata.
    """
    texts, tensors, blocks, place = {}, {}, [], 0
    for key, array in arrays.items():
        if array.dtype.kind == "U" or array.ndim == 0:
            texts[key] = json.dumps(array.tolist())
            continue
        blocks.append(np.ascontiguousarray(array).tobytes())
        offsets = [place, place := place + len(blocks[-1])]
        tensors[key] = {"dtype": _KINDS[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
    header: dict[str, Any] = {"__metadata__": texts, **tensors} if texts else tensors
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for block in blocks:
        file.write(block)
