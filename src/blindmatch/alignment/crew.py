"""Passes over blocks of rows on several threads, which end between two blocks when time is up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

from blindmatch.solving.limits import keep_what_is_done

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818
    """Time is up: what a step was computing is given up."""


@dataclass
class Ending:
    """What cut a search short: time, Ctrl-C, or nothing."""

    why: Literal["", "time_limit", "interrupted"] = ""

    @contextmanager
    def record(self) -> Iterator[None]:
        """Let time and Ctrl-C end the block, but not what comes after it."""
        with keep_what_is_done() as interrupted:
            try:
                yield
            except Stopped:
                self.why = self.why or "time_limit"
        if interrupted:
            self.why = "interrupted"


class Crew:
    """Threads that share the blocks of a pass.

    Each thread runs its own single-threaded BLAS calls (the caller limits BLAS to one thread), so results do not depend
    on the number of threads. `remaining` tells the seconds that are left. It is asked before each block; when there are
    none, the pass ends with `Stopped`.
    """

    def __init__(self, threads: int = 1, remaining: Callable[[], float] = lambda: math.inf) -> None:
        self.threads = threads
        self._remaining = remaining

    def check(self, seconds: float = 0.0) -> None:
        """Raise `Stopped` when time is up, or when less is left than a step takes that cannot be cut short."""
        if self._remaining() <= seconds:
            raise Stopped

    def blocks(self, total: int, rows: int, work: Callable[[slice], T]) -> Iterator[tuple[slice, T]]:
        """``work`` of each block of `rows` rows, in order."""
        parts = [slice(start, min(start + rows, total)) for start in range(0, total, rows)]
        if self.threads == 1 or len(parts) == 1:
            for part in parts:
                self.check()
                yield part, work(part)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            waiting: list[tuple[slice, Future[T]]] = []
            try:
                for part in parts:
                    self.check()
                    waiting.append((part, pool.submit(work, part)))
                    if len(waiting) > self.threads:  # few results are held at once
                        first, future = waiting.pop(0)
                        yield first, future.result()
                for first, future in waiting:
                    yield first, future.result()
            finally:
                for _, future in waiting:
                    future.cancel()
