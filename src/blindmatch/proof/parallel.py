"""Check the nodes of a tree on an executor, depth by depth: a node needs only what its parent ruled out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import TypeVar

_CHUNKS = 8  # at least, of the nodes of one depth
_LARGEST_CHUNK = 32  # nodes

Item = TypeVar("Item")
View = TypeVar("View")


def by_depth(parents: Sequence[int]) -> list[list[int]]:
    """The indices of the nodes at each depth of a tree; parents come before their children.

    >>> by_depth([-1, 0, 0, 1])
    [[0], [1, 2], [3]]
    """
    depths: list[int] = []
    levels: list[list[int]] = []
    for index, parent in enumerate(parents):
        depths.append(0 if parent < 0 else depths[parent] + 1)
        if depths[-1] == len(levels):
            levels.append([])
        levels[depths[-1]].append(index)
    return levels


def map_chunks(executor: Executor, look: Callable[[list[Item]], list[View]], items: list[Item]) -> list[View]:
    """``look`` on all items, a chunk of them at a time."""
    size = max(1, min(_LARGEST_CHUNK, len(items) // _CHUNKS))
    chunks = [items[first : first + size] for first in range(0, len(items), size)]
    futures = [submitted(executor, look, chunk) for chunk in chunks]
    try:
        return [view for future in futures for view in future.result()]
    finally:
        for future in futures:
            future.cancel()


def submitted(executor: Executor, function: Callable[..., View], *arguments: object) -> Future[View]:
    """A task, without Dask's warning of large ones: they are as large as they have to be."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return executor.submit(function, *arguments)
