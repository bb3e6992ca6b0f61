"""Read ahead in threads, encode in batches, and store shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from blindmatch.encoders.devices import shrinking
from blindmatch.encoders.shards import SHARD, Shard, ShardStore
from blindmatch.encoders.work import Work

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
    with computing(work, batch_size, progress) as compute:
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
def computing(work: Work, batch_size: int, progress: OnProgress | None = None) -> Iterator[Callable[[int, int], Shard]]:
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
                    values, fitting = shrinking(work.encoder.encode, prepared, min(fitting, batch_size))
                    shard.embeddings.append(values)
                if progress is not None:
                    progress(min(first + batch_size, stop), len(work.items))
            values = np.concatenate(shard.embeddings) if shard.embeddings else np.empty((0, 0), dtype=np.float32)
            return Shard(values, shard.rows, shard.digests, shard.skipped)

        yield compute
