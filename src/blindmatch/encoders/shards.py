"""Embed a set in shards, here or on the workers of an executor; a resumed run computes only what is missing."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from blindmatch.encoders.devices import encode_in_batches
from blindmatch.encoders.item_sets import ImageSet, TextSet, decode
from blindmatch.encoders.language import load_text_encoder
from blindmatch.encoders.registry import Encoder, Modality, OnProgress, find_model
from blindmatch.encoders.vision import load_image_encoder
from blindmatch.io.files import read_npz, write_atomically, write_text
from blindmatch.validation import as_executor

Items = ImageSet | TextSet
T = TypeVar("T")
_LOADERS: dict[Modality, Any] = {"vision": load_image_encoder, "language": load_text_encoder}
SHARD = 256  # items; a kill loses at most this many
READERS = 4  # threads; decoding releases the GIL


@dataclass(frozen=True, eq=False)
class Work:
    """Images or texts and the model that embeds them, here or on the workers of a place, which know it as `spec`.

    If `strict`, an image that cannot be read is an error.
    """

    items: Items
    encoder: Encoder
    strict: bool = False
    workers: Place | None = None
    spec: str = ""

    def read(self, row: int) -> tuple[str, Any] | str:
        """The hash and the text or the prepared image, or the reason why it cannot be read."""
        if isinstance(self.items, TextSet):
            text = self.items.texts[row]
            return hashlib.sha256(text.encode()).hexdigest(), text
        item = self.items.items[row]
        try:
            content = item.content()
            return hashlib.sha256(content).hexdigest(), self.encoder.prepare(decode(content))
        except (ValueError, OSError) as error:
            reason = str(error) if isinstance(error, ValueError) else f"it cannot be opened ({error.strerror})"
            if self.strict:
                raise ValueError(f"{item.name}: {reason}") from None
            return reason


class Shard(NamedTuple):
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
            names = (path.name for path in self.folder.iterdir() if path.suffix != ".npz")
            if any(name != "plan.json" and not name.startswith(".") for name in names):
                raise ValueError(f"{self.folder}: it holds files that are not shards; expected an empty folder")
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)
        write_text(plan, text)

    def path(self, number: int) -> Path:
        """The file of a shard."""
        return self.folder / f"{number:06}.npz"

    def read(self, number: int) -> Shard | None:
        """A shard; None if it is missing or damaged and has to be computed."""
        try:
            found = read_npz(self.path(number))
            skipped = [(int(row), str(why)) for row, why in json.loads(str(found["skipped"]))]
            return Shard(found["embeddings"], found["rows"], [str(d) for d in found["digests"]], skipped)
        except (ValueError, KeyError, FileNotFoundError):
            return None

    def write(self, number: int, shard: Shard) -> None:
        """Keep a shard."""
        arrays: dict[str, Any] = {
            "embeddings": np.asarray(shard.embeddings, dtype=np.float32),
            "rows": np.asarray(shard.rows, dtype=np.int64),
            "digests": np.array(shard.digests, dtype="U64"),
            "skipped": np.array(json.dumps(shard.skipped)),
        }
        write_atomically(self.path(number), lambda file: np.savez(file, **arrays))


def compute_shards(work: Work, store: ShardStore, batch_size: int, progress: OnProgress | None) -> list[Shard]:
    """Return all shards of a work in order; those that the store lacks are computed, here or by workers."""
    store.open()
    total = len(work.items)
    size = max(batch_size, SHARD // batch_size * batch_size)  # whole batches: a resumed run forms the same ones
    found = {start: store.read(start // size) for start in range(0, total, size)}
    missing = [range(start, min(start + size, total)) for start, shard in found.items() if shard is None]
    done = total - sum(map(len, missing))
    embed = _embed_here if work.workers is None else work.workers.embed
    for count, start, shard in embed(work, missing, batch_size):
        if shard is not None:
            found[start] = shard
            store.write(start // size, shard)
        done += count
        if progress is not None:
            progress(done, total)
    return [shard for shard in found.values() if shard is not None]


def _embed_here(work: Work, pieces: Iterable[range], batch_size: int) -> Iterator[tuple[int, int, Shard | None]]:
    """Embed pieces of a set, and yield after each batch how many items it had, and a shard when it is complete.

    Items are read ahead in threads: at most two batches are in memory at a time.
    """
    fitting = batch_size
    with ThreadPoolExecutor(READERS) as threads:
        for piece in pieces:
            blocks, shard = [], Shard(None, [], [], [])
            batches = [piece[at : at + batch_size] for at in range(0, len(piece), batch_size)]
            waiting = [threads.submit(work.read, row) for row in batches[0]]
            for batch, following in zip(batches, [*batches[1:], ()], strict=True):
                reads = zip(batch, [future.result() for future in waiting], strict=True)
                waiting, prepared = [threads.submit(work.read, row) for row in following], []
                for row, read in reads:
                    if isinstance(read, str):
                        shard.skipped.append((row, read))
                    else:
                        shard.rows.append(row)
                        shard.digests.append(read[0])
                        prepared.append(read[1])
                if prepared:
                    values, fitting = encode_in_batches(work.encoder.encode, prepared, min(fitting, batch_size))
                    blocks.append(values)
                values = np.concatenate(blocks) if blocks else np.empty((0, 0), dtype=np.float32)
                yield len(batch), piece.start, None if following else shard._replace(embeddings=values)


@dataclass(frozen=True, eq=False)
class Place:
    """The place where models run: here, or the workers of an executor."""

    options: Mapping[str, Any]  # device, precision and permission to download, for the loaders of models
    executor: Any = None  # any with the interface of ``concurrent.futures``, or a Dask client. None: models run here.
    # the largest number of tasks, for executors that start a process for each (Slurm); None is one for each shard
    tasks: int | None = None

    def work(self, model: str | Encoder, items: Items, strict: bool = False) -> Work:
        """Items to embed with a model, by its name or loaded. A model of the workers is only described here."""
        if self.executor is None:
            loaded = model if isinstance(model, Encoder) else _LOADERS[items.modality](model, **self.options)
            return Work(items, loaded, strict)
        if not isinstance(model, str):
            raise ValueError("executor= needs the name of a model: a loaded model cannot be sent to the workers")
        spec = str(Path(model).absolute()) if Path(model).is_dir() else model  # all read it under the same path
        place = replace(self, executor=as_executor(self.executor))
        about = _answer(place.executor.submit(describe, spec, items.modality, tuple(self.options.items())))
        encoder = Encoder(find_model(spec, items.modality), _elsewhere, about)
        return Work(items, encoder, strict, place, spec)

    def embed(self, work: Work, pieces: Sequence[range], batch_size: int) -> Iterator[tuple[int, int, Shard]]:
        """Embed pieces of a set on the workers, and yield each shard as it ends, with its size and first row."""
        if isinstance(work.items, ImageSet) and any(callable(item.source) for item in work.items.items):
            raise ValueError(f"{work.items.name}: its images cannot be sent to workers; save them as files of a folder")
        a_task = -(-len(pieces) // self.tasks) if self.tasks and pieces else 1
        task = work.spec, tuple(self.options.items()), work.encoder.description, batch_size, work.strict
        waiting = []
        try:
            for at in range(0, len(pieces), a_task):
                parts = [(rows.start, _part(work.items, rows)) for rows in pieces[at : at + a_task]]
                waiting.append(self.executor.submit(embed_shards, *task, parts))
            for future in as_completed(waiting):
                for start, shard in _answer(future):
                    yield len(shard.rows) + len(shard.skipped), start, shard
        except BrokenExecutor as error:
            raise ChildProcessError(
                f"a worker was lost ({error or type(error).__name__}); out of memory? Finished parts are kept: run "
                "again to continue, perhaps with fewer workers"
            ) from error
        finally:
            for future in waiting:
                future.cancel()


def describe(spec: str, modality: Modality, place: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """The description of a model, on a worker."""
    return _load(spec, modality, place).description


def embed_shards(
    spec: str,
    place: tuple[tuple[str, Any], ...],
    description: dict[str, Any],
    batch_size: int,
    strict: bool,
    pieces: Sequence[tuple[int, Items]],
) -> list[tuple[int, Shard]]:
    """Embed some shards on a worker: each as the row of its first item and its items."""
    made, node = [], platform.node()
    for start, items in pieces:
        for item in items.items if isinstance(items, ImageSet) else ():
            if isinstance(item.source, Path) and not item.source.exists():
                raise ValueError(
                    f"{item.source} is not on the worker {node}: all workers need the images under the same path"
                )
        encoder = _load(spec, items.modality, place)
        for key in description.keys() | encoder.description.keys():
            if (own := encoder.description.get(key)) != description.get(key):
                raise ValueError(
                    f"the worker {node} has {key}={own!r}, another one {description.get(key)!r}: all workers need the "
                    "same packages, and --device and --precision that all of them have"
                )
        *_, (_, _, shard) = _embed_here(Work(items, encoder, strict), [range(len(items))], batch_size)
        assert shard is not None
        rows, skipped = [row + start for row in shard.rows], [(row + start, why) for row, why in shard.skipped]
        made.append((start, shard._replace(rows=rows, skipped=skipped)))
    return made


@lru_cache(maxsize=1)
def _load(spec: str, modality: Modality, place: tuple[tuple[str, Any], ...]) -> Encoder:
    """The model, loaded once in each process."""
    encoder: Encoder = _LOADERS[modality](spec, **dict(place))
    return encoder


def _answer(future: Future[T]) -> T:
    try:
        return future.result()
    except ModuleNotFoundError as error:
        raise ValueError(f"a worker lacks {error.name}: install the same packages on all workers") from error


def _part(items: Items, rows: range) -> Items:
    """Some items, as a worker in another folder can read them."""
    some = slice(rows.start, rows.stop)
    if isinstance(items, TextSet):
        return TextSet(items.name, items.texts[some], items.names[some])
    here = [
        replace(item, source=item.source.absolute()) if isinstance(item.source, Path) else item
        for item in items.items[some]
    ]
    return ImageSet(items.name, tuple(here), items.class_names)


def _elsewhere(items: Any) -> Any:
    raise RuntimeError("this model runs on workers only")
