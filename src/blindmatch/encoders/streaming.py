"""Read ahead in threads, encode in batches, and store shards."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from blindmatch.encoders.devices import shrinking
from blindmatch.encoders.shards import SHARD, Shard, ShardStore
from blindmatch.encoders.work import Work

OnProgress = Callable[[int, int], None]
READERS = 4  # threads; decoding releases the GIL


def stream(work: Work, store: ShardStore, batch_size: int, progress: OnProgress | None) -> list[Shard]:
    """Return all shards of a work in order, with at most two batches of images in memory at a time."""
    size = max(batch_size, SHARD // batch_size * batch_size)  # whole batches, so that a resumed run forms the same ones
    total = len(work.items)
    fitting = batch_size
    store.open()
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
                    progress(min(first + batch_size, stop), total)
            values = np.concatenate(shard.embeddings) if shard.embeddings else np.empty((0, 0), dtype=np.float32)
            return Shard(values, shard.rows, shard.digests, shard.skipped)

        return list(store.run(total, size, compute, progress))
