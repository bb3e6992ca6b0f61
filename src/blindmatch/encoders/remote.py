"""Embed on the workers of an executor: they load the model and read the images; the shards come back as they end."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from blindmatch.encoders.item_sets import ImageSet, TextSet
from blindmatch.encoders.language import TextEncoder, load_text_encoder
from blindmatch.encoders.registry import Modality, find_model
from blindmatch.encoders.shards import OnProgress, Shard, ShardStore, Work, shard_computer, shard_size
from blindmatch.encoders.vision import ImageEncoder, load_image_encoder
from blindmatch.validation import as_executor

Items = ImageSet | TextSet
T = TypeVar("T")
_LOADERS: dict[Modality, Any] = {
    "vision": (ImageEncoder, load_image_encoder),
    "language": (TextEncoder, load_text_encoder),
}


@dataclass(frozen=True, eq=False)
class Place:
    """The place where models run: here, or the workers of an executor."""

    options: Mapping[str, Any]  # device, precision and permission to download, for the loaders of models
    executor: Any = None  # any with the interface of ``concurrent.futures``, or a Dask client. None: models run here.
    # the largest number of tasks, for executors that start a process for each (Slurm); None is one for each shard
    tasks: int | None = None

    def work(self, model: str | ImageEncoder | TextEncoder, items: Items, strict: bool = False) -> Work:
        """Items to embed with a model, by its name or loaded. A model of the workers is only described here."""
        modality = _modality(items)
        if self.executor is None:
            kind, load = _LOADERS[modality]
            return Work(items, model if isinstance(model, kind) else load(model, **self.options), strict)
        if not isinstance(model, str):
            raise ValueError("executor= needs the name of a model: a loaded model cannot be sent to the workers")
        spec = str(Path(model).absolute()) if Path(model).is_dir() else model  # all read it under the same path
        place = replace(self, executor=as_executor(self.executor))
        about = _answer(place.executor.submit(describe, spec, modality, tuple(self.options.items())))
        known, both = find_model(spec, modality), modality == "vision"
        encoder = ImageEncoder(known, _elsewhere, _elsewhere, about) if both else TextEncoder(known, _elsewhere, about)
        return Work(items, encoder, strict, place, spec)

    def compute(self, work: Work, store: ShardStore, batch_size: int, progress: OnProgress | None) -> None:
        """Write the missing shards of a work into a store, in the order in which the workers finish them."""
        if isinstance(work.items, ImageSet) and any(callable(item.source) for item in work.items.items):
            raise ValueError(f"{work.items.name}: its images cannot be sent to workers; save them as files of a folder")
        store.open()
        total, size = len(work.items), shard_size(batch_size)
        missing = [start for start in range(0, total, size) if store.read(start // size) is None]
        a_task = -(-len(missing) // self.tasks) if self.tasks and missing else 1
        task = work.spec, tuple(self.options.items()), work.encoder.description, batch_size, work.strict
        done = total - sum(min(size, total - start) for start in missing)
        waiting = []
        try:
            for at in range(0, len(missing), a_task):
                pieces = [(start, _part(work.items, start, start + size)) for start in missing[at : at + a_task]]
                waiting.append(self.executor.submit(embed_shards, *task, pieces))
            for future in as_completed(waiting):
                for start, shard in _answer(future):
                    store.write(start // size, shard)
                    done += min(size, total - start)
                if progress is not None:
                    progress(done, total)
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
        encoder = _load(spec, _modality(items), place)
        for key in description.keys() | encoder.description.keys():
            if (own := encoder.description.get(key)) != description.get(key):
                raise ValueError(
                    f"the worker {node} has {key}={own!r}, another one {description.get(key)!r}: all workers need the "
                    "same packages, and --device and --precision that all of them have"
                )
        with shard_computer(Work(items, encoder, strict), batch_size) as compute:
            shard = compute(0, len(items))
        rows = [row + start for row in shard.rows]
        skipped = [(row + start, why) for row, why in shard.skipped]
        made.append((start, Shard(shard.embeddings, rows, shard.digests, skipped)))
    return made


@lru_cache(maxsize=1)
def _load(spec: str, modality: Modality, place: tuple[tuple[str, Any], ...]) -> ImageEncoder | TextEncoder:
    """The model, loaded once in each process."""
    encoder: ImageEncoder | TextEncoder = _LOADERS[modality][1](spec, **dict(place))
    return encoder


def _modality(items: Items) -> Modality:
    return "vision" if isinstance(items, ImageSet) else "language"


def _answer(future: Future[T]) -> T:
    try:
        return future.result()
    except ModuleNotFoundError as error:
        raise ValueError(f"a worker lacks {error.name}: install the same packages on all workers") from error


def _part(items: Items, start: int, stop: int) -> Items:
    """Some items, as a worker in another folder can read them."""
    if isinstance(items, TextSet):
        return TextSet(items.name, items.texts[start:stop], items.names[start:stop])
    here = [
        replace(item, source=item.source.absolute()) if isinstance(item.source, Path) else item
        for item in items.items[start:stop]
    ]
    return ImageSet(items.name, tuple(here), items.class_names)


def _elsewhere(items: Any) -> Any:
    raise RuntimeError("this model runs on workers only")
