"""Embed on the workers of an executor: they load the model and read the images; the shards come back as they end."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from blindmatch.encoders.items import ImageSet, TextSet
from blindmatch.encoders.language import TextEncoder, load_text_encoder
from blindmatch.encoders.registry import Modality, find_model
from blindmatch.encoders.shards import Shard, ShardStore
from blindmatch.encoders.streaming import OnProgress, computing, shard_size
from blindmatch.encoders.vision import ImageEncoder, load_image_encoder
from blindmatch.encoders.work import ImageWork, TextWork, Work
from blindmatch.validation import as_executor

Items = ImageSet | TextSet
Placed = tuple[Work, "Remote | None"]  # what to embed, and where, if not here
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Remote:
    """A model that the workers of an executor load.

    Attributes
    ----------
    executor
        Any with the interface of ``concurrent.futures``.
    spec
        The name of the model, or its folder, which all workers can read under the same path.
    place
        Device, precision and permission to download, for the loaders of models.
    tasks
        The largest number of tasks, for executors that start a process for each (Slurm); None is one for each shard.
    """

    executor: Executor
    spec: str
    place: Mapping[str, Any]
    tasks: int | None = None

    @classmethod
    def of(cls, executor: Any, spec: Any, place: Mapping[str, Any], tasks: int | None = None) -> Remote:
        """Check what the caller gave."""
        if not isinstance(spec, str):
            raise ValueError("executor= needs the name of a model: a loaded model cannot be sent to the workers")
        folder = Path(spec)
        return cls(as_executor(executor), str(folder.absolute()) if folder.is_dir() else spec, place, tasks)

    def image_encoder(self) -> ImageEncoder:
        """The vision model as a worker describes it. It encodes nothing here, so nothing is loaded here."""
        return ImageEncoder(find_model(self.spec, "vision"), _elsewhere, _elsewhere, self._described("vision"))

    def text_encoder(self) -> TextEncoder:
        """The language model as a worker describes it."""
        return TextEncoder(find_model(self.spec, "language"), _elsewhere, self._described("language"))

    def _described(self, modality: Modality) -> dict[str, Any]:
        return _answer(self.executor.submit(describe, self.spec, modality, tuple(self.place.items())))

    def compute(self, work: Work, store: ShardStore, batch_size: int, progress: OnProgress | None) -> None:
        """Write the missing shards of a work into a store, in the order in which the workers finish them."""
        _refuse_functions(work.items)
        store.open()
        total, size = len(work.items), shard_size(batch_size)
        missing = [start for start in range(0, total, size) if store.read(start // size) is None]
        a_task = -(-len(missing) // self.tasks) if self.tasks and missing else 1
        task = ShardTask(self.spec, tuple(self.place.items()), work.encoder.description, batch_size, _strict(work))
        done = total - sum(min(size, total - start) for start in missing)
        waiting = []
        try:
            for at in range(0, len(missing), a_task):
                pieces = [(start, _part(work.items, start, start + size)) for start in missing[at : at + a_task]]
                waiting.append(self.executor.submit(embed_shards, task, pieces))
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


@dataclass(frozen=True, eq=False)
class Place:
    """Where models run: here, or on the workers of an executor. `options` and `tasks` are those of `Remote`."""

    options: Mapping[str, Any]
    executor: Any = None
    tasks: int | None = None

    def image_work(self, model: str | ImageEncoder, images: ImageSet, strict: bool) -> Placed:
        """Images to embed with a model, by its name or loaded."""
        if (remote := self._remote(model)) is not None:
            return ImageWork(images, remote.image_encoder(), strict), remote
        encoder = model if isinstance(model, ImageEncoder) else load_image_encoder(model, **self.options)
        return ImageWork(images, encoder, strict), None

    def text_work(self, model: str | TextEncoder, texts: TextSet) -> Placed:
        """Texts to embed with a model, by its name or loaded."""
        if (remote := self._remote(model)) is not None:
            return TextWork(texts, remote.text_encoder()), remote
        return TextWork(
            texts, model if isinstance(model, TextEncoder) else load_text_encoder(model, **self.options)
        ), None

    def _remote(self, model: Any) -> Remote | None:
        return None if self.executor is None else Remote.of(self.executor, model, self.options, self.tasks)


@dataclass(frozen=True)
class ShardTask:
    """What a worker has to know besides the items."""

    spec: str
    place: tuple[tuple[str, Any], ...]
    description: dict[str, Any]
    batch_size: int
    strict: bool


def describe(spec: str, modality: Modality, place: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """The description of a model, on a worker."""
    return _loaded(spec, modality, place).description


def embed_shards(task: ShardTask, pieces: Sequence[tuple[int, Items]]) -> list[tuple[int, Shard]]:
    """Embed some shards on a worker: each as the row of its first item and its items."""
    made = []
    for start, items in pieces:
        _refuse_missing_files(items)
        modality: Modality = "vision" if isinstance(items, ImageSet) else "language"
        encoder = _loaded(task.spec, modality, task.place)
        _refuse_another_model(encoder.description, task.description)
        work = (
            ImageWork(items, encoder, task.strict)
            if isinstance(items, ImageSet) and isinstance(encoder, ImageEncoder)
            else TextWork(items, encoder)  # type: ignore[arg-type]
        )
        with computing(work, task.batch_size) as compute:
            made.append((start, compute(0, len(items)).moved(start)))
    return made


@lru_cache(maxsize=1)
def _loaded(spec: str, modality: Modality, place: tuple[tuple[str, Any], ...]) -> ImageEncoder | TextEncoder:
    """The model, loaded once in each process."""
    load = load_image_encoder if modality == "vision" else load_text_encoder
    return load(spec, **dict(place))


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


def _strict(work: Work) -> bool:
    return isinstance(work, ImageWork) and work.strict


def _refuse_functions(items: Items) -> None:
    if isinstance(items, ImageSet) and any(callable(item.source) for item in items.items):
        raise ValueError(f"{items.name}: its images cannot be sent to workers; save them as files of a folder")


def _refuse_missing_files(items: Items) -> None:
    for item in items.items if isinstance(items, ImageSet) else ():
        if isinstance(item.source, Path) and not item.source.exists():
            raise ValueError(
                f"{item.source} is not on the worker {platform.node()}: all workers need the images under the same path"
            )


def _refuse_another_model(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for key in expected.keys() | found.keys():
        if found.get(key) != expected.get(key):
            raise ValueError(
                f"the worker {platform.node()} has {key}={found.get(key)!r}, another one {expected.get(key)!r}: all "
                "workers need the same packages, and --device and --precision that all of them have"
            )


def _elsewhere(items: Any) -> Any:
    raise RuntimeError("this model runs on workers only")
