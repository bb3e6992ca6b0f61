"""Embed a set in shards: read ahead in threads, encode in batches; a resumed run skips finished shards."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blindmatch.encoders.devices import encode_in_batches
from blindmatch.encoders.item_sets import ImageSet, TextSet, decode
from blindmatch.encoders.language import TextEncoder
from blindmatch.encoders.vision import ImageEncoder
from blindmatch.io.files import Arrays, read_npz, write_atomically

if TYPE_CHECKING:
    from blindmatch.encoders.remote import Place


@dataclass(frozen=True, eq=False)
class Work:
    """Images or texts and the model that embeds them, here or on workers, which know it as `spec`.

    If `strict`, an image that cannot be read is an error.
    """

    items: ImageSet | TextSet
    encoder: ImageEncoder | TextEncoder
    strict: bool = False
    workers: Place | None = None
    spec: str = ""

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


SHARD = 256  # items; a kill loses at most this many


@dataclass(frozen=True, eq=False)
class Shard:
    """The results of some consecutive items."""

    embeddings: Any  # (kept, d) float32
    rows: Any  # the indices of the items in the set
    digests: list[str]  # SHA-256 of the content of each item
    skipped: list[tuple[int, str]]  # row and reason of the items that could not be read


@dataclass(frozen=True)
class ShardStore:
    """A folder of shards of one plan; shards of another plan are deleted."""

    folder: Path
    plan: dict[str, Any]

    def open(self) -> None:
        """Create the folder, or resume from its shards."""
        text = json.dumps(self.plan, sort_keys=True)
        plan = self.folder / "plan.json"
        if plan.exists() and plan.read_text("utf-8") == text:
            return
        if self.folder.exists():
            if any(
                path.suffix != ".npz" and path.name != "plan.json" and not path.name.startswith(".")
                for path in self.folder.iterdir()
            ):
                raise ValueError(f"{self.folder}: it holds files that are not shards; expected an empty folder")
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)
        write_atomically(plan, lambda file: file.write(text.encode()))

    def read(self, number: int) -> Shard | None:
        """A shard; None if it is missing or damaged and has to be computed."""
        if not self._path(number).exists():
            return None
        try:
            found = read_npz(self._path(number))
            skipped = [(int(row), str(why)) for row, why in json.loads(str(found["skipped"]))]
            return Shard(found["embeddings"], found["rows"], [str(d) for d in found["digests"]], skipped)
        except (ValueError, KeyError):
            return None

    def write(self, number: int, shard: Shard) -> None:
        """Keep a shard."""
        arrays: dict[str, Any] = {
            "embeddings": np.asarray(shard.embeddings, dtype=np.float32),
            "rows": np.asarray(shard.rows, dtype=np.int64),
            "digests": np.array(shard.digests, dtype="U64"),
            "skipped": np.array(json.dumps(shard.skipped)),
        }
        write_atomically(self._path(number), lambda file: np.savez(file, **arrays))

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.npz"

    def remove(self) -> None:
        """Delete the shards."""
        shutil.rmtree(self.folder, ignore_errors=True)


OnProgress = Callable[[int, int], None]
READERS = 4  # threads; decoding releases the GIL


def shard_size(batch_size: int) -> int:
    """Items of a shard: whole batches, so that a resumed run forms the same ones."""
    return max(batch_size, SHARD // batch_size * batch_size)


def stream(work: Work, store: ShardStore, batch_size: int, progress: OnProgress | None) -> list[Shard]:
    """Return all shards of a work in order; those that the store has are only read."""
    store.open()
    total, size = len(work.items), shard_size(batch_size)
    shards = []
    with shard_computer(work, batch_size, progress) as compute:
        for number, start in enumerate(range(0, total, size)):
            stop = min(start + size, total)
            shard = store.read(number)
            if shard is None:
                shard = compute(start, stop)
                store.write(number, shard)
            if progress is not None:
                progress(stop, total)
            shards.append(shard)
    return shards


@contextmanager
def shard_computer(
    work: Work, batch_size: int, progress: OnProgress | None = None
) -> Iterator[Callable[[int, int], Shard]]:
    """Give a function that embeds the items from one row to another, with at most two batches in memory at a time."""
    fitting = batch_size
    with ThreadPoolExecutor(READERS) as threads:

        def ahead(start: int, stop: int) -> list[Future[tuple[str, Any] | str]]:
            return [threads.submit(work.read, row) for row in range(start, min(start + batch_size, stop))]

        def compute(start: int, stop: int) -> Shard:
            nonlocal fitting
            shard = Shard([], [], [], [])
            waiting = ahead(start, stop)
            for first in range(start, stop, batch_size):
                reads, waiting = [future.result() for future in waiting], ahead(first + batch_size, stop)
                prepared = []
                for row, read in enumerate(reads, first):
                    if isinstance(read, str):
                        shard.skipped.append((row, read))
                        continue
                    shard.rows.append(row)
                    shard.digests.append(read[0])
                    prepared.append(read[1])
                if prepared:
                    values, fitting = encode_in_batches(work.encoder.encode, prepared, min(fitting, batch_size))
                    shard.embeddings.append(values)
                if progress is not None:
                    progress(min(first + batch_size, stop), len(work.items))
            values = np.concatenate(shard.embeddings) if shard.embeddings else np.empty((0, 0), dtype=np.float32)
            return Shard(values, shard.rows, shard.digests, shard.skipped)

        yield compute
